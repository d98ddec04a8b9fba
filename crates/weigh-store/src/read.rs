//! Reading experiments back.

use rusqlite::types::FromSql;
use rusqlite::{OptionalExtension, Row};
use serde::de::DeserializeOwned;

use super::write::id;
use super::{Error, Store, validate};
use paired::multiplicity::Multiplicity;
use weigh_host::machine;
use weigh_host::machine::process::process_start;
use weigh_model::facts::Facts;
use weigh_model::ids::{ArmId, ExperimentId, WorkId};
use weigh_model::record::{Entry, ExperimentKind, Header, Startup, Stored, StoredWork};
use weigh_model::result::curve::OnCurve;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::scheme::StartScales;
use weigh_model::result::summary::{Failure, State};
use weigh_model::result::work_name::{AxisValue, WorkName};
use weigh_model::samples::{Gatherer, Samples};

impl Store {
    /// All experiments, the latest first.
    pub fn history(&self) -> Result<Vec<Entry>, Error> {
        self.rows(
            "SELECT id, started, state, command, pid, pid_started, boot_id,
                (SELECT count(*) FROM sample WHERE experiment = experiment.id), kind, name,
                (SELECT json_group_array(tag) FROM tag WHERE tag.experiment = experiment.id),
                (SELECT json_group_array(label) FROM arm WHERE arm.experiment = experiment.id AND number > 0),
                (SELECT json_group_array(json_object('workload', name, 'load',
                        json(iif(load_axis IS NULL, NULL,
                            json_object('axis', load_axis, 'value', load_value)))))
                    FROM work WHERE work.experiment = experiment.id), sessions
             FROM experiment ORDER BY started DESC, rowid DESC",
            [],
            |row| {
                Ok(Entry {
                    id: id(row)?,
                    kind: ExperimentKind::from_name(&row.get::<_, String>(8)?),
                    started: row.get(1)?,
                    state: state(row)?,
                    result: None,
                    command: row.get(3)?,
                    samples: row.get(7)?,
                    name: row.get(9)?,
                    tags: json(row, 10)?,
                    treatments: json(row, 11)?,
                    workloads: json::<Vec<WorkName>>(row, 12)?.iter().map(WorkName::to_string).collect(),
                    sessions: row.get(13)?,
                })
            },
        )
    }

    /// Returns true if a sample of this experiment is stored.
    pub fn has_samples(&self, id: &ExperimentId) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sample WHERE experiment = ?1)";
        self.connection()
            .query_row(sql, [&**id], |row| row.get(0))
            .map_err(|error| self.explain(&error))
    }

    /// Ids of the calibrations of this machine that ended and did not fail, the latest first; all of
    /// them, or at most so many.
    ///
    /// The same machine is the same host name, CPU and kernel, also after another boot. Those with a planted
    /// effect do not count: their arms are not identical.
    pub fn calibrations(
        &self,
        machine: &Facts,
        at_most: Option<usize>,
    ) -> Result<Vec<ExperimentId>, Error> {
        // A negative limit is none (SQLite, "SELECT").
        let limit = at_most.map_or(-1, |number| number as i64);
        let is_same = "json_extract(machine, '$.hostname') = ?1
            AND json_extract(machine, '$.cpu_model') = ?2 AND json_extract(machine, '$.kernel') = ?3";
        self.rows(
            &format!(
                "SELECT id FROM experiment WHERE kind = 'calibrate' AND {is_same}
                    AND state IN ('complete', 'interrupted')
                    AND NOT EXISTS (SELECT 1 FROM arm WHERE experiment = experiment.id AND label != 'none')
                 ORDER BY started DESC, rowid DESC LIMIT ?4"
            ),
            rusqlite::params![machine.hostname, machine.cpu_model, machine.kernel, limit],
            id,
        )
    }

    pub fn load(&self, id: &ExperimentId) -> Result<Stored, Error> {
        let mut stored = self
            .connection()
            .query_row("SELECT * FROM experiment WHERE id = ?1", [&**id], experiment)
            .optional()
            .map_err(|error| self.explain(&error))?
            .ok_or_else(|| Error(format!("there is no experiment `{id}`")))?;
        let arms: Vec<(String, Vec<String>, Vec<EvidenceQuantity>)> = self.rows(
            "SELECT label, facts, quantities FROM arm WHERE experiment = ?1 ORDER BY number",
            [&**id],
            |row| Ok((row.get(0)?, json(row, 1)?, json(row, 2)?)),
        )?;
        (stored.header.arms, stored.facts, stored.quantities) = arms.into_iter().collect();
        stored.header.works = self.rows(
            "SELECT * FROM work WHERE experiment = ?1 ORDER BY number",
            [&**id],
            |row| {
                Ok(StoredWork {
                    name: work_name(row, "name")?,
                    unit: row.get("unit")?,
                    syscalls_per_op: row.get("syscalls_per_op")?,
                    sample_ms: row.get("sample_ms")?,
                    start_scale: StartScales {
                        sequential: row.get("start_scale")?,
                        interleaved: row.get("interleaved_scale")?,
                    },
                    on_curve: on_curve(row)?,
                })
            },
        )?;
        let mut gatherer = Gatherer::default();
        let mut judged = stored.header.metrics.clone();
        for shown in stored.header.shown_besides() {
            if !judged.contains(&shown) {
                judged.push(shown);
            }
        }
        self.each_sample(id, &judged, |kept| {
            // An experiment that was killed could not say how long it took; its last sample can.
            stored.elapsed_s = stored.elapsed_s.max(kept.end_s());
            gatherer.add(kept);
        })?;
        stored.samples = gatherer.samples;
        stored.startups =
            self.rows("SELECT * FROM startup WHERE experiment = ?1", [&**id], |row| {
                Ok(Startup {
                    work: row.get("work").map(WorkId)?,
                    arm: row.get("arm").map(ArmId)?,
                    operations: row.get("operations")?,
                    evidence: json(row, "evidence")?,
                })
            })?;
        stored.failures = self.rows(
            "SELECT * FROM failure WHERE experiment = ?1 ORDER BY rowid",
            [&**id],
            |row| {
                let (workload, arm) = (work_name(row, "work")?, row.get("arm")?);
                Ok(Failure { workload, arm, reason: row.get("reason")? })
            },
        )?;
        stored.details = self.details(id)?;
        validate::check(&stored)?;
        Ok(stored)
    }

    pub(super) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let gather = || -> rusqlite::Result<Vec<T>> {
            self.connection().prepare(sql)?.query_map(parameters, read)?.collect()
        };
        gather().map_err(|error| self.explain(&error))
    }
}

fn experiment(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let kind: String = row.get("kind")?;
    Ok(Stored {
        id: id(row)?,
        header: Header {
            kind: ExperimentKind::from_name(&kind).unwrap_or(ExperimentKind::Compare),
            command: row.get("command")?,
            seed: row.get::<_, i64>("seed")?.cast_unsigned(),
            budget_s: row.get("budget_s")?,
            alpha: row.get("alpha")?,
            margin: row.get("margin")?,
            fixed_pairs: row.get("fixed_pairs")?,
            multiplicity: multiplicity(row)?,
            metrics: json(row, "metrics")?,
            planned_pairs: row.get("planned_pairs")?,
            sets: row.get("sets")?,
            machine: json(row, "machine")?,
            arms: Vec::new(),
            asked_for: json(row, "asked_for")?,
            is_classic: row.get("classic")?,
            suites: json(row, "suites")?,
            works: Vec::new(),
            pilot_chooses_scheme: row.get("pilot_chooses_scheme")?,
            takes_old_pairs: row.get("takes_old_pairs")?,
            origin: row.get("origin")?,
        },
        started: row.get("started")?,
        elapsed_s: row.get::<_, Option<f64>>("elapsed_s")?.unwrap_or(0.0),
        state: state(row)?,
        sessions: row.get("sessions")?,
        failure: row.get("failure")?,
        baseline_state: row.get("baseline_state")?,
        fail_above: row.get("fail_above")?,
        warnings: json(row, "warnings")?,
        peaks: json(row, "peaks")?,
        plans: json(row, "plans")?,
        profiles: json(row, "profiles")?,
        facts: Vec::new(),
        quantities: Vec::new(),
        samples: Samples::new(),
        startups: Vec::new(),
        details: Vec::new(),
        failures: Vec::new(),
    })
}

/// A workload and its load; the column of its name is called so.
fn work_name(row: &Row<'_>, column: &str) -> rusqlite::Result<WorkName> {
    let axis: Option<String> = row.get("load_axis")?;
    let load = axis.zip(row.get("load_value")?).map(|(axis, value)| AxisValue { axis, value });
    Ok(WorkName { name: row.get(column)?, load })
}

fn on_curve(row: &Row<'_>) -> rusqlite::Result<Option<OnCurve>> {
    let series: Option<String> = row.get("series")?;
    let (x, x_unit) = (row.get::<_, Option<f64>>("x")?, row.get::<_, Option<String>>("x_unit")?);
    Ok(series.zip(x).map(|(series, x)| OnCurve { series, x, x_unit: x_unit.unwrap_or_default() }))
}

/// One that only a newer weigh knows is judged by the stricter of ours.
fn multiplicity(row: &Row<'_>) -> rusqlite::Result<Multiplicity> {
    let name: String = row.get("multiplicity")?;
    Ok(Multiplicity::from_name(&name).unwrap_or_default())
}

/// One that is still marked as running but whose process is gone was interrupted.
fn state(row: &Row<'_>) -> rusqlite::Result<State> {
    let state: String = row.get("state")?;
    Ok(match state.as_str() {
        "complete" => State::Complete,
        "failed" => State::Failed,
        "running" => {
            let started: Option<i64> = row.get("pid_started")?;
            let boot: String = row.get("boot_id")?;
            let now = process_start(row.get("pid")?);
            // What cannot be seen has not ended.
            let has_ended = now.is_ok_and(|now| now.is_none() || now != started);
            let is_of_another_boot = machine::boot_id().is_ok_and(|now| now != boot);
            if has_ended || is_of_another_boot { State::Interrupted } else { State::Running }
        }
        _ => State::Interrupted,
    })
}

pub(super) fn json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl rusqlite::RowIndex,
) -> rusqlite::Result<T> {
    struct Json<T>(T);
    impl<T: DeserializeOwned> FromSql for Json<T> {
        fn column_result(
            value: rusqlite::types::ValueRef<'_>,
        ) -> rusqlite::types::FromSqlResult<Self> {
            serde_json::from_str(value.as_str()?)
                .map(Json)
                .map_err(|error| rusqlite::types::FromSqlError::Other(Box::new(error)))
        }
    }
    row.get::<_, Json<T>>(column).map(|Json(value)| value)
}
