//! Test rig for rules on this machine: the kernel's rule list, and the processes that it applies
//! to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::cost_meter::CostMeter;
use super::loaded_rules::{LoadedRules, RuleId};
use super::operation::Operation;
use super::prober::Prober;
use super::prober_process::OperationBatch;
use linux_audit::tally::RecordCounts;
use weigh_treatment::TreatmentError;
use weigh_treatment::audit::stream::Stream;

/// A measurement is made of this many batches per operation: the lower quartile of them is taken, as a
/// batch may have been interrupted, and no batch is ever too short.
const BATCHES: usize = 7;
const BATCH: Duration = Duration::from_micros(40);
/// The kernel's list is read back this often besides the answers of every change.
const VERIFY_EVERY: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostUnit {
    /// The report's.
    Metric,
    Nanoseconds,
}

/// Two that measure in the same way.
pub struct Probers {
    pub audited: Prober,
    /// Exempt from auditing since its birth.
    pub exempt: Prober,
}

/// Rules, probers, and the stream of records.
pub struct Rig<'a> {
    pub rules: LoadedRules,
    pub stream: Stream,
    /// Counting in the metric.
    pub probers: Probers,
    /// With a clock, where those count instructions: counters cost time.
    pub timed: Option<Probers>,
    pub interrupted: &'a AtomicBool,
    /// By operation.
    pub batch_operations: Vec<u64>,
    pub last_verified: Instant,
}

impl CostMeter for Rig<'_> {
    fn measure_with(&mut self, loaded: &[RuleId]) -> Result<Vec<f64>, TreatmentError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(TreatmentError::Interrupted);
        }
        self.rules.load(loaded)?;
        if self.last_verified.elapsed() > VERIFY_EVERY {
            self.verify()?;
        }
        self.measure_audited(&Operation::SHORT, CostUnit::Metric)
    }
}

impl Rig<'_> {
    /// Reads the kernel's list back.
    pub fn verify(&mut self) -> Result<(), TreatmentError> {
        self.last_verified = Instant::now();
        self.rules.verify()
    }

    /// How many operations make a batch, from what they take now.
    pub fn calibrate(&mut self) -> Result<(), TreatmentError> {
        let interrupted = self.interrupted;
        let clock = &mut self.of(CostUnit::Nanoseconds).audited;
        let few = |operation: Operation| (BATCH.as_nanos() as u64 / operation.usual_ns()).max(1);
        let batches: Vec<OperationBatch> = Operation::ALL
            .iter()
            .flat_map(|&operation| [OperationBatch { operation, operations: few(operation) }; 5])
            .collect();
        let took = clock.measure(&batches, interrupted)?;
        self.batch_operations = batches
            .chunks(5)
            .zip(took.chunks(5))
            .map(|(batches, took)| {
                let least = took.iter().min().copied().unwrap_or(1).max(1);
                let fit = batches[0].operations as f64 * BATCH.as_nanos() as f64 / least as f64;
                (fit.ceil() as u64).next_multiple_of(batches[0].operation.cycle())
            })
            .collect();
        Ok(())
    }

    /// Operations by an audited prober, with what is loaded now: cost per operation.
    pub fn measure_audited(
        &mut self,
        operations: &[Operation],
        unit: CostUnit,
    ) -> Result<Vec<f64>, TreatmentError> {
        let (batches, interrupted) = (self.batch_operations.clone(), self.interrupted);
        measure_batches(&mut self.of(unit).audited, operations, &batches, interrupted)
    }

    pub fn measure_exempt(
        &mut self,
        operations: &[Operation],
        unit: CostUnit,
    ) -> Result<Vec<f64>, TreatmentError> {
        let (batches, interrupted) = (self.batch_operations.clone(), self.interrupted);
        measure_batches(&mut self.of(unit).exempt, operations, &batches, interrupted)
    }

    fn of(&mut self, unit: CostUnit) -> &mut Probers {
        match unit {
            CostUnit::Nanoseconds => self.timed.as_mut().unwrap_or(&mut self.probers),
            CostUnit::Metric => &mut self.probers,
        }
    }

    /// The records of what the audited prober does between two openings of the canary, and what that
    /// took by the clock.
    pub fn records_of(
        &mut self,
        batches: &[OperationBatch],
    ) -> Result<(RecordCounts, Vec<u64>), TreatmentError> {
        let interrupted = self.interrupted;
        let clock = &mut self.of(CostUnit::Nanoseconds).audited;
        clock.open_canary(interrupted)?;
        let took = clock.measure(batches, interrupted)?;
        clock.open_canary(interrupted)?;
        let pid = clock.pid;
        let counts = self.stream.window(self.rules.client())?;
        if counts.canaries != [pid, pid] {
            return Err(TreatmentError::NotInForce(
                "the treated process is not audited: it opened a watched file, but the kernel sent no \
                 record. If rules of this host exempt a file system or records of paths (see `auditctl \
                 -l`), set TMPDIR to a different file system"
                    .into(),
            ));
        }
        Ok((counts, took))
    }

    /// Checks that the exempt probers are exempt.
    pub fn prove_clean(&mut self) -> Result<(), TreatmentError> {
        for probers in [Some(&mut self.probers), self.timed.as_mut()].into_iter().flatten() {
            probers.exempt.open_canary(self.interrupted)?;
            let counts = self.stream.window(self.rules.client())?;
            if counts.canaries.contains(&probers.exempt.pid) {
                return Err(TreatmentError::NotInForce(
                    "the baseline was audited although a `never,task` rule exempts it".into(),
                ));
            }
        }
        Ok(())
    }
}

/// Cost per operation. A batch of no operations is taken off each: where instructions are counted, the
/// call that starts the counter ends while it counts, and so pays for all rules once.
fn measure_batches(
    prober: &mut Prober,
    operations: &[Operation],
    batch_operations: &[u64],
    interrupted: &AtomicBool,
) -> Result<Vec<f64>, TreatmentError> {
    let mut batches =
        vec![(Purpose::Empty, OperationBatch { operation: operations[0], operations: 0 }); BATCHES];
    for &operation in operations {
        let operations = batch_operations[operation as usize];
        batches.push((
            Purpose::WarmUp,
            OperationBatch { operation, operations: operations.div_ceil(2) },
        ));
        batches.extend(
            (0..BATCHES).map(|_| (Purpose::Cost, OperationBatch { operation, operations })),
        );
    }
    let orders: Vec<OperationBatch> = batches.iter().map(|(_, batch)| *batch).collect();
    let amounts = prober.measure(&orders, interrupted)?;
    let of = |wanted: Purpose, operation: Option<Operation>| {
        let are_of = |(purpose, batch): &(Purpose, OperationBatch)| {
            *purpose == wanted && operation.is_none_or(|operation| batch.operation == operation)
        };
        let chosen = batches.iter().zip(&amounts).filter(|(batch, _)| are_of(batch));
        lower_quartile(chosen.map(|(_, amount)| *amount as f64).collect())
    };
    let empty = of(Purpose::Empty, None);
    let cost = |operation: &Operation| {
        let amount = of(Purpose::Cost, Some(*operation)) - empty;
        amount / batch_operations[*operation as usize] as f64
    };
    Ok(operations.iter().map(cost).collect())
}

#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    Empty,
    /// The list is read into the cache again, and not counted.
    WarmUp,
    Cost,
}

fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 4]
}
