//! `inotify`: a listener of ours receives an event for each access to files in some directories, as programs
//! that synchronise, index or rebuild do. It has its watches for the length of each treated sample.
//!
//! Both arms have the listener and the same requests to it, so they differ by the watches alone.

use std::io;
use std::path::{Path, PathBuf};

use crate::canary::Canary;
use crate::event_receiver::{prove, started};
use crate::listening::{ListenerQuantities, Listening};
use crate::{
    ApplyContext, Kind, Launch, Parameter, Probe, Role, Treatment, TreatmentError, TreatmentKind,
    absolute,
};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_sensor::events::directories::{CANARY, WatchedDirectories, WatchedDirectory, open_queue};
use weigh_sensor::events::listener::{Counts, Wanted};
use weigh_workload::setup::Setup;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "inotify",
        summary: "a listener for the files of directories, as programs that synchronise have one",
        parameters: &[
            Parameter {
                form: "watch=DIR",
                help: "the directory; default that of the workloads and the current one",
            },
            Parameter {
                form: "recursive",
                help: "watch all directories below it, also new ones; always those of workloads",
            },
            Parameter { form: "changes", help: "changes only; default also opens and reads" },
            Parameter { form: "off", help: "the listener alone, without watches" },
        ],
        probe,
    },
    build,
);

/// Events of all processes in the watched directories. Lost are full queues, each of which dropped one event
/// or more.
const QUANTITIES: ListenerQuantities = ListenerQuantities::new(
    "inotify events",
    ["inotify_events", "inotify_events_received", "inotify_overflows", "inotify_listener_cpu_s"],
);

/// Opens of the canary: by the worker, and by its launcher afterwards.
const OPENS: u64 = 2;

fn probe() -> Probe {
    match open_queue() {
        Ok(_) => Probe::Available,
        Err(error) => Probe::Broken(format!(
            "cannot open inotify: {error}; see the setting fs.inotify.max_user_instances"
        )),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let has_watches = !parameters.has("off");
    if !has_watches && ["watch", "recursive", "changes"].iter().any(|word| parameters.has(word)) {
        return Err("`inotify:off` takes no other parameter: nothing is watched".into());
    }
    Ok(Box::new(Watching {
        has_watches,
        directory: parameters.value("watch").map(absolute).transpose()?,
        is_recursive: parameters.has("recursive"),
        has_changes_only: parameters.has("changes"),
        canary: Canary::default(),
        listening: None,
        skipped: 0,
    }))
}

struct Watching {
    /// False for two identical arms.
    has_watches: bool,
    /// The directory that the user named.
    directory: Option<PathBuf>,
    is_recursive: bool,
    has_changes_only: bool,
    canary: Canary,
    listening: Option<Listening>,
    /// Number of directories that could not be watched.
    skipped: u64,
}

impl Watching {
    /// A workload makes its files in a directory of its own, below the one that it is started in.
    fn directories(&self) -> Vec<WatchedDirectory> {
        let watched = |path: &PathBuf, is_recursive| WatchedDirectory {
            path: path.clone(),
            is_recursive: is_recursive || self.is_recursive,
        };
        match &self.directory {
            Some(directory) => vec![watched(directory, false)],
            None => {
                let Canary { of_workloads, of_commands, .. } = &self.canary;
                vec![watched(of_workloads, true), watched(of_commands, false)]
            }
        }
    }

    /// The worker opened the canary before its program, and its launcher did when the worker had ended.
    fn prove(&self, is_treated: bool, counts: &Counts) -> Result<(), TreatmentError> {
        let opens = counts.by_process.first().copied();
        let unseen = || {
            format!(
                "the treated process and its launcher opened {}, but inotify did not send both events ({} \
                 overflows of its queue)",
                self.canary.file.display(),
                counts.lost
            )
        };
        prove(
            is_treated && self.has_watches,
            opens.is_some_and(|opens| opens >= OPENS),
            counts.events,
            unseen,
            "the listener of inotify received events without the treatment",
        )
    }
}

fn check_directory(directory: &Path) -> io::Result<()> {
    std::fs::read_dir(directory).map(drop)
}

impl Treatment for Watching {
    fn check_inputs(&mut self) -> Result<(), String> {
        self.directory.iter().try_for_each(|directory| {
            check_directory(directory)
                .map_err(|error| format!("watch={}: {error}", directory.display()))
        })
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.canary = Canary::prepare(context)?;
        Ok(Vec::new())
    }

    /// Nothing to undo: the watches end with the listener, and the listener with `weigh`.
    fn apply(&mut self, context: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        let wanted = Wanted::Directories(WatchedDirectories {
            directories: self.directories(),
            has_changes_only: self.has_changes_only,
            canary: self.canary.file.clone(),
        });
        let mut listening = Listening::start(&wanted, context.interrupted)?;
        // Too many directories for the kernel's limits are found now.
        listening.begin(self.has_watches)?;
        self.skipped = listening.end(Vec::new())?.0.skipped;
        self.listening = Some(listening);
        Ok(())
    }

    fn setup(&self, _: bool) -> Setup {
        self.canary.setup()
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        let has_watches = self.has_watches;
        let listening = started(&mut self.listening)?;
        if role != Role::Other {
            // Both arms list the directories, set the watches and remove them.
            listening.begin(has_watches)?;
        }
        listening.begin(role == Role::Treated && has_watches)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let (counts, cpu_s) = started(&mut self.listening)?.end(vec![CANARY])?;
        // Whoever names a directory knows where the files are.
        if self.directory.is_none() {
            self.canary.check_device(launch, "inotify")?;
        }
        self.prove(launch.is_treated, &counts)?;
        Ok(QUANTITIES.evidence(launch.is_treated, &counts, cpu_s))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        QUANTITIES.list()
    }

    fn facts(&self) -> Vec<String> {
        if !self.has_watches {
            return vec!["The listener watches no directory.".into()];
        }
        let told = if self.has_changes_only { "change of" } else { "access to" };
        let place = |watched: WatchedDirectory| match watched.is_recursive {
            true => format!("{} and all directories below", watched.path.display()),
            false => watched.path.display().to_string(),
        };
        let places: Vec<String> = self.directories().into_iter().map(place).collect();
        vec![format!("A listener is told of each {told} files in {}.", places.join(", and in "))]
    }

    fn warnings(&self) -> Vec<String> {
        match self.skipped {
            0 => Vec::new(),
            skipped => vec![format!(
                "inotify cannot watch {skipped} of the directories: you may not read them, other file \
                 systems are mounted there, or their paths are too long."
            )],
        }
    }

    fn restore(&mut self, _: &mut Guard) -> Result<(), TreatmentError> {
        self.listening = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_receiver::assert_proof;
    use crate::parse;

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("inotify:off,recursive").contains("takes no other parameter"));
        let mut absent = parse("inotify:watch=/absent").unwrap().treatment;
        assert!(absent.check_inputs().unwrap_err().contains("watch=/absent: No such file"));
        assert!(parse("inotify:watch=/tmp,recursive,changes").is_ok());
    }

    #[test]
    fn a_sample_counts_if_both_opens_were_heard_and_the_baseline_if_nothing_was() {
        let is_believed = |has_watches, is_treated, events, opens| {
            let arm = Watching {
                has_watches,
                directory: None,
                is_recursive: false,
                has_changes_only: false,
                canary: Canary::default(),
                listening: None,
                skipped: 0,
            };
            let counts = Counts { events, by_process: vec![opens], ..Counts::default() };
            arm.prove(is_treated, &counts).is_ok()
        };
        assert_proof(is_believed, &OPENS, &0, &[OPENS - 1]);
    }
}
