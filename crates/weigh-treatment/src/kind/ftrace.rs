//! `ftrace`: the kernel writes an entry for each event into a trace buffer, as trace-cmd(1) records them.
//!
//! The buffer is an instance of tracefs of our own. The events are on during each treated sample. For the
//! other samples they are switched on and off again before they begin.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    ApplyContext, Kind, Launch, Occupied, Parameter, Probe, Role, Treatment, TreatmentError,
    TreatmentKind, only_word,
};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::scratch;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::quantity::{QuantityKind::Made, QuantityUnit::Count};

pub static KIND: TreatmentKind = TreatmentKind {
    undo,
    ..TreatmentKind::of(
        Kind {
            name: NAME,
            summary: "a trace buffer of the kernel's, with an entry for each event (ftrace)",
            parameters: &[
                Parameter { form: "syscalls", help: "each entry to a system call; the default" },
                Parameter { form: "processes", help: "each fork, exec and exit" },
                Parameter { form: "scheduler", help: "each wakeup and each switch of a task" },
                Parameter { form: "off", help: "the buffer alone, without events" },
            ],
            probe,
        },
        build,
    )
};

const NAME: &str = "ftrace";
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Size of the buffer of each CPU, which must hold the last entries of a sample until they are read.
const BUFFER_KIB: &str = "2048";
/// Width of the name at the beginning of each entry.
const NAME_BYTES: usize = 16;
/// On in each treated sample: its entry shows that the trace lasted until the process ended.
const PROOF: &str = "sched/sched_process_exit";
/// The first event is one that each process makes.
const SYSCALLS: [&str; 2] = ["raw_syscalls/sys_enter", PROOF];
const PROCESSES: [&str; 3] = ["sched/sched_process_exec", "sched/sched_process_fork", PROOF];
const SCHEDULER: [&str; 3] = ["sched/sched_switch", "sched/sched_wakeup", PROOF];
/// Files of the buffer that decide which entries are made; older kernels lack some of them.
const SETTINGS: [&str; 5] =
    ["tracing_on", "tracing_cpumask", "set_event_pid", "set_event_notrace_pid", "buffer_size_kb"];
/// Files of an event that do so.
const EVENT_SETTINGS: [&str; 2] = ["filter", "trigger"];

/// Entries of all processes, also those that newer ones overwrote.
const ENTRIES: EvidenceQuantity =
    EvidenceQuantity::new("ftrace_entries", "trace entries", Count, Made, None);

fn probe() -> Probe {
    if !rustix::process::geteuid().is_root() {
        return Probe::NeedsRoot("ftrace needs root (tracefs)".into());
    }
    match Path::new(INSTANCES).is_dir() {
        true => Probe::Available,
        false => Probe::Broken(format!(
            "{INSTANCES} does not exist: mount -t tracefs none /sys/kernel/tracing (CONFIG_FTRACE)"
        )),
    }
}

fn undo(state: &Value) -> Result<(), String> {
    let name = state.as_str().filter(|name| is_ours(name));
    let name = name.ok_or("the journal's instance of ftrace is damaged")?;
    match fs::remove_dir(Path::new(INSTANCES).join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(|error| {
            format!("cannot remove {INSTANCES}/{name}: {error}; end the program that reads it")
        }),
    }
}

/// The form of [`Traced::name`]; an older `weigh` had the number of the arm in place of the random one.
fn is_ours(name: &str) -> bool {
    let numbers = name.strip_prefix("weigh-").and_then(|numbers| numbers.split_once('-'));
    let is_number = |text: &str, is_digit: fn(&u8) -> bool| {
        !text.is_empty() && text.as_bytes().iter().all(is_digit)
    };
    numbers.is_some_and(|(pid, random)| {
        is_number(pid, u8::is_ascii_digit) && is_number(random, u8::is_ascii_hexdigit)
    })
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let events: &[&str] = match only_word(parameters) {
        None if parameters.iter().next().is_none() => &SYSCALLS,
        Some("syscalls") => &SYSCALLS,
        Some("processes") => &PROCESSES,
        Some("scheduler") => &SCHEDULER,
        Some("off") => &[],
        _ => return Err("`ftrace` takes one of `syscalls`, `processes`, `scheduler`, `off`".into()),
    };
    let (name, settings) = (String::new(), Vec::new());
    Ok(Box::new(Traced { events, name, settings, is_asked: false }))
}

struct Traced {
    /// Events to trace, as directories; empty for two identical arms.
    events: &'static [&'static str],
    /// Name of the buffer: no other process, of any container, has one of this name.
    name: String,
    /// Files of the buffer, and their content when it was made.
    settings: Vec<(PathBuf, Option<String>)>,
    /// True if this sample is one of this arm's pairs.
    is_asked: bool,
}

impl Traced {
    fn directory(&self) -> PathBuf {
        Path::new(INSTANCES).join(&self.name)
    }

    fn write(&self, file: impl AsRef<Path>, value: &str) -> Result<(), String> {
        let file = self.directory().join(file);
        fs::write(&file, value).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn read(&self, file: impl AsRef<Path>) -> Result<String, String> {
        let file = self.directory().join(file);
        fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Returns the files that switch the events.
    fn switches(&self) -> impl Iterator<Item = PathBuf> {
        self.events.iter().map(|event| Path::new("events").join(event).join("enable"))
    }

    fn switch(&self, is_on: bool) -> Result<(), String> {
        self.switches().try_for_each(|file| self.write(file, value(is_on)))
    }

    /// Checks that nobody else has switched an event since [`Traced::switch`].
    fn check_switches(&self, is_on: bool) -> Result<(), String> {
        self.switches().try_for_each(|file| match self.read(&file)?.trim() {
            found if found == value(is_on) => Ok(()),
            found => Err(self.changed(&file, value(is_on), found)),
        })
    }

    fn settings(&self) -> Result<Vec<(PathBuf, Option<String>)>, String> {
        let of_event = |event: &&str| {
            let directory = Path::new("events").join(event);
            EVENT_SETTINGS.map(|name| directory.join(name))
        };
        let files = SETTINGS.iter().map(PathBuf::from);
        let files = files.chain(self.events.iter().flat_map(of_event));
        let content = |file: PathBuf| match self.directory().join(&file).exists() {
            true => Ok((file.clone(), Some(self.read(&file)?))),
            false => Ok((file, None)),
        };
        files.map(content).collect()
    }

    /// Checks that nobody has changed a setting of the buffer since it was made.
    fn check_settings(&self) -> Result<(), String> {
        let now = self.settings()?;
        let mut pairs = self.settings.iter().zip(&now);
        pairs.find(|(before, now)| before != now).map_or(Ok(()), |((file, before), (_, now))| {
            let shown = |text: &Option<String>| text.clone().unwrap_or("no file".into());
            Err(self.changed(file, shown(before).trim(), shown(now).trim()))
        })
    }

    fn changed(&self, file: &Path, before: &str, now: &str) -> String {
        let file = self.directory().join(file);
        format!(
            "another program changed {} from `{before}` to `{now}`, so the trace may lack events; end that \
             program",
            file.display()
        )
    }

    /// Counts the entries that were made since the buffer was emptied.
    fn entries(&self) -> Result<Entries, String> {
        let cpus = self.directory().join("per_cpu");
        let failed = |error: io::Error| format!("{}: {error}", cpus.display());
        let mut sum = Entries::default();
        for cpu in fs::read_dir(&cpus).map_err(failed)? {
            let stats = self.read(cpu.map_err(failed)?.path().join("stats"))?;
            let of_cpu = Entries::read(&stats)?;
            sum.kept += of_cpu.kept;
            sum.overwritten += of_cpu.overwritten;
        }
        Ok(sum)
    }

    /// Looks for entries of a process in the buffer.
    fn look_for(&self, pid: u32) -> Result<Found, String> {
        let file = self.directory().join("trace");
        let found = File::open(&file).and_then(|trace| {
            Found::search(BufReader::new(trace), self.events.first().copied(), pid)
        });
        found.map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The end of the process is in the trace, so it was traced until then.
    fn prove(&self, is_treated: bool, found: Found, entries: Entries) -> Result<(), String> {
        let made = entries.kept + entries.overwritten;
        match (is_treated, self.events.first()) {
            (true, Some(_)) if !found.has_end => Err(format!(
                "the trace lacks the end of the treated process: {made} entries were made, and others may \
                 have overwritten it"
            )),
            (true, Some(event)) if !found.has_event && entries.overwritten == 0 => Err(format!(
                "the trace lacks each {event} of the treated process, although none of the {made} entries \
                 was overwritten"
            )),
            (true, Some(_)) => Ok(()),
            (false, _) | (_, None) if made > 0 => {
                Err("the trace has entries of a sample without the treatment".into())
            }
            (false, _) | (_, None) => Ok(()),
        }
    }
}

fn value(is_on: bool) -> &'static str {
    if is_on { "1" } else { "0" }
}

/// Numbers of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Entries {
    kept: u64,
    overwritten: u64,
}

impl Entries {
    /// Reads the statistics of a CPU.
    fn read(stats: &str) -> Result<Entries, String> {
        let number = |name: &str| {
            let value = stats.lines().find_map(|line| line.strip_prefix(name))?;
            value.trim().parse::<u64>().ok()
        };
        match (number("entries:"), number("overrun:")) {
            (Some(kept), Some(overwritten)) => Ok(Entries { kept, overwritten }),
            _ => Err("the statistics of a trace buffer have an unknown form".into()),
        }
    }
}

/// Entries that a process made itself and that are still in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Found {
    has_event: bool,
    has_end: bool,
}

impl Found {
    /// Searches a trace line by line: it is long, and has the names of processes, which may be any bytes.
    fn search(mut trace: impl BufRead, event: Option<&str>, pid: u32) -> io::Result<Found> {
        let mut found = Found::default();
        let mut line = Vec::new();
        while trace.read_until(b'\n', &mut line)? > 0 {
            // A line break in the name of the process.
            if line.len() <= NAME_BYTES {
                continue;
            }
            if process_of(&line) == Some(pid) {
                found.has_event |= event.is_some_and(|event| is_entry_of(&line, event));
                found.has_end |= is_entry_of(&line, PROOF);
            }
            line.clear();
        }
        Ok(found)
    }
}

/// The thread that made an entry. Its number comes after its name and a dash.
fn process_of(line: &[u8]) -> Option<u32> {
    let rest = line.get(NAME_BYTES..)?.strip_prefix(b"-")?;
    let digits = rest.split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn is_entry_of(line: &[u8], event: &str) -> bool {
    let name = event.rsplit('/').next().unwrap_or(event);
    let wanted = format!(": {name}: ");
    line.windows(wanted.len()).any(|part| part == wanted.as_bytes())
}

impl Treatment for Traced {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: "the kernel's tracing", can_alternate: true }]
    }

    fn apply(&mut self, _: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.name = scratch::name(std::process::id()).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot name a trace buffer: {error}"))
        })?;
        guard.write_down(NAME, &self.name, json!(self.name)).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot write the journal: {error}"))
        })?;
        let directory = self.directory();
        fs::create_dir(&directory).map_err(|error| {
            TreatmentError::Unavailable(format!("cannot make {}: {error}", directory.display()))
        })?;
        let tried = self.write("buffer_size_kb", BUFFER_KIB);
        let tried = tried.and_then(|()| self.switch(true)).and_then(|()| self.switch(false));
        tried.map_err(TreatmentError::Unavailable)?;
        self.settings = self.settings().map_err(TreatmentError::Unavailable)?;
        Ok(())
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        let failed = TreatmentError::NotInForce;
        self.is_asked = role != Role::Other;
        // The last sample may have had no result, and nobody asked for its proof.
        self.switch(false).map_err(failed)?;
        if !self.is_asked {
            return Ok(());
        }
        self.switch(true).map_err(failed)?;
        if role == Role::Paired {
            self.switch(false).map_err(failed)?;
        }
        // Empties it.
        self.write("trace", "").map_err(failed)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !self.is_asked {
            return Ok(Evidence::default());
        }
        let failed = TreatmentError::NotInForce;
        self.check_switches(launch.is_treated).map_err(failed)?;
        self.switch(false).map_err(failed)?;
        self.check_settings().map_err(failed)?;
        let entries = self.entries().map_err(failed)?;
        let found = self.look_for(launch.launched.pid).map_err(failed)?;
        self.prove(launch.is_treated, found, entries).map_err(failed)?;
        let made = entries.kept + entries.overwritten;
        Ok(Evidence::default().with(&ENTRIES, launch.is_treated.then_some(made)))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        vec![ENTRIES]
    }

    fn facts(&self) -> Vec<String> {
        let events: Vec<_> = self.events.iter().map(|event| event.replace('/', ":")).collect();
        vec![match events.is_empty() {
            true => "The trace buffer has no events.".into(),
            false => format!(
                "The kernel writes an entry into a trace buffer for each of these events of all processes: \
                 {}.",
                events.join(", ")
            ),
        }]
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        guard.undo(NAME, &self.name).map_err(TreatmentError::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn one_word_chooses_the_events() {
        let facts = |label: &str| parse(label).unwrap().treatment.facts().remove(0);
        assert!(facts("ftrace").contains("raw_syscalls:sys_enter"));
        assert!(facts("ftrace:processes").contains("sched:sched_process_fork"));
        assert!(facts("ftrace:off").contains("no events"));
        assert!(parse("ftrace:syscalls,off").err().unwrap().contains("takes one of"));
    }

    #[test]
    fn entries_are_counted() {
        let stats = "entries: 7\noverrun: 5\ncommit overrun: 0\nbytes: 452\n";
        assert_eq!(Entries::read(stats), Ok(Entries { kept: 7, overwritten: 5 }));
        assert!(Entries::read("entries: 7\n").is_err());
    }

    /// As Linux 6.18 writes them.
    #[test]
    fn entries_of_a_process_are_found_among_names_of_any_bytes() {
        let line = |name: &[u8], entry: &str| {
            let padding = vec![b' '; NAME_BYTES - name.len()];
            [&padding, name, b"-", entry.as_bytes(), b"\n"].concat()
        };
        let trace = [
            b"# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP\n".to_vec(),
            line(b"\xff\xfe", "9       [000] d.... 1.5: sys_enter: NR 231 (0, 3c, 0)"),
            line(b"\xff\xfe", "9       [000] d.... 1.6: sched_process_exit: comm=? pid=9 prio=120"),
            line(b"a\nb", "5       [000] d.... 1.6: sched_process_exit: comm=a\nb pid=5 prio=120"),
            line(b"a pid=7", "71      [000] d.... 1.7: sched_process_exit: comm=a pid=7 pid=71"),
        ]
        .concat();
        let search = |event, pid| Found::search(&trace[..], event, pid).unwrap();
        let sys_enter = Some(SYSCALLS[0]);
        assert_eq!(search(sys_enter, 70), Found::default());
        assert_eq!(search(sys_enter, 9), Found { has_event: true, has_end: true });
        assert_eq!(search(sys_enter, 5), Found { has_event: false, has_end: true });
        assert_eq!(search(sys_enter, 71), Found { has_event: false, has_end: true });
        assert_eq!(search(Some(SCHEDULER[0]), 9), Found { has_event: false, has_end: true });
        assert_eq!(search(sys_enter, 7), Found::default(), "it is in another's name");
    }

    #[test]
    fn a_sample_counts_if_its_end_was_traced_and_another_if_nothing_was() {
        let is_believed =
            |events, is_treated, [has_event, has_end]: [bool; 2], [kept, overwritten]: [u64; 2]| {
                let (name, settings) = (String::new(), Vec::new());
                let arm = Traced { events, name, settings, is_asked: true };
                arm.prove(is_treated, Found { has_event, has_end }, Entries { kept, overwritten })
                    .is_ok()
            };
        assert!(is_believed(&SYSCALLS, true, [true, true], [9, 0]));
        assert!(!is_believed(&SYSCALLS, true, [true, false], [9, 0]));
        assert!(!is_believed(&SYSCALLS, true, [false, true], [9, 0]), "sys_enter was off");
        assert!(is_believed(&SYSCALLS, true, [false, true], [9, 1]), "it was overwritten");
        assert!(is_believed(&SYSCALLS, false, [false; 2], [0, 0]));
        assert!(!is_believed(&SYSCALLS, false, [false; 2], [1, 0]));
        assert!(is_believed(&[], true, [false; 2], [0, 0]));
    }

    #[test]
    fn only_an_instance_of_ours_is_removed() {
        for forged in
            ["../weigh-1-2", "weigh-1-2/..", "weigh-1-", "weigh-1-g", "weigh-", "other", ""]
        {
            assert!(undo(&json!(forged)).unwrap_err().contains("damaged"), "{forged}");
        }
    }
}
