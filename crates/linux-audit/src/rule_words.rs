//! The words of a line in a rule file, split as `auditctl -R` splits them, and what they ask for.
//!
//! Only options of a rule, each with its value, are let through: `auditctl` would carry out any other.

use super::rule_fields::{Action, RuleList};

/// The options of `auditctl(8)` that make up a rule; each takes a value.
const OF_A_RULE: [&str; 8] = ["-a", "-A", "-w", "-p", "-k", "-F", "-C", "-S"];
/// Options that begin a rule.
const BEGINNINGS: [&str; 3] = ["-a", "-A", "-w"];

/// A line that adds a rule: what `auditctl` is to be given, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleWords {
    /// Options and their values, in the order of the line.
    options: Vec<(&'static str, String)>,
    pub list: RuleList,
    pub action: Action,
}

impl RuleWords {
    /// Reads a line that begins as a rule does.
    ///
    /// # Errors
    /// A sentence that names the word that has no place there.
    pub fn parse(text: &str) -> Result<RuleWords, String> {
        let mut words = split(text).into_iter();
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            let option = OF_A_RULE.into_iter().find(|option| word.starts_with(option));
            let option = option.ok_or_else(|| no_option(&word, text))?;
            // As getopt_long(3) does: whatever follows such an option is its value.
            let value = match &word[option.len()..] {
                "" => words.next().ok_or_else(|| format!("`{option}` needs a value"))?,
                value => value.to_owned(),
            };
            if BEGINNINGS.contains(&option) != options.is_empty() {
                return Err(match options.is_empty() {
                    true => "a rule begins with `-a`, `-A` or `-w`".into(),
                    false => {
                        format!(
                            "a rule has only one of `-a`, `-A` and `-w`: remove the last `{option}`"
                        )
                    }
                });
            }
            options.push((option, value));
        }
        let (list, action) = match options.first() {
            Some(("-w", _)) => (RuleList::Exit, Action::Always),
            Some((option, value)) => list_and_action(value).ok_or_else(|| {
                format!(
                    "`{option}` takes `always` or `never` and a list (exit, user, task, exclude, \
                     filesystem, io_uring), as `always,exit`; not `{value}`"
                )
            })?,
            None => return Err("no rule in this line".into()),
        };
        Ok(RuleWords { options, list, action })
    }

    /// Returns the arguments for `auditctl`. Every option is followed by its value as a word of its
    /// own, so that no value can be taken for an option.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|(option, value)| [*option, value.as_str()])
    }

    /// Options and their values, in the order of the line.
    pub fn options(&self) -> &[(&'static str, String)] {
        &self.options
    }

    /// The first option whose value has a tab, with the value: `auditctl` splits words at blanks alone.
    pub fn with_a_tab(&self) -> Option<(&'static str, &str)> {
        let mut options = self.options.iter().map(|(option, value)| (*option, value.as_str()));
        options.find(|(_, value)| value.contains('\t'))
    }

    /// Returns true if the rule goes to the front of its list.
    pub fn is_prepended(&self) -> bool {
        self.options.first().is_some_and(|(option, _)| *option == "-A")
    }

    /// Returns true if such a rule, while it is loaded, can suppress records of a host's rules. A rule
    /// can if its list is of types or file systems, or if it goes before the host's rules.
    pub fn blinds_others(&self) -> bool {
        match self.list {
            RuleList::Exclude | RuleList::Filesystem => true,
            RuleList::User => self.action == Action::Never,
            _ => self.is_prepended(),
        }
    }

    /// Returns the rule with one more condition, its last, which confines it to processes of this
    /// login uid. `None` if the list knows no login uids.
    pub fn confined(mut self, loginuid: u32) -> Option<RuleWords> {
        self.options.push(("-F", format!("auid={loginuid}")));
        (self.list != RuleList::Filesystem).then_some(self)
    }
}

fn no_option(word: &str, text: &str) -> String {
    let tab = if text.contains('\t') {
        "; the line has a tab, which `auditctl` takes as a part of a word: separate words with blanks"
    } else {
        ""
    };
    format!("`{word}` is not valid in a rule{tab}")
}

/// Returns true if the line adds a rule that can be weighed.
pub fn is_rule(text: &str) -> bool {
    BEGINNINGS.iter().any(|option| text.starts_with(option)) && !is_task_exemption(text)
}

/// Such a rule exempts processes when they are started, the treated ones too.
fn is_task_exemption(text: &str) -> bool {
    RuleWords::parse(text)
        .is_ok_and(|rule| (rule.list, rule.action) == (RuleList::Task, Action::Never))
}

/// `always,exit` or `exit,always`.
fn list_and_action(value: &str) -> Option<(RuleList, Action)> {
    let (one, other) = value.split_once(',')?;
    let read = |list, action| Some((list_named(list)?, action_named(action)?));
    read(one, other).or_else(|| read(other, one))
}

fn list_named(name: &str) -> Option<RuleList> {
    Some(match name {
        "task" => RuleList::Task,
        "exit" => RuleList::Exit,
        "user" => RuleList::User,
        "exclude" => RuleList::Exclude,
        "filesystem" => RuleList::Filesystem,
        "io_uring" => RuleList::UringExit,
        _ => return None,
    })
}

fn action_named(name: &str) -> Option<Action> {
    match name {
        "always" => Some(Action::Always),
        "never" => Some(Action::Never),
        _ => None,
    }
}

/// At blanks only, whatever else looks like one; a backslash keeps a blank or a backslash in a word.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            ' ' if word.is_empty() => {}
            ' ' => words.push(std::mem::take(&mut word)),
            '\\' => match chars.next() {
                Some(kept @ (' ' | '\\')) => word.push(kept),
                other => word.extend(std::iter::once('\\').chain(other)),
            },
            other => word.push(other),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// A word as it has to be written to be one word of a line.
pub fn escaped(word: &str) -> String {
    word.replace('\\', r"\\").replace(' ', r"\ ")
}

/// An option and its value as a line has them.
pub fn written(option: &str, value: &str) -> String {
    format!("{option} {}", escaped(value))
}

/// Why a line that [`is_rule`] denies is passed over; `None` if it is no option of `auditctl` either.
pub fn skip_reason(text: &str) -> Option<&'static str> {
    Some(match text.split(' ').next().unwrap_or_default() {
        "-D" => "it would delete the rules of this host",
        "-d" | "-W" => "it would delete a rule of this host",
        "-e" => "weigh itself switches auditing on, and never locks it",
        "-f" => "the failure mode of this host stays as it is",
        "-i" | "-c" => "weigh carries on after a bad line anyway",
        "-r" => "the rate limit of this host stays as it is: it would drop records",
        "-q" | "-t" => "it would change which mounts the rules of this host watch",
        "-m" => "it would write a message into the log of this host",
        "-s" | "-l" | "-v" | "-h" => "it only displays something",
        "--backlog_wait_time" => "the backlog wait time of this host stays as it is",
        "--loginuid-immutable" => "it would lock the login uids of this host until the next boot",
        "--reset-lost" | "--reset_backlog_wait_time_actual" => {
            "it would reset a counter of this host"
        }
        "--signal" => "it would signal the audit daemon of this host",
        "-R" | "include" | "Include" | "@include" => {
            "`auditctl` cannot include a file from a different file: give weigh the included file, or the \
             directory with all of them"
        }
        word if word.starts_with("-b") => "its value is used as backlog=",
        _ if is_task_exemption(text) => {
            "it would exempt the treated processes from all other rules"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, CString, c_char, c_int};

    use proptest::prelude::*;

    use super::*;

    fn blinds(text: &str) -> bool {
        RuleWords::parse(text).unwrap().blinds_others()
    }

    #[test]
    fn what_would_blind_the_rules_of_a_host_is_known_by_its_words() {
        for text in [
            "-a always,exclude -F msgtype=PATH",
            "-aexclude,never -F msgtype=CWD",
            "-a never,filesystem -F fstype=tracefs",
            "-A never,exit -F arch=b64 -S read",
            "-A always,exit -S read -k another",
            "-a user,never -F auid=0",
        ] {
            assert!(blinds(text), "{text}");
        }
        for text in
            ["-a never,exit -S read", "-a always,exit -F key=exclude", "-w /never,user -p wa"]
        {
            assert!(!blinds(text), "{text}");
        }
    }

    #[test]
    fn a_rule_is_confined_by_its_last_condition_where_its_list_allows() {
        let confined = |text| RuleWords::parse(text).unwrap().confined(7);
        let words = confined("-A never,exit -Sread -F auid>=1000").unwrap();
        let arguments: Vec<&str> = words.arguments().collect();
        assert_eq!(
            arguments,
            ["-A", "never,exit", "-S", "read", "-F", "auid>=1000", "-F", "auid=7"]
        );
        assert_eq!(confined("-a never,filesystem -F fstype=tmpfs"), None);
    }

    #[test]
    fn options_that_would_be_carried_out_are_found_in_a_rule() {
        for (text, said) in [
            ("-w /etc -p wa -D", "`-D` is not valid in a rule"),
            ("-a always,exit -S all -e 2", "`-e` is not valid in a rule"),
            ("-w /etc --reset-lost", "`--reset-lost` is not valid in a rule"),
            ("-w /etc --res", "`--res` is not valid in a rule"),
            ("-w /etc -- -D", "`--` is not valid in a rule"),
            ("-w /etc x", "`x` is not valid in a rule"),
            ("-w /etc -p wa\t-k x", "`x` is not valid in a rule; the line has a tab"),
            ("-w /etc -", "`-` is not valid in a rule"),
            ("-w /etc -tD", "`-tD` is not valid in a rule"),
            ("-w /etc -k", "`-k` needs a value"),
            ("-w", "`-w` needs a value"),
            ("-w /etc -w /usr", "remove the last `-w`"),
            ("-w /etc -a never,task", "remove the last `-a`"),
            ("-aD", "not `D`"),
            ("-a always", "not `always`"),
            ("-a always,exit,-D", "not `always,exit,-D`"),
            ("-a possible,exit", "not `possible,exit`"),
        ] {
            let refused = RuleWords::parse(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
        }
        for text in [
            "-a always,exit -F auid!=-1 -S getppid -k -D",
            "-a always,exit -F arch=b64 -C uid!=euid -Fauid=1 -kx",
            "-w /-D -k-D",
        ] {
            assert!(RuleWords::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_list_and_an_action_are_taken_in_either_order() {
        for (list, is_list) in [
            ("task", RuleList::Task),
            ("exit", RuleList::Exit),
            ("user", RuleList::User),
            ("exclude", RuleList::Exclude),
            ("filesystem", RuleList::Filesystem),
            ("io_uring", RuleList::UringExit),
        ] {
            for (action, is_action) in [("always", Action::Always), ("never", Action::Never)] {
                for value in [format!("{list},{action}"), format!("{action},{list}")] {
                    assert_eq!(list_and_action(&value), Some((is_list, is_action)), "{value}");
                }
            }
        }
    }

    #[test]
    fn words_are_those_of_auditctl() {
        assert_eq!(
            split("  -w  /a\\ b\\\\c\\d\u{a0}e  -k\tx "),
            ["-w", "/a b\\c\\d\u{a0}e", "-k\tx"]
        );
        assert_eq!(split("a\\"), ["a\\"]);
    }

    #[test]
    fn control_options_have_a_reason_each() {
        for text in [
            "-D",
            "-e 2",
            "-b 8192",
            "-f 1",
            "-d always,exit -S all",
            "-W /etc",
            "-i",
            "-c",
            "-r 100",
            "--backlog_wait_time 60000",
            "--loginuid-immutable",
            "--reset-lost",
            "-R other.rules",
            "include other.rules",
            "-q /mnt,/srv",
            "-m text",
            "-s",
            "--signal SIGHUP",
            "-a never,task",
            "-a task,never",
        ] {
            assert!(!is_rule(text), "{text}");
            assert!(skip_reason(text).is_some(), "{text}");
        }
        assert_eq!(skip_reason("rubbish"), None);
        assert!(is_rule("-w /x -k never,task"));
    }

    #[repr(C)]
    struct LongOption {
        name: *const c_char,
        has_value: c_int,
        flag: *mut c_int,
        code: c_int,
    }

    unsafe extern "C" {
        static mut optind: c_int;
        static mut opterr: c_int;
        static optarg: *const c_char;
        fn getopt_long(
            count: c_int,
            words: *const *mut c_char,
            short: *const c_char,
            long: *const LongOption,
            index: *mut c_int,
        ) -> c_int;
    }

    /// Returns the options that auditctl's own loop sees in these arguments.
    fn seen_by_auditctl(arguments: &[&str]) -> Vec<(i32, String)> {
        // getopt_long keeps its state in globals.
        static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let words: Vec<CString> = std::iter::once(&"auditctl")
            .chain(arguments)
            .map(|word| CString::new(*word).unwrap())
            .collect();
        let mut pointers: Vec<*mut c_char> = words.iter().map(|w| w.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());
        let long = |name: &'static CStr, has_value, code| LongOption {
            name: name.as_ptr(),
            has_value,
            flag: std::ptr::null_mut(),
            code,
        };
        let end = LongOption { name: std::ptr::null(), ..long(c"", 0, 0) };
        let known = [
            long(c"loginuid-immutable", 0, 1),
            long(c"backlog_wait_time", 1, 2),
            long(c"reset-lost", 0, 3),
            long(c"reset_backlog_wait_time_actual", 0, 4),
            long(c"signal", 1, 5),
            end,
        ];
        let mut seen = Vec::new();
        // SAFETY: all strings and lists live until the end, the lists have their ends, and no other
        // thread uses these globals.
        unsafe {
            optind = 0;
            opterr = 0;
            loop {
                let option = getopt_long(
                    words.len() as c_int,
                    pointers.as_ptr(),
                    c"hicslDvtC:e:f:r:b:a:A:d:S:F:m:R:w:W:k:p:q:".as_ptr(),
                    known.as_ptr(),
                    std::ptr::null_mut(),
                );
                if option < 0 {
                    break;
                }
                let value = optarg;
                let value = match value.is_null() {
                    true => String::new(),
                    false => CStr::from_ptr(value).to_string_lossy().into_owned(),
                };
                seen.push((option, value));
            }
            let read = optind;
            assert_eq!(read, words.len() as c_int, "words that are of no option: {words:?}");
        }
        seen
    }

    /// A rule, and whatever may stand behind it.
    const LINES: &str = "(-[aAw] ?|-)?(always,exit|never,user|/etc)?([ \t]{0,2}(-{0,2}[a-zA-Z]{0,3}|-k|-F\
        |reset-lost|signal|\\\\|\u{a0}|[ -~\t]{0,6})){0,6}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn a_word_that_is_written_is_read_again(word in "[ -~]{1,9}") {
            prop_assert_eq!(split(&escaped(&word)), [word]);
        }

        #[test]
        fn auditctl_sees_what_was_checked_and_nothing_else(
            text in LINES,
        ) {
            if let Ok(words) = RuleWords::parse(&text) {
                let arguments: Vec<&str> = words.arguments().collect();
                let checked: Vec<(i32, String)> = words
                    .options
                    .iter()
                    .map(|(option, value)| (i32::from(option.as_bytes()[1]), value.clone()))
                    .collect();
                prop_assert_eq!(seen_by_auditctl(&arguments), checked, "{}", text);
            }
        }
    }
}
