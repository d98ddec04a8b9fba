//! Reading the samples of an experiment: in order, a few at a time, and by all CPUs where they are many.
//! Most of the time goes into their JSON.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Row};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer};

use super::database::Database;
use super::evidence_column::ReadEvidence;
use super::kept::keep;
use super::{Error, Store};
use weigh_model::ids::{ArmId, ExperimentId, PairId, RowId, SetId, WorkId};
use weigh_model::record::Measured;
use weigh_model::samples::Kept;
use weigh_model::workload::metric::Metric;
use weigh_model::workload::sample::Sample;

/// So many numbers of samples are read at a time. Fewer than that are not worth a thread.
const BATCH: i64 = 2048;

type Batch = rusqlite::Result<Vec<Kept>>;

impl Store {
    /// Gives `take` the samples of an experiment, in the order measured, with what is judged of them.
    pub(super) fn each_sample(
        &self,
        id: &ExperimentId,
        judged: &[Metric],
        mut take: impl FnMut(Kept),
    ) -> Result<(), Error> {
        let Some((firsts, last)) = self.batches(id).map_err(|error| self.explain(&error))? else {
            return Ok(());
        };
        if let [first] = firsts[..] {
            let batch = batch(&self.connection(), id, judged, first, last);
            batch.map_err(|error| self.explain(&error))?.into_iter().for_each(take);
            return Ok(());
        }
        let readers = thread::available_parallelism().map_or(1, |cpus| cpus.get());
        let ends = firsts.iter().skip(1).map(|next| next.saturating_sub(1)).chain([last]);
        let spans: Vec<(i64, i64)> = firsts.iter().copied().zip(ends).collect();
        let (path, access) = (self.path.as_path(), self.access.of_a_reader());
        let user = self.database.user();
        // They take turns: each is at most two batches ahead of what was taken.
        thread::scope(|scope| {
            let start = |reader: usize| {
                let (sender, receiver) = sync_channel(1);
                let spans = spans.iter().copied().skip(reader).step_by(readers);
                let connect = move || access.connect(path, user);
                let read = move || read_ahead(connect(), (id, judged), spans, &sender);
                let started = thread::Builder::new().spawn_scoped(scope, read);
                started.map(|_| receiver).map_err(|error| {
                    Error(format!("cannot start a thread that reads the database: {error}"))
                })
            };
            let receivers = (0..readers).map(start).collect::<Result<Vec<Receiver<Batch>>, _>>()?;
            // The first that has nothing more to send is the one whose turn the last batch was.
            for receiver in receivers.iter().cycle() {
                let Ok(batch) = receiver.recv() else { return Ok(()) };
                batch.map_err(|error| self.explain(&error))?.into_iter().for_each(&mut take);
            }
            Ok(())
        })
    }

    /// The number that each batch of samples begins with, and the last of all; `None` without any. Samples
    /// are counted, as a file of others may number them however it likes.
    fn batches(&self, id: &ExperimentId) -> rusqlite::Result<Option<(Vec<i64>, i64)>> {
        let connection = self.connection();
        let sql = "SELECT number FROM sample WHERE experiment = ?1 ORDER BY number";
        let mut statement = connection.prepare_cached(sql)?;
        let mut numbers = statement.query([&**id])?;
        let (mut firsts, mut last, mut count) = (Vec::new(), None, 0);
        while let Some(row) = numbers.next()? {
            let number = row.get(0)?;
            if count % BATCH == 0 {
                firsts.push(number);
            }
            (last, count) = (Some(number), count + 1);
        }
        Ok(last.map(|last| (firsts, last)))
    }
}

/// Sends the batches of these numbers, or the error that ends them, by a connection of its own: one
/// connection serves one thread.
fn read_ahead(
    connected: rusqlite::Result<Database>,
    (id, judged): (&ExperimentId, &[Metric]),
    spans: impl Iterator<Item = (i64, i64)>,
    to: &SyncSender<Batch>,
) {
    let database = match connected {
        Ok(database) => database,
        Err(error) => return drop(to.send(Err(error))),
    };
    for (first, last) in spans {
        let batch = batch(&database.used(), id, judged, first, last);
        let is_last = batch.is_err();
        // Nobody receives any more where another thread has met an error.
        if to.send(batch).is_err() || is_last {
            return;
        }
    }
}

/// The samples of an experiment with numbers from `first` to `last`. As there is one experiment at a time,
/// they are next to each other: the table is read faster than row by row through the index.
fn batch(
    connection: &Connection,
    id: &ExperimentId,
    judged: &[Metric],
    first: i64,
    last: i64,
) -> Batch {
    let mut statement = connection.prepare_cached(
        "SELECT work, arm, treated_arm, role, scheme, set_number, pair, position, started_s, sample,
                disturbance, evidence
         FROM sample WHERE +experiment = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number",
    )?;
    let mut rows = statement.query(rusqlite::params![&**id, first, last])?;
    let mut known = BTreeMap::new();
    let mut batch = Vec::with_capacity(BATCH as usize);
    while let Some(row) = rows.next()? {
        batch.push(kept(row, judged, &mut known)?);
    }
    Ok(batch)
}

/// Text that earlier samples of one arm have shown and that later samples need not copy.
#[derive(Default)]
struct Known {
    has_unit: bool,
    evidence: BTreeMap<String, String>,
}

/// The columns by number, as a name is searched for in each row.
fn kept(
    row: &Row<'_>,
    judged: &[Metric],
    known: &mut BTreeMap<(RowId, ArmId), Known>,
) -> rusqlite::Result<Kept> {
    let (work, arm, treated_arm) =
        (row.get(0).map(WorkId)?, row.get(1).map(ArmId)?, row.get(2).map(ArmId)?);
    let known = known.entry(((work, treated_arm), arm)).or_default();
    let mut sample: Sample = parse(row, 9, PhantomData)?;
    sample.unit = sample.unit.take_if(|_| !known.has_unit);
    known.has_unit |= sample.unit.is_some();
    let measured = Measured {
        work,
        arm,
        treated_arm,
        role: word(row, 3)?,
        scheme: word(row, 4)?,
        set: row.get(5).map(SetId)?,
        pair: row.get(6).map(PairId)?,
        position: row.get(7)?,
        started_s: row.get(8)?,
        // Nothing that is kept depends on these two.
        padding_bytes: 0,
        cpu: None,
        sample,
        evidence: parse(row, 11, ReadEvidence { known: &mut known.evidence })?,
        disturbance: match row.get_ref(10)? {
            ValueRef::Null => None,
            _ => Some(parse(row, 10, PhantomData)?),
        },
    };
    Ok(keep(measured, judged))
}

/// A column with the name of a variant.
fn word<'a, T: Deserialize<'a>>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<T> {
    let word: StrDeserializer<'a, serde::de::value::Error> =
        row.get_ref(column)?.as_str()?.into_deserializer();
    T::deserialize(word).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}

/// A column of JSON, from which what is read may borrow.
fn parse<'a, S: DeserializeSeed<'a>>(
    row: &'a Row<'_>,
    column: usize,
    seed: S,
) -> rusqlite::Result<S::Value> {
    let mut text = serde_json::Deserializer::from_str(row.get_ref(column)?.as_str()?);
    let value = seed.deserialize(&mut text).and_then(|value| text.end().map(|()| value));
    value.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}

#[cfg(test)]
mod tests {
    use super::super::kept::keep_measured;
    use super::super::tests::{header, measured, samples};
    use super::*;
    use weigh_model::record::Header;
    use weigh_model::samples::Gatherer;

    #[test]
    fn many_samples_come_in_the_order_measured_and_no_other_experiments() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let ids = [0, 1].map(|_| store.begin(&header()).unwrap());
        let order = |end: i64| (0..end as usize).map(|number| (number / 2, number % 2));
        // What one thread reads, and more than a batch for each of many.
        for (id, count) in ids.iter().zip([BATCH, 20 * BATCH + 1]) {
            store.connection().execute_batch("BEGIN").unwrap();
            order(count)
                .for_each(|(pair, arm)| store.add_sample(id, &measured(pair, arm)).unwrap());
            store.connection().execute_batch("COMMIT").unwrap();
            assert_eq!(store.load(id).unwrap().samples, samples(order(count)));
        }
        assert_eq!(store.load(&ids[0]).unwrap().samples, samples(order(BATCH)));
    }

    /// Counting from the first number to the last would take years.
    #[test]
    fn numbers_that_lie_far_apart_are_read_as_soon_as_others() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let id = store.begin(&header()).unwrap();
        store.connection().execute_batch("BEGIN").unwrap();
        let count = 2 * BATCH as usize + 1;
        (0..count).for_each(|pair| store.add_sample(&id, &measured(pair, 0)).unwrap());
        for (end, number) in [("min", i64::MIN), ("max", i64::MAX)] {
            let of = format!("(SELECT {end}(number) FROM sample)");
            let sql = format!("UPDATE sample SET number = ?1 WHERE number = {of}");
            assert_eq!(store.connection().execute(&sql, [number]).unwrap(), 1);
        }
        store.connection().execute_batch("COMMIT").unwrap();
        let expected = samples((0..count).map(|pair| (pair, 0)));
        assert_eq!(store.load(&id).unwrap().samples, expected);
    }

    #[test]
    fn a_sample_that_cannot_be_read_is_an_error_also_on_another_thread() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let id = store.begin(&header()).unwrap();
        store.connection().execute_batch("BEGIN").unwrap();
        for pair in 0..10 * BATCH as usize {
            store.add_sample(&id, &measured(pair, 0)).unwrap();
        }
        store.connection().execute_batch("COMMIT").unwrap();
        let damage = "UPDATE sample SET sample = '{' WHERE number = 7000";
        assert_eq!(store.connection().execute(damage, []).unwrap(), 1);
        let problem = store.load(&id).unwrap_err().to_string();
        assert!(problem.contains("weigh.db"), "{problem}");
    }

    /// Written, and read as a whole.
    fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
        serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
    }

    #[test]
    fn what_is_read_back_is_what_was_measured() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let arms = ["none", "a", "b", "c"].map(str::to_owned).to_vec();
        let id = store.begin(&Header { arms, ..header() }).unwrap();
        let mut expected = Gatherer::default();
        store.connection().execute_batch("BEGIN").unwrap();
        // More than one batch, so that each must tell anew what it knows; sums that round.
        for number in 0..5 * BATCH as usize / 2 {
            let mut measured = measured(number / 2, number % 2);
            measured.treated_arm = ArmId(1 + number / 2 % 3);
            let sample = &mut measured.sample;
            sample.operations = 0.1 * number as f64;
            sample.total_operations = (number % 5 > 0).then_some(0.7 * number as f64);
            sample.rate = (number % 3 > 0).then_some(1.0 / (1 + number) as f64);
            sample.unit = (number > 9).then(|| format!("unit \"{}\"", number / 1000));
            sample.user_ns = Some(number as u64);
            sample.copy_rates = vec![0.3; number % 4];
            let amounts = &mut measured.evidence.amounts;
            amounts.set("records", number as u64);
            amounts.set("backlog_wait_s", 0.1 * number as f64);
            amounts.set("mode", &*(number / 700).to_string());
            amounts.set("a\n", "b");
            store.add_sample(&id, &measured).unwrap();
            // A number may come back one bit off, whoever reads it.
            measured.sample = again(&measured.sample);
            measured.evidence = again(&measured.evidence);
            expected.add(keep_measured(measured));
        }
        store.connection().execute_batch("COMMIT").unwrap();
        assert!(store.load(&id).unwrap().samples == expected.samples);
    }
}
