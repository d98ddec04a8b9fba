//! Stores every experiment and every sample in one SQLite file.
//!
//! A sample is committed before the next one is launched. The crate does not know how samples are made, and
//! lays out no report.
//!
//! - [`Store`]: an open database; `open.rs` decides which files may be opened, `schema.rs` lists the tables;
//! - `write.rs` stores an experiment during measurement; `read.rs` and `stream.rs` read it;
//! - `kept.rs` is the part of a sample that memory keeps;
//! - `outcomes.rs` keeps results in a few words, for the list of experiments;
//! - [`names`]: ids, tags and the meaning of `latest`;
//! - [`default_path`] is the file that is used if the user names none.
//!
//! Start with [`Store`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;

use database::{Database, UsedDatabase};
use lost::OpenedFile;
use open::Access;

mod database;
mod detail;
mod documents;
mod evidence_column;
mod imported;
mod kept;
mod lost;
pub mod names;
mod open;
mod outcomes;
mod read;
mod schema;
mod stream;
mod validate;
mod write;

/// Why the store did not do what it was asked to; a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Where one is wanted and none is stored.
pub const NO_EXPERIMENT: &str = "there is no experiment yet: `weigh compare` makes one";

/// How long a reader or writer waits for another program's turn to end.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Store {
    database: Database,
    path: PathBuf,
    access: Access,
    file: OpenedFile,
}

/// Where the database is unless the user says otherwise: `$XDG_DATA_HOME/weighbridge/weigh.db`,
/// else `~/.local/share/weighbridge/weigh.db`.
pub fn default_path() -> Result<PathBuf, Error> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_DATA_HOME")
        .or_else(|| Some(variable("HOME")?.join(".local/share")))
        .map(|home| home.join("weighbridge/weigh.db"))
        .ok_or_else(|| Error("neither XDG_DATA_HOME nor HOME is set; use --database FILE".into()))
}

impl Store {
    /// Where its file is, whose disk has to have room.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns true if the database belongs to the user who called `sudo`.
    pub fn is_of_another_user(&self) -> bool {
        self.database.user().is_some()
    }

    fn connection(&self) -> UsedDatabase<'_> {
        self.database.used()
    }

    fn explain(&self, error: &rusqlite::Error) -> Error {
        explain(&self.path, error)
    }
}

/// The sentence for an error of SQLite.
fn explain(path: &Path, error: &rusqlite::Error) -> Error {
    let has_no_file_left = || {
        let opened = std::fs::File::open("/dev/null").map_err(|error| error.raw_os_error());
        matches!(opened, Err(Some(libc::EMFILE | libc::ENFILE)))
    };
    let path = path.display();
    let problem = match error.sqlite_error_code() {
        // SQLite does not say why it cannot open a file.
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if has_no_file_left() => format!(
            "cannot open the database {path}: too many open files; raise the limit with `ulimit -n`"
        ),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => format!(
            "the database {path} is damaged, or not a database ({error}). If you move it away, weigh \
             creates a new one; \
             `sqlite3 {path} .recover` may save what is in it"
        ),
        Some(ErrorCode::TooBig) => {
            format!(
                "the database {path} is damaged: it has a value that is longer than any that weigh stores"
            )
        }
        Some(ErrorCode::DiskFull) => {
            format!(
                "the disk that holds the database {path} is full; what was stored before is kept"
            )
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            format!(
                "cannot open the database {path} for writing ({error}); choose a different file with \
                 --database FILE"
            )
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("another program has locked the database {path}; stop it and try again")
        }
        _ => format!("the database {path}: {error}"),
    };
    Error(problem)
}

pub use documents::About;
#[cfg(any(test, feature = "example"))]
pub use kept::keep_measured;

#[cfg(test)]
mod tests {
    use super::kept::keep_measured;
    use super::*;
    use weigh_model::ids::ExperimentId;
    use weigh_model::record::*;
    use weigh_model::result::summary::State;
    use weigh_model::result::warning::Warning;
    use weigh_model::result::work_name::WorkName;
    use weigh_model::samples::{Gatherer, Samples};
    use weigh_model::workload::metric::Metric;
    use weigh_model::workload::suite::{FromFile, Suite, embedded};

    /// As it comes back: lines are for errors of its file, and not stored.
    fn without_lines(mut suite: Suite) -> Suite {
        suite.members.iter_mut().for_each(|member| member.line = 0);
        suite
    }

    pub fn header() -> Header {
        Header {
            metrics: Metric::judged(None, &[]),
            kind: ExperimentKind::Compare,
            command: "weigh compare none".into(),
            seed: u64::MAX,
            budget_s: 60.0,
            alpha: 0.05,
            margin: 0.01,
            planned_pairs: Some(85.5),
            sets: 1,
            arms: vec!["none".into(), "none".into()],
            asked_for: vec!["stat".into()],
            is_classic: true,
            suites: vec![FromFile {
                file: "./my suite.toml".into(),
                suite: without_lines(embedded().unwrap().remove(0)),
            }],
            works: vec![StoredWork {
                name: WorkName::of_copies("stat", 4),
                unit: "ops/s".into(),
                syscalls_per_op: Some(1.0),
                sample_ms: Some(70),
                start_scale: 0.0375.into(),
                on_curve: Some(weigh_model::result::curve::OnCurve {
                    series: "stat".into(),
                    x: 4.0,
                    x_unit: "bytes".into(),
                }),
            }],
            pilot_chooses_scheme: true,
            origin: Some("{}".into()),
            ..Header::default()
        }
    }

    pub fn no_id() -> ExperimentId {
        "zzzzzz".to_owned().try_into().unwrap()
    }

    pub fn measured(pair: usize, arm: usize) -> Measured {
        let sample = serde_json::from_str(r#"{"operations":50,"elapsed_ns":1000}"#).unwrap();
        Measured {
            started_s: pair as f64,
            disturbance: Some(Default::default()).filter(|_| arm == 1),
            ..weigh_model::example::measured(arm, pair, arm, sample)
        }
    }

    /// Makes the kept samples of these pairs and arms.
    pub fn samples(of: impl IntoIterator<Item = (usize, usize)>) -> Samples {
        let mut gatherer = Gatherer::default();
        of.into_iter().for_each(|(pair, arm)| gatherer.add(keep_measured(measured(pair, arm))));
        gatherer.samples
    }

    #[test]
    fn what_is_stored_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/weigh.db");
        let store = Store::open(&path).unwrap();
        let id = store.begin(&header()).unwrap();
        for (pair, arm) in [(0, 1), (0, 0), (1, 0)] {
            store.add_sample(&id, &measured(pair, arm)).unwrap();
        }
        let reason = "timeout".to_owned();
        let warnings = [Warning::PairLost { reason }, Warning::Sentence("As before.".into())];
        warnings.iter().for_each(|warning| store.add_warning(&id, warning).unwrap());
        store.finish(&id, State::Complete, None).unwrap();
        let stored = Store::open(&path).unwrap().load(&id).unwrap();
        assert_eq!(stored.header, header());
        assert_eq!(stored.warnings, warnings);
        assert_eq!(stored.state, State::Complete);
        assert_eq!(stored.samples, samples([(0, 1), (0, 0), (1, 0)]));
        assert_eq!(stored.elapsed_s, 1.000_001);
        assert!(store.load(&no_id()).is_err());
    }

    #[test]
    fn one_commit_has_all_of_it_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let store = Store::open(&path).unwrap();
        let id = store.begin(&header()).unwrap();
        let other = Store::open(&path).unwrap();
        let pair = |last: Result<(), Error>| {
            store.in_one_commit(|| {
                store.add_sample(&id, &measured(0, 0))?;
                store.in_one_commit(|| store.add_sample(&id, &measured(0, 1)))?;
                assert!(!other.has_samples(&id)?, "it is committed before its end");
                last
            })
        };
        assert_eq!(pair(Err(Error("no".into()))).unwrap_err().to_string(), "no");
        assert!(!store.has_samples(&id).unwrap());
        pair(Ok(())).unwrap();
        assert_eq!(other.load(&id).unwrap().samples, samples([(0, 0), (0, 1)]));
    }

    #[test]
    fn where_the_load_varies_it_is_a_curve() {
        let place = |names: &[&str]| -> Vec<Option<f64>> {
            let own = |name: &str| StoredWork {
                name: WorkName::parse(name).unwrap().remove(0),
                ..header().works.remove(0)
            };
            let header = Header { works: names.iter().map(|name| own(name)).collect(), ..header() };
            let on_load = |work| header.on_curve(work).filter(|on| on.x_unit == "copies");
            header.work_ids().map(|work| on_load(work).map(|on| on.x)).collect()
        };
        assert_eq!(place(&["a", "a:copies=4", "b:copies=4"]), [Some(1.0), Some(4.0), None]);
        assert_eq!(place(&["a:copies=2", "a:copies=4"]), [Some(2.0), Some(4.0)]);
        assert_eq!(place(&["a", "b"]), [None, None]);
    }

    #[test]
    fn an_experiment_that_is_opened_again_runs_in_its_next_session() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let id = store.begin(&header()).unwrap();
        store.finish(&id, State::Failed, Some("why")).unwrap();
        assert_eq!(store.reopen(&id, 90.0, 2).unwrap(), 2);
        let stored = store.load(&id).unwrap();
        assert_eq!((stored.state, stored.failure, stored.sessions), (State::Running, None, 2));
        assert_eq!((stored.header.budget_s, stored.header.sets), (90.0, 2));
        assert!(store.reopen(&no_id(), 1.0, 1).is_err());
    }

    #[test]
    fn an_experiment_whose_process_is_gone_was_interrupted() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let id = store.begin(&header()).unwrap();
        assert_eq!(store.load(&id).unwrap().state, State::Running);
        store.connection().execute("UPDATE experiment SET pid = 0", []).unwrap();
        assert_eq!(store.load(&id).unwrap().state, State::Interrupted);
    }

    #[test]
    fn an_experiment_without_an_arm_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("weigh.db")).unwrap();
        let id = store.begin(&header()).unwrap();
        store.connection().execute("DELETE FROM arm", []).unwrap();
        let problem = store.load(&id).unwrap_err().to_string();
        assert_eq!(problem, format!("experiment {id} is damaged: it has no arm"));
    }

    #[test]
    fn a_damaged_file_is_named_with_a_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        std::fs::write(&path, "this is no database, however long it may be, of any kind").unwrap();
        let problem = Store::open(&path).err().unwrap().to_string();
        assert!(problem.contains("damaged") && problem.contains("weigh.db"), "{problem}");
    }

    #[test]
    fn a_database_of_another_version_is_refused_and_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let versions = [(99, "has version 99"), (13, "from before weigh 0.1.0")];
        for ((version, what), log) in
            versions.iter().flat_map(|one| [(one, "wal"), (one, "delete")])
        {
            let _ = std::fs::remove_file(&path);
            let store = Store::open(&path).unwrap();
            store.connection().pragma_update(None, "user_version", *version).unwrap();
            store.connection().pragma_update(None, "journal_mode", log).unwrap();
            drop(store);
            let before = std::fs::read(&path).unwrap();
            for problem in [Store::open(&path).err(), Store::read(&path).err()] {
                let problem = problem.unwrap().to_string();
                assert!(problem.contains(what) && problem.contains("--database"), "{problem}");
            }
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
    }
}
