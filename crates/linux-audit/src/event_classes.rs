//! `class=`: the event classes of HP-UX, as Nitzberg (1994) switched them, with the calls of today's Linux.
//!
//! The classes of calls are those of HP-UX's `audevent(1M)`. A call that Linux added since then is in
//! the class of the call that it extends. `close`, `process` and the like are the native ABI's calls;
//! calls of 32-bit programs are in no class.

use syscalls::Sysno;

use crate::rule::{KEY, Rule};

/// A class of events, and the system calls that make them.
#[derive(Debug, PartialEq, Eq)]
struct EventClass {
    name: &'static str,
    /// Empty if programs write these records themselves, so that no rule on system calls makes them.
    /// An architecture may lack some of them.
    syscalls: &'static [&'static str],
}

const fn class(name: &'static str, syscalls: &'static [&'static str]) -> EventClass {
    EventClass { name, syscalls }
}

/// In alphabetical order. `unlinkat` removes files and directories, so it is in two classes. The class
/// `ipcdgram` also sees streams, because Linux sends both with the same calls.
static CLASSES: [EventClass; 18] = [
    class(
        "admin",
        &[
            "acct",
            "adjtimex",
            "capset",
            "clock_adjtime",
            "clock_settime",
            "quotactl",
            "reboot",
            "setdomainname",
            "sethostname",
            "settimeofday",
            "swapoff",
            "swapon",
        ],
    ),
    class("close", &["close", "close_range"]),
    class(
        "create",
        &[
            "creat",
            "mkdir",
            "mkdirat",
            "mknod",
            "mknodat",
            "msgget",
            "pipe",
            "pipe2",
            "semget",
            "shmat",
            "shmget",
            "symlink",
            "symlinkat",
        ],
    ),
    class("delete", &["msgctl", "rmdir", "semctl", "unlinkat"]),
    class("ipcclose", &["shutdown"]),
    class("ipccreat", &["bind", "socket", "socketpair"]),
    class("ipcdgram", &["recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto"]),
    class("ipcopen", &["accept", "accept4", "connect"]),
    class("login", &[]),
    class(
        "modaccess",
        &[
            "chdir",
            "chroot",
            "fchdir",
            "link",
            "linkat",
            "rename",
            "renameat",
            "renameat2",
            "setfsgid",
            "setfsuid",
            "setgid",
            "setgroups",
            "setregid",
            "setresgid",
            "setresuid",
            "setreuid",
            "setuid",
            "shmctl",
            "shmdt",
            "unlink",
            "unlinkat",
        ],
    ),
    class(
        "moddac",
        &[
            "chmod",
            "chown",
            "fchmod",
            "fchmodat",
            "fchmodat2",
            "fchown",
            "fchownat",
            "fremovexattr",
            "fsetxattr",
            "lchown",
            "lremovexattr",
            "lsetxattr",
            "removexattr",
            "setxattr",
            "umask",
        ],
    ),
    class(
        "open",
        &[
            "execve",
            "execveat",
            "ftruncate",
            "open",
            "open_by_handle_at",
            "openat",
            "openat2",
            "ptrace",
            "truncate",
        ],
    ),
    class(
        "process",
        &[
            "clone",
            "clone3",
            "exit",
            "exit_group",
            "fork",
            "kill",
            "pidfd_send_signal",
            "tgkill",
            "tkill",
            "vfork",
        ],
    ),
    class(
        "readdac",
        &[
            "access",
            "faccessat",
            "faccessat2",
            "fgetxattr",
            "fstat",
            "fstatat",
            "getxattr",
            "lgetxattr",
            "lstat",
            "newfstatat",
            "stat",
            "statx",
        ],
    ),
    class("removable", &["fsmount", "mount", "move_mount", "umount2"]),
    class("uevent1", &[]),
    class("uevent2", &[]),
    class("uevent3", &[]),
];

/// The classes that one arm switches on, each once and in alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventClasses(Vec<&'static EventClass>);

impl EventClasses {
    /// Reads the names of classes; `all` stands for all of them, `none` for none.
    ///
    /// # Errors
    /// A sentence that names the classes.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<EventClasses, String> {
        let names: Vec<&str> = names.into_iter().collect();
        match names[..] {
            ["none"] => return Ok(EventClasses(Vec::new())),
            ["all"] => return Ok(EventClasses(of_calls().collect())),
            _ => {}
        }
        for name in &names {
            match CLASSES.iter().find(|class| class.name == *name) {
                Some(class) if class.syscalls.is_empty() => {
                    return Err(format!(
                        "class={name}: programs write these records themselves (AUDIT_USER), so no rule on \
                         system calls makes them; the workload `audit-user` measures such records"
                    ));
                }
                Some(_) => {}
                None if ["all", "none"].contains(name) => {
                    return Err(format!("class={}: `{name}` stands alone", names.join(",")));
                }
                None => {
                    let known: Vec<&str> = of_calls().map(|class| class.name).collect();
                    return Err(format!(
                        "class={name}: unknown event class; the classes are {}, or `all` or `none`",
                        known.join(", ")
                    ));
                }
            }
        }
        Ok(EventClasses(of_calls().filter(|class| names.contains(&class.name)).collect()))
    }

    /// One rule for each class, confined to the processes of this login uid.
    pub fn rules(&self, loginuid: u32) -> impl Iterator<Item = Rule> {
        self.0.iter().map(move |class| Rule::always_exit_of_calls(&class.numbers(), loginuid, KEY))
    }

    /// The classes with their calls, a line for each: what a stored experiment is compared with.
    pub fn text(&self) -> String {
        let line = |class: &&EventClass| format!("{}: {}\n", class.name, class.known().join(" "));
        self.0.iter().map(line).collect()
    }

    /// A sentence for the report.
    pub fn fact(&self) -> String {
        let classes = self.0.iter();
        let classes = classes.map(|class| format!("{} ({})", class.name, class.known().join(", ")));
        match &classes.collect::<Vec<_>>()[..] {
            [] => "Auditing is on, but no event class: only the canary's rule is loaded.".into(),
            classes => {
                format!(
                    "These system calls of the treated processes are audited: {}.",
                    classes.join("; ")
                )
            }
        }
    }
}

/// The classes that rules on system calls can switch on.
fn of_calls() -> impl Iterator<Item = &'static EventClass> {
    CLASSES.iter().filter(|class| !class.syscalls.is_empty())
}

impl EventClass {
    /// Names of the calls that this architecture has.
    fn known(&self) -> Vec<&'static str> {
        let names = self.syscalls.iter().copied();
        names.filter(|name| name.parse::<Sysno>().is_ok()).collect()
    }

    fn numbers(&self) -> Vec<u32> {
        let known = self.known().into_iter();
        known.filter_map(|name| name.parse::<Sysno>().ok()).map(|call| call as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_calls_has_a_call_of_this_architecture() {
        let names: Vec<&str> = CLASSES.iter().map(|class| class.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for class in of_calls() {
            assert!(!class.numbers().is_empty(), "{class:?}");
            assert!(class.syscalls.is_sorted(), "{class:?}");
        }
    }

    /// A misspelt name would be left out without a word.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn only_calls_of_other_architectures_are_unknown() {
        let unknown = CLASSES.iter().flat_map(|class| {
            let names = class.syscalls.iter();
            names.filter(|name| name.parse::<Sysno>().is_err()).copied()
        });
        assert_eq!(unknown.collect::<Vec<_>>(), ["fstatat"]);
    }

    #[test]
    fn classes_are_read_once_each_and_refused_by_name() {
        let parse = |text: &str| EventClasses::parse(text.split(','));
        let names = |text: &str| -> Vec<&str> {
            parse(text).unwrap().0.iter().map(|class| class.name).collect()
        };
        assert_eq!(names("open,delete"), ["delete", "open"]);
        assert!(names("none").is_empty());
        assert_eq!(parse("all").unwrap().0.len(), of_calls().count());
        let refused = |text: &str| parse(text).unwrap_err();
        assert!(
            refused("delete,opne")
                .starts_with("class=opne: unknown event class; the classes are admin, ")
        );
        assert!(refused("all,open").contains("`all` stands alone"));
        assert!(refused("uevent2").contains("AUDIT_USER"));
    }

    #[test]
    fn a_class_is_one_rule_of_one_login_uid() {
        let delete = EventClasses::parse(["delete"]).unwrap();
        let rules: Vec<Rule> = delete.rules(7).collect();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].loginuid(), Some(7));
        assert!(delete.text().contains("rmdir") && delete.fact().contains("delete (msgctl"));
    }
}
