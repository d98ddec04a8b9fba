//! Experiments that were not measured here: the whole summary, as it was made from the files.

use rusqlite::{OptionalExtension, params};

use super::{Error, Store};
use weigh_model::ids::ExperimentId;
use weigh_model::record::ExperimentKind;
use weigh_model::result::summary::Summary;

impl Store {
    pub fn add_import(&self, summary: &Summary) -> Result<ExperimentId, Error> {
        let id = self.new_id()?;
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let text = serde_json::to_string(summary).expect("plain data with text keys");
        let insert = || -> rusqlite::Result<()> {
            let connection = self.connection();
            let transaction = connection.unchecked_transaction()?;
            transaction.execute(
                "INSERT INTO experiment (id, kind, started, state, command, seed, budget_s, alpha, margin,
                    sets, machine, warnings, pid, boot_id)
                 VALUES (?1, ?2, ?3, 'complete', ?4, 0, 0, ?5, ?6, 1, ?7, '[]', 0, '')",
                params![
                    &*id,
                    ExperimentKind::Import.as_str(),
                    now,
                    summary.command,
                    summary.alpha,
                    summary.margin_pct / 100.0,
                    serde_json::to_string(&summary.machine).expect("plain data with text keys")
                ],
            )?;
            transaction.execute("INSERT INTO imported VALUES (?1, ?2)", params![&*id, text])?;
            transaction.commit()
        };
        insert().map_err(|error| self.explain(&error))?;
        Ok(id)
    }

    /// An import; `None` for an experiment that was measured here.
    pub fn import(&self, id: &ExperimentId) -> Result<Option<Summary>, Error> {
        let text: Option<String> = self
            .connection()
            .query_row("SELECT summary FROM imported WHERE experiment = ?1", [&**id], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|error| self.explain(&error))?;
        let Some(text) = text else {
            return Ok(None);
        };
        let summary = serde_json::from_str::<Summary>(&text)
            .map_err(|error| Error(format!("the import {id} cannot be read any more: {error}")))?;
        Ok(Some(Summary { id: id.to_string(), ..summary }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::header;
    use super::*;
    use weigh_import::compare::summary;
    use weigh_import::{labels::Labels, read};

    #[test]
    fn an_import_comes_back_and_what_was_measured_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let store = Store::open(&path).unwrap();
        let document = read("t.csv", b"test,unit,a,b\nx,us,1,2\n", None).unwrap();
        let made = summary(vec![("t.csv".into(), document)], &Labels::default()).unwrap();
        let id = store.add_import(&made).unwrap();
        let back = Store::open(&path).unwrap().import(&id).unwrap().unwrap();
        assert_eq!((&*back.id, &back.imported), (&*id, &made.imported));
        assert_eq!(store.load(&id).unwrap().header.kind, ExperimentKind::Import);
        assert_eq!(store.history().unwrap()[0].kind, Some(ExperimentKind::Import));
        let measured = store.begin(&header()).unwrap();
        assert!(store.import(&measured).unwrap().is_none());
    }
}
