//! Results in a few words, derived from the rest of the database. They are kept so that a list of thousands
//! of experiments does not judge all their samples again.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use super::open::Access;
use super::{Error, Store};
use weigh_model::record::Entry;

/// Facts that the words depend on: another version may judge differently, and an experiment can be continued.
fn derived_from(entry: &Entry) -> String {
    format!("{} {:?} {}", env!("CARGO_PKG_VERSION"), entry.state, entry.samples)
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
