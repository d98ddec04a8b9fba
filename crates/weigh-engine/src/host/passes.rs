//! A pass of endurance: the same servers as in the pass before, asked again, and what they hold afterwards.
//! Wrong answers, and none, are what is looked for; they end nothing.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Host, SampleError, SampleSlot, cells, padding, padding_bytes};
use weigh_host::machine::footprint::ProcessFootprint;
use weigh_host::machine::process::process_start;
use weigh_host::orphans::wait_until;
use weigh_model::ids::ArmId;
use weigh_model::record::Measured;
use weigh_model::workload::metric::Direction;
use weigh_model::workload::sample::OwnReading;
use weigh_model::workload::wrong_answers::WrongAnswers;
use weigh_workload::executable::Length;

/// By which a process knows its visits from those of the passes before (workloads/web/cookie.c).
const PASS: &str = "WEIGH_PASS";
/// A server that is asked to end gets so long.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

/// Outcome of a pass.
#[derive(Default)]
pub struct PassFound {
    /// When it began, from the beginning of all.
    pub started_s: f64,
    /// Good answers a second; `None` where there was none.
    pub good_rate: Option<f64>,
    pub p99_ns: Option<f64>,
    /// Requests of an open loop that could not begin, as all clients were busy.
    pub unsent: f64,
    pub wrong: Option<WrongAnswers>,
    pub held: ProcessFootprint,
    /// Why it has no sample.
    pub problem: Option<String>,
    /// True if the servers that the pass began with are still there. Otherwise the next pass would
    /// run on others.
    pub are_there: bool,
}

impl Host<'_> {
    /// One pass over a work; its sample is kept where there was any good answer.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub fn pass(&mut self, slot: &SampleSlot, length: Length) -> Result<PassFound, SampleError> {
        let (pass, measured) = self.probe(slot, length)?;
        measured.map_or(Ok(()), |measured| self.keep_pass(&measured))?;
        Ok(pass)
    }

    /// Keeps the sample of a pass.
    ///
    /// # Errors
    /// Where that cannot be stored.
    pub fn keep_pass(&self, measured: &Measured) -> Result<(), SampleError> {
        Ok(self.site.store.add_sample(self.site.id, measured)?)
    }

    /// One pass over a work, with the sample that it is.
    ///
    /// # Errors
    /// Where the experiment cannot go on.
    pub fn probe(
        &mut self,
        slot: &SampleSlot,
        length: Length,
    ) -> Result<(PassFound, Option<Measured>), SampleError> {
        let (arm, work) = (slot.arm, &self.site.works[slot.unit.work]);
        let order = super::chance_of_pair(self.site.seed, slot);
        self.arms.need(arm, &work.needs());
        self.arms.raise_arm(arm)?;
        let job = work.job(arm, self.arms.place(arm), length, order);
        let mut job = job.map_err(SampleError::Workload)?;
        let padding_bytes = padding_bytes(self.site.seed, slot);
        job.environment.push(padding(padding_bytes));
        job.environment.push((PASS.into(), (slot.pair.0 + 1).to_string()));
        let started_s = self.elapsed_s();
        let mut pass = PassFound { started_s, are_there: true, ..PassFound::default() };
        let (launched, evidence, disturbance) = match self.launch(arm, slot.unit.treated_arm, &job)
        {
            Ok(launched) => launched,
            Err(SampleError::Workload(problem)) => {
                pass.problem = Some(problem);
                pass.are_there = self.arms.is_raised(arm);
                return Ok((pass, None));
            }
            Err(other) => return Err(other),
        };
        pass.held = ProcessFootprint::by(self.arms.asked(arm));
        pass.wrong = WrongAnswers::parse(&launched.stdout);
        let work = &self.site.works[slot.unit.work];
        if pass.wrong.as_ref().is_some_and(|wrong| wrong.operations == 0) {
            pass.problem = Some("no answer was right".into());
            return Ok((pass, None));
        }
        let mut sample = match work.read_whatever_is_wrong(&launched) {
            Ok(sample) => sample,
            Err(problem) => {
                pass.problem = Some(problem);
                return Ok((pass, None));
            }
        };
        sample.readings.extend(readings_of(&pass));
        pass.good_rate = Some(sample.rate());
        let reading = |name: &str| {
            let found = sample.readings.iter().find(|reading| reading.name == name);
            found.map(|reading| reading.value)
        };
        pass.p99_ns = reading("latency_p99");
        pass.unsent = reading("unsent").unwrap_or(0.0);
        let proof = (evidence, Some(disturbance));
        let measured = cells::measured(slot, started_s, padding_bytes, sample, proof);
        Ok((pass, Some(measured)))
    }

    /// Asks the servers of an arm to end as an administrator would, the last one that was started first; how
    /// many did not, and of how many.
    pub fn stop_servers(&mut self, arm: ArmId) -> (usize, usize) {
        let asked = self.arms.asked(arm).to_vec();
        self.arms.thaw(arm);
        // One that cannot be seen has not ended.
        let has_ended =
            |pid: u32, start: i64| process_start(pid).is_ok_and(|now| now != Some(start));
        let refuses = |pid: &&u32| {
            let start = match process_start(**pid) {
                Ok(Some(start)) => start,
                Ok(None) => return false,
                Err(_) => return true,
            };
            if let Some(pid) = Pid::from_raw(**pid as i32) {
                let _ = kill_process(pid, Signal::TERM);
            }
            !wait_until(Instant::now() + STOPS_WITHIN, || has_ended(**pid, start))
        };
        let failed = asked.iter().rev().filter(refuses).count();
        (failed, asked.len())
    }

    fn elapsed_s(&self) -> f64 {
        (self.site.before + self.site.started.elapsed()).as_secs_f64()
    }
}

/// Returns the readings of a pass that its workload did not print.
fn readings_of(pass: &PassFound) -> [OwnReading; 4] {
    let held = &pass.held;
    let share = pass.wrong.as_ref().map_or(0.0, WrongAnswers::share_pct);
    let all = [
        ("wrong_share", share, "%"),
        ("server_memory", held.memory_bytes as f64, "B"),
        ("open_files", held.open_bytes as f64, "B"),
        ("deleted_files", held.deleted_bytes as f64, "B"),
    ];
    all.map(|(name, value, unit)| OwnReading::new(name, value, unit, Direction::Lower))
}
