//! The executable with the workloads: embedded in `weigh`, unpacked where it runs, removed with the scratch
//! directory. The static build stands in where the dynamic one finds no loader, and another build
//! altogether where the user names one.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::catalogue::{self, Workload};
use super::interpreted::{self, Interpreted, Language};
use trust::path::trusted;
use trust::start::{self, Inherited};
use trust::user_file;
use weigh_host::said::{Heard, KEPT_BYTES, Keep, words};
use weigh_model::shell;
use weigh_model::workload::mix::{JobMix, JobPace, JobSizes};

/// File name of the executable wherever it is unpacked.
pub const FILE_NAME: &str = "weigh-workloads";
/// Where the static build is, beside the other.
const STATIC_DIRECTORY: &str = "static";
/// Names the build to use instead of the embedded ones.
pub const VARIABLE: &str = "WEIGH_WORKLOADS";
/// Its former name, which stands in scripts and in stored command lines.
const FORMER_VARIABLE: &str = "WEIGH_KERNELS";
/// Suffix of the small executable next to an executable.
///
/// The executable runs the small one for workloads that fork or execute themselves.
const SMALL_SUFFIX: &str = "-small";
/// Ours list some 370 workloads in 90 KB. What prints more is another program.
const MAX_LISTING_BYTES: usize = 4 << 20;
/// Ours take a few milliseconds.
const LISTING_LIMIT: Duration = Duration::from_secs(30);

/// A static build with all debugging information has 3 MB.
const MAX_BUILD_BYTES: u64 = 64 << 20;

static DYNAMIC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/workloads/weigh-workloads"));
static SMALL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/workloads/weigh-workloads-small"));
static STATIC: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/workloads/weigh-workloads-static"));

/// How long the timed part of a sample should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub target_ms: u64,
    /// How long it works before that at least.
    pub warm_up_ms: u64,
    /// True if the times of its equal parts are wanted too.
    pub has_slices: bool,
    /// True if each operation is timed by itself, which takes time of its own.
    pub has_latencies: bool,
    /// True if it runs until its time is over, even after wrong answers or without any.
    pub endures: bool,
    /// Where not 0, operations begin at so many moments of chance in 1000 s, whether others are done or not.
    pub per_1000s: u64,
}

impl Length {
    /// Length of about `target_ms` milliseconds, with as little warm-up as possible.
    ///
    /// The warm-up takes only as long as finding the number of operations.
    pub fn of_ms(target_ms: u64) -> Length {
        Length {
            target_ms,
            warm_up_ms: 0,
            has_slices: false,
            has_latencies: false,
            endures: false,
            per_1000s: 0,
        }
    }

    /// Length of about `target_ms` milliseconds after half as long a warm-up.
    ///
    /// Meant for costs that grow after a while.
    pub fn settled(target_ms: u64) -> Length {
        Length { warm_up_ms: target_ms / 2, ..Length::of_ms(target_ms) }
    }
}

/// The multi-call executable, unpacked and known to run here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Executable {
    path: PathBuf,
    /// Output of `weigh-workloads list`.
    listing: String,
    /// Linked statically, because the dynamic build does not run here.
    pub is_static: bool,
    /// The user's own build, where it is that.
    pub foreign: Option<PathBuf>,
    /// Program to execute in place of a language's own interpreter, by the language's name.
    #[serde(default)]
    interpreters: BTreeMap<String, String>,
}

/// The user's own build, where the environment names one, and by which variable.
pub fn named_by_user() -> Option<(&'static str, OsString)> {
    [VARIABLE, FORMER_VARIABLE].into_iter().find_map(|variable| {
        env::var_os(variable).filter(|file| !file.is_empty()).map(|file| (variable, file))
    })
}

impl Executable {
    /// Unpacks the executable into a directory: the embedded one, or the one that `WEIGH_WORKLOADS` names.
    pub fn unpack(directory: &Path) -> Result<Executable, String> {
        let path = directory.join(FILE_NAME);
        if let Some((variable, file)) = named_by_user() {
            return Executable::copy(Path::new(&file), path)
                .map_err(|problem| format!("{variable}={}: {problem}", file.display()));
        }
        let small = beside(&path);
        write_executable(&small, SMALL).map_err(|error| cannot_unpack(&small, &error))?;
        let builds = [(DYNAMIC, false), (STATIC, true)];
        let (listing, is_static) =
            first_that_runs(&path, &builds, LISTING_LIMIT).map_err(|error| {
                let way_out = match error.kind() {
                    io::ErrorKind::TimedOut => "this machine is too busy: try again",
                    _ => {
                        "if the file system is mounted `noexec`, set TMPDIR to a directory on a \
                         different file system"
                    }
                };
                let directory = directory.display();
                format!("cannot execute the workload programs in {directory}: {error}; {way_out}")
            })?;
        Executable::at(path, listing, is_static, None)
    }

    /// One that was built here from the embedded sources.
    pub fn built(path: PathBuf) -> Result<Executable, String> {
        let listing = list(&path, LISTING_LIMIT)
            .map_err(|error| format!("cannot execute {}: {error}", path.display()))?;
        catalogue::read(&listing)?;
        Executable::at(path, listing, false, None)
    }

    /// With the programs that are interpreted beside it.
    fn at(
        path: PathBuf,
        listing: String,
        is_static: bool,
        foreign: Option<PathBuf>,
    ) -> Result<Executable, String> {
        let own = Executable { path, listing, is_static, foreign, interpreters: BTreeMap::new() };
        let directory = own.directory();
        interpreted::unpack(directory).map_err(|error| cannot_unpack(directory, &error))?;
        Ok(own)
    }

    /// A copy, so that a build that is made anew meanwhile changes no experiment.
    fn copy(file: &Path, path: PathBuf) -> Result<Executable, String> {
        let unreadable = |error: io::Error| format!("cannot read it: {error}");
        // Looked at before it is read: what nobody can change then is what is read. Said after: what is no
        // file at all is not to be fixed by its owner.
        let trusted = may_execute(file);
        let bytes = user_file::read(file, MAX_BUILD_BYTES).map_err(unreadable)?;
        let file = &trusted.map_err(unreadable)?;
        let foreign = Some(file.canonicalize().map_err(unreadable)?);
        write_executable(&path, &bytes).map_err(|error| cannot_unpack(&path, &error))?;
        // A static build has none, nor has one of before.
        let small = beside(file);
        if small.exists() {
            let bytes =
                may_execute(&small).and_then(|file| user_file::read(&file, MAX_BUILD_BYTES));
            let bytes =
                bytes.map_err(|error| format!("cannot read {}: {error}", small.display()))?;
            let small = beside(&path);
            write_executable(&small, &bytes).map_err(|error| cannot_unpack(&small, &error))?;
        }
        let is_no_build = |problem: String| {
            format!(
                "not a build of the workloads ({problem}): create one with `make -C workloads OUT=DIR`"
            )
        };
        let listing = list(&path, LISTING_LIMIT).map_err(|error| is_no_build(error.to_string()))?;
        match catalogue::read(&listing) {
            Ok(workloads) if workloads.is_empty() => {
                Err(is_no_build("it lists no workloads".into()))
            }
            Ok(_) => Executable::at(path, listing, false, foreign),
            Err(problem) => Err(is_no_build(problem)),
        }
    }

    /// The static build beside this one, for a place whose loader does not take this one; `None` where it is
    /// the user's own.
    pub fn as_static(&self) -> Result<Option<Executable>, String> {
        if self.is_static || self.foreign.is_some() {
            return Ok(self.is_static.then(|| self.clone()));
        }
        let directory = self.path.with_file_name(STATIC_DIRECTORY);
        let path = directory.join(FILE_NAME);
        fs::create_dir_all(&directory)
            .and_then(|()| write_executable(&path, STATIC))
            .map_err(|error| cannot_unpack(&path, &error))?;
        let listing = list(&path, LISTING_LIMIT)
            .map_err(|error| format!("cannot execute {}: {error}", path.display()))?;
        Executable::at(path, listing, true, None).map(Some)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All workloads that it has, sorted by name.
    pub fn workloads(&self) -> Result<Vec<Workload>, String> {
        let mut workloads = catalogue::read(&self.listing)?;
        workloads.extend(Interpreted::all().map(|one| one.listed()));
        workloads.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(workloads)
    }

    pub fn with_interpreter(mut self, language: &str, program: &str) -> Executable {
        self.interpreters.insert(language.to_owned(), program.to_owned());
        self
    }

    /// Returns the interpreter that is executed for a program in this language.
    pub fn interpreter<'a>(&'a self, language: &'a Language) -> &'a str {
        self.interpreters.get(&language.name).unwrap_or(&language.program)
    }

    /// Where it is, with what was unpacked beside it.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// The command of one sample of about this length.
    pub fn sample_argv(&self, workload: &str, copies: usize, length: Length) -> Vec<String> {
        let mut options = vec!["--target-ms".into(), length.target_ms.to_string()];
        if length.warm_up_ms > 0 {
            options.extend(["--warm-up-ms".into(), length.warm_up_ms.to_string()]);
        }
        if length.endures {
            options.push("--endure".into());
        }
        if length.per_1000s > 0 {
            options.extend(["--per-1000s".into(), length.per_1000s.to_string()]);
        }
        if length.has_latencies && copies == 1 {
            options.push("--latencies".into());
        } else if length.has_slices && copies == 1 {
            options.push("--slices".into());
        }
        self.run_argv(workload, copies, &options)
    }

    /// The command that does just this many operations per copy, after the warm-up.
    pub fn operations_argv(&self, workload: &str, copies: usize, operations: u64) -> Vec<String> {
        self.run_argv(workload, copies, &["--operations".into(), operations.to_string()])
    }

    /// The command of a launch of about this length that is looked at more closely: `--latencies` or
    /// `--count-instructions`.
    pub fn detail_argv(&self, workload: &str, target_ms: u64, option: &str) -> Vec<String> {
        self.run_argv(workload, 1, &["--target-ms".into(), target_ms.to_string(), option.into()])
    }

    /// The command of a load: so many users, each of whom does the jobs of a mix in an order of his own.
    pub fn load_argv(
        &self,
        users: usize,
        order: u64,
        sizes: &JobSizes,
        mix: &JobMix,
    ) -> Vec<String> {
        let path = self.path.display().to_string();
        let mut argv = vec![path, "load".into(), "--users".into(), users.to_string()];
        let mut option = |name: &str, value: String| argv.extend([name.into(), value]);
        option("--seed", order.to_string());
        option("--file-kib", sizes.kib_of(users, mix).to_string());
        match sizes.pace_of(mix) {
            JobPace::AtOnce => {}
            JobPace::Thinking(us) => option("--think-us", us.to_string()),
            JobPace::Arriving(number) => option("--jobs-per-1000s", number.to_string()),
        }
        let numbers = [
            ("--period-ms", sizes.period_ms),
            ("--block-kib", sizes.block_kib),
            ("--common-kib", sizes.common_kib),
            ("--resident-mib", sizes.resident_mib.or(mix.resident_mib)),
        ];
        for (name, number) in numbers {
            number.into_iter().for_each(|number| option(name, number.to_string()));
        }
        for directory in &sizes.disk_directories {
            option("--disk-dir", directory.display().to_string());
        }
        if let Some(tree) = &sizes.disk_tree {
            option("--disk-tree", tree.display().to_string());
        }
        let jobs = sizes.jobs_of(mix);
        for (command, count) in mix.commands_per_user(jobs).into_iter().filter(|(_, n)| *n > 0) {
            option("--command", count.to_string());
            // They could be split when the mix was read.
            for word in shell::words(&command.run).unwrap_or_default() {
                option("--argument", word);
            }
        }
        if sizes.is_cold {
            argv.push("--cold".into());
        }
        argv.push("--".into());
        let tests = mix.jobs_per_user(jobs).into_iter().filter(|(_, count)| *count > 0);
        argv.extend(tests.map(|(test, count)| format!("{test}={count}")));
        argv
    }

    fn run_argv(&self, workload: &str, copies: usize, options: &[String]) -> Vec<String> {
        let mut argv = vec![self.path.display().to_string(), "run".into(), workload.into()];
        argv.extend_from_slice(options);
        if copies > 1 {
            argv.extend(["--copies".into(), copies.to_string()]);
        }
        argv
    }
}

/// A variable is chosen by whoever had the shell before, and not by who called `sudo`: root executes what it
/// names only if that is root's alone. Others execute what they like.
fn may_execute(file: &Path) -> io::Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return Ok(file.to_owned());
    }
    trusted(file).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(
            error.kind(),
            format!(
                "{error}. As root, the variable may name only a file that nobody but root can change: \
                 copy the build to a directory of root's"
            ),
        ),
        _ => error,
    })
}

/// The small executable of a build.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SMALL_SUFFIX);
    name.into()
}

fn write_executable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    file.write_all(bytes)?;
    // Whatever the umask: the arms may run under another user.
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

fn cannot_unpack(path: &Path, error: &io::Error) -> String {
    format!("cannot unpack the workload programs into {}: {error}", path.display())
}

/// Leaves the first build there that can be executed, and gives its listing. One that takes too long does
/// run: the next is another program, and would give other rates without anybody having asked for it.
fn first_that_runs(
    path: &Path,
    builds: &[(&[u8], bool)],
    limit: Duration,
) -> io::Result<(String, bool)> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for (bytes, is_static) in builds {
        write_executable(path, bytes)?;
        match list(path, limit) {
            Ok(listing) => return Ok((listing, *is_static)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn list(path: &Path, limit: Duration) -> io::Result<String> {
    // execvp(3) takes any other file for a script of the shell.
    let mut magic = [0; 4];
    let length = File::open(path)?.read(&mut magic)?;
    if magic != *b"\x7fELF" && !magic[..length].starts_with(b"#!") {
        return Err(Errno::NOEXEC.into());
    }
    // Whom another thread forked a moment ago holds the file that was written until it executes (ETXTBSY).
    let busy_until = Instant::now() + limit;
    let mut heard = loop {
        let mut command = start::command(path, Inherited::Fixed);
        command.arg("list").stdin(Stdio::null());
        match Heard::start(command, [Keep::First(MAX_LISTING_BYTES), Keep::Last(KEPT_BYTES)]) {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && Instant::now() < busy_until =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            started => break started?,
        }
    };
    // With its pipes gone, a program that goes on printing ends.
    let status = heard.wait(limit, |heard| !heard.stdout.is_cut()).map_err(|error| {
        let problem = match error.kind() {
            io::ErrorKind::TimedOut => format!("it did not end within {} s", limit.as_secs()),
            io::ErrorKind::Interrupted => {
                format!("its list of workloads is longer than {} MiB", MAX_LISTING_BYTES >> 20)
            }
            _ => error.to_string(),
        };
        io::Error::new(error.kind(), problem)
    })?;
    if !status.success() {
        let complaint = words(heard.stderr());
        return Err(io::Error::other(format!("{status} {complaint}").trim().to_owned()));
    }
    String::from_utf8(heard.stdout.bytes().to_owned()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn both_builds_run_and_know_the_same_workloads() {
        let directory = tempfile::tempdir().unwrap();
        let listings = [DYNAMIC, STATIC].map(|bytes| {
            let path = directory.path().join("k");
            write_executable(&path, bytes).unwrap();
            list(&path, LISTING_LIMIT).unwrap()
        });
        let names = |listing: &str| -> Vec<String> {
            let value = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
            listing.lines().map(|line| value(line)["name"].to_string()).collect()
        };
        assert_eq!(names(&listings[0]), names(&listings[1]));
        assert!(names(&listings[0]).len() >= 19);
    }

    #[test]
    fn root_executes_no_build_that_a_third_party_can_change() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("build");
        fs::write(&file, DYNAMIC).unwrap();
        let unpack = || Executable::copy(&file, directory.path().join("copy"));
        assert!(unpack().is_ok());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(unpack().unwrap_err().contains("can be written by everybody"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        assert!(unpack().unwrap_err().contains("belongs to another user (uid 65534)"));
    }

    /// Returns the listing that a script prints, or `None` if that hangs.
    fn listed(script: &str) -> Option<io::Result<String>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k");
        write_executable(&path, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(list(&path, LISTING_LIMIT)));
        receiver.recv_timeout(Duration::from_secs(30)).ok()
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k");
        write_executable(&path, b"#!/bin/sh\nsleep 600 & sleep 600\n").unwrap();
        let problem = list(&path, Duration::from_millis(300)).unwrap_err().to_string();
        assert!(problem.contains("did not end within"), "{problem}");
    }

    #[test]
    fn a_build_that_cannot_be_executed_is_replaced_and_one_that_takes_long_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k");
        let first =
            |bytes: &[u8], limit| first_that_runs(&path, &[(bytes, false), (STATIC, true)], limit);
        assert!(first(b"#!/there/is/no/such/loader\n", LISTING_LIMIT).unwrap().1);
        let problem = first(b"#!/bin/sh\nsleep 600\n", Duration::from_millis(300)).unwrap_err();
        assert!(problem.to_string().contains("did not end within"), "{problem}");
    }

    /// A pipe holds 64 KiB: who reads one to its end first waits for ever.
    #[test]
    fn a_program_that_floods_both_pipes_is_read_or_refused() {
        let chatty = "yes complaint | head -c 1000000 >&2; echo first; yes x | head -c 1000000";
        let listing = listed(chatty).expect("it hangs").unwrap();
        assert!(listing.starts_with("first\n") && listing.len() == 1_000_006, "{}", listing.len());

        let failing = "yes x | head -c 1000000; yes complaint | head -c 1000000 >&2; exit 7";
        let problem = listed(failing).expect("it hangs").unwrap_err().to_string();
        assert!(problem.starts_with("exit status: 7 "), "{problem}");
        assert!(problem.ends_with("complaint; complaint") && problem.len() < 500, "{problem}");

        let endless = "yes complaint >&2 & exec yes";
        listed(endless).expect("it hangs").expect_err("it ends only because nobody reads on");
    }
}
