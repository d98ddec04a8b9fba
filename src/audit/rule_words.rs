//! What the words of a line in a rule file ask for, before `auditctl` sees it: a rule, or something
//! that a measurement must not carry out.

/// The options of `auditctl(8)` that make up a rule; each takes a value.
const OF_A_RULE: [&str; 8] = ["-a", "-A", "-w", "-p", "-k", "-F", "-C", "-S"];

/// Whether the line adds a rule that can be weighed.
pub fn is_rule(text: &str) -> bool {
    ["-a", "-A", "-w"].iter().any(|option| text.starts_with(option)) && !is_task_exemption(text)
}

/// Whether it goes to the front of its list.
pub fn is_prepended(text: &str) -> bool {
    text.starts_with("-A")
}

/// Such a rule exempts processes when they are started, the treated ones too.
fn is_task_exemption(text: &str) -> bool {
    text.contains("never,task") || text.contains("task,never")
}

/// Whether such a rule, while it is loaded, takes from what the rules of the host record: also those are
/// looked for in the lists of types and file systems, and behind what is put before them.
pub fn blinds_others(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("-a").or_else(|| text.strip_prefix("-A")) else {
        return false;
    };
    let action = rest.split_whitespace().next().unwrap_or_default();
    let says = |word: &str| action.split(',').any(|part| part == word);
    says("exclude") || says("filesystem") || (says("never") && (says("user") || is_prepended(text)))
}

/// Why a line that [`is_rule`] denies is passed over.
pub fn skip_reason(text: &str) -> &'static str {
    match text.split_whitespace().next().unwrap_or_default() {
        "-D" => "it would delete the rules of this host",
        "-d" | "-W" => "it would delete a rule of this host",
        "-e" => "weigh itself switches auditing on, and never locks it",
        "-f" => "the failure mode of this host stays as it is",
        "-i" | "-c" => "weigh carries on after a bad line anyway",
        "-r" => "the rate limit of this host stays as it is: it would drop records",
        "-q" | "-t" => "it would change which mounts the rules of this host watch",
        "-m" => "it would write a message into the log of this host",
        "-s" | "-l" | "-v" | "-h" => "it only shows something",
        "--backlog_wait_time" => "the backlog wait time of this host stays as it is",
        "--loginuid-immutable" => "it would lock the login uids of this host until the next boot",
        "--reset-lost" | "--reset_backlog_wait_time_actual" => {
            "it would reset a counter of this host"
        }
        "--signal" => "it would signal the audit daemon of this host",
        "-R" | "include" | "Include" | "@include" => {
            "`auditctl` includes no file from within another: give the file to include, or the directory \
             of all of them, to weigh"
        }
        word if word.starts_with("-b") => "its value is used as backlog=",
        _ if is_task_exemption(text) => {
            "it would exempt the treated processes from all other rules"
        }
        _ => "it is not a rule",
    }
}

/// An option that has no place in a rule; `auditctl` would carry it out.
pub fn foreign_option(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if OF_A_RULE.contains(&word) {
            words.next();
        } else if word.starts_with('-') && !OF_A_RULE.iter().any(|option| word.starts_with(option))
        {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_blind_the_rules_of_a_host_is_known_by_its_words() {
        for text in [
            "-a always,exclude -F msgtype=PATH",
            "-aexclude,never -F msgtype=CWD",
            "-a never,filesystem -F fstype=tracefs",
            "-A never,exit -F arch=b64 -S read",
            "-a user,never -F auid=0",
        ] {
            assert!(blinds_others(text), "{text}");
        }
        for text in
            ["-a never,exit -S read", "-A always,exit -F key=exclude", "-w /never,user -p wa", "-D"]
        {
            assert!(!blinds_others(text), "{text}");
        }
    }

    #[test]
    fn options_that_would_be_carried_out_are_found_in_a_rule() {
        for (text, option) in [
            ("-w /etc -p wa -D", Some("-D")),
            ("-a always,exit -S all -e 2", Some("-e")),
            ("-w /etc --reset-lost", Some("--reset-lost")),
            ("-a always,exit -F auid!=-1 -S getppid -k -D", None),
            ("-a always,exit -F arch=b64 -C uid!=euid -Fauid=1 -kx", None),
        ] {
            assert_eq!(foreign_option(text), option, "{text}");
        }
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
            "-a never,task",
            "-a task,never",
        ] {
            assert!(!is_rule(text), "{text}");
            assert_ne!(skip_reason(text), "it is not a rule", "{text}");
        }
        assert_eq!(skip_reason("rubbish"), "it is not a rule");
    }
}
