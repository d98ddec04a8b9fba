//! Results in a few words, derived from the rest of the database. They are kept so that a list of thousands
//! of experiments does not judge all their samples again.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use super::open::Access;
use super::{Error, Store};
use weigh_model::record::Entry;

/// Facts that the words depend on: another version may judge differently, and an experiment can be continued,
/// be it by failures alone.
fn derived_from(entry: &Entry) -> String {
    let Entry { state, samples, sessions, .. } = entry;
    format!("{} {state:?} {samples} {sessions}", env!("CARGO_PKG_VERSION"))
}

impl Store {
    /// Adds the kept results to these entries, where they are up to date. A table of somebody else's, with
    /// other columns, has none.
    pub fn add_outcomes(&self, entries: &mut [Entry]) -> Result<(), Error> {
        let table = "SELECT 1 FROM sqlite_master WHERE name = 'outcome'";
        let found = self.connection().query_row(table, [], |_| Ok(())).optional();
        if found.map_err(|error| self.explain(&error))?.is_none() {
            return Ok(());
        }
        let kept = self.rows("SELECT experiment, derived_from, words FROM outcome", [], |row| {
            Ok((row.get(0)?, (row.get::<_, String>(1)?, row.get::<_, String>(2)?)))
        });
        // The words are derived again from the samples, which a database that cannot be read refuses.
        let Ok(kept) = kept else { return Ok(()) };
        let kept: HashMap<String, (String, String)> = kept.into_iter().collect();
        for entry in entries {
            let words = kept.get(&*entry.id).filter(|(from, _)| *from == derived_from(entry));
            entry.result = words.map(|(_, words)| words.clone());
        }
        Ok(())
    }

    /// Keeps the results of these entries, unless the database cannot be written.
    pub fn keep_outcomes<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<(), Error> {
        if !matches!(self.access, Access::Create | Access::Write) {
            return Ok(());
        }
        let connection = self.connection();
        let keep = || {
            let transaction = connection.unchecked_transaction()?;
            for entry in entries {
                // Another weigh may have forgotten the experiment meanwhile.
                transaction.execute(
                    "INSERT OR REPLACE INTO outcome SELECT id, ?2, ?3 FROM experiment WHERE id = ?1",
                    params![&*entry.id, derived_from(entry), entry.result],
                )?;
            }
            transaction.commit()
        };
        keep().map_err(|error| self.explain(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::header;
    use weigh_model::result::summary::{Failure, State};

    #[test]
    fn what_was_continued_has_no_result_until_it_is_derived_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let id = store.begin(&header()).unwrap();
        store.finish(&id, State::Complete, None).unwrap();
        let kept = || {
            let mut entries = store.history().unwrap();
            store.add_outcomes(&mut entries).unwrap();
            entries.remove(0)
        };
        let derived = Entry { result: Some("equivalent".into()), ..kept() };
        store.keep_outcomes([&derived]).unwrap();
        assert_eq!(kept(), derived);
        store.reopen(&id, 90.0, 1).unwrap();
        let [workload, arm, reason] = ["stat:copies=4", "none", "it broke"].map(String::from);
        let failure = Failure { workload: workload.as_str().into(), arm, reason };
        store.add_failure(&id, &failure).unwrap();
        store.finish(&id, State::Complete, None).unwrap();
        assert_eq!(kept().result, None);
    }
}
