//! Results that are one document, without pairs or samples: what `weigh rules` and `weigh budget` found.

use rusqlite::{OptionalExtension, params};

use super::write::state_name;
use super::{Error, Store};
use weigh_model::facts::Facts;
use weigh_model::ids::ExperimentId;
use weigh_model::record::ExperimentKind;
use weigh_model::result::summary::State;

/// Facts about a document for the history.
pub struct About<'a> {
    pub kind: ExperimentKind,
    pub command: &'a str,
    pub machine: &'a Facts,
    pub elapsed_s: f64,
    pub state: State,
}

impl Store {
    /// Stores a result in JSON, and gives its id.
    pub fn add_document(&self, about: &About, document: &str) -> Result<ExperimentId, Error> {
        let About { kind, command, machine, elapsed_s, state } = about;
        let id = self.new_id()?;
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let machine = serde_json::to_string(machine).expect("plain data with text keys");
        self.execute(
            "INSERT INTO experiment (id, kind, started, elapsed_s, state, command, seed, budget_s, alpha,
                margin, sets, machine, warnings, pid, boot_id, document)
             VALUES (?1, ?2, ?3, ?4, ?8, ?5, 0, 0, 0.05, 0, 1, ?6, '[]', 0, '', ?7)",
            params![&*id, kind.as_str(), now, elapsed_s, command, machine, document, state_name(*state)],
        )?;
        Ok(id)
    }

    /// Replaces the document of an experiment, with its state and time so far.
    pub fn set_document(
        &self,
        id: &ExperimentId,
        state: State,
        elapsed_s: f64,
        document: &str,
    ) -> Result<(), Error> {
        self.in_one_commit(|| {
            self.execute(
                "UPDATE experiment SET state = ?2, elapsed_s = ?3, document = ?4 WHERE id = ?1",
                params![&**id, state_name(state), elapsed_s, document],
            )?;
            // The words for the list of experiments were those of the document before.
            self.execute("DELETE FROM outcome WHERE experiment = ?1", [&**id])
        })
    }

    /// The document of an experiment; `None` of one that has samples.
    pub fn document(&self, id: &ExperimentId) -> Result<Option<String>, Error> {
        self.connection()
            .query_row("SELECT document FROM experiment WHERE id = ?1", [&**id], |row| row.get(0))
            .optional()
            .map(Option::flatten)
            .map_err(|error| self.explain(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{header, no_id};
    use super::*;

    #[test]
    fn a_document_comes_back_and_what_has_samples_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let about = About {
            kind: ExperimentKind::Rules,
            command: "weigh rules a.rules",
            machine: &Facts::default(),
            elapsed_s: 60.0,
            state: State::Interrupted,
        };
        let id = store.add_document(&about, "{\"a\":1}").unwrap();
        assert_eq!(store.document(&id).unwrap().as_deref(), Some("{\"a\":1}"));
        let entry = &store.history().unwrap()[0];
        assert_eq!((entry.kind, &*entry.command), (Some(ExperimentKind::Rules), about.command));
        assert_eq!(entry.state, State::Interrupted);
        assert_eq!(store.load(&id).unwrap().header.kind, ExperimentKind::Rules);
        store.set_document(&id, State::Complete, 90.0, "{}").unwrap();
        assert_eq!(store.document(&id).unwrap().as_deref(), Some("{}"));
        let stored = store.load(&id).unwrap();
        assert_eq!((stored.state, stored.elapsed_s), (State::Complete, 90.0));
        let measured = store.begin(&header()).unwrap();
        assert_eq!(store.document(&measured).unwrap(), None);
        assert_eq!(store.document(&no_id()).unwrap(), None);
    }
}
