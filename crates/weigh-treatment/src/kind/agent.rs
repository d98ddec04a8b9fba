//! `agent`: a program of the user's that runs beside the treated samples and may start slowly, such as a
//! monitor or a scanner.
//!
//! Each sample has a start of its own, because that is what is drawn afresh; before a sample without the
//! agent, it is stopped again, so both arms go through its start. All processes of the agent are below a
//! keeper, which the journal names before the first start. So the guard finds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    ApplyContext, Kind, Launch, Parameter, Probe, Role, Treatment, TreatmentError, TreatmentKind,
};
use weigh_host::orphans::wait_until;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::program_keeper::{Footprint, ProgramKeeper, end_kept};
use weigh_host::undo::running::{NotedCommand, mark};
use weigh_host::undo::undo_command::{self, UserCommand};
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::quantity::{QuantityKind::Waited, QuantityUnit::Seconds};

const NAME: &str = "agent";

pub static KIND: TreatmentKind = TreatmentKind {
    undo,
    ..TreatmentKind::of(
        Kind {
            name: NAME,
            summary: "your own monitor or scanner, started anew for each sample",
            parameters: &[
                Parameter {
                    form: "start=COMMAND",
                    help: "start the agent; it may stay in the foreground",
                },
                Parameter {
                    form: "proof=COMMAND",
                    help: "exit with status 0 only if the agent works; checked around each sample",
                },
                Parameter {
                    form: "ready=COMMAND",
                    help: "exit with status 0 when the agent is ready; default proof=",
                },
                Parameter {
                    form: "stop=COMMAND",
                    help: "stop the agent, even if it has ended; what is left gets SIGTERM, and SIGKILL \
                           after 5 s",
                },
            ],
            probe: || Probe::Available,
        },
        build,
    )
};

/// An agent has so long to become ready.
const READY_LIMIT: Duration = Duration::from_secs(120);
/// Not a cost of operations: an agent also works without them.
const CPU_TIME: EvidenceQuantity =
    EvidenceQuantity::new("agent_cpu_s", "agent CPU time", Seconds, Waited, None);

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let directory = std::env::current_dir()
        .map_err(|error| format!("cannot find the current directory: {error}"))?;
    let command = |name: &str| match parameters.value(name) {
        Some(line) if line.trim().is_empty() || line.contains('\0') => {
            Err(format!("{name}= takes a shell command"))
        }
        line => {
            Ok(line.map(|line| UserCommand { line: line.to_owned(), directory: directory.clone() }))
        }
    };
    let required = |name: &str, what: &str| {
        command(name)?.ok_or_else(|| format!("`agent` needs {name}=\"COMMAND\", which {what}"))
    };
    let proof = required("proof", "exits with status 0 only if the agent works")?;
    Ok(Box::new(Agent {
        start: required("start", "starts the agent")?,
        ready: command("ready")?.unwrap_or_else(|| proof.clone()),
        proof,
        stop: command("stop")?,
        mark: String::new(),
        interrupted: Arc::default(),
        keeper: None,
        has_started: false,
        cpu_before_ns: 0,
        trial: None,
    }))
}

/// Ends the agent of an experiment that is gone.
fn undo(state: &Value) -> Result<(), String> {
    let damaged = |error| format!("the journal's note of an agent is damaged: {error}");
    let note = NotedCommand::deserialize(state).map_err(damaged)?;
    end_kept(&note).map_err(|error| {
        format!(
            "cannot end the agent: {error}. Find what it waits for, such as a disk or a frozen control \
             group, and run `weigh restore`. Do not kill process {} (`weigh __keeper`), by which weigh \
             finds the agent",
            note.pid
        )
    })
}

struct Agent {
    start: UserCommand,
    ready: UserCommand,
    proof: UserCommand,
    stop: Option<UserCommand>,
    /// Mark in the environment of all its processes. Known when it is applied.
    mark: String,
    interrupted: Arc<AtomicBool>,
    /// Known when it is applied.
    keeper: Option<ProgramKeeper>,
    /// And has not been ended since.
    has_started: bool,
    /// CPU time that it had used when the sample began.
    cpu_before_ns: u64,
    /// Result of the trial before the first sample.
    trial: Option<Trial>,
}

struct Trial {
    ready_s: f64,
    footprint: Footprint,
}

impl Agent {
    fn footprint(&self) -> Result<Footprint, TreatmentError> {
        let Some(keeper) = &self.keeper else { return Ok(Footprint::default()) };
        keeper.footprint().map_err(|error| {
            TreatmentError::NotInForce(format!("cannot see the processes of the agent: {error}"))
        })
    }

    /// Starts it and waits until it is ready.
    fn switch_on(&mut self) -> Result<(), TreatmentError> {
        let line = &self.start.line;
        let cannot = |problem: String| TreatmentError::NotInForce(format!("`{line}`: {problem}"));
        let Some(keeper) = &mut self.keeper else { return Err(cannot("not applied".into())) };
        self.has_started = true;
        keeper.start_program(&self.start).map_err(|error| cannot(error.to_string()))?;
        let (mut failure, mut answer) = (Ok(None), Ok(Err(String::new())));
        wait_until(Instant::now() + READY_LIMIT, || {
            failure = keeper.failure();
            answer = self.ready.ask();
            let goes_on = matches!((&failure, &answer), (Ok(None), Ok(Err(_))));
            !goes_on || self.interrupted.load(Ordering::Relaxed)
        });
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(TreatmentError::Interrupted);
        }
        if let Some(status) = failure.map_err(|error| cannot(error.to_string()))? {
            return Err(cannot(format!("it failed ({status}): run it by hand to see why")));
        }
        let answer = answer.map_err(TreatmentError::NotInForce)?;
        let late = |problem| format!("not ready after {} s: {problem}", READY_LIMIT.as_secs());
        answer.map_err(|problem| cannot(late(problem)))
    }

    /// Stops it, if it runs, and waits for the end of all its processes.
    fn switch_off(&mut self) -> Result<(), TreatmentError> {
        let Some(keeper) = self.keeper.as_ref().filter(|_| self.has_started) else { return Ok(()) };
        let stopped = self.stop.as_ref().map_or(Ok(Ok(())), UserCommand::ask);
        let ended = keeper.end_program();
        let ended = ended.map_err(|error| format!("cannot end the agent: {error}"));
        self.has_started = ended.is_err();
        ended.and_then(|()| stopped?).map_err(TreatmentError::NotInForce)
    }

    fn prove(&self, is_wanted: bool, when: &str) -> Result<(), TreatmentError> {
        let processes = self.footprint()?.processes;
        let verified = self.proof.ask().map_err(TreatmentError::NotInForce)?;
        let wrong = match (is_wanted, verified) {
            (true, Err(problem)) => format!("{when}, the agent should have worked, but {problem}"),
            (true, Ok(())) if processes == 0 => format!(
                "{when}, the agent had no process. weigh does not see a process that a service manager \
                 starts: let start= start the program itself"
            ),
            (false, Ok(())) => format!(
                "{when}, the agent should not have worked, but `{}` ended with status 0",
                self.proof.line
            ),
            (false, _) if processes > 0 => {
                format!("{when}, {processes} of its processes still ran")
            }
            _ => return Ok(()),
        };
        Err(TreatmentError::NotInForce(wrong))
    }

    /// Starts it once and stops it again.
    fn try_out(&mut self) -> Result<Trial, TreatmentError> {
        self.prove(false, "before the agent was started")?;
        let began = Instant::now();
        self.switch_on()?;
        let ready_s = began.elapsed().as_secs_f64();
        self.prove(true, "after the agent was started")?;
        let footprint = self.footprint()?;
        self.switch_off()?;
        self.prove(false, "after the agent was stopped")?;
        Ok(Trial { ready_s, footprint })
    }
}

impl Treatment for Agent {
    fn takes_time(&self) -> Option<String> {
        Some(format!("Trying the agent `{}`: start, proof and stop.", self.start.line))
    }

    fn apply(&mut self, context: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.interrupted = Arc::clone(context.interrupted);
        self.mark = mark().map_err(unavailable)?;
        if let Some(stop) = &self.stop {
            undo_command::write_down(&self.mark, stop, guard).map_err(unavailable)?;
        }
        let keeper = self.keeper.insert(ProgramKeeper::start(&self.mark).map_err(unavailable)?);
        let note = serde_json::to_value(keeper.note()).map_err(unavailable)?;
        guard.write_down(NAME, &self.mark, note).map_err(unavailable)?;
        let tried = self.try_out();
        let ended = if tried.is_err() { self.switch_off() } else { Ok(()) };
        self.trial = Some(tried.map_err(|problem| match (problem, ended) {
            (TreatmentError::NotInForce(problem), Ok(())) => TreatmentError::Unavailable(problem),
            (TreatmentError::NotInForce(problem), Err(left)) => {
                TreatmentError::Unavailable(format!("{problem}. Then {left}"))
            }
            (other, _) => other,
        })?);
        Ok(())
    }

    fn take_turn(&mut self, _: Role) -> Result<(), TreatmentError> {
        // A sample that failed left it running, and the proof of another arm's agent may see it.
        self.switch_off()
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.switch_on()?;
        self.prove(true, "after its start")?;
        if role != Role::Treated {
            self.switch_off()?;
            return self.prove(false, "before a sample without it");
        }
        self.cpu_before_ns = self.footprint()?.cpu_ns;
        Ok(())
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !launch.is_treated {
            self.prove(false, "after a sample without it")?;
            return Ok(Evidence::default());
        }
        // Processes that ended meanwhile take their time with them: then it is not known.
        let spent_ns = self.footprint()?.cpu_ns.checked_sub(self.cpu_before_ns);
        self.prove(true, "after a treated sample")?;
        self.switch_off()?;
        Ok(Evidence::default().with(&CPU_TIME, spent_ns.map(|ns| ns as f64 / 1e9)))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        vec![CPU_TIME]
    }

    fn facts(&self) -> Vec<String> {
        let how = format!(
            "weigh ran `{}` before each sample, and ended it before a sample without the agent and after a \
             treated one; `{}` verified that the agent worked.",
            self.start.line, self.proof.line
        );
        let trial = self.trial.as_ref().map(|Trial { ready_s, footprint }| {
            let Footprint { processes, resident_bytes, cpu_ns } = *footprint;
            format!(
                "In a trial, the agent was ready after {}. It then had used {} of CPU time, and had {} of \
                 resident memory in {}.",
                format::seconds(*ready_s),
                format::time_ns(cpu_ns as f64),
                format::bytes(resident_bytes as f64),
                if processes == 1 { "1 process".into() } else { format!("{processes} processes") }
            )
        });
        std::iter::once(how).chain(trial).collect()
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        let stopped = self.switch_off();
        if self.mark.is_empty() {
            return stopped;
        }
        // Without its keeper, an agent that does not end could not be found any more.
        if self.has_started {
            return stopped;
        }
        // It ends at the end of its input.
        self.keeper = None;
        guard.undo(NAME, &self.mark).map_err(TreatmentError::Unavailable)?;
        // The journal keeps a stop= that failed, for `weigh restore`.
        stopped?;
        if let Some(stop) = &self.stop {
            undo_command::strike_out(&self.mark, stop, guard)
                .map_err(TreatmentError::Unavailable)?;
        }
        self.prove(false, "at the end")
    }
}

fn unavailable(error: impl std::fmt::Display) -> TreatmentError {
    TreatmentError::Unavailable(format!("cannot start the agent: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    #[test]
    fn an_agent_needs_a_start_and_a_proof() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("agent:proof=b").contains("needs start=\"COMMAND\", which starts"));
        assert!(refused("agent:start=a").contains("needs proof=\"COMMAND\", which exits"));
        assert!(refused("agent:start=a,proof=\" \"").contains("proof= takes a shell command"));
        assert!(parse("agent:start=\"a, b\",proof=c,ready=d,stop=e").is_ok());
    }

    #[test]
    fn a_damaged_note_ends_nothing() {
        for damaged in [Value::Null, Value::from("7"), json!({ "pid": 7, "mark": "x" })] {
            assert!(undo(&damaged).unwrap_err().contains("is damaged"));
        }
        let ended = json!({ "pid": u32::MAX, "start": 1, "mark": mark().unwrap() });
        assert_eq!(undo(&ended), Ok(()), "it has ended already");
    }
}
