//! Options of a guest, made from the parameters of `vm`.
//!
//! They give its kernel's command line, and the features that must show in the guest.

use super::accel::Accel;
use weigh_model::label::Parameters;

/// Modules that a guest has without being asked, and that forbid nothing by themselves.
const ALWAYS: &str = "landlock,lockdown,yama";
/// Options that an emulator that counts instructions lacks or does not see.
///
/// They would change nothing, or too little.
const UNSEEN: &str = "\
    mitigations nopti pti kpti nopcid noinvpcid nospectre_v1 nospectre_v2 nospectre_bhb \
    spectre_v2 spectre_v2_user spectre_bhi spec_store_bypass_disable nospec_store_bypass_disable \
    ssbd spec_rstack_overflow indirect_target_selection mds l1tf l1d_flush retbleed tsx \
    tsx_async_abort mmio_stale_data reg_file_data_sampling gather_data_sampling srbds tsa \
    vmscape nosmt kvm.nx_huge_pages hugepages hugepagesz default_hugepagesz transparent_hugepage \
    transparent_hugepage_shmem transparent_hugepage_tmpfs thp_anon thp_shmem";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelinuxMode {
    Permissive,
    Enforcing,
}

/// Names a state of SELinux; `enforces` is the content of `/sys/fs/selinux/enforce`, if that exists.
pub fn selinux_state(enforces: Option<bool>) -> &'static str {
    match enforces {
        None => "off",
        Some(false) => "permissive",
        Some(true) => "enforcing",
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestOptions {
    pub selinux: Option<SelinuxMode>,
    /// True if the calls of SELinux's functions are counted.
    pub counts_hooks: bool,
    pub has_apparmor: bool,
    pub has_bpf: bool,
    pub has_audit: bool,
    /// A file, or the name of a package; `None` for that of the distribution.
    pub kernel: Option<String>,
    /// A root file system in place of one that is built.
    pub root: Option<String>,
    pub cmdline: String,
}

impl GuestOptions {
    pub fn of(parameters: &Parameters) -> Result<GuestOptions, String> {
        let mut options = GuestOptions::default();
        for (key, value) in parameters.iter() {
            match (key, value) {
                ("selinux", None | Some("enforcing")) => {
                    options.selinux = Some(SelinuxMode::Enforcing);
                }
                ("selinux", Some("permissive")) => options.selinux = Some(SelinuxMode::Permissive),
                ("selinux", Some(other)) => {
                    return Err(format!("selinux={other}: takes enforcing or permissive"));
                }
                ("hooks", None) => options.counts_hooks = true,
                ("apparmor", None) => options.has_apparmor = true,
                ("bpf-lsm", None) => options.has_bpf = true,
                ("audit", None) => options.has_audit = true,
                ("kernel", Some(value)) => options.kernel = Some(value.to_owned()),
                ("root", Some(value)) => options.root = Some(value.to_owned()),
                ("cmdline", Some(value)) => options.cmdline = value.trim().to_owned(),
                (key, _) => {
                    return Err(format!(
                        "`{key}` is not accepted in this form; see `weigh list treatments`"
                    ));
                }
            }
        }
        if options.selinux.is_some() && options.has_apparmor {
            return Err("a kernel runs either SELinux or AppArmor: use two arms".into());
        }
        if options.counts_hooks && options.selinux.is_none() {
            return Err("`hooks` needs SELinux: write selinux,hooks".into());
        }
        if options.cmdline.chars().any(|c| c.is_control()) || options.words().any(|w| w == "--") {
            return Err(
                "cmdline=: takes words of a kernel's command line, without control characters and `--`"
                    .into()
            );
        }
        Ok(options)
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.cmdline.split_whitespace()
    }

    /// Why a path length would not show what this changes.
    pub fn unseen_by_path_length(&self) -> Option<String> {
        let name = |word: &&str| {
            // To the kernel both are one.
            let name = word.split('=').next().unwrap_or_default().replace('-', "_");
            UNSEEN.split(' ').any(|unseen| unseen == name) || name.ends_with("mitigation")
        };
        self.words().find(name).map(|word| {
            format!(
                "`{word}` changes how the CPU works (speculation, caches, TLBs), but without KVM a guest \
                 counts instructions only and would not show its cost. Use a machine with a working \
                 /dev/kvm"
            )
        })
    }

    /// The security modules of its kernel, in order.
    pub fn modules(&self) -> String {
        let mut modules = ALWAYS.to_owned();
        let extra = [
            (self.selinux.is_some(), ",selinux"),
            (self.has_apparmor, ",apparmor"),
            (self.has_bpf, ",bpf"),
        ];
        extra.into_iter().filter(|(is, _)| *is).for_each(|(_, name)| modules.push_str(name));
        modules
    }

    /// The kernel's command line; what follows `--` is for the first process.
    pub fn command_line(&self, console: &str, accel: Accel) -> String {
        let selinux = match self.selinux {
            None => "selinux=0",
            Some(SelinuxMode::Permissive) => "selinux=1 weigh.selinux=permissive",
            Some(SelinuxMode::Enforcing) => "selinux=1 weigh.selinux=enforcing",
        };
        let audit = u8::from(self.has_audit);
        let apparmor = u8::from(self.has_apparmor);
        let gap = if self.cmdline.is_empty() { "" } else { " " };
        format!(
            "console={console} quiet panic=-1 rdinit=/init lsm={} {selinux} apparmor={apparmor} \
             audit={audit}{}{gap}{} -- {}",
            self.modules(),
            accel.command_line(),
            self.cmdline,
            super::inside::SUBCOMMAND,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;

    fn of(label: &str) -> Result<GuestOptions, String> {
        GuestOptions::of(&parameters_of(label))
    }

    #[test]
    fn an_arm_differs_from_the_plain_guest_in_what_was_asked_for() {
        let line = |label: &str| of(label).unwrap().command_line("ttyS0", Accel::Kvm);
        let plain = "console=ttyS0 quiet panic=-1 rdinit=/init lsm=landlock,lockdown,yama selinux=0 \
                     apparmor=0 audit=0 -- __guest";
        assert_eq!(line("vm:cmdline=\"\""), plain);
        let selinux = line("vm:selinux");
        assert!(selinux.contains("yama,selinux selinux=1 weigh.selinux=enforcing"), "{selinux}");
        let counting = of("vm").unwrap().command_line("ttyS0", Accel::Counting);
        assert!(counting.contains("audit=0 norandmaps --"), "{counting}");
        assert!(line("vm:audit,bpf-lsm").contains("yama,bpf selinux=0 apparmor=0 audit=1 --"));
        assert!(line("vm:cmdline=\"init_on_alloc=1 x\"").contains("audit=0 init_on_alloc=1 x --"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(of("vm:selinux,apparmor").unwrap_err().contains("two arms"));
        assert!(of("vm:selinux=maybe").unwrap_err().contains("enforcing or permissive"));
        assert!(of("vm:hooks").unwrap_err().contains("write selinux,hooks"));
        assert!(of("vm:selinux,hooks").unwrap().counts_hooks);
        assert!(of("vm:cmdline=\"a -- b\"").is_err());
        assert!(of("vm:apparmor=x").unwrap_err().contains("`apparmor` is not accepted"));
    }

    #[test]
    fn what_an_emulator_does_not_see_is_told() {
        let unseen = |label: &str| of(label).unwrap().unseen_by_path_length();
        assert!(unseen("vm:cmdline=mitigations=off").unwrap().contains("working /dev/kvm"));
        assert!(unseen("vm:cmdline=\"quiet nopti\"").is_some());
        for word in ["spec_rstack_overflow=off", "nosmt=force", "transparent-hugepage=never"] {
            assert!(unseen(&format!("vm:cmdline=\"{word}\"")).is_some(), "{word}");
        }
        assert_eq!(unseen("vm:cmdline=init_on_alloc=1"), None);
    }
}
