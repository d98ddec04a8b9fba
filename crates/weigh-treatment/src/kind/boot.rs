//! `boot`: a boot of this very machine, again and again: a security module, a kernel, an option of its
//! command line. Each half of a pair is measured in a boot of its own; `weigh-engine/boots.rs` orders them.

use crate::boot::{BootEntry, BootState, NAME, NormalBoot, may_boot};
use crate::guest::options::GuestOptions;
use crate::{ApplyContext, Kind, Launch, Treatment, TreatmentError, TreatmentKind};
use weigh_host::machine;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::kind::{Parameter, Probe};
use weigh_model::label::Parameters;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::guest_state::{GuestSeen, GuestState};

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: NAME,
        summary: "boots of this machine, which weigh reboots: SELinux, kernels, boot options",
        parameters: &[
            Parameter { form: "selinux", help: "SELinux with this machine's policy, enforcing" },
            Parameter { form: "selinux=permissive", help: "SELinux that denies nothing" },
            Parameter { form: "apparmor", help: "AppArmor with this machine's profiles" },
            Parameter { form: "bpf-lsm", help: "the security module for BPF, without a program" },
            Parameter { form: "audit", help: "auditing from boot on (audit=1)" },
            Parameter { form: "cmdline=WORDS", help: "words to add to the kernel's command line" },
            Parameter {
                form: "kernel=PATH",
                help: "a vmlinuz, with its initramfs in the same directory",
            },
            Parameter { form: "root=DEVICE", help: "another system, with its own kernel" },
        ],
        probe,
    },
    build,
);

fn probe() -> Probe {
    match may_boot() {
        Ok(()) => Probe::Available,
        Err(problem) if !rustix::process::geteuid().is_root() => Probe::NeedsRoot(problem),
        Err(problem) => Probe::Broken(problem),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let options = GuestOptions::of(parameters)?;
    Ok(Box::new(OneArm { options, entry: None, mark: String::new(), boot_id: String::new() }))
}

struct OneArm {
    options: GuestOptions,
    entry: Option<BootEntry>,
    /// Mark of the boot that is due.
    mark: String,
    boot_id: String,
}

impl OneArm {
    fn entry_by(&self, state: Option<&BootState>) -> Result<BootEntry, String> {
        let normal = state.map_or_else(NormalBoot::read, |state| Ok(state.normal.clone()))?;
        BootEntry::of(&self.options, &normal)
    }

    fn check(&self, seen: &GuestSeen) -> Result<(), String> {
        let entry = self.entry.as_ref().ok_or("weigh never prepared it")?;
        if seen.boot != self.boot_id {
            return Err(format!("the process ran in a different boot ({})", seen.boot));
        }
        entry.check(seen, &self.mark)
    }
}

impl Treatment for OneArm {
    fn prepare(&mut self, _: &ApplyContext, _: &mut Guard) -> Result<Vec<String>, TreatmentError> {
        let state = BootState::read().map_err(TreatmentError::Unavailable)?;
        let entry = self.entry_by(state.as_ref()).map_err(TreatmentError::Unavailable)?;
        self.entry = Some(entry);
        self.mark = state.map(|state| state.mark()).unwrap_or_default();
        self.boot_id =
            machine::boot_id().map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
        Ok(Vec::new())
    }

    fn setup(&self, _: bool) -> Setup {
        Setup::default().with(GuestState { counts_hooks: false })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        // What runs in another arm runs in another boot, and that arm proves which.
        if !launch.is_treated {
            return Ok(Evidence::default());
        }
        let wrong = |problem: String| {
            TreatmentError::NotInForce(format!("this boot is not the requested boot: {problem}"))
        };
        let read = |name: &str| -> Result<GuestSeen, TreatmentError> {
            let seen = launch.seen(name)?;
            serde_json::from_str(seen[0]).map_err(|error| wrong(error.to_string()))
        };
        let (before, after) = (read(GuestState::BEFORE)?, read(GuestState::AFTER)?);
        self.check(&before).and_then(|()| self.check(&after)).map_err(wrong)?;
        match self.options.selinux.is_some() && after.avc_lookups == before.avc_lookups {
            true => Err(wrong("SELinux looked up no permission during the sample".into())),
            false => Ok(Evidence::default()),
        }
    }

    fn content(&self) -> Vec<u8> {
        let state = BootState::read().ok().flatten();
        let digests = self.entry_by(state.as_ref()).and_then(|entry| entry.digests());
        digests.unwrap_or_else(|problem| problem).into_bytes()
    }

    fn facts(&self) -> Vec<String> {
        let Some(entry) = &self.entry else { return Vec::new() };
        vec![
            format!(
                "Each sample of this arm comes from its own one-shot boot of this machine: Linux {}. The \
                 interval applies to the next boot.",
                entry.kernel.release
            ),
            format!("The kernel's command line, except for the boot's number: {}", entry.line),
        ]
    }

    fn state(&self, _: bool) -> Option<&'static str> {
        Some("a boot of its own")
    }
}
