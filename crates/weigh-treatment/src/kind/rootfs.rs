//! `rootfs`: a place. The arm's processes have another root file system: with its loader, its libc, and its
//! programs.

use std::rc::Rc;

use crate::rootfs::{Root, RootForm, RootSource, Roots};
use crate::{
    ApplyContext, Kind, Launch, PairDraw, Parameter, Place, Placebo, Probe, Treatment,
    TreatmentError, TreatmentKind,
};
use weigh_archive::Packed;
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::label::Parameters;
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::enter_root;
use weigh_workload::setup::kind::root_seen::{RootSeen, SEEN};

pub static KIND: TreatmentKind = TreatmentKind {
    is_place: true,
    placebo,
    ..TreatmentKind::of(
        Kind {
            name: "rootfs",
            summary: "a different root file system: a directory, tar archive, container image or squashfs",
            parameters: &[
                Parameter {
                    form: "PATH",
                    help: "a directory, tar (also gzip, xz, zstd or bzip2), OCI layout, archive of \
                           `docker save` or squashfs; / is this system's own, the default baseline",
                },
                Parameter {
                    form: "path=PATH",
                    help: "for a path that contains `,`, `:`, `+` or `=`",
                },
            ],
            probe,
        },
        build,
    )
};

fn probe() -> Probe {
    let is_root = rustix::process::geteuid().is_root();
    match in_child(enter_root::own_mounts) {
        Ok(()) => Probe::Available,
        Err(problem) if is_root => Probe::Broken(problem),
        Err(problem) => Probe::NeedsRoot(problem),
    }
}

/// This system's own root under the same overlay.
fn placebo(_: &Parameters) -> Placebo {
    let possible = match RootSource::programs_apart() {
        Err(error) => Err(format!("/proc/self/mountinfo: {error}")),
        Ok(apart) if apart.is_empty() => in_child(enter_root::try_over_host),
        Ok(apart) => {
            let paths = apart.iter().map(|path| path.display().to_string());
            let paths = paths.collect::<Vec<_>>().join(", ");
            Err(format!("an overlay over / lacks the file systems mounted at {paths}"))
        }
    };
    match possible {
        Ok(()) => Placebo::Of(Parameters::of_words(["/"].into_iter())),
        Err(problem) => Placebo::Impossible(format!("`rootfs:/` does not work here ({problem})")),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let mut paths = parameters.iter().map(|(key, value)| value.unwrap_or(key));
    let path = paths.next().filter(|path| !path.is_empty());
    let path = path.ok_or("rootfs takes the path of a root file system: rootfs:PATH")?;
    if let Some(other) = paths.next() {
        return Err(format!(
            "rootfs takes one path, but `{other}` is a second one: put a path that contains `,` \
             between quotes, rootfs:path=\"PATH\""
        ));
    }
    Ok(Box::new(Elsewhere { source: RootSource::look(path)?, raised: None }))
}

/// Finds something out in a child process, so that this process is not changed.
fn in_child(find_out: fn() -> Result<(), String>) -> Result<(), String> {
    let (read, write) = rustix::pipe::pipe().map_err(|error| error.to_string())?;
    // SAFETY: the child makes system calls and small allocations, writes to the pipe and ends at once. The
    // allocator of this libc may be used after a fork of a program with several threads.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().to_string()),
        0 => {
            let problem = find_out().err().unwrap_or_default();
            let _ = rustix::io::write(&write, problem.as_bytes());
            // SAFETY: ends the child at once, without the parent's clean-up.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(write);
            let mut problem = String::new();
            let heard = std::io::Read::read_to_string(&mut std::fs::File::from(read), &mut problem);
            // SAFETY: a status is not asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            match heard {
                Ok(0) => Ok(()),
                Ok(_) => Err(problem),
                Err(error) => Err(error.to_string()),
            }
        }
    }
}

struct Elsewhere {
    source: RootSource,
    /// Since it was applied.
    raised: Option<(Rc<Roots>, Rc<Root>)>,
}

impl Place for Elsewhere {
    fn launch_place(&self, mut place: LaunchPlace) -> LaunchPlace {
        let other = self.raised.as_ref().and_then(|(roots, _)| roots.static_build());
        if let Some(executable) = other {
            place.executable = executable;
        }
        place
    }

    fn prepare_pair(&mut self, _: PairDraw) -> Result<(), TreatmentError> {
        self.source.check_now_and_then().map_err(|problem| self.is_another(&problem))
    }
}

impl Treatment for Elsewhere {
    fn can_interleave(&self) -> bool {
        true
    }

    fn prepare(&mut self, _: &ApplyContext, _: &mut Guard) -> Result<Vec<String>, TreatmentError> {
        Ok(self.what_is_absent().into_iter().collect())
    }

    fn apply(&mut self, context: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        let roots = context.commons.of::<Roots>();
        let root = roots.raise(&self.source, context)?;
        self.raised = Some((roots, root));
        Ok(())
    }

    fn places(&mut self) -> Vec<&mut dyn Place> {
        vec![self]
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let own = self.raised.as_ref().filter(|_| is_treated).map(|(_, root)| root.setup());
        own.unwrap_or_default().with(RootSeen {})
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let shown = self.source.shown();
        let Some((_, root)) = &self.raised else {
            return Err(TreatmentError::NotInForce(format!(
                "the root file system {shown} was never prepared"
            )));
        };
        // Another arm may be in the same root.
        let is_wanted = root.is_entered_by(launch.setup);
        let own = format!("{:016x}", root.number);
        let seen = launch.seen(SEEN)?;
        let wrong = seen.iter().find(|mark| (**mark == own) != is_wanted);
        if wrong.is_none() && is_wanted >= launch.is_treated {
            return Ok(Evidence::default());
        }
        Err(TreatmentError::NotInForce(format!(
            "the {} process should {} had the root file system {shown}, but {}",
            launch.whose(),
            if is_wanted { "have" } else { "not have" },
            match wrong {
                None | Some(&"") => "its root lacks weigh's mark",
                Some(mark) if *mark == own => "had it",
                Some(_) => "its root has a different mark",
            }
        )))
    }

    fn content(&self) -> Vec<u8> {
        match self.source.digest() {
            Ok(digest) => digest.into(),
            Err(problem) => problem.into_bytes(),
        }
    }

    fn facts(&self) -> Vec<String> {
        let Some((roots, root)) = &self.raised else { return Vec::new() };
        let mut facts = vec![self.what_it_is(root)];
        facts.extend(self.what_is_absent());
        facts.extend([which_build(roots), where_it_writes()]);
        facts.extend(roots.first_before(root).map(|first| root.beside(&first)));
        facts
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        let Some((roots, _)) = self.raised.take() else { return Ok(()) };
        roots.lower()?;
        self.source.check_at_the_end().map_err(|problem| self.is_another(&problem))
    }
}

impl Elsewhere {
    fn is_another(&self, problem: &str) -> TreatmentError {
        TreatmentError::NotInForce(format!(
            "the root file system {} is not as it was when the experiment began: {problem}",
            self.source.shown()
        ))
    }

    fn what_is_absent(&self) -> Option<String> {
        let mounted = self.source.mounted_in_it();
        let paths: Vec<String> = mounted.iter().map(|path| path.display().to_string()).collect();
        (!paths.is_empty()).then(|| {
            format!(
                "File systems mounted in {} are absent in this arm: {}. The arm has the directories \
                 beneath them.",
                self.source.shown(),
                paths.join(", ")
            )
        })
    }

    fn what_it_is(&self, root: &Root) -> String {
        let form = match (self.source.form, root.packed) {
            (RootForm::Host, _) => "this system's own, under an overlay",
            (RootForm::Directory, _) => "a directory",
            (RootForm::Squashfs, _) => "a squashfs",
            (RootForm::ImageDirectory, _) => "a directory with a container's image",
            (RootForm::Tar, Some(Packed::Image)) => "a tar archive of a container's image",
            (RootForm::Tar, _) => "a tar archive",
        };
        let digest = match self.source.form {
            RootForm::Host | RootForm::Directory | RootForm::ImageDirectory => String::new(),
            _ => format!(", SHA-256 {}", self.source.digest().unwrap_or("unknown")),
        };
        let files = root
            .files
            .map_or(String::new(), |files| format!(", {}", format::plural(files as usize, "file")));
        let devices = match root.devices {
            0 => String::new(),
            number => format!(" Device nodes left out: {number}."),
        };
        let lacks = root.lacks.as_ref().map(|why| format!(" Files are missing: {why}."));
        let name =
            |name: &Option<String>, none: &str| name.clone().unwrap_or_else(|| none.to_owned());
        format!(
            "The processes of this arm have the root file system {} ({form}{digest}{files}): {}, \
             {}.{devices}{}",
            self.source.shown(),
            name(&root.tried.distribution, "a system without a name (os-release)"),
            name(&root.tried.libc, "an unknown libc"),
            lacks.unwrap_or_default(),
        )
    }
}

fn which_build(roots: &Roots) -> String {
    match roots.why_static() {
        None => "All arms run the same dynamically linked workloads, with the loader and the libc of the \
                 arm's root."
            .into(),
        Some((file, why)) => format!(
            "All arms run the statically linked workloads, with a libc of their own: the dynamic build \
             does not run in {file} ({why})."
        ),
    }
}

fn where_it_writes() -> String {
    let user = match rustix::process::geteuid().is_root() {
        true => "",
        false => " All files in it belong to the only user of its user namespace.",
    };
    format!(
        "Each pair gets a new overlay in memory, so the root file system stays unchanged; the workloads' \
         files are in a directory of the host.{user}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;
    use weigh_workload::launcher::Launched;
    use weigh_workload::member::{MemberDuring, MemberSeen};

    /// Returns true if a sample is believed whose worker and member saw these marks.
    ///
    /// `entered` is the arm's root: 7, 8, or 0 for no root of ours.
    fn is_believed(is_treated: bool, entered: u64, worker: Option<&str>, member: &str) -> bool {
        let source = RootSource::look("/proc").unwrap();
        let root = Rc::new(Root::made_up(7, "/scratch/root-7"));
        let mut treatment = Elsewhere { source, raised: Some((Rc::default(), Rc::clone(&root))) };
        let setup = match entered {
            7 => root.setup(),
            8 => Root::made_up(8, "/scratch/root-8").setup(),
            _ => Setup::default(),
        };
        let named = |mark: &str| [(SEEN.to_owned(), mark.to_owned())].into();
        let seen = worker.map(named).unwrap_or_default();
        let launched = Launched { seen, ..Launched::default() };
        let seen = MemberSeen { seen: named(member), ..MemberSeen::default() };
        let members = &[MemberDuring { before: seen.clone(), after: seen, is_away: false }];
        treatment
            .verify_sample(&Launch { is_treated, setup: &setup, launched: &launched, members })
            .is_ok()
    }

    #[test]
    fn only_the_mark_of_the_root_is_evidence() {
        const OWN: &str = "0000000000000007";
        const OTHER: &str = "0000000000000008";
        assert!(is_believed(true, 7, Some(OWN), OWN));
        assert!(is_believed(false, 0, Some(""), ""));
        assert!(is_believed(false, 8, Some(OTHER), OTHER));
        assert!(is_believed(false, 7, Some(OWN), OWN), "two arms in one root");
        assert!(!is_believed(true, 7, Some(""), OWN) && !is_believed(true, 7, Some(OTHER), OWN));
        assert!(!is_believed(true, 7, None, OWN) && !is_believed(false, 0, None, ""));
        assert!(!is_believed(true, 7, Some(OWN), ""), "a server that is not in it");
        assert!(!is_believed(false, 0, Some(OWN), "") && !is_believed(false, 8, Some(OWN), OTHER));
        assert!(!is_believed(true, 0, Some(""), ""), "an arm without the step");
    }

    #[test]
    fn what_differs_between_two_roots_is_told() {
        let root = |number, libc: &str, digest: &str| {
            let mut root = Root::made_up(number, "/old.tar");
            root.tried.libc = Some(libc.into());
            root.digest = digest.into();
            root
        };
        let (old, new) = (root(1, "musl 1", "a"), root(2, "musl 2", "b"));
        assert_eq!(
            new.beside(&old),
            "It differs from /old.tar in: libc musl 2 in place of musl 1. The effect covers all \
             differences together."
        );
        assert!(root(3, "musl 1", "c").beside(&old).contains("in: contents."));
        assert_eq!(root(4, "musl 1", "a").beside(&old), "/old.tar has the same content.");
    }

    #[test]
    fn a_path_is_one_word_or_one_value() {
        let refused = |text: &str| (KIND.build)(&parameters_of(text)).err().unwrap();
        assert!(refused("rootfs").contains("rootfs:PATH"));
        assert!(refused("rootfs:a,b").contains("`b` is a second one"));
        assert!(refused("rootfs:/no/such").contains("no such directory or archive"));
        assert!(refused("rootfs:path=\"/no, such\"").contains("rootfs:/no, such: no such"));
    }

    #[test]
    fn what_a_child_finds_out_is_heard() {
        assert_eq!(in_child(|| Ok(())), Ok(()));
        assert_eq!(in_child(|| Err("forbidden".into())), Err("forbidden".into()));
    }
}
