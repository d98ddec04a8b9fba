//! Boot entry of an arm: a kernel with its initramfs, and a command line.
//!
//! It also has the facts that must be visible once the kernel is up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::kernel::BootKernel;
use super::normal::{NormalBoot, here, normal_root, of_kernel};
use super::other;
use crate::digest::digest_of_file;
use crate::guest::options::{GuestOptions, SelinuxMode, selinux_state};
use weigh_workload::setup::kind::guest_state::GuestSeen;

/// In every boot of an experiment: what brings the machine back where it fails. A watchdog that was set
/// before is left on as the machine goes down, and its driver keeps it quiet for so many seconds, not for
/// ever.
const COMES_BACK: &str =
    "panic=10 softlockup_panic=1 watchdog.stop_on_reboot=0 watchdog.open_timeout=300";

/// Boot entry of an arm, and the facts that a worker has to see in that boot.
#[derive(Clone, Debug, PartialEq)]
pub struct BootEntry {
    pub kernel: BootKernel,
    /// The command line, without the mark of a single boot.
    pub line: String,
    /// `/proc/version`, where the kernel is the normal one.
    version: Option<String>,
    /// Security modules, the same, and where no word of the user's may have changed them.
    modules: Option<Vec<String>>,
    /// Security modules that the user asked for.
    asked: Vec<String>,
    /// Enforcing state of SELinux, if it is known in advance; `Some(None)` without SELinux.
    enforces: Option<Option<bool>>,
    /// True if the kernel audits; `None` if that is not known in advance.
    audits: Option<bool>,
    /// Device of the root file system, where it is not the normal one.
    root: Option<String>,
}

impl BootEntry {
    pub fn of(options: &GuestOptions, normal: &NormalBoot) -> Result<BootEntry, String> {
        let has = |name: &str| normal.modules.iter().any(|module| module == name);
        let asked = [
            (options.selinux.is_some(), "selinux", "SELinux"),
            (options.has_apparmor, "apparmor", "AppArmor"),
            (options.has_bpf, "bpf", "the security module for BPF"),
        ];
        let there = asked.iter().find(|(is_asked, module, _)| *is_asked && has(module));
        if let Some((_, module, name)) = there {
            return Err(format!(
                "{name} is already in force in every boot of this machine: measure boots without it \
                 instead, as in boot:cmdline={module}=0"
            ));
        }
        if options.has_audit && normal.audits {
            return Err(
                "auditing is already on in every boot of this machine: weigh `audit` instead"
                    .into(),
            );
        }
        if options.selinux.is_some() && !Path::new("/etc/selinux/config").exists() {
            return Err(
                "this machine has no SELinux policy (/etc/selinux/config), without which an enforcing \
                 boot hangs: install a policy"
                    .into(),
            );
        }
        let is_major = |module: &str| ["selinux", "apparmor"].contains(&module);
        let has_major = options.selinux.is_some() || options.has_apparmor;
        let kept = normal.modules.iter().filter(|module| !(has_major && is_major(module)));
        let added = asked.iter().filter(|(is_asked, ..)| *is_asked);
        let added: Vec<&str> = added.map(|(_, module, _)| *module).collect();
        let modules: Vec<String> =
            kept.cloned().chain(added.iter().map(|name| (*name).to_owned())).collect();
        let kernel = match (&options.root, &options.kernel) {
            (Some(device), _) => {
                other::number_of(device)?;
                Some(other::kept()?)
            }
            (None, named) => named.as_deref().map(BootKernel::named).transpose()?,
        };
        let is_own = kernel.is_none();
        let is_plain = is_own && options.cmdline.is_empty();
        let mut words = changed_words(options, &modules, modules != normal.modules);
        words.push(COMES_BACK.into());
        Ok(BootEntry {
            kernel: kernel.unwrap_or_else(|| normal.kernel.clone()),
            line: with_words(
                &match &options.root {
                    Some(device) => other::rooted(&normal.command_line, device),
                    None => normal.command_line.clone(),
                },
                &words.join(" "),
            ),
            version: is_own.then(|| normal.version.clone()),
            // Another kernel may be built with others.
            modules: is_plain.then_some(modules),
            asked: added.into_iter().map(str::to_owned).collect(),
            enforces: match options.selinux {
                Some(mode) => Some(Some(mode == SelinuxMode::Enforcing)),
                None if options.has_apparmor => Some(None),
                None => is_plain.then_some(normal.enforces),
            },
            audits: match options.has_audit {
                true => Some(true),
                false => is_plain.then_some(normal.audits),
            },
            root: options.root.clone(),
        })
    }

    /// The command line of one boot.
    pub fn marked(&self, mark: &str) -> String {
        with_words(&self.line, mark)
    }

    /// Checks that a worker sees this entry's boot.
    pub fn check(&self, seen: &GuestSeen, mark: &str) -> Result<(), String> {
        if of_kernel(&seen.cmdline) != self.marked(mark) {
            return Err(format!("the kernel's command line is `{}`", seen.cmdline));
        }
        let release = seen.version.strip_prefix("Linux version ").unwrap_or_default();
        let release = release.split(' ').next().unwrap_or_default();
        let is_other = self.version.as_ref().is_some_and(|version| *version != seen.version);
        if release != self.kernel.release || is_other {
            return Err(format!("the kernel is `{}`, not {}", seen.version, self.kernel.release));
        }
        if let Some(device) = &self.root {
            other::check_root(device, other::number_of(device)?, seen.root_device, normal_root()?)?;
        }
        self.check_modules(seen)?;
        if let Some(enforces) = self.enforces.filter(|enforces| *enforces != seen.enforces) {
            let [seen, wanted] = [seen.enforces, enforces].map(selinux_state);
            return Err(format!("SELinux is {seen}, not {wanted}"));
        }
        let audits = seen.audit.unwrap_or(0) != 0;
        match self.audits.is_some_and(|wanted| wanted != audits) {
            true => Err(format!("auditing is {}", if audits { "on" } else { "off" })),
            false => Ok(()),
        }
    }

    fn check_modules(&self, seen: &GuestSeen) -> Result<(), String> {
        if let Some(missing) = self.asked.iter().find(|name| !seen.modules.contains(name)) {
            return Err(format!("the security module `{missing}` is missing"));
        }
        match self.modules.as_ref().filter(|modules| !is_same(modules, &seen.modules)) {
            None => Ok(()),
            Some(modules) => {
                let [seen, wanted] = [&seen.modules, modules].map(|names| names.join(", "));
                Err(format!("the security modules are {seen}, not {wanted}"))
            }
        }
    }

    pub fn digests(&self) -> Result<String, String> {
        let files = std::iter::once(&self.kernel.image).chain(&self.kernel.initramfs);
        let digest = |file: &PathBuf| {
            digest_of_file(&here(file)).map_err(|error| format!("{}: {error}", file.display()))
        };
        files.map(digest).collect::<Result<Vec<_>, _>>().map(|all| all.join("\n"))
    }
}

fn is_same(these: &[String], those: &[String]) -> bool {
    let [these, those] = [these, those]
        .map(|names| names.iter().filter(|name| !name.is_empty()).collect::<BTreeSet<_>>());
    these == those
}

/// Returns the words that an arm adds to the normal command line.
fn changed_words(options: &GuestOptions, modules: &[String], has_list: bool) -> Vec<String> {
    let mut words = Vec::new();
    if has_list {
        // It is always there, and not to be named.
        let listed: Vec<&str> =
            modules.iter().map(String::as_str).filter(|name| *name != "capability").collect();
        words.push(format!("lsm={}", listed.join(",")));
    }
    match options.selinux {
        Some(SelinuxMode::Enforcing) => words.push("selinux=1 enforcing=1".into()),
        Some(SelinuxMode::Permissive) => words.push("selinux=1 enforcing=0".into()),
        None => {}
    }
    words.extend(options.has_apparmor.then(|| "apparmor=1".to_owned()));
    words.extend(options.has_audit.then(|| "audit=1".to_owned()));
    let own = options.cmdline.split_whitespace().collect::<Vec<_>>().join(" ");
    words.extend((!own.is_empty()).then_some(own));
    words
}

/// A command line with more words; what follows `--` is for the first process.
fn with_words(line: &str, words: &str) -> String {
    let mut before: Vec<&str> = line.split_whitespace().collect();
    let end = before.iter().position(|word| *word == "--").unwrap_or(before.len());
    let after = before.split_off(end);
    before.into_iter().chain(words.split_whitespace()).chain(after).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;

    fn normal() -> NormalBoot {
        let kernel =
            BootKernel { image: "/k".into(), initramfs: Some("/i".into()), release: "6.1".into() };
        let modules = ["capability", "yama", "apparmor"].map(str::to_owned).to_vec();
        NormalBoot {
            kernel,
            version: "Linux version 6.1 (a@b)".into(),
            command_line: "root=/dev/vda1 ro -- x".into(),
            modules,
            enforces: None,
            audits: false,
        }
    }

    fn entry(label: &str) -> Result<BootEntry, String> {
        BootEntry::of(&GuestOptions::of(&parameters_of(label)).unwrap(), &normal())
    }

    fn seen(entry: &BootEntry) -> GuestSeen {
        GuestSeen {
            version: "Linux version 6.1 (a@b)".into(),
            cmdline: format!("BOOT_IMAGE=/k {}", entry.marked("weigh.boot=x.1")),
            modules: entry.modules.clone().unwrap_or_default(),
            audit: Some(u32::from(entry.audits.unwrap_or_default())),
            ..GuestSeen::default()
        }
    }

    #[test]
    fn an_arm_differs_from_the_normal_boot_in_what_was_asked_for() {
        assert_eq!(entry("boot").unwrap().line, format!("root=/dev/vda1 ro {COMES_BACK} -- x"));
        let own = entry("boot:cmdline=\"a  b=1\",audit").unwrap();
        assert_eq!(own.line, format!("root=/dev/vda1 ro audit=1 a b=1 {COMES_BACK} -- x"));
        let bpf = entry("boot:bpf-lsm").unwrap();
        assert!(bpf.line.contains(" lsm=yama,apparmor,bpf "), "{}", bpf.line);
        assert!(entry("boot:apparmor").unwrap_err().contains("boot:cmdline=apparmor=0"));
    }

    #[test]
    fn a_boot_that_came_up_otherwise_is_none_of_this_arm() {
        let entry = entry("boot:audit").unwrap();
        let check = |seen: &GuestSeen| entry.check(seen, "weigh.boot=x.1");
        assert_eq!(check(&seen(&entry)), Ok(()));
        let with = |change: &dyn Fn(&mut GuestSeen)| {
            let mut other = seen(&entry);
            change(&mut other);
            check(&other).unwrap_err()
        };
        assert!(with(&|seen| seen.cmdline.push_str(" more")).contains("command line is"));
        assert!(with(&|seen| seen.version = "Linux version 6.2 x".into()).contains("not 6.1"));
        assert!(with(&|seen| seen.version.push('x')).contains("the kernel is"));
        assert!(with(&|seen| seen.modules.clear()).contains("security modules"));
        assert!(with(&|seen| seen.audit = Some(0)).contains("auditing is off"));
        assert!(entry.check(&seen(&entry), "weigh.boot=x.2").is_err(), "another boot's mark");
    }
}
