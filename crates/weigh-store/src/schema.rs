//! The tables, and their version in `PRAGMA user_version`.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::{Error, explain};

const VERSION: i64 = 13;

const OWN_TABLES: [&str; 9] =
    ["experiment", "arm", "work", "sample", "startup", "failure", "detail", "imported", "tag"];

const TABLES: &str = "
CREATE TABLE experiment (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,                -- compare, versus, run, calibrate, import, rules
    started TEXT NOT NULL,             -- RFC 3339, UTC
    elapsed_s REAL,
    state TEXT NOT NULL,               -- running, complete, interrupted, failed
    failure TEXT,
    command TEXT NOT NULL,
    seed INTEGER NOT NULL,             -- the bits of an unsigned number
    budget_s REAL NOT NULL,
    alpha REAL NOT NULL,
    margin REAL NOT NULL,              -- as a fraction
    fixed_pairs INTEGER,
    multiplicity TEXT NOT NULL DEFAULT 'holm', -- holm, e-bh
    sets INTEGER NOT NULL,
    machine TEXT NOT NULL,             -- JSON
    baseline_state TEXT,
    warnings TEXT NOT NULL,            -- JSON
    pid INTEGER NOT NULL,              -- whose process measures, while it is running
    pid_started INTEGER,               -- when that started, in ticks since boot: pids come again
    boot_id TEXT NOT NULL
) STRICT;
CREATE TABLE arm (
    experiment TEXT NOT NULL REFERENCES experiment,
    number INTEGER NOT NULL,           -- 0 is the baseline
    label TEXT NOT NULL,
    facts TEXT NOT NULL,               -- JSON
    PRIMARY KEY (experiment, number)
) STRICT;
CREATE TABLE work (
    experiment TEXT NOT NULL REFERENCES experiment,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    unit TEXT NOT NULL,
    syscalls_per_op REAL,
    start_scale REAL NOT NULL,         -- the spread of log-ratios expected before the first pair
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
    set_number INTEGER NOT NULL,
    pair INTEGER NOT NULL,             -- within work and treatment
    position INTEGER NOT NULL,         -- 0 was measured first
    started_s REAL NOT NULL,           -- from the start of the experiment
    sample TEXT NOT NULL,              -- JSON, as the workload printed it, and `disturbance`
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
    arm TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
";

/// What each operation of a workload took: launches beside the samples; and what was not measured here.
const NEW_IN_3: &str = "
CREATE TABLE detail (
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

/// JSON: suites of the user's own, whose files may be gone when a report is made.
const NEW_IN_4: &str = "ALTER TABLE experiment ADD COLUMN suites TEXT NOT NULL DEFAULT '[]';";

/// JSON: what a later session needs to go on with the experiment; and in how many it was measured.
const NEW_IN_5: &str = "ALTER TABLE experiment ADD COLUMN origin TEXT;
    ALTER TABLE experiment ADD COLUMN sessions INTEGER NOT NULL DEFAULT 1;";
/// What the user calls an experiment, and the limit of its gate.
const NEW_IN_6: &str = "
ALTER TABLE experiment ADD COLUMN name TEXT;
ALTER TABLE experiment ADD COLUMN fail_above REAL;         -- as a fraction
CREATE TABLE tag (
    experiment TEXT NOT NULL REFERENCES experiment,
    tag TEXT NOT NULL,
    PRIMARY KEY (experiment, tag)
) STRICT;
";

/// n*, on which half of the capital bets; without it, an experiment is judged as it was then.
const NEW_IN_7: &str = "ALTER TABLE experiment ADD COLUMN planned_pairs REAL;";

/// JSON: what is judged of each row.
const NEW_IN_8: &str =
    r#"ALTER TABLE experiment ADD COLUMN metrics TEXT NOT NULL DEFAULT '["rate"]';"#;

/// JSON: what an arm's treatment produces; of an experiment of before, what all were taken to produce.
const NEW_IN_9: &str = concat!(
    "ALTER TABLE arm ADD COLUMN quantities TEXT NOT NULL DEFAULT '",
    include_str!("../../weigh-model/src/result/quantities_of_before.json"),
    "';"
);

/// The load of a work, which stood in its name, as `pipe x 4`; and what was found by looking at the words of
/// the command. A command may be called anything, so that only the names of workloads are looked at.
const NEW_IN_10: &str = r#"
ALTER TABLE work ADD COLUMN load_axis TEXT;                -- copies; none of a workload as it is
ALTER TABLE work ADD COLUMN load_value REAL;
ALTER TABLE failure ADD COLUMN load_axis TEXT;
ALTER TABLE failure ADD COLUMN load_value REAL;
CREATE TEMP TABLE renamed AS
    SELECT experiment, name, rtrim(name, '0123456789') AS begins FROM work
    WHERE syscalls_per_op IS NOT NULL AND name GLOB '?* x [0-9]*'
        AND substr(rtrim(name, '0123456789'), -3) = ' x ';
UPDATE failure SET load_axis = 'copies', load_value = substr(work, length(begins) + 1),
    work = substr(begins, 1, length(begins) - 3)
    FROM renamed WHERE renamed.experiment = failure.experiment AND renamed.name = failure.work;
UPDATE work SET load_axis = 'copies', load_value = substr(work.name, length(begins) + 1),
    name = substr(begins, 1, length(begins) - 3)
    FROM renamed WHERE renamed.experiment = work.experiment AND renamed.name = work.name;
DROP TABLE renamed;
UPDATE work SET series = NULL, x = NULL, x_unit = NULL WHERE x_unit = 'copies';
ALTER TABLE experiment ADD COLUMN asked_for TEXT NOT NULL DEFAULT '[]';  -- JSON: workloads, suites, files
ALTER TABLE experiment ADD COLUMN classic INTEGER NOT NULL DEFAULT 0;    -- measured as the suite's original
UPDATE experiment SET
    asked_for = coalesce(json_extract(origin, '$.request.workloads'),
        '[' || replace(json_quote(command), ' ', '","') || ']'),
    classic = coalesce(json_extract(origin, '$.request.plan') = 'Classic',
        instr(command || ' ', ' --classic ') > 0);
"#;

/// JSON: which load points were chosen as the peaks of mixes.
const NEW_IN_11: &str = "ALTER TABLE experiment ADD COLUMN peaks TEXT NOT NULL DEFAULT '[]';";

/// JSON: what a profiler told of launches beside the samples.
const NEW_IN_12: &str = "ALTER TABLE experiment ADD COLUMN profiles TEXT NOT NULL DEFAULT '[]';";

/// The spread of log-ratios expected of interleaved pairs; JSON: the whole result of what has no pairs; and
/// JSON: n* of rows, where it was known after their pilot alone, without which a row bets on no number.
const NEW_IN_13: &str = "ALTER TABLE work ADD COLUMN turns_scale REAL;
    ALTER TABLE experiment ADD COLUMN document TEXT;
    ALTER TABLE experiment ADD COLUMN plans TEXT NOT NULL DEFAULT '[]';";

/// What each version after the third added.
const SINCE_3: [&str; 10] = [
    NEW_IN_4, NEW_IN_5, NEW_IN_6, NEW_IN_7, NEW_IN_8, NEW_IN_9, NEW_IN_10, NEW_IN_11, NEW_IN_12,
    NEW_IN_13,
];

/// From version 1, which expected a spread of 1 % everywhere.
const FROM_1: &str = "ALTER TABLE work ADD COLUMN start_scale REAL NOT NULL DEFAULT 0.01;";
/// From version 2, whose samples were as long everywhere, whose claims were all Holm's, and which had no
/// curves.
const FROM_2: &str = "ALTER TABLE experiment ADD COLUMN multiplicity TEXT NOT NULL DEFAULT 'holm';
    ALTER TABLE work ADD COLUMN sample_ms INTEGER;
    ALTER TABLE work ADD COLUMN series TEXT;
    ALTER TABLE work ADD COLUMN x REAL;
    ALTER TABLE work ADD COLUMN x_unit TEXT;";
/// The first databases of version 1 did not keep the number of sets.
const SETS: &str = "ALTER TABLE experiment ADD COLUMN sets INTEGER NOT NULL DEFAULT 1;";

/// Creates the tables in a new database, brings an older one up to date, and refuses one that it
/// does not know.
pub fn prepare(connection: &Connection, path: &Path) -> Result<(), Error> {
    let said = |error| explain(path, &error);
    // A reader never blocks the experiment that writes.
    connection.pragma_update(None, "journal_mode", "wal").map_err(said)?;
    // A committed sample survives the machine's death too, not only ours.
    connection.pragma_update(None, "synchronous", "full").map_err(said)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(said)?;
    let version: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(said)?;
    let old: Vec<&str> = match version {
        VERSION => return Ok(()),
        0 => vec![TABLES, NEW_IN_3],
        1 if connection.column_exists(None, "experiment", "sets").map_err(said)? => {
            vec![FROM_1, FROM_2, NEW_IN_3]
        }
        1 => vec![SETS, FROM_1, FROM_2, NEW_IN_3],
        2 => vec![FROM_2, NEW_IN_3],
        3..VERSION => Vec::new(),
        newer => return Err(is_newer(newer, path)),
    };
    let later = &SINCE_3[usize::try_from(version - 3).unwrap_or(0)..];
    let steps = [&old, later].concat().join(" ");
    connection
        .execute_batch(&format!(
            "BEGIN IMMEDIATE; {steps} PRAGMA user_version = {VERSION}; COMMIT;"
        ))
        .or_else(|error| {
            // Ends what failed half-way; fails itself where BEGIN did.
            let _ = connection.execute_batch("ROLLBACK");
            // Another weigh may have done it just now.
            let now: rusqlite::Result<i64> =
                connection.pragma_query_value(None, "user_version", |row| row.get(0));
            if now == Ok(VERSION) { Ok(()) } else { Err(explain(path, &error)) }
        })
}

/// Whether nothing is in it but tables of ours, and their indices. SQL of a file that anybody may have made
/// would be executed in a view, a trigger or a table of a module, where we read from a table.
///
/// # Errors
/// A sentence that names what else there is.
pub fn check_objects(connection: &Connection, path: &Path) -> Result<(), Error> {
    let said = |error| explain(path, &error);
    let other = "SELECT type || ' `' || name || '`' FROM sqlite_master
        WHERE type NOT IN ('table', 'index') OR sql NOT LIKE 'CREATE ' || type || ' %'
            OR tbl_name NOT IN (SELECT value FROM json_each(?1)) AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let tables = serde_json::json!(OWN_TABLES).to_string();
    let other: Option<String> =
        connection.query_row(other, [tables], |row| row.get(0)).optional().map_err(said)?;
    match other {
        None => Ok(()),
        Some(other) => Err(Error(format!(
            "the database {} has the {other}, which weigh did not create: remove it, or name another file \
             with --database FILE",
            path.display()
        ))),
    }
}

/// Whether it can be read as it is, without being brought up to date.
///
/// # Errors
/// A sentence, where it cannot.
pub fn check(connection: &Connection, path: &Path) -> Result<(), Error> {
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| explain(path, &error))?;
    match version {
        VERSION => Ok(()),
        newer if newer > VERSION => Err(is_newer(newer, path)),
        older => Err(Error(format!(
            "the database {} is of version {older}, and weigh can bring it to version {VERSION} only where \
             it can write: copy it, and name the copy with --database FILE",
            path.display()
        ))),
    }
}

fn is_newer(version: i64, path: &Path) -> Error {
    Error(format!(
        "the database {} is of version {version}, newer than this weigh's {VERSION}: use a newer weigh, or \
         another file with --database FILE",
        path.display()
    ))
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
