//! The scale on this machine: the kernel's rule list, and the processes that feel it.

use std::collections::BTreeMap;
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

/// Rules, probers, and the stream of records.
pub struct Bridge<'a> {
    pub ledger: Ledger,
    pub stream: Stream,
    /// Audited, and counting in the metric.
    pub armed: Prober,
    /// Exempt from auditing since its birth.
    pub clean: Prober,
    /// Audited, with a clock, where `armed` counts instructions.
    pub timed: Option<Prober>,
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
        self.weigh_armed(&Operation::SHORT)
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
        let clock = self.timed.as_mut().unwrap_or(&mut self.armed);
        let few = |operation: Operation| (BATCH.as_nanos() as u64 / operation.usual_ns()).max(1);
        let runs: Vec<Run> = Operation::ALL
            .iter()
            .flat_map(|&operation| [Run { operation, operations: few(operation) }; 5])
            .collect();
        let took = clock.weigh(&runs, self.interrupted)?;
        self.batch_operations = runs
            .chunks(5)
            .zip(took.chunks(5))
            .map(|(runs, took)| {
                let least = took.iter().min().copied().unwrap_or(1).max(1);
                (runs[0].operations as f64 * BATCH.as_nanos() as f64 / least as f64).ceil() as u64
            })
            .collect();
        Ok(())
    }

    /// Operations by the audited prober, with what is loaded now.
    ///
    /// # Errors
    /// As [`Prober::weigh`].
    pub fn weigh_armed(&mut self, operations: &[Operation]) -> Result<Vec<f64>, Error> {
        weigh(&mut self.armed, operations, &self.batch_operations, self.interrupted)
    }

    /// The same by the exempt one.
    ///
    /// # Errors
    /// As [`Prober::weigh`].
    pub fn weigh_clean(&mut self, operations: &[Operation]) -> Result<Vec<f64>, Error> {
        weigh(&mut self.clean, operations, &self.batch_operations, self.interrupted)
    }

    /// The records of what the audited prober does between two openings of the canary, and what that
    /// took by the clock.
    ///
    /// # Errors
    /// [`Error::NotInForce`] where the prober was not audited.
    pub fn records_of(&mut self, runs: &[Run]) -> Result<(Counts, Vec<u64>), Error> {
        let clock = self.timed.as_mut().unwrap_or(&mut self.armed);
        clock.open_canary(self.interrupted)?;
        let took = clock.weigh(runs, self.interrupted)?;
        clock.open_canary(self.interrupted)?;
        let pid = clock.pid;
        let counts = self.stream.window(self.ledger.client())?;
        if counts.canaries != [pid, pid] {
            return Err(Error::NotInForce(
                "the process that feels the rules is not audited: it opened a watched file, and no \
                 record of that came out of the kernel"
                    .into(),
            ));
        }
        Ok((counts, took))
    }

    /// Whether the exempt prober is exempt.
    ///
    /// # Errors
    /// [`Error::NotInForce`] where it is not.
    pub fn prove_clean(&mut self) -> Result<(), Error> {
        self.clean.open_canary(self.interrupted)?;
        let counts = self.stream.window(self.ledger.client())?;
        if counts.canaries.contains(&self.clean.pid) {
            return Err(Error::NotInForce(
                "the baseline was audited although a `never,task` rule exempts it".into(),
            ));
        }
        Ok(())
    }
}

fn weigh(
    prober: &mut Prober,
    operations: &[Operation],
    batch_operations: &[u64],
    interrupted: &AtomicBool,
) -> Result<Vec<f64>, Error> {
    let mut runs = Vec::new();
    for &operation in operations {
        let operations = batch_operations[operation as usize];
        let batches = if operation == Operation::Exec { 1 } else { BATCHES };
        if batches > 1 {
            // The list is read into the cache again, and not timed.
            runs.push((None, Run { operation, operations: operations.div_ceil(2) }));
        }
        runs.extend((0..batches).map(|_| (Some(operation), Run { operation, operations })));
    }
    let orders: Vec<Run> = runs.iter().map(|(_, run)| *run).collect();
    let amounts = prober.weigh(&orders, interrupted)?;
    let mut per_operation: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for ((wanted, run), amount) in runs.iter().zip(amounts) {
        if let Some(operation) = wanted {
            let place = *operation as usize;
            let each = amount as f64 / run.operations as f64;
            per_operation.entry(place).or_default().push(each);
        }
    }
    Ok(per_operation.into_values().map(lower_quartile).collect())
}

fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 4]
}
