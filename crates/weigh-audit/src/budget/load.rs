//! Load at several times the rate: records at a pace that waits for nobody.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use super::treated::Treated;
use weigh_engine::platform::Stop;
use weigh_model::evidence::Evidence;
use weigh_model::result::budget::{KeptUp, Load, PerOperation, judge};
use weigh_treatment::audit::quantities::{BACKLOG_WAIT, KAUDITD_CPU, LOST, RECORDS, SINK_CPU};
use weigh_workload::launcher::Launched;
use weigh_workload::paced::{Pace, Paced};

const MULTIPLES: [f64; 3] = [2.0, 5.0, 10.0];
const SECONDS: f64 = 2.0;
/// Steps for finding out how many records a step makes.
const TRIAL_STEPS: [u64; 2] = [100, 1100];
const TRIAL_SECONDS: f64 = 0.1;

/// Rounds in which loads are tried again that contradict each other.
const MORE_ROUNDS: usize = 2;

/// Loads of as many records as the workload would make at multiples of a rate.
pub fn loads(
    treated: &mut Treated,
    per_operation: &PerOperation,
    records_per_step: f64,
    rate: f64,
    done: &mut Vec<Load>,
) -> Result<(), Stop> {
    let file = paced_file(treated)?;
    let mut attempt = |multiple: f64| -> Result<Load, Stop> {
        let asked = multiple * rate * per_operation.records;
        let steps = (asked * SECONDS / records_per_step).round().max(1.0) as u64;
        let pace = Pace { file: file.clone(), steps, seconds: SECONDS };
        let (launched, evidence) =
            treated.launch_proved(&pace.job(&treated.context().place.scratch))?;
        let paced = read(&launched)?;
        Ok(load(multiple, rate, &paced, &evidence, records_per_step))
    };
    let mut tried = || -> Result<(), Stop> {
        for multiple in MULTIPLES {
            done.push(attempt(multiple)?);
        }
        for _ in 0..MORE_ROUNDS {
            for doubtful in contradicting(done) {
                let again = attempt(done[doubtful].multiple)?;
                done[doubtful].add(again);
            }
        }
        Ok(())
    };
    let result = tried();
    judge(done);
    result
}

/// From the first load that was not kept up with to the last that was, where that is behind it.
fn contradicting(loads: &[Load]) -> Range<usize> {
    let first = loads.iter().position(|load| load.kept < load.tries);
    let last = loads.iter().rposition(|load| load.kept > 0);
    match (first, last) {
        (Some(first), Some(last)) if first <= last => first..last + 1,
        _ => 0..0,
    }
}

/// A file whose opening is audited whatever the rules are. The rule that watches the canary watches its
/// inode, whatever it is opened as; and what is opened under another name is no canary.
pub fn paced_file(treated: &Treated) -> Result<PathBuf, Stop> {
    let file = treated.context().place.scratch.join("paced");
    let _ = fs::remove_file(&file); // of an earlier canary
    fs::hard_link(treated.canary()?, &file).map_err(|error| Stop::Failed(error.to_string()))?;
    Ok(file)
}

fn load(
    multiple: f64,
    rate: f64,
    paced: &Paced,
    evidence: &Evidence,
    records_per_step: f64,
) -> Load {
    // The last tick is slept through, also where all was made in time.
    let elapsed_s = paced.elapsed_s.max(SECONDS);
    let share = |cpu_s: Option<f64>| cpu_s.map(|cpu_s| cpu_s / elapsed_s);
    let load = Load {
        multiple,
        rate: multiple * rate,
        asked: paced.due as f64 * records_per_step / SECONDS,
        achieved: paced.made as f64 * records_per_step / elapsed_s,
        elapsed_s,
        waited_s: evidence.number(&BACKLOG_WAIT).unwrap_or(0.0),
        lost: evidence.whole(&LOST).unwrap_or(0),
        sink_cpu: share(evidence.number(&SINK_CPU)),
        kauditd_cpu: share(evidence.number(&KAUDITD_CPU)),
        tries: 1,
        kept: 0,
        kept_up: KeptUp::Undecided,
    };
    Load { kept: load.is_made().into(), ..load }
}

/// Records of a step, from two launches that differ in their steps alone: what the start makes, and the
/// sleeping, cancels out.
pub fn records_per_step(treated: &mut Treated) -> Result<f64, Stop> {
    let file = paced_file(treated)?;
    let mut trial = |steps| -> Result<(f64, f64), Stop> {
        let pace = Pace { file: file.clone(), steps, seconds: TRIAL_SECONDS };
        let (launched, evidence) =
            treated.launch_counted(&pace.job(&treated.context().place.scratch))?;
        Ok((read(&launched)?.made as f64, evidence.number(&RECORDS).unwrap_or(0.0)))
    };
    let [few, many] = TRIAL_STEPS;
    let ((few, of_few), (many, of_many)) = (trial(few)?, trial(many)?);
    let per_step = (of_many - of_few) / (many - few);
    match per_step >= 1.0 {
        true => Ok(per_step),
        false => Err(Stop::Failed("the load produced no audit records".into())),
    }
}

pub fn read(launched: &Launched) -> Result<Paced, Stop> {
    serde_json::from_str(launched.stdout.trim())
        .map_err(|_| Stop::Failed(format!("the load failed: {}", reason(launched))))
}

fn reason(launched: &Launched) -> String {
    let stderr = launched.stderr.trim();
    match (launched.timed_out, launched.signal) {
        (true, _) => "it did not end in time, so it was killed".into(),
        (false, Some(signal)) => format!("signal {signal} ended it"),
        (false, None) => stderr.into(),
    }
}
