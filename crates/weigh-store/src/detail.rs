//! The launches of the detail pass, written one by one and read back.

use rusqlite::params;

use super::read;
use super::write;
use super::{Error, Store};
use weigh_model::ids::{ArmId, ExperimentId, PairId, WorkId};
use weigh_model::record::Detailed;

impl Store {
    /// Stores a launch of the detail pass; when this returns, it is on disk.
    ///
    /// # Errors
    /// Where it cannot be written; then the experiment must end.
    pub fn add_detail(&self, id: &ExperimentId, detailed: &Detailed) -> Result<(), Error> {
        self.execute(
            "INSERT INTO detail (experiment, work, arm, treated_arm, pair, position, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                &**id,
                detailed.work.0,
                detailed.arm.0,
                detailed.treated_arm.0,
                detailed.pair.0,
                detailed.position,
                write::json(&detailed.detail),
            ],
        )
    }

    /// Forgets launches of the detail pass: of a work, and a pair of it.
    pub fn forget_details(&self, id: &ExperimentId, of: &[(WorkId, PairId)]) -> Result<(), Error> {
        for (work, pair) in of {
            self.execute(
                "DELETE FROM detail WHERE experiment = ?1 AND work = ?2 AND pair = ?3",
                params![&**id, work.0, pair.0],
            )?;
        }
        Ok(())
    }

    pub(super) fn details(&self, id: &ExperimentId) -> Result<Vec<Detailed>, Error> {
        self.rows("SELECT * FROM detail WHERE experiment = ?1 ORDER BY number", [&**id], |row| {
            Ok(Detailed {
                work: row.get("work").map(WorkId)?,
                arm: row.get("arm").map(ArmId)?,
                treated_arm: row.get("treated_arm").map(ArmId)?,
                pair: row.get("pair").map(PairId)?,
                position: row.get("position")?,
                detail: read::json(row, "detail")?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::header;
    use super::*;

    fn detailed(pair: usize) -> Detailed {
        let line = r#"{"operations":3,"latencies":{"clock_ns":20,"buckets":[[64,2],[70,1]]}}"#;
        let detail = serde_json::from_str(line).unwrap();
        Detailed {
            work: WorkId(0),
            arm: ArmId(1),
            treated_arm: ArmId(1),
            pair: PairId(pair),
            position: 0,
            detail,
        }
    }

    #[test]
    fn what_is_stored_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let store = Store::open(&path).unwrap();
        let [id, other] = [(); 2].map(|()| store.begin(&header()).unwrap());
        store.add_detail(&id, &detailed(0)).unwrap();
        store.add_detail(&other, &detailed(1)).unwrap();
        store.add_detail(&id, &detailed(2)).unwrap();
        let stored = Store::open(&path).unwrap().load(&id).unwrap();
        assert_eq!(stored.details, [detailed(0), detailed(2)]);
    }
}
