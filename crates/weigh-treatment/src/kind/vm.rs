//! `vm`: a place. The arm is measured in a virtual machine of its own, which is booted anew for every round:
//! what takes a boot, as SELinux, another kernel, or an option of its command line.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::guest::accel::{self, Accel, Kvm};
use crate::guest::options::{GuestOptions, SelinuxMode, selinux_state};
use crate::guest::{BootPlan, Guest, GuestKernel, Image, check_material, lacking, make};
use crate::remote::handshake::Handshake;
use crate::{
    ApplyContext, Kind, Launch, PairDraw, Place, Reach, Role, Treatment, TreatmentError,
    TreatmentKind,
};
use weigh_host::machine::pace::takes;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::ids::{PairId, SetId};
use weigh_model::kind::{Parameter, Probe};
use weigh_model::label::Parameters;
use weigh_model::printable::brief;
use weigh_model::result::quantity::{EvidenceQuantity, QuantityKind, QuantityUnit};
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::guest_state::{GuestSeen, GuestState};

pub static KIND: TreatmentKind = TreatmentKind {
    is_place: true,
    ..TreatmentKind::of(
        Kind {
            name: "vm",
            summary: "a virtual machine, booted anew for every round: SELinux, kernels, boot options",
            parameters: &[
                Parameter { form: "selinux", help: "Debian's policy, enforcing" },
                Parameter { form: "selinux=permissive", help: "SELinux that denies nothing" },
                Parameter {
                    form: "hooks",
                    help: "with selinux: count the SELinux functions that each row calls, in extra launches",
                },
                Parameter {
                    form: "apparmor",
                    help: "AppArmor, without a profile for the measured program",
                },
                Parameter {
                    form: "bpf-lsm",
                    help: "the security module for BPF, without a program",
                },
                Parameter { form: "audit", help: "auditing from boot on (audit=1), without rules" },
                Parameter {
                    form: "cmdline=WORDS",
                    help: "words to add to the kernel's command line",
                },
                Parameter {
                    form: "kernel=NAME",
                    help: "a vmlinuz with its modules, or a package name",
                },
                Parameter {
                    form: "root=PATH",
                    help: "a root file system, in a form that `rootfs` takes",
                },
            ],
            probe,
        },
        build,
    )
};

/// A guest that is lost so often is none to measure in.
const LOSSES: usize = 5;

/// Permissions that the kernel looked up in SELinux's cache, of any process of the guest.
const AVC_LOOKUPS: EvidenceQuantity = EvidenceQuantity::new(
    "avc_lookups",
    "AVC lookups",
    QuantityUnit::Count,
    QuantityKind::Made,
    None,
);
/// Permissions that the kernel did not find in SELinux's cache.
const AVC_MISSES: EvidenceQuantity = EvidenceQuantity::new(
    "avc_misses",
    "AVC misses",
    QuantityUnit::Count,
    QuantityKind::Made,
    None,
);

fn probe() -> Probe {
    let lacking = lacking();
    if !lacking.is_empty() {
        return Probe::Broken(format!(
            "packages are missing: apt-get install --no-install-recommends {}",
            lacking.join(" ")
        ));
    }
    match rustix::process::geteuid().is_root() {
        true => Probe::Available,
        false => {
            Probe::NeedsRoot("only root can make a guest's files, which belong to root".into())
        }
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    Ok(Box::new(GuestVisit {
        options: GuestOptions::of(parameters)?,
        plan: None,
        guest: None,
        next: None,
        round: None,
        version: None,
        is_static: None,
        losses: 0,
        interrupted: Arc::default(),
    }))
}

struct GuestVisit {
    options: GuestOptions,
    plan: Option<BootPlan>,
    /// The one that is measured in, and what it says of itself.
    guest: Option<(Guest, Handshake)>,
    /// Where a boot disturbs no measurement: the one of the next round, which boots meanwhile.
    next: Option<Guest>,
    /// Whose boot it is.
    round: Option<(SetId, PairId)>,
    /// Version line of the kernel of its first boot.
    version: Option<String>,
    /// True if the workloads of its first boot are linked statically.
    ///
    /// Another build is another program.
    is_static: Option<bool>,
    losses: usize,
    interrupted: Arc<AtomicBool>,
}

/// Finding about KVM that all arms share, made once.
type KvmFound = OnceCell<Kvm>;

impl GuestVisit {
    fn plan(&self) -> Result<&BootPlan, TreatmentError> {
        let none = || TreatmentError::Unavailable("the guest was never prepared".into());
        self.plan.as_ref().ok_or_else(none)
    }

    fn boot(&mut self) -> Result<(), TreatmentError> {
        self.guest = None;
        let waiting = self.next.take().and_then(Guest::living);
        let mut guest = waiting.map_or_else(|| Guest::start(self.plan()?), Ok)?;
        guest.thaw();
        let arrival = guest.arrive(&self.interrupted, None)?;
        let is_static = arrival.executable.is_static;
        if *self.is_static.get_or_insert(is_static) != is_static {
            return Err(TreatmentError::NotInForce(
                "in this boot the workloads are linked differently than in earlier boots".into(),
            ));
        }
        self.guest = Some((guest, arrival));
        if self.plan()?.accel == Accel::Counting {
            self.next = Some(Guest::start(self.plan()?)?);
        }
        Ok(())
    }

    fn is_lost(&mut self) -> bool {
        self.guest.as_mut().is_none_or(|(guest, _)| guest.has_ended())
    }

    /// Checks that a worker of this arm sees its guest as the options require.
    fn check(&self, seen: &GuestSeen) -> Result<(), String> {
        let (Ok(plan), Some((_, arrival))) = (self.plan(), &self.guest) else {
            return Err("the guest does not run".into());
        };
        if seen.boot != arrival.machine.boot_id {
            return Err(format!("the process ran in a different boot ({})", seen.boot));
        }
        check_version(&seen.version, &plan.kernel.release, self.version.as_deref())?;
        if seen.cmdline != plan.command_line {
            return Err(format!("the kernel's command line is `{}`", seen.cmdline));
        }
        let wanted: Vec<String> = self.options.modules().split(',').map(str::to_owned).collect();
        // The kernel puts `capability` first, and adds what it is never without.
        if let Some(missing) = wanted.iter().find(|name| !seen.modules.contains(name)) {
            return Err(format!("the security module `{missing}` is missing"));
        }
        let majors = ["selinux", "apparmor", "bpf"];
        let is_extra = |name: &&String| majors.contains(&name.as_str()) && !wanted.contains(name);
        if let Some(extra) = seen.modules.iter().find(is_extra) {
            return Err(format!("the security module `{extra}` is present, but was not requested"));
        }
        let enforces = self.options.selinux.map(|mode| mode == SelinuxMode::Enforcing);
        if seen.enforces != enforces {
            let [seen, wanted] = [seen.enforces, enforces].map(selinux_state);
            return Err(format!("SELinux is {seen}, not {wanted}"));
        }
        if enforces.is_some() && !seen.context.contains(":unconfined_t:") {
            return Err(format!("its SELinux context is `{}`, not unconfined_t", seen.context));
        }
        if self.options.has_apparmor && seen.context != "unconfined" {
            return Err(format!("its AppArmor profile is `{}`, not `unconfined`", seen.context));
        }
        let audits = seen.audit.unwrap_or(0) != 0;
        if audits != self.options.has_audit {
            return Err(format!("auditing is {}", if audits { "on" } else { "off" }));
        }
        Ok(())
    }

    fn check_selinux(&self, launch: &Launch, lookups: u64) -> Result<(), String> {
        let Some(mode) = self.options.selinux else { return Ok(()) };
        let canary = launch.seen(GuestState::CANARY).map_err(|missing| missing.to_string())?;
        let is_denied = canary[0] == GuestState::DENIED;
        if is_denied != (mode == SelinuxMode::Enforcing) {
            return Err(format!("a step that the policy forbids was {}", canary[0]));
        }
        match lookups {
            0 => Err("SELinux looked up no permission during the sample".into()),
            _ => Ok(()),
        }
    }
}

impl Place for GuestVisit {
    fn launch_place(&self, place: LaunchPlace) -> LaunchPlace {
        match (&self.guest, &self.plan) {
            (Some((guest, arrival)), Some(plan)) => guest.place(arrival, plan),
            _ => place,
        }
    }

    /// Boots the guest for each round, and again if it is lost.
    fn prepare_pair(&mut self, draw: PairDraw) -> Result<(), TreatmentError> {
        if self.is_lost() {
            self.losses += 1;
            if self.losses > LOSSES {
                let problem = format!("the guest ended by itself {LOSSES} times");
                return Err(TreatmentError::Unavailable(problem));
            }
        } else if self.round == Some(draw.round) {
            // It takes a new launcher.
            self.guest.iter().for_each(|(guest, _)| guest.thaw());
            return Ok(());
        }
        self.round = Some(draw.round);
        self.boot()
    }
}

/// Checks that a kernel has the requested release, and the version line of earlier boots.
fn check_version(seen: &str, release: &str, first: Option<&str>) -> Result<(), String> {
    let own = seen.strip_prefix("Linux version ").and_then(|rest| rest.split(' ').next());
    if own != Some(release) {
        return Err(format!("the kernel is `{seen}`, not Linux {release}"));
    }
    match first {
        Some(first) if first != seen => {
            Err(format!("the kernel is `{seen}`, but was `{first}` in an earlier boot"))
        }
        _ => Ok(()),
    }
}

impl Treatment for GuestVisit {
    fn reach(&self) -> Reach {
        Reach::Guest
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        check_material(&self.options)
    }

    fn takes_time(&self) -> Option<String> {
        let [boot, image] = [20, 70].map(|seconds| takes(Duration::from_secs(seconds)));
        Some(format!(
            "Booting a VM, before the time of --budget: {boot} without KVM. If its image must be built \
             first: {image}, once."
        ))
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.interrupted = Arc::clone(context.interrupted);
        let known = context.commons.of::<KvmFound>();
        let (plan, kvm) = make(&self.options, context, guard, &known)?;
        let is_first = known.get().is_none();
        let kvm = known.get_or_init(|| kvm);
        self.plan = Some(plan);
        let Kvm::Not(why) = kvm else { return Ok(Vec::new()) };
        if let Some(problem) = self.options.unseen_by_path_length() {
            return Err(TreatmentError::Unavailable(problem));
        }
        Ok(is_first
            .then(|| format!("KVM does not work here ({why}): {}", accel::MEANING))
            .into_iter()
            .collect())
    }

    fn apply(&mut self, _: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        self.boot()
    }

    fn places(&mut self) -> Vec<&mut dyn Place> {
        vec![self]
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let counts_hooks = is_treated && self.options.counts_hooks;
        Setup::default().with(GuestState { counts_hooks })
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        if let Some((guest, _)) = &self.guest {
            match role {
                Role::Treated => guest.thaw(),
                Role::Paired | Role::Other => guest.freeze(),
            }
        }
        Ok(())
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let read = |name: &str| -> Result<GuestSeen, TreatmentError> {
            let seen = launch.seen(name)?;
            serde_json::from_str(seen[0]).map_err(|error| {
                TreatmentError::NotInForce(format!(
                    "cannot read what a process saw in the guest: {}",
                    brief(&error.to_string())
                ))
            })
        };
        let (before, after) = (read(GuestState::BEFORE)?, read(GuestState::AFTER)?);
        let own = self.guest.as_ref().map(|(_, arrival)| arrival.machine.boot_id.as_str());
        if !launch.is_treated {
            return match [&before, &after].iter().any(|seen| own == Some(seen.boot.as_str())) {
                false => Ok(Evidence::default()),
                true => Err(TreatmentError::NotInForce(
                    "a process of a different arm ran in this arm's guest".into(),
                )),
            };
        }
        let lookups = after.avc_lookups.saturating_sub(before.avc_lookups);
        let found = self.check(&before).and_then(|()| {
            // It has ended, and so has no context.
            let after = GuestSeen { context: before.context.clone(), ..after.clone() };
            self.check(&after)
        });
        found.and_then(|()| self.check_selinux(launch, lookups)).map_err(|problem| {
            TreatmentError::NotInForce(format!(
                "a process in the guest is not as requested: {problem}"
            ))
        })?;
        self.version.get_or_insert_with(|| before.version.clone());
        let misses = after.avc_misses.saturating_sub(before.avc_misses);
        let is_counted = self.options.selinux.is_some();
        Ok(Evidence::default()
            .with(&AVC_LOOKUPS, is_counted.then_some(lookups))
            .with(&AVC_MISSES, is_counted.then_some(misses)))
    }

    fn content(&self) -> Vec<u8> {
        // What cannot be told is a sentence, which is not what another session finds.
        let told = |found: Result<String, String>| found.unwrap_or_else(|problem| problem);
        let kernel = told(GuestKernel::identity(self.options.kernel.as_deref()));
        let root = told(Image::identity(self.options.root.as_deref()));
        format!("{kernel}\n{root}\n").into_bytes()
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        match self.options.selinux {
            Some(_) => vec![AVC_LOOKUPS, AVC_MISSES],
            None => Vec::new(),
        }
    }

    fn facts(&self) -> Vec<String> {
        let (Some(plan), Some((_, arrival))) = (&self.plan, &self.guest) else { return Vec::new() };
        let mut facts = vec![
            format!(
                "The processes of this arm run in a virtual machine: Linux {}, {} (image {}), one CPU. \
                 It boots again for every round, so the interval applies to the next boot.",
                plan.kernel.release, plan.image.shown, plan.image.digest
            ),
            format!("The guest's kernel command line: {}", plan.command_line),
            format!("The guest's security modules: {}.", arrival.machine.lsm.join(", ")),
        ];
        facts.push(match plan.accel {
            Accel::Counting => format!("KVM does not work here: {}", accel::MEANING),
            Accel::Kvm => {
                let states = &arrival.machine.mitigations;
                let shown = states.iter().map(|(name, state)| format!("{name}: {state}"));
                format!(
                    "The guest runs on this CPU (KVM). Vulnerabilities: {}.",
                    shown.collect::<Vec<_>>().join("; ")
                )
            }
        });
        if arrival.executable.is_static {
            facts.push("The workloads in the guest are statically linked.".into());
        }
        facts
    }

    fn state(&self, _: bool) -> Option<&'static str> {
        Some("a guest")
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        self.guest = None;
        self.next = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::parameters_of;

    #[test]
    fn a_guest_with_another_kernel_is_none_of_this_arm() {
        let seen = "Linux version 6.1.0-56-cloud-amd64 (a@b) #1 SMP 6.1.1";
        let check = |release: &str, first| check_version(seen, release, first);
        assert_eq!(check("6.1.0-56-cloud-amd64", None), Ok(()));
        assert_eq!(check("6.1.0-56-cloud-amd64", Some(seen)), Ok(()));
        assert!(check("6.1.0-56", None).unwrap_err().ends_with("not Linux 6.1.0-56"));
        let first = seen.replace("6.1.1", "6.1.2");
        let problem = check("6.1.0-56-cloud-amd64", Some(&first)).unwrap_err();
        assert!(problem.contains("in an earlier boot"), "{problem}");
        assert!(check_version("", "", None).is_err());
    }

    #[test]
    fn another_root_or_kernel_is_another_content() {
        let home = tempfile::tempdir().unwrap();
        let (root, kernel) = (home.path().join("root"), home.path().join("vmlinuz"));
        fs::create_dir(&root).unwrap();
        fs::write(&kernel, "one").unwrap();
        let label = format!("vm:root={},kernel={}", root.display(), kernel.display());
        let content = || (KIND.build)(&parameters_of(&label)).unwrap().content();
        let first = content();
        assert_eq!(content(), first);
        fs::write(root.join("file"), "").unwrap();
        let second = content();
        assert_ne!(second, first);
        fs::write(&kernel, "two").unwrap();
        assert_ne!(content(), second);
    }
}
