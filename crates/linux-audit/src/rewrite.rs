//! Other ways to write audit rules, which may cost less. Whether they do is for measuring.

use super::merged_rules::merged_calls;
use super::perm_calls::{NEWEST_KERNEL, calls};
use super::rule::{Rule, field};
use super::rule_fields::{Action, Decoded, RuleList};
use super::rule_set::RuleLine;
use super::rule_words::{RuleWords, escaped, written};

/// Bits of the kernel's `perm=`, by the letters of `auditctl -p`.
const PERMS: [(char, u32); 4] = [('r', 4), ('w', 2), ('x', 1), ('a', 8)];

/// Magic number of tmpfs, from `include/uapi/linux/magic.h`. `auditctl` 3 knows only debugfs and
/// tracefs by name.
const TMPFS_MAGIC: &str = "0x01021994";

/// Another way to write some rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Title of the proposal, in a few words.
    pub title: String,
    /// Indices of lines that `with` takes the place of; empty where it is only added.
    pub replaces: Vec<usize>,
    /// How many lines of `with` take the place of each of `replaces`, in its order.
    pub with_each: Vec<usize>,
    /// The new lines.
    pub with: Vec<String>,
    /// True if `with` goes before all other rules.
    pub is_first: bool,
    /// Events that are no longer recorded; `None` if the rewrite loses nothing.
    pub gives_up: Option<String>,
}

impl Proposal {
    /// Lines, and what takes the place of each; it loses nothing.
    fn replacing(title: String, lines: Vec<(usize, Vec<String>)>) -> Proposal {
        Proposal {
            title,
            replaces: lines.iter().map(|(line, _)| *line).collect(),
            with_each: lines.iter().map(|(_, with)| with.len()).collect(),
            with: lines.into_iter().flat_map(|(_, with)| with).collect(),
            is_first: false,
            gives_up: None,
        }
    }

    /// Lines that go before all other rules.
    fn adding(title: String, with: Vec<String>, gives_up: Option<String>) -> Proposal {
        let (replaces, with_each) = (Vec::new(), Vec::new());
        Proposal { title, replaces, with_each, with, is_first: true, gives_up }
    }

    /// Returns true if fewer rules take the place of these.
    pub fn merges(&self) -> bool {
        self.with.len() < self.replaces.len()
    }
}

/// Proposes other ways to write the rules. `host` are the rules that are in force besides those of
/// the lines; an exemption applies to them too. `hot_calls` are names and numbers of the system
/// calls that the programs make most.
pub fn proposals(lines: &[RuleLine], host: &[Rule], hot_calls: &[(&str, u32)]) -> Vec<Proposal> {
    let rules: Vec<Decoded> =
        lines.iter().flat_map(|line| &line.rules).map(|rule| rule.decode()).collect();
    let host: Vec<Decoded> = host.iter().map(|rule| rule.decode()).collect();
    let mut proposals = Vec::new();
    if cfg!(target_arch = "x86_64") {
        proposals.extend(listed_calls(lines));
    }
    proposals.extend(merged_calls(lines).map(|(title, with)| Proposal::replacing(title, with)));
    proposals.extend(cheap_conditions_first(lines));
    proposals.extend(exempt_tmpfs(&rules, &host));
    proposals.extend(exempt_calls(&rules, &host, hot_calls));
    proposals
}

/// A directory watch, which the kernel looks at after every system call, as rules for the system
/// calls that it can match at all: `perm=` holds for no others, until a later kernel adds some.
fn listed_calls(lines: &[RuleLine]) -> Vec<Proposal> {
    let (directories, rewritten): (Vec<String>, Vec<(usize, Vec<String>)>) = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((index, line, directory_watch(line)?)))
        .map(|(index, line, watch)| {
            let directory = watch.field(field::DIR).and_then(|dir| dir.text.clone());
            (directory.unwrap_or_default(), (index, with_listed_calls(&watch, line)))
        })
        .unzip();
    let proposal = |title: String, lines: Vec<(usize, Vec<String>)>| Proposal {
        gives_up: Some(format!(
            "system calls added after Linux {NEWEST_KERNEL}: a watch covers them, but a list does only once \
             you add them"
        )),
        ..Proposal::replacing(title, lines)
    };
    let mut proposals: Vec<Proposal> = directories
        .iter()
        .zip(&rewritten)
        .map(|(directory, one)| {
            let title = format!("list the system calls in the watch of {directory}");
            proposal(title, vec![one.clone()])
        })
        .collect();
    if rewritten.len() > 1 {
        let title = format!("list the system calls in all {} directory watches", rewritten.len());
        proposals.push(proposal(title, rewritten));
    }
    proposals
}

/// The rule of a line that watches a directory, or its files by `perm=`, whatever the call.
fn directory_watch(line: &RuleLine) -> Option<Decoded> {
    let [rule] = line.rules.as_slice() else { return None };
    let rule = rule.decode();
    let is_watch = rule.list == RuleList::Exit
        && rule.action == Action::Always
        && rule.syscalls.is_all()
        && rule.field(field::ARCH).is_none()
        && rule.field(field::DIR).is_some()
        && rule.field(field::PERM).is_some();
    is_watch.then_some(rule)
}

fn with_listed_calls(watch: &Decoded, line: &RuleLine) -> Vec<String> {
    let option = if line.is_prepended { "-A" } else { "-a" };
    let conditions = conditions(&line.text).join(" ");
    let perm = perm_letters(watch.field(field::PERM).map_or(0, |perm| perm.number));
    [("b64", false), ("b32", true)]
        .map(|(arch, is_32_bit)| {
            let calls = calls(&perm, is_32_bit).join(",");
            format!("{option} always,exit -F arch={arch} -S {calls} {conditions}")
        })
        .into()
}

fn perm_letters(bits: u32) -> String {
    PERMS.iter().filter(|(_, bit)| bits & bit != 0).map(|(letter, _)| letter).collect()
}

/// The conditions of a line as options, in their order, those of a watch written out.
fn conditions(text: &str) -> Vec<String> {
    let mut conditions = Vec::new();
    let mut perm = None;
    let is_watch = text.starts_with("-w");
    for (option, value) in options(text) {
        match option {
            "-w" => conditions.push(format!("-F dir={}", escaped(trimmed(&value)))),
            "-p" => perm = Some(value),
            "-F" | "-C" | "-k" => conditions.push(written(option, &value)),
            _ => {}
        }
    }
    if is_watch {
        let perm = perm.as_deref().unwrap_or("rwxa");
        conditions.insert(1.min(conditions.len()), format!("-F perm={perm}"));
    }
    conditions
}

/// A directory as `dir=` takes it.
fn trimmed(path: &str) -> &str {
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
}

/// The options of a line and their values, as they are when it is loaded; none of what is no rule.
fn options(text: &str) -> Vec<(&'static str, String)> {
    RuleWords::parse(text).map_or(Vec::new(), |words| words.options().to_vec())
}

/// The kernel stops at the first condition that does not hold, so what is quickly compared and
/// seldom true belongs before what takes a walk. All have to hold, so their order changes nothing.
fn cheap_conditions_first(lines: &[RuleLine]) -> Option<Proposal> {
    let mut reordered = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.rules.is_empty()) {
        if line.text.starts_with("-w") {
            continue;
        }
        let mut options = options(&line.text);
        let before = options.clone();
        options.sort_by_key(|(option, value)| cost_rank(option, value));
        if options != before && !is_only_regrouped(&before, &options) {
            let words: Vec<String> =
                options.iter().map(|(option, value)| written(option, value)).collect();
            reordered.push((index, vec![words.join(" ")]));
        }
    }
    let title = "quick conditions before slow ones (the kernel stops at the first that fails)";
    (!reordered.is_empty()).then(|| Proposal::replacing(title.into(), reordered))
}

/// Returns true if the conditions come in the same order, and only system calls or keys moved.
fn is_only_regrouped(before: &[(&str, String)], after: &[(&str, String)]) -> bool {
    let conditions = |options: &[(&str, String)]| -> Vec<String> {
        let options = options.iter().filter(|(option, _)| matches!(*option, "-F" | "-C"));
        options.map(|(option, value)| format!("{option}{value}")).collect()
    };
    conditions(before) == conditions(after)
}

/// Ranks an option by its cost. A condition is slow if it walks the directory tree, compares
/// programs or labels, or looks up a parent. `arch=` has to come before the calls that are named
/// for it.
fn cost_rank(option: &str, value: &str) -> u8 {
    let name = value.split(['=', '!', '<', '>', '&']).next().unwrap_or_default();
    match (option, name) {
        ("-a" | "-A", _) => 0,
        ("-F", "arch") => 1,
        ("-S", _) => 2,
        ("-F", "key") | ("-k", _) => 6,
        ("-F", "dir" | "perm" | "exe" | "ppid" | "path") => 5,
        ("-F", name) if name.starts_with("obj_") || name.starts_with("subj_") => 5,
        ("-C", _) => 4,
        _ => 3,
    }
}

fn exempt_tmpfs(rules: &[Decoded], host: &[Decoded]) -> Option<Proposal> {
    let is_exempt = rules.iter().chain(host).any(|rule| rule.list == RuleList::Filesystem);
    let concerns_paths = rules.iter().any(|rule| rule.list == RuleList::Exit);
    let exemption = format!("-a never,filesystem -F fstype={TMPFS_MAGIC}");
    let gives_up = "events on tmpfs (often /run, /tmp and /dev/shm): watches there see nothing, and records \
                    do not name these paths";
    (concerns_paths && !is_exempt).then(|| {
        let title = "record no paths on tmpfs".into();
        Proposal::adding(title, vec![exemption], Some(gives_up.into()))
    })
}

/// Calls that no rule asks for by name, nor could match by `perm=`.
fn exempt_calls(
    rules: &[Decoded],
    host: &[Decoded],
    hot_calls: &[(&str, u32)],
) -> Option<Proposal> {
    let of_exit = |rule: &&Decoded| rule.list == RuleList::Exit;
    let exit = || rules.iter().chain(host).filter(of_exit);
    let asks_for_all = |rule: &&Decoded| rule.syscalls.is_all() && rule.action == Action::Always;
    // The kernel finds watches of one file by its inode: an exemption makes those no cheaper.
    let mut slow = rules.iter().filter(of_exit).filter(asks_for_all);
    if !slow.any(|rule| rule.field(field::WATCH).is_none()) {
        return None;
    }
    let is_needed = |name: &str, number: u32| {
        exit().any(|rule| {
            let perm = rule.field(field::PERM).map(|perm| perm_letters(perm.number));
            let could_match = perm.is_some_and(|perm| calls(&perm, false).contains(&name));
            (rule.syscalls.contains(number) && !rule.syscalls.is_all()) || could_match
        })
    };
    let names: Vec<&str> = hot_calls
        .iter()
        .filter(|(name, number)| !is_needed(name, *number))
        .map(|(name, _)| *name)
        .collect();
    // Without `perm=` a watch sees also calls as stat(2), and an exemption goes before it.
    let losing =
        exit().filter(asks_for_all).filter(|rule| rule.field(field::PERM).is_none()).count();
    (!names.is_empty()).then(|| {
        let title = format!("exempt the most frequent calls: {}", names.join(", "));
        let exemption = format!("-A never,exit -F arch=b64 -S {}", names.join(","));
        let gives_up = (losing > 0).then(|| {
            let rules = if losing == 1 { "rule" } else { "rules" };
            format!("records of these calls for {losing} {rules} on every system call")
        });
        Proposal::adding(title, vec![exemption], gives_up)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::rule_set::LineOutcome;
    use super::*;

    /// A rule with one of the kernel's words replaced: `struct audit_rule_data` has its list at 0, its action
    /// at 4, its calls from 12 and the kinds of its fields from 268.
    fn changed(rule: &Rule, at: usize, word: u32) -> Rule {
        let mut bytes = rule.as_bytes().to_vec();
        bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        Rule::from_bytes(bytes)
    }

    /// `-w DIRECTORY -p r -k k`.
    fn of_directory(directory: &str) -> Rule {
        changed(&Rule::watch(Path::new(directory), "k").listed(), 268, field::DIR)
    }

    #[test]
    fn conditions_are_put_in_the_order_of_their_cost_and_the_abi_stays_first() {
        let order = |text: &str| {
            let mut options = options(text);
            options.sort_by_key(|(option, value)| cost_rank(option, value));
            options.iter().map(|(o, value)| written(o, value)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            order(
                "-a always,exit -S open -F exe=/bin/x -F arch=b64 -F auid>=1000 -C uid!=euid -k k"
            ),
            "-a always,exit -F arch=b64 -S open -F auid>=1000 -C uid!=euid -F exe=/bin/x -k k"
        );
        let kept = "-a always,exit -S open -F auid>=1000 -F dir=/etc -F perm=wa -F key=k";
        assert_eq!(order(kept), kept);
        assert_eq!(
            order(r"-a always,exit -F dir=/etc -F auid>=1000 -F key=a\ b\\c"),
            r"-a always,exit -F auid>=1000 -F dir=/etc -F key=a\ b\\c"
        );
    }

    #[test]
    fn a_watch_is_written_out() {
        let conditions = |text| conditions(text).join(" ");
        assert_eq!(conditions("-w /etc/ -p wa -k k"), "-F dir=/etc -F perm=wa -k k");
        assert_eq!(conditions("-w /etc/"), "-F dir=/etc -F perm=rwxa");
        assert_eq!(conditions("-w /"), "-F dir=/ -F perm=rwxa");
        assert_eq!(conditions(r"-w /a\ b\\/ -p wa -kc\ d"), r"-F dir=/a\ b\\ -F perm=wa -k c\ d");
        assert_eq!(perm_letters(2 | 8), "wa");
    }

    #[test]
    fn what_merges_has_fewer_rules_than_it_replaces() {
        let merges = |with: [&[&str]; 2]| {
            let lines =
                (0..).zip(with.map(|with| with.iter().map(|line| (*line).into()).collect()));
            Proposal::replacing(String::new(), lines.collect()).merges()
        };
        assert!(merges([&["a"], &[]]));
        assert!(!merges([&["a"], &["b"]]) && !merges([&["a", "b"], &["c"]]));
    }

    #[test]
    fn calls_that_a_rule_needs_are_not_exempted() {
        let hot = [("read", 0), ("getppid", 110)];
        let every = Rule::always_exit(7, "k").decode();
        let named = Rule::always_exit_of(&[110], 7).decode();
        assert_eq!(exempt_calls(std::slice::from_ref(&named), &[], &hot), None);
        let proposal = exempt_calls(&[every, named], &[], &hot).unwrap();
        assert_eq!(proposal.with, ["-A never,exit -F arch=b64 -S read"]);
        assert!(proposal.gives_up.unwrap().contains("for 1 rule on every system call"));
    }

    #[test]
    fn what_an_exemption_takes_from_watches_without_perm_is_said() {
        use super::super::rule_fields::{Field, Operator};
        let watch = Rule::watch(std::path::Path::new("/etc/shadow"), "k").decode();
        let mut without_perm = watch.clone();
        without_perm.fields.retain(|field| field.kind != field::PERM);
        let mut directory = watch.clone();
        directory.fields[0] = Field {
            kind: field::DIR,
            name: "dir",
            operator: Operator::Equal,
            number: 4,
            text: Some("/etc".into()),
        };
        let hot = [("newfstatat", 262)];
        assert_eq!(exempt_calls(&[watch.clone(), without_perm.clone()], &[], &hot), None);
        let gives_up = |rules: &[Decoded]| exempt_calls(rules, &[], &hot).unwrap().gives_up;
        assert_eq!(gives_up(&[directory.clone(), watch]), None);
        assert!(
            gives_up(&[directory, without_perm])
                .unwrap()
                .contains("for 1 rule on every system call")
        );
    }

    #[test]
    fn an_exemption_spares_the_rules_that_are_in_force_besides() {
        let line =
            RuleLine::loaded("-a always,exit -S all -F auid=7 -k k", Rule::always_exit(7, "k"));
        let present = RuleLine { outcome: LineOutcome::Present, rules: Vec::new(), ..line.clone() };
        let exemption = |lines: &[RuleLine], host: &[Rule]| {
            proposals(lines, host, &[("sendto", 44), ("read", 0)])
                .into_iter()
                .find(|proposal| proposal.title.starts_with("exempt"))
        };
        let lines = [line, present];
        let sendto = Rule::always_exit_of(&[44], 8);
        let spared = exemption(&lines, std::slice::from_ref(&sendto)).unwrap();
        assert_eq!(spared.with, ["-A never,exit -F arch=b64 -S read"]);
        let besides = exemption(&lines, &[sendto, Rule::always_exit(8, "k")]).unwrap();
        assert!(besides.gives_up.unwrap().contains("for 2 rules on every system call"));
        assert_eq!(exemption(&lines[1..], &[Rule::always_exit(8, "k")]), None);
    }

    #[test]
    fn each_watch_of_a_directory_is_proposed_with_its_calls_and_all_of_them_together() {
        let lines = [
            RuleLine::loaded("-w /etc/ -p r -k k", of_directory("/etc")),
            RuleLine::loaded(
                "-w /etc/shadow -p r -k k",
                Rule::watch(Path::new("/etc/shadow"), "k"),
            ),
            RuleLine::loaded("-A always,exit -F dir=/usr -F perm=r -k k", of_directory("/usr")),
        ];
        let found = listed_calls(&lines);
        let titles: Vec<&str> = found.iter().map(|one| &*one.title).collect();
        let each = "list the system calls in the watch of";
        let all = "list the system calls in all 2 directory watches";
        assert_eq!(titles, [&*format!("{each} /etc"), &*format!("{each} /usr"), all]);
        let [etc, usr, both] = found.as_slice() else { panic!("{found:?}") };
        let reading = calls("r", false).join(",");
        let b64 = format!("-a always,exit -F arch=b64 -S {reading} -F dir=/etc -F perm=r -k k");
        assert!(etc.with[0] == b64 && etc.with[1].starts_with("-a always,exit -F arch=b32 -S "));
        assert!(usr.with.iter().all(|line| line.starts_with("-A always,exit ")), "{usr:?}");
        assert_eq!((&both.replaces[..], &both.with_each[..]), (&[0, 2][..], &[2, 2][..]));
        assert_eq!(both.with, [&etc.with[..], &usr.with].concat());
        assert_eq!(listed_calls(&lines[..2]).len(), 1);
        for one in &found {
            let gives_up = one.gives_up.as_ref().unwrap();
            assert!(gives_up.starts_with("system calls added after Linux "), "{gives_up}");
        }
    }

    #[test]
    fn only_what_the_kernel_looks_at_after_every_call_is_a_watch_of_a_directory() {
        let watch = of_directory("/etc");
        let is_watch = |rules: Vec<Rule>| {
            directory_watch(&RuleLine { rules, ..RuleLine::loaded("-w /etc", watch.clone()) })
                .is_some()
        };
        assert!(is_watch(vec![watch.clone()]) && !is_watch(vec![watch.clone(), watch.clone()]));
        for (at, word) in
            [(0, 1), (4, 0), (12, 0), (268, field::WATCH), (272, field::PID), (276, field::ARCH)]
        {
            assert!(!is_watch(vec![changed(&watch, at, word)]), "{at}");
        }
    }

    #[test]
    fn only_lines_whose_conditions_change_places_are_written_anew() {
        let line = |text| RuleLine::loaded(text, Rule::always_exit(7, "k"));
        let unloaded = line("-a always,exit -F exe=/x -F auid=1");
        let lines = [
            line("-a always,exit -F dir=/etc -F auid>=1000 -F key=k"),
            line("-a always,exit -F auid>=1000 -F dir=/etc -F key=k"),
            line("-a always,exit -F arch=b64 -F auid>=1000 -S open"),
            RuleLine { rules: Vec::new(), ..unloaded },
        ];
        let proposal = cheap_conditions_first(&lines).unwrap();
        assert_eq!(proposal.replaces, [0]);
        assert_eq!(proposal.with, [&*lines[1].text]);
        assert_eq!(cheap_conditions_first(&lines[1..]), None);
        for (option, value, rank) in [
            ("-S", "open", 2),
            ("-F", "uid=0", 3),
            ("-C", "uid!=euid", 4),
            ("-F", "obj_user=x", 5),
            ("-F", "subj_type!=y", 5),
            ("-F", "key=k", 6),
        ] {
            assert_eq!(cost_rank(option, value), rank, "{value}");
        }
    }

    #[test]
    fn tmpfs_is_exempted_once_and_only_for_rules_that_record_paths() {
        let exit = Rule::always_exit(7, "k").decode();
        let [exempt, task] =
            [RuleList::Filesystem, RuleList::Task].map(|list| Decoded { list, ..exit.clone() });
        let proposal = exempt_tmpfs(std::slice::from_ref(&exit), &[]).unwrap();
        assert_eq!(proposal.with, ["-a never,filesystem -F fstype=0x01021994"]);
        assert_eq!(exempt_tmpfs(&[exit.clone(), exempt.clone()], &[]), None);
        assert_eq!(exempt_tmpfs(&[exit], &[exempt]), None);
        assert_eq!(exempt_tmpfs(&[task], &[]), None);
    }

    #[test]
    fn calls_that_a_watch_can_match_are_not_exempted() {
        let watch = of_directory("/etc").decode();
        let hot = [("openat", 257), ("getppid", 110)];
        let proposal = exempt_calls(std::slice::from_ref(&watch), &[], &hot).unwrap();
        assert_eq!(proposal.with, ["-A never,exit -F arch=b64 -S getppid"]);
        assert_eq!(exempt_calls(std::slice::from_ref(&watch), &[], &hot[..1]), None);
        let never = Decoded { action: Action::Never, ..watch };
        assert_eq!(exempt_calls(&[never], &[], &hot), None, "it is an exemption itself");
    }
}
