//! Does it still answer after two hours? Passes over servers that are never started anew, of one arm or in
//! pairs of two.

use std::collections::BTreeSet;

use super::host::Host;
use super::host::passes::PassFound;
use super::measure::Session;
use super::order::Coins;
use super::platform::{SampleSlot, Stop};
use super::request::{Endurance, ProgressSink};
use super::row::RowKey;
use weigh_model::format;
use weigh_model::ids::{ArmId, PairId, SetId, WorkId};
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::wrong_answers::{WrongAnswers, WrongKind};
use weigh_workload::executable::Length;

/// The kinds of a server that hangs or is gone (workloads/shared/http.h).
const HANGS: [&str; 2] = ["no answer in 10 s", "no connection"];

/// An arm whose servers are asked in all passes over a work.
struct EnduringArm {
    arm: ArmId,
    firsts: Firsts,
    course: Course,
}

impl Session<'_> {
    /// So many passes over each work in each arm of its row, one work after the other.
    ///
    /// # Errors
    /// Where the experiment cannot go on; and at the end, where servers ended before their passes did.
    pub(super) fn endure(
        &self,
        host: &mut Host,
        units: &[RowKey],
        (Endurance { passes, per_1000s }, target_ms): (Endurance, u64),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let length = Length { endures: true, per_1000s, ..Length::of_ms(target_ms) };
        let mut coins = Coins::new(self.request.common.seed, SetId(0), self.earlier.sessions);
        let mut gone = Vec::new();
        for unit in units {
            gone.extend(self.endure_one(
                host,
                *unit,
                (passes, length),
                &mut coins,
                progress_sink,
            )?);
        }
        // A failure of the workload would take the row of the passes before; this leaves it.
        if gone.is_empty() { Ok(()) } else { Err(Stop::Failed(gone.join(" "))) }
    }

    /// All passes over a work, in pairs if it has two arms; sentences about arms that had a result and then
    /// no server.
    fn endure_one(
        &self,
        host: &mut Host,
        unit: RowKey,
        (passes, length): (usize, Length),
        coins: &mut Coins,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<Vec<String>, Stop> {
        let mut arms: Vec<EnduringArm> = Vec::new();
        let wanted = BTreeSet::from([ArmId::BASELINE, unit.treated_arm]);
        let all = wanted.len();
        for arm in wanted {
            // The servers of the look at all workloads had another life.
            match self.take(|| host.begin_passes(unit.work, arm))? {
                Ok(()) => arms.push(EnduringArm::new(arm)),
                Err(reason) => host.keep_failure(unit.work, arm, &reason)?,
            }
        }
        if arms.len() < all {
            let problem = || Some("the servers of the other treatment did not start".to_owned());
            arms.iter_mut().for_each(|one| one.course.problem = problem());
        }
        for number in 0..passes {
            // What one arm of two does alone cannot be compared.
            if arms.len() < all || arms.iter().any(|one| one.course.gone.is_some()) {
                break;
            }
            let is_reversed = arms.len() > 1 && !coins.baseline_first();
            for position in 0..arms.len() {
                let at = if is_reversed { arms.len() - 1 - position } else { position };
                let enduring = &mut arms[at];
                let pair = SampleSlot::alone(unit, PairId(number));
                let slot = SampleSlot { arm: enduring.arm, position, ..pair };
                self.pass_of(host, enduring, (&slot, passes, length), progress_sink)?;
            }
        }
        let mut gone = Vec::new();
        for EnduringArm { arm, course, .. } in arms {
            let (failure, ended) = course.ending();
            failure.map_or(Ok(()), |reason| host.keep_failure(unit.work, arm, &reason))?;
            if course.gone.is_none() {
                self.stop_servers(host, (unit.work, arm), progress_sink)?;
            }
            gone.extend(ended);
        }
        Ok(gone)
    }

    /// One pass over a work in one arm, with its line and what is seen in it for the first time.
    fn pass_of(
        &self,
        host: &mut Host,
        enduring: &mut EnduringArm,
        (slot, passes, length): (&SampleSlot, usize, Length),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let (name, number) = (self.works[slot.unit.work].name(), slot.pair.0 + 1);
        let title = format!("{name}{}", self.under(slot.arm));
        progress_sink.begins(&format!("measuring {title}, pass {number} of {passes}"));
        let pass = self.take(|| host.pass(slot, length))?.map_err(Stop::Failed)?;
        let line = line(&title, number, passes, &pass);
        progress_sink.announce(&line);
        host.add_fact(line)?;
        for warning in enduring.firsts.of(&name, number, &pass) {
            self.warn(progress_sink, &self.in_arm(slot.arm, warning))?;
        }
        enduring.course.add(&pass);
        if !pass.are_there {
            // Passes over servers that were started anew would tell nothing of those that are gone.
            let gone = Warning::ServersExited { workload: name, pass: number, passes };
            let gone = self.in_arm(slot.arm, gone);
            self.warn(progress_sink, &gone)?;
            enduring.course.gone = Some(gone.to_string());
        }
        Ok(())
    }

    fn stop_servers(
        &self,
        host: &mut Host,
        (work, arm): (WorkId, ArmId),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let workload = self.works[work].name();
        let (running, servers) = host.stop_servers(arm);
        if running > 0 {
            let stayed = Warning::ServersStayed { workload, running, servers };
            return self.warn(progress_sink, &self.in_arm(arm, stayed));
        }
        let (all, under) = (format::plural(servers, "server"), self.under(arm));
        host.add_fact(format!("{workload}{under}: {all} exited when weigh stopped them."))
    }

    /// Names an arm behind a workload, if there are several arms.
    fn under(&self, arm: ArmId) -> String {
        match &self.request.common.arms[..] {
            [_] => String::new(),
            arms => format!(" under `{}`", arms[arm]),
        }
    }

    /// A warning that names its arm, if there are several.
    fn in_arm(&self, arm: ArmId, warning: Warning) -> Warning {
        match &self.request.common.arms[..] {
            [_] => warning,
            arms => warning.under_arm(&arms[arm]),
        }
    }
}

impl EnduringArm {
    fn new(arm: ArmId) -> EnduringArm {
        EnduringArm { arm, firsts: Firsts::default(), course: Course::default() }
    }
}

/// Outcome of all passes over a work.
#[derive(Default)]
struct Course {
    has_sample: bool,
    /// Why the first pass that has no sample has none.
    problem: Option<String>,
    /// Sentence that says that the servers ended.
    gone: Option<String>,
}

impl Course {
    fn add(&mut self, pass: &PassFound) {
        self.has_sample |= pass.good_rate.is_some();
        let problem = self.problem.take();
        self.problem = problem.or_else(|| pass.problem.clone());
    }

    /// Why there is no result at all; or, where there is one, that its servers ended before all passes did.
    fn ending(&self) -> (Option<String>, Option<String>) {
        if self.has_sample {
            return (None, self.gone.clone());
        }
        let why = self.problem.as_deref().unwrap_or("no pass was measured");
        (Some(format!("no pass had a good answer: {why}")), None)
    }
}

fn line(title: &str, number: usize, passes: usize, pass: &PassFound) -> String {
    let rate = match (pass.good_rate, &pass.problem) {
        (Some(rate), _) => format!("{} good answers/s", format::rate(rate, "")),
        (None, Some(problem)) => format!("no good answer ({problem})"),
        (None, None) => "no good answer".to_owned(),
    };
    let wrong = match (&pass.wrong, &pass.problem) {
        (Some(wrong), _) => {
            format!("{:.2} % wrong ({})", wrong.share_pct(), wrong.kinds_in_words())
        }
        (None, Some(_)) => "number of wrong answers unknown".into(),
        (None, None) => "0 % wrong".into(),
    };
    let p99 = pass.p99_ns.map(|ns| format!(", p99 {}", format::seconds(ns / 1e9)));
    let held = &pass.held;
    let bytes = |bytes: u64| format::bytes(bytes as f64);
    format!(
        "{title}, pass {number} of {passes}, started at {}: {rate}, {wrong}{}; server processes: {}, \
         with {} of memory and {} in open files ({} in deleted files).",
        format::clock(pass.started_s),
        p99.unwrap_or_default(),
        held.processes,
        bytes(held.memory_bytes),
        bytes(held.open_bytes),
        bytes(held.deleted_bytes)
    )
}

/// Events that were seen once already.
#[derive(Default)]
struct Firsts {
    error: bool,
    hang: bool,
    end: bool,
}

impl Firsts {
    /// Warnings about what is seen for the first time.
    fn of(&mut self, name: &WorkName, number: usize, pass: &PassFound) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let kinds = pass.wrong.as_ref().map_or(&[][..], |wrong: &WrongAnswers| &wrong.kinds);
        let first = |is_one: &dyn Fn(&WrongKind) -> bool| {
            kinds.iter().filter(|kind| is_one(kind)).min_by_key(|kind| kind.first_ns)
        };
        let mut tell = |what: &str, kind: &WrongKind| {
            warnings.push(Warning::FirstInEndurance {
                workload: name.clone(),
                what: what.to_owned(),
                after_s: pass.started_s + kind.first_ns as f64 / 1e9,
                pass: number,
                kind: kind.kind.clone(),
                example: kind.example.trim().to_owned(),
            });
        };
        let is_hang = |kind: &WrongKind| HANGS.contains(&&*kind.kind);
        if let Some(kind) = first(&|_| true).filter(|_| !self.error) {
            self.error = true;
            tell("wrong answer", kind);
        }
        if let Some(kind) = first(&is_hang).filter(|_| !self.hang) {
            self.hang = true;
            tell("hang", kind);
        }
        if let Some(problem) = pass.problem.as_ref().filter(|_| !self.end) {
            self.end = true;
            let (workload, problem) = (name.clone(), problem.clone());
            warnings.push(Warning::PassFailed { workload, pass: number, problem });
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(good_rate: Option<f64>, problem: Option<&str>) -> PassFound {
        let problem = problem.map(str::to_owned);
        PassFound { good_rate, problem, are_there: true, ..PassFound::default() }
    }

    fn ending(passes: &[PassFound], gone: Option<&str>) -> (Option<String>, Option<String>) {
        let mut course = Course { gone: gone.map(str::to_owned), ..Course::default() };
        passes.iter().for_each(|pass| course.add(pass));
        course.ending()
    }

    #[test]
    fn passes_without_any_sample_are_a_failure_and_servers_that_ended_are_told() {
        let (good, bad) = (|| pass(Some(9.0), None), || pass(None, Some("it hangs")));
        let failed = || Some("no pass had a good answer: it hangs".to_owned());
        assert_eq!(ending(&[good(), bad()], None), (None, None));
        assert_eq!(ending(&[bad(), bad()], None), (failed(), None));
        assert_eq!(ending(&[bad()], Some("they ended")), (failed(), None));
        assert_eq!(ending(&[good(), bad()], Some("they ended")), (None, Some("they ended".into())));
    }
}
