//! Names and tags of experiments, and how a user says which one is meant; forgetting experiments.

use std::fmt::Write as _;

use rusqlite::{Transaction, TransactionBehavior, params};

use super::write::id;
use super::{Error, NO_EXPERIMENT, Store};
use weigh_model::ids::ExperimentId;
use weigh_model::record::ExperimentKind;
use weigh_model::result::summary::State;

/// Name and tags that the user gives an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    pub name: Option<String>,
    pub tags: Vec<String>,
}

/// The word for the latest experiment; `latest~2` is the one two before.
const LATEST: &str = "latest";

/// A name or tag that no shell, file name or `latest` gets in the way of.
pub fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
    let is_name = (1..=64).contains(&text.len())
        && text.chars().all(is_plain)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text != LATEST;
    match is_name {
        true => Ok(text.to_owned()),
        false => Err(
            "takes 1 to 64 letters, digits and . _ - + /, the first a letter or digit, and not \
                      `latest`"
                .into(),
        ),
    }
}

impl Store {
    /// The id that a user means: an id or its unambiguous beginning, a name (of several experiments of
    /// the same name the latest), `latest`, or `latest~N` for the one N before. With none given, the latest.
    /// Without a sample an experiment has no result, so it is not the latest of any.
    pub fn find(&self, wanted: Option<&str>) -> Result<ExperimentId, Error> {
        let wanted = wanted.unwrap_or(LATEST);
        if wanted.is_empty() {
            return Err(Error(
                "the name of the experiment is empty: `weigh history` lists the experiments".into(),
            ));
        }
        if let Some(before) = steps_before_latest(wanted) {
            return self.before_latest(before, wanted);
        }
        let by = |condition: &str| {
            let order = "ORDER BY started DESC, rowid DESC";
            let sql = format!("SELECT id FROM experiment WHERE {condition} {order}");
            self.rows(&sql, [wanted], id)
        };
        for condition in ["id = ?1", "name = ?1"] {
            if let Some(found) = by(condition)?.into_iter().next() {
                return Ok(found);
            }
        }
        let ids = by("substr(id, 1, length(?1)) = ?1")?;
        match &ids[..] {
            [id] => Ok(id.clone()),
            [] => Err(Error(format!(
                "there is no experiment `{wanted}`, by id or by name: `weigh history` lists the experiments"
            ))),
            several => Err(Error(format!(
                "`{wanted}` is the beginning of {} experiments; type more of one of: {}",
                several.len(),
                several.iter().map(|id| &**id).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// Finds the latest experiment of a kind.
    ///
    /// # Errors
    /// Where there is none, or the database cannot be read.
    pub fn latest_of(&self, kind: ExperimentKind) -> Result<ExperimentId, Error> {
        let sql =
            "SELECT id FROM experiment WHERE kind = ?1 ORDER BY started DESC, rowid DESC LIMIT 1";
        let ids = self.rows(sql, [kind.as_str()], id)?;
        let none = || Error(format!("there is no experiment of `weigh {}` yet", kind.as_str()));
        ids.into_iter().next().ok_or_else(none)
    }

    fn before_latest(&self, before: u32, wanted: &str) -> Result<ExperimentId, Error> {
        let ids = self.rows(
            "SELECT id FROM experiment
             WHERE EXISTS (SELECT 1 FROM sample WHERE experiment = experiment.id)
                OR EXISTS (SELECT 1 FROM imported WHERE experiment = experiment.id)
                OR document IS NOT NULL
             ORDER BY started DESC, rowid DESC LIMIT 1 OFFSET ?1",
            [before],
            id,
        )?;
        ids.into_iter().next().ok_or_else(|| match before {
            0 => Error(NO_EXPERIMENT.into()),
            _ => Error(format!("there is no `{wanted}`: `weigh history` lists the experiments")),
        })
    }

    /// Names an experiment, and adds tags. What is not given stays.
    pub fn set_naming(&self, id: &ExperimentId, naming: &Naming) -> Result<(), Error> {
        if let Some(name) = &naming.name {
            self.execute("UPDATE experiment SET name = ?2 WHERE id = ?1", params![&**id, name])?;
        }
        for tag in &naming.tags {
            self.execute("INSERT OR IGNORE INTO tag VALUES (?1, ?2)", params![&**id, tag])?;
        }
        Ok(())
    }

    /// Ids of the experiments that have a tag, the oldest first.
    pub fn tagged(&self, tag: &str) -> Result<Vec<ExperimentId>, Error> {
        self.rows(
            "SELECT id FROM experiment JOIN tag ON tag.experiment = experiment.id WHERE tag.tag = ?1
             ORDER BY started, experiment.rowid",
            [tag],
            id,
        )
    }

    /// Takes a tag from an experiment that may have it.
    pub fn remove_tag(&self, id: &ExperimentId, tag: &str) -> Result<(), Error> {
        self.execute("DELETE FROM tag WHERE experiment = ?1 AND tag = ?2", params![&**id, tag])
    }

    /// Deletes experiments with all that is stored of them: all or none.
    pub fn forget(&self, ids: &[ExperimentId]) -> Result<(), Error> {
        let mut batch = String::new();
        for id in ids {
            for table in [
                "sample", "detail", "startup", "failure", "work", "arm", "imported", "tag",
                "outcome",
            ] {
                let _ = write!(batch, "DELETE FROM {table} WHERE experiment = '{id}';");
            }
            let _ = write!(batch, "DELETE FROM experiment WHERE id = '{id}';");
        }
        // Nobody begins or goes on with an experiment between the look and the deletion.
        let connection = self.connection();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)
            .map_err(|error| self.explain(&error))?;
        if let Some(id) = self.running()?.into_iter().find(|id| ids.contains(id)) {
            return Err(Error(format!("the experiment {id} is still running: stop it first")));
        }
        let delete = || transaction.execute_batch(&batch).and_then(|()| transaction.commit());
        delete().map_err(|error| self.explain(&error))
    }

    /// Returns the ids of experiments that are being measured.
    fn running(&self) -> Result<Vec<ExperimentId>, Error> {
        let entries = self.history()?.into_iter();
        Ok(entries.filter(|entry| entry.state == State::Running).map(|entry| entry.id).collect())
    }

    /// Gives the room of deleted rows back to the disk, where that is a quarter of the file or more. It
    /// takes as much room again meanwhile; without it, later experiments use the room. Not while one is
    /// measured: it would wait for the disk and the lock.
    pub fn give_back_room(&self) -> Result<(), Error> {
        if !self.running()?.is_empty() {
            return Ok(());
        }
        let pragma = |name: &str| -> rusqlite::Result<i64> {
            self.connection().pragma_query_value(None, name, |row| row.get(0))
        };
        let compact = || -> rusqlite::Result<()> {
            if 4 * pragma("freelist_count")? >= pragma("page_count")? {
                self.connection().execute_batch("VACUUM")?;
            }
            // The log of what was written is as long as that, until it is taken into the file.
            self.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        };
        compact().map_err(|error| self.explain(&error))
    }
}

/// `latest` is 0, `latest~2` is 2; `None` for everything else.
fn steps_before_latest(wanted: &str) -> Option<u32> {
    match wanted.strip_prefix(LATEST)? {
        "" => Some(0),
        steps => steps.strip_prefix('~')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{header, measured};
    use super::*;

    fn naming(name: &str, tags: &[&str]) -> Naming {
        Naming { name: Some(name.into()), tags: tags.iter().map(|tag| (*tag).to_owned()).collect() }
    }

    fn store_of(count: usize) -> (tempfile::TempDir, Store, Vec<ExperimentId>) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let ids: Vec<ExperimentId> = (0..count).map(|_| store.begin(&header()).unwrap()).collect();
        for id in &ids {
            store.add_sample(id, &measured(0, 0)).unwrap();
            store.finish(id, State::Complete, None).unwrap();
        }
        (directory, store, ids)
    }

    #[test]
    fn an_experiment_is_found_by_id_name_or_place() {
        let (_directory, store, ids) = store_of(3);
        store.set_naming(&ids[0], &naming("base", &["night"])).unwrap();
        store.set_naming(&ids[1], &naming("base", &[])).unwrap();
        let find = |wanted: &str| store.find(Some(wanted)).map_err(|error| error.to_string());
        assert!(find("").unwrap_err().contains("the name of the experiment is empty"));
        assert_eq!(find("base").as_ref(), Ok(&ids[1]), "the latest of that name");
        assert_eq!(find(&ids[0]).as_ref(), Ok(&ids[0]));
        assert_eq!(find("latest").as_ref(), Ok(&ids[2]));
        assert_eq!(find("latest~2").as_ref(), Ok(&ids[0]));
        assert!(find("latest~3").unwrap_err().contains("no `latest~3`"));
        let without_sample = store.begin(&header()).unwrap();
        assert_eq!(find("latest").as_ref(), Ok(&ids[2]), "what has no sample is not the latest");
        assert_eq!(find(&without_sample).as_ref(), Ok(&without_sample));
        store.finish(&without_sample, State::Interrupted, None).unwrap();
        store.forget(&[without_sample]).unwrap();
        assert!(find("latest~x").unwrap_err().contains("no experiment `latest~x`"));
        let entries = store.history().unwrap();
        assert_eq!(
            (entries[2].name.as_deref(), &entries[2].tags[..]),
            (Some("base"), &["night".into()][..])
        );
        assert_eq!(store.tagged("night").unwrap(), ids[..1]);
        store.remove_tag(&ids[0], "night").unwrap();
        assert!(store.history().unwrap()[2].tags.is_empty());
    }

    #[test]
    fn names_are_plain() {
        for name in ["v6.1", "a", "main/abc-1_2+3", "0"] {
            assert_eq!(parse_name(name).as_deref(), Ok(name));
        }
        for bad in ["", "latest", "latest~1", "-a", "a b", "a'b", "ü", &"x".repeat(65)] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_and_takes_nothing_else() {
        let (_directory, store, ids) = store_of(2);
        store.set_naming(&ids[0], &naming("x", &["y"])).unwrap();
        store.forget(&ids[..1]).unwrap();
        store.give_back_room().unwrap();
        assert_eq!(store.history().unwrap().len(), 1);
        let tables =
            ["sample", "detail", "startup", "failure", "work", "arm", "imported", "tag", "outcome"];
        for table in tables {
            let sql = format!("SELECT count(*) FROM {table} WHERE experiment = ?1");
            let left: i64 =
                store.connection().query_row(&sql, [&*ids[0]], |row| row.get(0)).unwrap();
            assert_eq!(left, 0, "{table}");
        }
        assert_eq!(store.load(&ids[1]).unwrap().samples.len(), 1);
        let running = store.begin(&header()).unwrap();
        let problem = store.forget(&[ids[1].clone(), running]).unwrap_err().to_string();
        assert!(problem.contains("still running"), "{problem}");
        assert_eq!(store.history().unwrap().len(), 2, "all or none");
    }
}
