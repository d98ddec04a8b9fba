//! The tables, and their version in `PRAGMA user_version`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::{BUSY_TIMEOUT, Error, explain};

/// `PRAGMA application_id` of a database of ours: "Weig".
pub const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Weig");

/// Versions below it were those of databases before the first release.
const VERSION: i64 = 16;

const OWN_TABLES: &str = "experiment arm work sample startup failure detail imported tag outcome";

const TABLES: &str = "
CREATE TABLE experiment (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,                -- compare, versus, run, calibrate, import, rules
    name TEXT,                         -- the user's
    started TEXT NOT NULL,             -- RFC 3339, UTC
    elapsed_s REAL,
    state TEXT NOT NULL,               -- running, complete, interrupted, failed
    failure TEXT,
    command TEXT NOT NULL,
    asked_for TEXT NOT NULL DEFAULT '[]', -- JSON: workloads, suites, files
    suites TEXT NOT NULL DEFAULT '[]', -- JSON: suites of the user, whose files may be gone by now
    classic INTEGER NOT NULL DEFAULT 0, -- measured as the suite's original
    seed INTEGER NOT NULL,             -- the bits of an unsigned number
    budget_s REAL NOT NULL,
    alpha REAL NOT NULL,
    margin REAL NOT NULL,              -- as a fraction
    fail_above REAL,                   -- limit of the gate, as a fraction
    fixed_pairs INTEGER,
    planned_pairs REAL,                -- n*, on which half of the capital bets
    plans TEXT NOT NULL DEFAULT '[]',  -- JSON: n* of rows for which it was known after their pilot alone
    pilot_chooses_scheme INTEGER NOT NULL DEFAULT 0, -- the first pairs of each row do
    takes_old_pairs INTEGER NOT NULL DEFAULT 0, -- rows also need pairs of aged processes
    multiplicity TEXT NOT NULL DEFAULT 'holm', -- holm, e-bh
    metrics TEXT NOT NULL DEFAULT '[]', -- JSON: what is judged of each row
    sets INTEGER NOT NULL,
    peaks TEXT NOT NULL DEFAULT '[]',  -- JSON: load points that were chosen as the peaks of mixes
    profiles TEXT NOT NULL DEFAULT '[]', -- JSON: output of a profiler, from launches beside the samples
    document TEXT,                     -- JSON: the whole result of an experiment without pairs
    machine TEXT NOT NULL,             -- JSON
    baseline_state TEXT,
    warnings TEXT NOT NULL,            -- JSON
    origin TEXT,                       -- JSON: what a later session needs to go on with the experiment
    sessions INTEGER NOT NULL DEFAULT 1,
    pid INTEGER NOT NULL,              -- whose process measures, while it is running
    pid_started INTEGER,               -- when that started, in ticks since boot: pids come again
    boot_id TEXT NOT NULL
) STRICT;
CREATE TABLE tag (
    experiment TEXT NOT NULL REFERENCES experiment,
    tag TEXT NOT NULL,
    PRIMARY KEY (experiment, tag)
) STRICT;
CREATE TABLE arm (
    experiment TEXT NOT NULL REFERENCES experiment,
    number INTEGER NOT NULL,           -- 0 is the baseline
    label TEXT NOT NULL,
    facts TEXT NOT NULL,               -- JSON
    quantities TEXT NOT NULL,          -- JSON: what its treatment produces
    PRIMARY KEY (experiment, number)
) STRICT;
CREATE TABLE work (
    experiment TEXT NOT NULL REFERENCES experiment,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    load_axis TEXT,                    -- copies, users; none of a workload as it is
    load_value REAL,
    unit TEXT NOT NULL,
    syscalls_per_op REAL,
    start_scale REAL NOT NULL,         -- the spread of log-ratios expected of sequential pairs
    interleaved_scale REAL,            -- and of interleaved pairs
    sample_ms INTEGER,                 -- length of a sample; none where a command takes what it takes
    series TEXT,                       -- of which curve it is a point, where it is one
    x REAL,                            -- and where on it
    x_unit TEXT,
    PRIMARY KEY (experiment, number)
) STRICT;
CREATE TABLE sample (
    number INTEGER PRIMARY KEY,        -- in the order measured
    experiment TEXT NOT NULL REFERENCES experiment,
    work INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    treated_arm INTEGER NOT NULL,      -- which treatment this pair weighs
    role TEXT NOT NULL,                -- compared, pilot, aged, search, remeasured
    scheme TEXT NOT NULL,              -- sequential, interleaved
    set_number INTEGER NOT NULL,
    pair INTEGER NOT NULL,             -- within work and treatment; a search counts its own
    position INTEGER NOT NULL,         -- 0 was measured first
    started_s REAL NOT NULL,           -- from the start of the experiment
    padding_bytes INTEGER NOT NULL,    -- how much longer its environment was made
    cpu INTEGER,                       -- drawn for the pair to begin on
    sample TEXT NOT NULL,              -- JSON, as the workload printed it
    disturbance TEXT,                  -- JSON
    evidence TEXT NOT NULL             -- JSON
) STRICT;
CREATE INDEX sample_of_experiment ON sample (experiment, number);
CREATE TABLE startup (                 -- what a launch costs besides its operations
    experiment TEXT NOT NULL REFERENCES experiment,
    work INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    operations REAL NOT NULL,
    evidence TEXT NOT NULL,            -- JSON
    PRIMARY KEY (experiment, work, arm)
) STRICT;
CREATE TABLE failure (
    experiment TEXT NOT NULL REFERENCES experiment,
    work TEXT NOT NULL,
    load_axis TEXT,
    load_value REAL,
    arm TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE TABLE detail (                  -- what each operation took: launches beside the samples
    number INTEGER PRIMARY KEY,        -- in the order measured
    experiment TEXT NOT NULL REFERENCES experiment,
    work INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    treated_arm INTEGER NOT NULL,      -- which treatment this pair weighs
    pair INTEGER NOT NULL,             -- within work and treatment
    position INTEGER NOT NULL,         -- 0 was measured first
    detail TEXT NOT NULL               -- JSON: latencies, or what the PMU counted
) STRICT;
CREATE INDEX detail_of_experiment ON detail (experiment, number);
CREATE TABLE imported (                -- what was not measured here
    experiment TEXT PRIMARY KEY REFERENCES experiment,
    summary TEXT NOT NULL              -- JSON, as docs/json.md has it
) STRICT;
";

/// Table of `outcomes.rs`. Databases of version 16 may have been made without it.
const OUTCOMES: &str = "
CREATE TABLE IF NOT EXISTS outcome (
    experiment TEXT PRIMARY KEY REFERENCES experiment,
    derived_from TEXT NOT NULL,        -- version of weigh, state, numbers of samples and sessions
    words TEXT NOT NULL
) STRICT;
";

/// Creates the tables in a new database, and refuses one of another version.
pub fn prepare(connection: &Connection, path: &Path) -> Result<(), Error> {
    let said = |error| explain(path, &error);
    // A reader never blocks the experiment that writes.
    keep_trying(|| connection.pragma_update(None, "journal_mode", "wal")).map_err(said)?;
    // A committed sample survives the machine's death too, not only ours.
    connection.pragma_update(None, "synchronous", "full").map_err(said)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(said)?;
    match version(connection).map_err(said)? {
        0 => connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} {OUTCOMES} PRAGMA application_id = {APPLICATION_ID};
                PRAGMA user_version = {VERSION}; COMMIT;"
            ))
            .or_else(|error| {
                // Ends what failed half-way; fails itself where BEGIN did.
                let _ = connection.execute_batch("ROLLBACK");
                // Another weigh may have done it just now.
                if version(connection) == Ok(VERSION) { Ok(()) } else { Err(said(error)) }
            }),
        other => {
            check_version(other, path)?;
            keep_trying(|| connection.execute_batch(OUTCOMES)).map_err(said)
        }
    }
}

/// Tries again while another connection has the database: SQLite does not wait for that if the journal mode
/// changes.
fn keep_trying(act: impl Fn() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        match act() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && began.elapsed() < BUSY_TIMEOUT =>
            {
                thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Checks that the database has only our tables and their indices. Anybody may have made the file.
/// SQL in its views, triggers or module tables would be executed when we read from a table.
pub fn check_objects(connection: &Connection, path: &Path) -> Result<(), Error> {
    let said = |error| explain(path, &error);
    let other = "SELECT type || ' `' || name || '`' FROM sqlite_master
        WHERE type NOT IN ('table', 'index') OR sql NOT LIKE 'CREATE ' || type || ' %'
            OR tbl_name NOT IN (SELECT value FROM json_each(?1)) AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let tables = serde_json::json!(OWN_TABLES.split(' ').collect::<Vec<_>>()).to_string();
    let other: Option<String> =
        connection.query_row(other, [tables], |row| row.get(0)).optional().map_err(said)?;
    match other {
        None => Ok(()),
        Some(other) => Err(Error(format!(
            "the database {} has the {other}, which weigh did not create: remove it, or use a different file \
             with --database FILE",
            path.display()
        ))),
    }
}

/// Refuses a database of another version.
pub fn check(connection: &Connection, path: &Path) -> Result<(), Error> {
    let version = version(connection).map_err(|error| explain(path, &error))?;
    check_version(version, path)
}

fn check_version(version: i64, path: &Path) -> Result<(), Error> {
    let path = path.display();
    match version {
        VERSION => Ok(()),
        newer if newer > VERSION => Err(Error(format!(
            "the database {path} has version {newer}, but this weigh reads only version {VERSION}: use a \
             newer weigh, or a different file with --database FILE"
        ))),
        older => Err(Error(format!(
            "the database {path} has version {older}, from before weigh 0.1.0, but this weigh reads only \
             version {VERSION}: move it away, or use a different file with --database FILE"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Store;

    /// A database that weigh made, with this done to it by somebody else.
    fn problem(sql: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        drop(Store::open(&path).unwrap());
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch(sql).unwrap();
        drop(other);
        let [read, opened] = [Store::read(&path).err(), Store::open(&path).err()];
        assert_eq!(read.as_ref().unwrap().to_string(), opened.unwrap().to_string());
        read.unwrap().to_string()
    }

    #[test]
    fn a_database_with_more_than_tables_of_ours_is_refused() {
        let endless =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n";
        let view = format!("DROP TABLE tag; CREATE VIEW tag (experiment, tag) AS {endless}");
        for (sql, what) in [
            (&*view, "the view `tag`"),
            (
                "CREATE TRIGGER t AFTER INSERT ON sample BEGIN DELETE FROM arm; END",
                "the trigger `t`",
            ),
            ("CREATE TABLE other (x)", "the table `other`"),
            ("CREATE VIRTUAL TABLE v USING fts5(x)", "the table `v`"),
            ("CREATE UNIQUE INDEX i ON arm (label)", "the index `i`"),
            (
                "DROP TABLE tag; CREATE VIRTUAL TABLE tag USING fts5(experiment, x)",
                "the table `tag",
            ),
        ] {
            let problem = problem(sql);
            assert!(problem.contains(what) && problem.contains("weigh.db"), "{problem}");
        }
    }

    #[test]
    fn a_value_longer_than_any_of_ours_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let id = Store::open(&path).unwrap().begin(&super::super::tests::header()).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other
            .execute("UPDATE experiment SET command = CAST(zeroblob(200000000) AS TEXT)", [])
            .unwrap();
        drop(other);
        let store = Store::read(&path).unwrap().unwrap();
        let problem = store.load(&id).unwrap_err().to_string();
        assert!(problem.contains("longer than any that weigh stores"), "{problem}");
    }
}
