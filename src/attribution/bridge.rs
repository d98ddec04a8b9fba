//! The scale on this machine: the kernel's rule list, and the processes that feel it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::operation::Operation;
use super::prober::Prober;
use super::prober_process::Run;
use super::scale::Scale;
use crate::audit::tally::Counts;
use crate::treatment::Error;
use crate::treatment::audit::stream::Stream;

/// A weighing is made of this many batches per operation: the lower quartile of them is taken, as a
/// batch may have been interrupted, and no batch is ever too short.
const BATCHES: usize = 7;
const BATCH: Duration = Duration::from_micros(40);
/// The kernel's list is read back this often besides the answers of every change.
const VERIFY_EVERY: Duration = Duration::from_millis(250);

/// What a weighing is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
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
pub struct Bridge<'a> {
    pub ledger: Ledger,
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

impl Scale for Bridge<'_> {
    fn weigh(&mut self, loaded: &[usize]) -> Result<Vec<f64>, Error> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.ledger.load(loaded)?;
        if self.last_verified.elapsed() > VERIFY_EVERY {
            self.verify()?;
        }
        self.weigh_audited(&Operation::SHORT, Unit::Metric)
    }
}

impl Bridge<'_> {
    /// Reads the kernel's list back.
    ///
    /// # Errors
    /// [`Error::NotInForce`]
    pub fn verify(&mut self) -> Result<(), Error> {
        self.last_verified = Instant::now();
        self.ledger.verify()
    }

    /// How many operations make a batch, from what they take now.
    ///
    /// # Errors
    /// As [`Prober::weigh`].
    pub fn calibrate(&mut self) -> Result<(), Error> {
        let interrupted = self.interrupted;
        let clock = &mut self.of(Unit::Nanoseconds).audited;
        let few = |operation: Operation| (BATCH.as_nanos() as u64 / operation.usual_ns()).max(1);
        let runs: Vec<Run> = Operation::ALL
            .iter()
            .flat_map(|&operation| [Run { operation, operations: few(operation) }; 5])
            .collect();
        let took = clock.weigh(&runs, interrupted)?;
        self.batch_operations = runs
            .chunks(5)
            .zip(took.chunks(5))
            .map(|(runs, took)| {
                let least = took.iter().min().copied().unwrap_or(1).max(1);
                let fit = runs[0].operations as f64 * BATCH.as_nanos() as f64 / least as f64;
                (fit.ceil() as u64).next_multiple_of(runs[0].operation.cycle())
            })
            .collect();
        Ok(())
    }

    /// Operations by an audited prober, with what is loaded now: cost per operation.
    ///
    /// # Errors
    /// As [`Prober::weigh`].
    pub fn weigh_audited(
        &mut self,
        operations: &[Operation],
        unit: Unit,
    ) -> Result<Vec<f64>, Error> {
        let (batches, interrupted) = (self.batch_operations.clone(), self.interrupted);
        weigh(&mut self.of(unit).audited, operations, &batches, interrupted)
    }

    /// The same by an exempt one.
    ///
    /// # Errors
    /// As [`Prober::weigh`].
    pub fn weigh_exempt(
        &mut self,
        operations: &[Operation],
        unit: Unit,
    ) -> Result<Vec<f64>, Error> {
        let (batches, interrupted) = (self.batch_operations.clone(), self.interrupted);
        weigh(&mut self.of(unit).exempt, operations, &batches, interrupted)
    }

    fn of(&mut self, unit: Unit) -> &mut Probers {
        match unit {
            Unit::Nanoseconds => self.timed.as_mut().unwrap_or(&mut self.probers),
            Unit::Metric => &mut self.probers,
        }
    }

    /// The records of what the audited prober does between two openings of the canary, and what that
    /// took by the clock.
    ///
    /// # Errors
    /// [`Error::NotInForce`] where the prober was not audited.
    pub fn records_of(&mut self, runs: &[Run]) -> Result<(Counts, Vec<u64>), Error> {
        let interrupted = self.interrupted;
        let clock = &mut self.of(Unit::Nanoseconds).audited;
        clock.open_canary(interrupted)?;
        let took = clock.weigh(runs, interrupted)?;
        clock.open_canary(interrupted)?;
        let pid = clock.pid;
        let counts = self.stream.window(self.ledger.client())?;
        if counts.canaries != [pid, pid] {
            return Err(Error::NotInForce(
                "the process that feels the rules is not audited: it opened a watched file, and no \
                 record of that came out of the kernel. Where rules of this host exempt a file system or \
                 records of paths (see `auditctl -l`), TMPDIR on another file system may help"
                    .into(),
            ));
        }
        Ok((counts, took))
    }

    /// Whether the exempt probers are exempt.
    ///
    /// # Errors
    /// [`Error::NotInForce`] where one is not.
    pub fn prove_clean(&mut self) -> Result<(), Error> {
        for probers in [Some(&mut self.probers), self.timed.as_mut()].into_iter().flatten() {
            probers.exempt.open_canary(self.interrupted)?;
            let counts = self.stream.window(self.ledger.client())?;
            if counts.canaries.contains(&probers.exempt.pid) {
                return Err(Error::NotInForce(
                    "the baseline was audited although a `never,task` rule exempts it".into(),
                ));
            }
        }
        Ok(())
    }
}

/// Cost per operation. A batch of no operations is taken off each: where instructions are counted, the
/// call that starts the counter ends while it counts, and so pays for all rules once.
fn weigh(
    prober: &mut Prober,
    operations: &[Operation],
    batch_operations: &[u64],
    interrupted: &AtomicBool,
) -> Result<Vec<f64>, Error> {
    let mut runs = vec![(Purpose::Empty, Run { operation: operations[0], operations: 0 }); BATCHES];
    for &operation in operations {
        let operations = batch_operations[operation as usize];
        runs.push((Purpose::WarmUp, Run { operation, operations: operations.div_ceil(2) }));
        runs.extend((0..BATCHES).map(|_| (Purpose::Cost, Run { operation, operations })));
    }
    let orders: Vec<Run> = runs.iter().map(|(_, run)| *run).collect();
    let amounts = prober.weigh(&orders, interrupted)?;
    let of = |wanted: Purpose, operation: Option<Operation>| {
        let are_of = |(purpose, run): &(Purpose, Run)| {
            *purpose == wanted && operation.is_none_or(|operation| run.operation == operation)
        };
        let chosen = runs.iter().zip(&amounts).filter(|(run, _)| are_of(run));
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
