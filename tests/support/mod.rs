//! Shared parts of the end-to-end tests: a home for every test, a turn at the machine, and running
//! `weigh` with a time limit.

#![allow(dead_code, reason = "every test file is a program of its own and uses a part of this")]

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use needs::skip;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use tempfile::TempDir;
use weigh_model::result::work_name::WorkName;
use weigh_workload::executable::{Executable, FILE_NAME};

pub mod audit;
pub mod bootable;
pub mod build;
pub mod busy;
pub mod fuzzing;
pub mod grid;
pub mod hidden;
pub mod import;
pub mod linked;
pub mod processes;
pub mod roots;
pub mod servers;
mod spawn;
pub mod sshd;
pub mod stored;

/// No command of these tests takes nearly as long, also where others have the CPUs most of the time.
const LIMIT: Duration = Duration::from_secs(900);

/// The program under test: this build, or another that `WEIGH_PROGRAM` names by its whole path.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| match std::env::var_os("WEIGH_PROGRAM") {
        Some(other) => other.into(),
        None => env!("CARGO_BIN_EXE_weigh").into(),
    })
}

pub use needs::repetitions as hard;

/// A number that a hard test takes from the environment.
pub fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |number| number.parse().unwrap())
}

/// A place among the tests that measure, whatever test program they are in: most share the machine.
#[must_use]
pub struct Turn {
    _locks: Vec<File>,
}

impl Turn {
    /// The machine to itself: for what needs all of it, or counts what others make and remove.
    pub fn take() -> Turn {
        Turn { _locks: vec![lock("machine", FlockOperation::LockExclusive)] }
    }

    pub fn share() -> Turn {
        Turn { _locks: vec![lock("machine", FlockOperation::LockShared)] }
    }

    /// The machine with others, and what the kernel has one of to itself.
    pub fn with(what: &str) -> Turn {
        // The machine last: who waits for the other is in nobody's way.
        let own = lock(what, FlockOperation::LockExclusive);
        Turn { _locks: vec![own, lock("machine", FlockOperation::LockShared)] }
    }
}

fn lock(what: &str, operation: FlockOperation) -> File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{what}.lock"));
    let lock = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    flock(&lock, operation).unwrap();
    lock
}

/// For `Turn::with`: sysctl, huge pages, control groups.
pub const SETTINGS: &str = "settings";

/// Directories that take the place of the user's own; removed with this.
pub struct Home {
    pub directory: TempDir,
}

/// Outcome of a command.
#[derive(Debug)]
pub struct Outcome {
    /// `None` where a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    // Before the other, as a failed assertion prints them in this order, and what CI prints is cut.
    pub stderr: String,
    pub stdout: String,
}

/// A command line after `weigh`.
pub trait Words {
    fn words(&self) -> Vec<&str>;
}

/// Words without blanks in them.
impl Words for &str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for &[&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Words for &[&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for &Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Home {
    pub fn new() -> Home {
        let directory = tempfile::Builder::new().prefix("weigh-test-").tempdir_in("/tmp").unwrap();
        for name in ["data", "state", "tmp"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Home { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The executable with the workloads that `weigh` has in it, in this home.
    pub fn workloads(&self) -> PathBuf {
        Executable::unpack(self.directory.path()).unwrap();
        self.path(FILE_NAME)
    }

    pub fn database(&self) -> PathBuf {
        self.path("data/weighbridge/weigh.db")
    }

    /// Any command, with this home and no other environment than `PATH`.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.directory.path())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    pub fn weigh(&self, arguments: impl Words) -> Command {
        let mut command = self.command(program());
        command.args(arguments.words());
        command
    }

    /// Runs `weigh` to its end.
    pub fn run(&self, arguments: impl Words) -> Outcome {
        self.start(self.weigh(arguments)).finish()
    }

    /// Starts a command; what it says goes to files, so that no pipe can hold it up.
    pub fn start(&self, mut command: Command) -> Running {
        let output = |name| tempfile::Builder::new().prefix(name).tempfile_in(&self.directory);
        let (stdout, stderr) = (output("stdout").unwrap(), output("stderr").unwrap());
        command.stdout(stdout.reopen().unwrap()).stderr(stderr.reopen().unwrap());
        let child = spawn::spawn(&mut command);
        Running { child, stdout, stderr }
    }

    /// Runs `weigh` and expects it to end well.
    #[track_caller]
    pub fn succeed(&self, arguments: impl Words) -> Outcome {
        let words = arguments.words();
        let outcome = self.run(&words);
        assert_eq!(outcome.code, Some(0), "weigh {words:?}: {outcome:#?}");
        outcome
    }

    /// Runs an experiment of `weigh`, whatever its verdict will be.
    #[track_caller]
    pub fn measure(&self, arguments: impl Words) -> Outcome {
        let mut words = arguments.words();
        words.insert(1, "--inconclusive-ok");
        self.succeed(&words)
    }

    /// The JSON of the latest experiment.
    pub fn json(&self) -> Value {
        let id = self.query_text("SELECT id FROM experiment ORDER BY rowid DESC LIMIT 1");
        self.succeed(&["export", &id, "--json"]).json()
    }

    /// Opens the database as another program would.
    pub fn open_database(&self) -> Connection {
        let write = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(self.database(), write).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    pub fn query_text(&self, sql: &str) -> String {
        self.open_database().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Samples of all experiments; 0 where there is no database yet.
    pub fn samples(&self) -> i64 {
        let read = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let Ok(database) = Connection::open_with_flags(self.database(), read) else { return 0 };
        database.query_row("SELECT count(*) FROM sample", [], |row| row.get(0)).unwrap_or(0)
    }

    /// Waits until the running experiment has stored this many samples.
    pub fn wait_for_samples(&self, wanted: i64, running: &mut Running) {
        let arrived = wait_until(LIMIT, || self.samples() >= wanted || running.has_ended());
        assert!(arrived && self.samples() >= wanted, "ended too early: {}", running.said());
    }

    /// Lists the leftovers in `TMPDIR` and of the journals.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let list = |name: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(self.path(name)).into_iter().flatten();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        let mut left = list("tmp");
        // Guests are built once, and kept.
        let is_kept = |path: &PathBuf| ["lock", "vm"].iter().any(|name| path.ends_with(name));
        left.extend(list("state/weighbridge").into_iter().filter(|path| !is_kept(path)));
        left
    }

    /// The processes that were started in this home and still live.
    pub fn processes(&self) -> Vec<i32> {
        // Servers and programs of the system have the second alone.
        let markers = [("XDG_STATE_HOME", "state"), ("TMPDIR", "tmp")]
            .map(|(name, place)| format!("{name}={}", self.path(place).display()));
        let is_marked =
            |entry: &[u8]| markers.iter().any(|marker| entry.starts_with(marker.as_bytes()));
        let is_ours = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(is_marked))
        };
        let pid = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        fs::read_dir("/proc").unwrap().filter_map(pid).filter(is_ours).collect()
    }

    /// Describes the processes for the message of a test that fails: their names, and where they
    /// hang.
    pub fn describe_processes(&self) -> Vec<String> {
        let read = |pid: i32, file: &str| {
            fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default().replace('\0', " ")
        };
        let describe =
            |pid| [read(pid, "cmdline"), read(pid, "stat"), read(pid, "stack")].join("\n");
        self.processes().into_iter().map(describe).collect()
    }
}

/// A command that was started, and is killed if the test gives up on it.
pub struct Running {
    child: Child,
    stdout: tempfile::NamedTempFile,
    stderr: tempfile::NamedTempFile,
}

impl Running {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// SIGKILL to this process alone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub fn finish(self) -> Outcome {
        self.finish_within(LIMIT)
    }

    pub fn finish_within(mut self, limit: Duration) -> Outcome {
        let ended = wait_until(limit, || self.has_ended());
        assert!(ended, "it does not end: {}", self.said_and_waits());
        let status = self.child.wait().unwrap();
        Outcome {
            code: status.code(),
            signal: status.signal(),
            stdout: read(&self.stdout),
            stderr: read(&self.stderr),
        }
    }

    pub fn said(&self) -> String {
        format!("{}\n{}", read(&self.stdout), read(&self.stderr))
    }

    /// Returns its output, and in which function of the kernel each of its threads waits.
    pub fn said_and_waits(&self) -> String {
        let tasks = format!("/proc/{}/task", self.child.id());
        let shown = |task: std::fs::DirEntry| {
            let part = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
            format!("{} waits in {}:\n{}", part("comm").trim(), part("wchan"), part("stack"))
        };
        let waits = std::fs::read_dir(tasks).into_iter().flatten().flatten().map(shown);
        format!("{}\n{}", self.said(), waits.collect::<String>())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(file: &tempfile::NamedTempFile) -> String {
    let mut bytes = Vec::new();
    file.reopen().unwrap().read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Outcome {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON ({error}): {self:#?}"))
    }

    /// Refused or failed as documented: exit status 2 and a sentence, and never a panic.
    #[track_caller]
    pub fn assert_error(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:#?}");
        self.assert_says(parts);
    }

    /// All of these are in what it said, wherever the lines were broken.
    #[track_caller]
    pub fn assert_says(&self, parts: &[&str]) {
        let said = format!("{}\n{}", self.stdout, self.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!said.contains("panicked") && !said.contains("RUST_BACKTRACE"), "{self:#?}");
        for part in parts {
            assert!(said.contains(part), "`{part}` is not said: {self:#?}");
        }
        let has_words = self.stderr.split_whitespace().count() >= 4;
        assert!(self.code != Some(2) || has_words, "a sentence has words: {self:#?}");
    }
}

/// The row of a workload in the JSON of an experiment, by its label, as `pipe:copies=4`.
#[track_caller]
pub fn row<'a>(json: &'a Value, label: &str) -> &'a Value {
    let names = WorkName::parse(label).unwrap_or_default();
    let name = names.into_iter().next().unwrap_or_else(|| label.into());
    let load = name.load.map(|load| json!({"axis": load.axis, "value": load.value}));
    let is_it = |row: &&Value| row["workload"] == *name.name && row["load"] == json!(load);
    let rows = json["results"].as_array().unwrap();
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no row of {label}: {json:#}"))
}

/// The estimate says so by far: eight pairs may well bear no verdict on a busy machine, and their middle
/// still tells what slows every operation several times.
#[track_caller]
pub fn assert_slows(row: &Value, by_pct: f64) {
    let effect_pct = row["effect_pct"].as_f64().unwrap();
    assert!(effect_pct < -by_pct, "{effect_pct} %, and not beyond -{by_pct} %: {row:#}");
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs the command as a user without any privilege, where the tests themselves have some.
pub fn as_nobody(command: &mut Command) {
    if is_root() {
        // Dropping the user id clears the supplementary groups as well.
        command.uid(NOBODY).gid(NOBODY);
    }
}

pub const NOBODY: u32 = 65534;

pub fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if started.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
