//! Writing an experiment, sample by sample.

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{Error, Store};
use weigh_host::chance;
use weigh_host::machine;
use weigh_host::machine::process::process_start;
use weigh_model::ids::{ArmId, ExperimentId, WorkId};
use weigh_model::record::{ChosenPeak, Header, Measured, RowPlan, Startup};
use weigh_model::result::profiled::Profiled;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::summary::{Failure, State};
use weigh_model::result::warning::Warning;

/// The characters of an id, without those that are taken for others.
const ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// By which it is known later whether whoever writes an experiment still lives.
struct Writer {
    pid: u32,
    start: Option<i64>,
    boot_id: String,
}

impl Writer {
    fn this() -> Result<Writer, Error> {
        let said = |error: std::io::Error| Error(error.to_string());
        let pid = std::process::id();
        let (start, boot_id) =
            (process_start(pid).map_err(said)?, machine::boot_id().map_err(said)?);
        Ok(Writer { pid, start, boot_id })
    }
}

impl Store {
    /// Stores a new experiment and gives its id.
    pub fn begin(&self, header: &Header) -> Result<ExperimentId, Error> {
        let writer = Writer::this()?;
        self.in_one_commit(|| {
            let id = self.new_id()?;
            self.insert(&id, header, &writer).map_err(|error| self.explain(&error))?;
            Ok(id)
        })
    }

    /// Stores all that `write` does in one commit, or nothing of it: each commit waits for the disk. If this
    /// is called within `write` again, the outer call commits.
    ///
    /// # Errors
    /// An error of `write`, or of the commit.
    pub fn in_one_commit<T, E: From<Error>>(
        &self,
        write: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let connection = self.connection();
        if !connection.is_autocommit() {
            return write();
        }
        self.check_log()?;
        // Whoever reads first and writes later may find that another program wrote in between.
        let begun = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate);
        let transaction = begun.map_err(|error| self.explain(&error))?;
        let written = write()?;
        // A full disk has ended it already: then `written` has the error.
        if !connection.is_autocommit() {
            transaction.commit().map_err(|error| self.explain(&error))?;
        }
        self.check_place()?;
        Ok(written)
    }

    fn insert(&self, id: &ExperimentId, header: &Header, writer: &Writer) -> rusqlite::Result<()> {
        let connection = self.connection();
        connection.execute(
            "INSERT INTO experiment (id, kind, started, state, command, seed, budget_s, alpha, margin,
                fixed_pairs, multiplicity, planned_pairs, sets, machine, suites, origin, warnings, pid,
                pid_started, boot_id, metrics, asked_for, classic, takes_old_pairs,
                pilot_chooses_scheme)
             VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
                '[]', ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)",
            params![
                &**id,
                header.kind.as_str(),
                jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                header.command,
                header.seed.cast_signed(),
                header.budget_s,
                header.alpha,
                header.margin,
                header.fixed_pairs,
                header.multiplicity.as_str(),
                header.planned_pairs,
                header.sets,
                json(&header.machine),
                json(&header.suites),
                header.origin,
                writer.pid,
                writer.start,
                writer.boot_id,
                json(&header.metrics),
                json(&header.asked_for),
                header.is_classic,
                header.takes_old_pairs,
                header.pilot_chooses_scheme,
            ],
        )?;
        for (number, label) in header.arms.iter().enumerate() {
            connection.execute(
                "INSERT INTO arm VALUES (?1, ?2, ?3, '[]', '[]')",
                params![&**id, number, label],
            )?;
        }
        for (number, work) in header.works.iter().enumerate() {
            connection.execute(
                "INSERT INTO work (experiment, number, name, unit, syscalls_per_op, start_scale, sample_ms,
                    series, x, x_unit, load_axis, load_value, interleaved_scale)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                params![
                    &**id,
                    number,
                    work.name.name,
                    work.unit,
                    work.syscalls_per_op,
                    work.start_scale.sequential,
                    work.sample_ms,
                    work.on_curve.as_ref().map(|on| &on.series),
                    work.on_curve.as_ref().map(|on| on.x),
                    work.on_curve.as_ref().map(|on| &on.x_unit),
                    work.name.load.as_ref().map(|load| &load.axis),
                    work.name.load.as_ref().map(|load| load.value),
                    work.start_scale.interleaved,
                ],
            )?;
        }
        Ok(())
    }

    /// Opens an experiment again for another session of this process, and gives its number.
    pub fn reopen(&self, id: &ExperimentId, budget_s: f64, sets: usize) -> Result<usize, Error> {
        let writer = Writer::this()?;
        self.connection()
            .query_row(
                "UPDATE experiment SET state = 'running', failure = NULL, sessions = sessions + 1,
                    budget_s = ?2, sets = ?3, pid = ?4, pid_started = ?5, boot_id = ?6
                 WHERE id = ?1 RETURNING sessions",
                params![&**id, budget_s, sets, writer.pid, writer.start, writer.boot_id],
                |row| row.get(0),
            )
            .map_err(|error| self.explain(&error))
    }

    /// Stores a sample; when this returns, it is on disk.
    ///
    /// # Errors
    /// Where it cannot be written; then the experiment must end.
    pub fn add_sample(&self, id: &ExperimentId, measured: &Measured) -> Result<(), Error> {
        self.execute(
            "INSERT INTO sample (experiment, work, arm, treated_arm, role, scheme, set_number, pair,
                position, started_s, padding_bytes, cpu, sample, disturbance, evidence)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            params![
                &**id,
                measured.work.0,
                measured.arm.0,
                measured.treated_arm.0,
                word(measured.role),
                word(measured.scheme),
                measured.set.0,
                measured.pair.0,
                measured.position,
                measured.started_s,
                measured.padding_bytes,
                measured.cpu,
                json(&measured.sample),
                measured.disturbance.as_ref().map(json),
                json(&measured.evidence),
            ],
        )
    }

    /// Stores what one launch produced besides its operations; a later set's replaces an earlier.
    pub fn add_startup(&self, id: &ExperimentId, startup: &Startup) -> Result<(), Error> {
        self.execute(
            "INSERT OR REPLACE INTO startup VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                &**id,
                startup.work.0,
                startup.arm.0,
                startup.operations,
                json(&startup.evidence)
            ],
        )
    }

    pub fn add_failure(&self, id: &ExperimentId, failure: &Failure) -> Result<(), Error> {
        self.execute(
            "INSERT INTO failure (experiment, work, arm, reason, load_axis, load_value)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                &**id,
                failure.workload.name,
                failure.arm,
                failure.reason,
                failure.workload.load.as_ref().map(|load| &load.axis),
                failure.workload.load.as_ref().map(|load| load.value),
            ],
        )
    }

    /// Removes all failures of an experiment whose next session tries what failed again.
    pub fn forget_failures(&self, id: &ExperimentId) -> Result<(), Error> {
        self.execute("DELETE FROM failure WHERE experiment = ?1", params![&**id])
    }

    /// Keeps how long the samples of a work are from now on.
    pub fn set_sample_ms(
        &self,
        id: &ExperimentId,
        work: WorkId,
        sample_ms: u64,
    ) -> Result<(), Error> {
        self.execute(
            "UPDATE work SET sample_ms = ?3 WHERE experiment = ?1 AND number = ?2",
            params![&**id, work.0, sample_ms],
        )
    }

    /// Stores what a treatment says of itself, and what it produces.
    pub fn set_facts(
        &self,
        id: &ExperimentId,
        arm: ArmId,
        facts: &[String],
        quantities: &[EvidenceQuantity],
    ) -> Result<(), Error> {
        self.execute(
            "UPDATE arm SET facts = ?3, quantities = ?4 WHERE experiment = ?1 AND number = ?2",
            params![&**id, arm.0, json(&facts), json(&quantities)],
        )
    }

    pub fn set_baseline_state(&self, id: &ExperimentId, state: Option<&str>) -> Result<(), Error> {
        self.execute(
            "UPDATE experiment SET baseline_state = ?2 WHERE id = ?1",
            params![&**id, state],
        )
    }

    /// Keeps the limit that a cost may not be shown to exceed, as a share of the rate.
    pub fn set_fail_above(&self, id: &ExperimentId, limit: f64) -> Result<(), Error> {
        self.execute("UPDATE experiment SET fail_above = ?2 WHERE id = ?1", params![&**id, limit])
    }

    /// Keeps which load points were chosen as peaks.
    pub fn set_peaks(&self, id: &ExperimentId, peaks: &[ChosenPeak]) -> Result<(), Error> {
        self.execute("UPDATE experiment SET peaks = ?2 WHERE id = ?1", params![&**id, json(&peaks)])
    }

    pub fn set_profiles(&self, id: &ExperimentId, profiles: &[Profiled]) -> Result<(), Error> {
        let profiles = json(&profiles);
        self.execute("UPDATE experiment SET profiles = ?2 WHERE id = ?1", params![&**id, profiles])
    }

    /// Keeps how many pairs are planned for a row.
    pub fn add_plan(&self, id: &ExperimentId, plan: &RowPlan) -> Result<(), Error> {
        self.execute(
            "UPDATE experiment SET plans = json_insert(plans, '$[#]', json(?2)) WHERE id = ?1",
            params![&**id, json(plan)],
        )
    }

    pub fn add_warning(&self, id: &ExperimentId, warning: &Warning) -> Result<(), Error> {
        self.execute(
            "UPDATE experiment SET warnings = json_insert(warnings, '$[#]', json(?2)) WHERE id = ?1",
            params![&**id, json(warning)],
        )
    }

    /// Keeps the time that the experiment has taken so far, for one that will not end in order.
    pub fn set_elapsed(&self, id: &ExperimentId, elapsed_s: f64) -> Result<(), Error> {
        self.execute(
            "UPDATE experiment SET elapsed_s = ?2 WHERE id = ?1",
            params![&**id, elapsed_s],
        )
    }

    pub fn finish(
        &self,
        id: &ExperimentId,
        state: State,
        failure: Option<&str>,
    ) -> Result<(), Error> {
        self.execute(
            "UPDATE experiment SET state = ?2, failure = ?3 WHERE id = ?1",
            params![&**id, state_name(state), failure],
        )
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<(), Error> {
        self.in_one_commit(|| {
            self.connection()
                .prepare_cached(sql)
                .and_then(|mut statement| statement.execute(parameters))
                .map(drop)
                .map_err(|error| self.explain(&error))
        })
    }

    pub(super) fn new_id(&self) -> Result<ExperimentId, Error> {
        loop {
            let mut number = chance::number().map_err(|error| Error(error.to_string()))?;
            let mut character = |_| {
                let index = number % ALPHABET.len() as u64;
                number /= ALPHABET.len() as u64;
                char::from(ALPHABET[index as usize])
            };
            let id: String = (0..ExperimentId::LENGTH).map(&mut character).collect();
            let taken: Option<i64> = self
                .connection()
                .query_row("SELECT 1 FROM experiment WHERE id = ?1", [&id], |row| row.get(0))
                .optional()
                .map_err(|error| self.explain(&error))?;
            if taken.is_none() {
                return id.try_into().map_err(Error);
            }
        }
    }
}

pub(super) fn id(row: &Row<'_>) -> rusqlite::Result<ExperimentId> {
    row.get::<_, String>("id")?.try_into().map_err(|problem: String| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, problem.into())
    })
}

/// A column with the name of a variant.
fn word(variant: impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("a variant without data: {other:?}"),
    }
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data with text keys")
}

pub(super) fn state_name(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Complete => "complete",
        State::Interrupted => "interrupted",
        State::Failed => "failed",
    }
}
