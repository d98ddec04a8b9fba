//! The launcher by its protocol: reached through other programs, with members that stay while jobs come and
//! go, and with nothing left whoever of them is killed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weigh_host::machine::process::process_start;
use weigh_model::cpu_share::cpus_of;
use weigh_workload::launcher::{Job, Launcher, LauncherError, status_number};
use weigh_workload::member::{MemberSeen, Readiness, StartServer};
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;
use weigh_workload::setup::kind::denied_calls::{DeniedCall, DeniedCalls};
use weigh_workload::setup::kind::seccomp_filter::SeccompFilter;
use weigh_workload::start_cpu::{Range, StartCpu, allowed_cpus};

const WEIGH: &str = env!("CARGO_BIN_EXE_weigh");
const LONG: Duration = Duration::from_secs(30);
const NAME: &str = "server";
/// A server of one process that starts others: it answers each connection with how many it had, and each of
/// its helpers is of a session of its own.
const SERVER: &str = r#"
import os, socket, subprocess, sys
helper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(8)
served = 0
while True:
    connection, _ = listener.accept()
    served += 1
    try:
        connection.sendall(b"%d\n" % served)
    except OSError:
        pass
    connection.close()
"#;

static NEVER: AtomicBool = AtomicBool::new(false);
/// The library ends orphans of this process: of one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn raise(&self) -> StartServer {
        let socket = self.path("socket");
        StartServer {
            name: NAME.into(),
            argv: ["python3", "-c", SERVER, socket.to_str().unwrap()].map(String::from).to_vec(),
            environment: vec![("MARK".into(), self.mark())],
            is_users_own: false,
            directory: self.directory.path().to_owned(),
            log: self.path("log"),
            ready: Readiness::Accepts(socket),
            timeout_ms: 20_000,
            is_disposable: false,
            is_asked: false,
            user: None,
            has_own_pids: false,
            progress: None,
            is_away: false,
        }
    }

    fn job(&self, command: &str) -> Job {
        let argv = ["/bin/sh", "-c", command].map(String::from).to_vec();
        let environment = vec![("MARK".into(), self.mark())];
        Job { environment, ..Job::new(argv, self.directory.path(), 20_000) }
    }

    /// In the environment of all that is started here.
    fn mark(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// Lists the living processes with the mark.
    fn alive(&self) -> Vec<u32> {
        let mark = format!("MARK={}", self.mark());
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let is_marked = environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
            (is_marked && process_start(pid).unwrap().is_some()).then_some(pid)
        });
        processes.collect()
    }

    fn assert_nothing_is_left(&self, after: &str) {
        let deadline = Instant::now() + LONG;
        while !self.alive().is_empty() {
            assert!(Instant::now() < deadline, "{after}: {:?} are left", self.alive());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the server's answer; `None` if it does not come within `patience`.
    fn ask(&self, patience: Duration) -> Option<u32> {
        let mut stream = UnixStream::connect(self.path("socket")).ok()?;
        stream.set_read_timeout(Some(patience)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }
}

fn launcher(setup: &Setup) -> Launcher {
    let mut command = Command::new(WEIGH);
    command.arg("__launcher");
    Launcher::start(command, setup, &NEVER).unwrap()
}

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

fn parent(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status_number(&status, "PPid").unwrap()
}

fn refused(result: Result<MemberSeen, LauncherError>) -> String {
    match result {
        Err(LauncherError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_launcher_is_reached_through_other_programs() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"cat | "$0" __launcher | cat"#, WEIGH]);
    let mut launcher = Launcher::start(command, &Setup::default(), &NEVER).unwrap();
    for said in ["one", "two"] {
        let launched = launcher.run(&bench.job(&format!("echo {said}")), &NEVER).unwrap();
        assert_eq!((launched.stdout.trim(), launched.exit_code), (said, Some(0)));
    }
    launcher.raise(&bench.raise(), &NEVER).unwrap();
    drop(launcher);
    bench.assert_nothing_is_left("the launcher was let go");
}

/// Bound, asleep, released: whatever its set-up does to it before, and forbids it then.
#[test]
fn a_worker_begins_on_the_cpu_that_was_drawn_and_stays_there_or_gets_its_own_back() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let allowed = allowed_cpus().unwrap();
    let list = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        cpus_of(line.unwrap().trim()).unwrap()
    };
    let confined = Setup::default().with(AllowedCpus { cpus: vec![allowed[0]] });
    for (setup, own) in [(forbidding_affinity(), &allowed[..]), (confined, &allowed[..1])] {
        let mut launcher = launcher(&setup);
        for (number, then) in
            [(0, Range::ThatCpu), (1, Range::ThatCpu), (0, Range::ThatKind), (1, Range::All)]
        {
            let start = StartCpu {
                chance: number,
                among: own.to_vec(),
                then,
                gate: None,
                counts_cpu: false,
            };
            let drawn = start.choose(&allowed).unwrap();
            let job = Job { start: Some(start), ..bench.job("cat /proc/self/status; sleep 0.01") };
            let launched = launcher.run(&job, &NEVER).unwrap();
            assert_eq!((launched.exit_code, launched.cpu), (Some(0), Some(drawn)), "{launched:?}");
            let kept = list(&launched.stdout);
            assert_eq!(kept, if then == Range::ThatCpu { vec![drawn] } else { own.to_vec() });
        }
        let launched = launcher.run(&bench.job("cat /proc/self/status"), &NEVER).unwrap();
        assert_eq!((launched.cpu, list(&launched.stdout)), (None, own.to_vec()), "no pair");
    }
}

/// A held command never waits for us to read what it prints, and all that it starts is looked at.
#[test]
fn the_cpu_use_of_a_held_command_is_counted() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let mut launcher = launcher(&Setup::default());
    let mut run = |line: &str, counts_cpu| {
        let among = allowed_cpus().unwrap();
        let start = StartCpu { chance: 0, among, then: Range::ThatKind, gate: None, counts_cpu };
        launcher.run(&Job { start: Some(start), ..bench.job(line) }, &NEVER).unwrap()
    };
    let pipe_bytes = "exec python3 -c 'import fcntl; print(fcntl.fcntl(1, fcntl.F_GETPIPE_SZ))'";
    let counted = run(pipe_bytes, true);
    assert_eq!((counted.stdout.trim(), counted.outlived), ("1048576", 0), "{counted:?}");
    assert!(counted.cpu_use.is_some_and(|used| used.cpu_ns > 0), "{counted:?}");
    let usual = run(pipe_bytes, false);
    assert_eq!((usual.stdout.trim(), usual.cpu_use), ("65536", None));
    let looks = run("(sleep 3); :", true).cpu_use.unwrap().looks;
    assert!(looks.idle_share().unwrap() > 0.5, "{looks:?}");
    let mut parallel_share = |line: &str| {
        let used = run(line, true).cpu_use.unwrap();
        used.looks.parallel_ns as f64 / used.cpu_ns as f64
    };
    let count = "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done)";
    let (at_once, in_turn) = (
        parallel_share(&format!("{count} & {count}; wait")),
        parallel_share(&format!("{count}; {count}")),
    );
    assert!(at_once > 0.2 && in_turn < 0.05, "{at_once} {in_turn}");
    assert_eq!(run("sleep 60 & sleep 60 & :", true).outlived, 2);
}

/// A filter with which the worker itself could not be bound any more.
fn forbidding_affinity() -> Setup {
    const LOAD_NUMBER: (u16, u8, u8, u32) = (0x20, 0, 0, 0);
    const EPERM: (u16, u8, u8, u32) = (0x06, 0, 0, 0x0005_0001);
    const ALLOW: (u16, u8, u8, u32) = (0x06, 0, 0, 0x7fff_0000);
    let is_it = (0x15, 0, 1, u32::try_from(libc::SYS_sched_setaffinity).unwrap());
    Setup::default()
        .with(SeccompFilter { program: vec![LOAD_NUMBER, is_it, EPERM, ALLOW], times: 1 })
}

/// A filter with these answers to calls.
fn denying(answers: &[(libc::c_long, u32)]) -> DeniedCalls {
    let deny = |&(call, answer): &(libc::c_long, u32)| {
        [(0x15, 0, 1, u32::try_from(call).unwrap()), (0x06, 0, 0, answer)]
    };
    let mut program = vec![(0x20, 0, 0, 0)];
    program.extend(answers.iter().flat_map(deny));
    program.push((0x06, 0, 0, libc::SECCOMP_RET_ALLOW));
    DeniedCalls { program }
}

const CALLS: &str = r#"
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
print("x" * 100000)
print(libc.syscall(int(sys.argv[1])), ctypes.get_errno(), flush=True)
if os.fork() == 0:
    libc.syscall(int(sys.argv[1]))
    os._exit(0)
os.wait()
if len(sys.argv) > 2:
    os.chroot("/")
print("reached")
"#;

/// Also with more output than a pipe holds, and with a look that would hold the worker.
#[test]
fn denied_calls_get_the_answer_of_the_filter_and_are_counted() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    fs::write(bench.path("calls.py"), CALLS).unwrap();
    let (getsid, chroot) = (libc::SYS_getsid as u32, libc::SYS_chroot as u32);
    let denying = denying(&[
        (libc::SYS_getsid, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32),
        (libc::SYS_chroot, libc::SECCOMP_RET_KILL_PROCESS),
    ]);
    let run = |arguments: &str| {
        let setup = Setup::default().with(denying.clone()).with(AllowedCpus::default());
        let mut launcher = launcher(&setup);
        let line =
            format!("exec python3 {} {getsid} {arguments}", bench.path("calls.py").display());
        let launched = launcher.run(&bench.job(&line), &NEVER).unwrap();
        (DeniedCalls::found(&launched).unwrap(), launched.stdout)
    };
    let own = DeniedCall {
        number: Some(getsid),
        action: libc::SECCOMP_RET_ERRNO | libc::EACCES as u32,
        times: 2,
    };
    let (found, said) = run("");
    assert_eq!(found.iter().find(|call| call.number == Some(getsid)), Some(&own), "{found:?}");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(said.ends_with("x\n-1 13\nreached\n"), "{said}");
    let (found, said) = run("chroot");
    let killing =
        DeniedCall { number: Some(chroot), action: libc::SECCOMP_RET_KILL_PROCESS, times: 1 };
    assert!(found.contains(&killing) && !said.contains("reached"), "{found:?} {said}");
    bench.assert_nothing_is_left("the launcher ended");
}

const SIGNALLED: &str = r#"
import ctypes, os, signal, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
if sys.argv[2] == "handled":
    signal.signal(signal.SIGSYS, lambda *_: None)
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGSYS, signal.SIG_IGN)
if sys.argv[2] == "threads":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(libc.syscall(int(sys.argv[1])), ctypes.get_errno(), flush=True)
"#;

/// Calls that only the kernel can answer are unknown, rather than answered in a different way.
#[test]
fn a_signal_or_a_large_error_is_that_of_the_filter_or_the_calls_are_unknown() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    fs::write(bench.path("signalled.py"), SIGNALLED).unwrap();
    let getsid = libc::SYS_getsid;
    let run = |answer: u32, how: &str| {
        let setup = Setup::default().with(denying(&[(getsid, answer)]));
        let line = format!("exec python3 {} {getsid} {how}", bench.path("signalled.py").display());
        let launched = launcher(&setup).run(&bench.job(&line), &NEVER).unwrap();
        (DeniedCalls::found(&launched), launched.stdout)
    };
    let found = |action| Ok(vec![DeniedCall { number: Some(getsid as u32), action, times: 1 }]);
    let large = libc::SECCOMP_RET_ERRNO | 5000;
    assert_eq!(run(large, "plain"), (found(large), "-1 4095\n".into()));
    let (trap, kill) = (libc::SECCOMP_RET_TRAP, libc::SECCOMP_RET_KILL_THREAD);
    for (answer, how) in [(trap, "plain"), (trap, "ignored"), (kill, "plain")] {
        assert_eq!(run(answer, how), (found(answer), String::new()), "{how}");
    }
    for (answer, how) in [(trap, "handled"), (kill, "threads")] {
        let (found, said) = run(answer, how);
        assert!(found.unwrap_err().contains("only the kernel can do either"), "{how}");
        assert_eq!(said, "", "{how}");
    }
}

/// As one has it that holds ssh connections for others, or systemd for systemd-run.
#[test]
fn a_pipe_that_is_in_the_hands_of_another_is_not_waited_for() {
    let _alone = ALONE.lock();
    let bench = Bench::new();
    let mut launcher = launcher(&Setup::default());
    let command = "echo $$ > new; mv new pid; while ! [ -e held ]; do sleep 0.01; done
                   echo out; echo err >&2";
    let job = bench.job(command);
    let (pid, held) = (bench.path("pid"), bench.path("held"));
    let holder = std::thread::spawn(move || {
        let deadline = Instant::now() + LONG;
        while !pid.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = fs::read_to_string(pid).unwrap();
        let pipe = |number| format!("/proc/{}/fd/{number}", pid.trim());
        let ends = [1, 2].map(|number| fs::OpenOptions::new().write(true).open(pipe(number)));
        fs::write(held, "").unwrap();
        ends.map(Result::unwrap)
    });
    let launched = launcher.run(&job, &NEVER).unwrap();
    let _ends = holder.join().unwrap();
    assert_eq!((launched.stdout.as_str(), launched.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!((launched.exit_code, launched.timed_out), (Some(0), false));
}

/// As a command that `sudo` began, for the ordinary user who weighs it.
#[test]
fn what_may_not_be_killed_fails_and_is_not_waited_for() {
    let _alone = ALONE.lock();
    if !rustix::process::geteuid().is_root() {
        crate::support::skip("root", "needs root");
        return;
    }
    let bench = Bench::new();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-kill", WEIGH, "__launcher"]);
    let mut launcher = Launcher::start(command, &Setup::default(), &NEVER).unwrap();
    let mut job = bench.job("exec setpriv --reuid 65534 --clear-groups sleep 1000");
    // Until `setpriv` changes the user, the launcher can still kill the job.
    job.timeout_ms = 20_000;
    let problem = launcher.run(&job, &NEVER).unwrap_err().to_string();
    assert!(problem.contains("still runs 10 s after SIGKILL"), "{problem}");
    bench.alive().into_iter().for_each(|pid| kill(pid, Signal::KILL));
    // The launcher still runs the next job.
    let launched = launcher.run(&bench.job("echo out"), &NEVER).unwrap();
    assert_eq!(launched.stdout, "out\n");
    drop(launcher);
    bench.assert_nothing_is_left("the launcher ended");
}

#[test]
fn a_member_lives_on_while_jobs_come_and_go() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let mut launcher = launcher(&Setup::default());
    let raised = launcher.raise(&bench.raise(), &NEVER).unwrap();
    assert!(refused(launcher.raise(&bench.raise(), &NEVER)).contains("already"));
    let mut served = bench.ask(LONG).unwrap();
    for _ in 0..5 {
        // Whatever a job leaves is ended, in its session or not.
        let launched = launcher.run(&bench.job("setsid sleep 1000 & echo ran"), &NEVER).unwrap();
        assert_eq!(launched.stdout.trim(), "ran");
        let now = bench.ask(LONG).unwrap();
        assert!(now > served, "the same server counts on: {served}, {now}");
        served = now;
        let seen = launcher.look(NAME, &NEVER).unwrap();
        assert_eq!((seen.pid, seen.start), (raised.pid, raised.start));
        assert_eq!(bench.alive().len(), 2, "the server and its helper");
    }
    launcher.lower(NAME, LONG, &NEVER).unwrap();
    bench.assert_nothing_is_left("lowered");
    assert!(refused(launcher.look(NAME, &NEVER)).contains("was not started, or has ended"));
    fs::remove_file(bench.path("socket")).unwrap();
    let again = launcher.raise(&bench.raise(), &NEVER).unwrap();
    assert_ne!((again.pid, again.start), (raised.pid, raised.start));
    drop(launcher);
    bench.assert_nothing_is_left("the launcher was let go");
}

#[test]
fn a_frozen_member_does_nothing_until_it_is_thawed() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let mut launcher = launcher(&Setup::default());
    launcher.raise(&bench.raise(), &NEVER).unwrap();
    for _ in 0..3 {
        launcher.freeze(NAME, &NEVER).unwrap();
        assert!(launcher.look(NAME, &NEVER).unwrap().is_frozen);
        assert_eq!(bench.ask(Duration::from_millis(50)), None);
        // A job runs beside it, and its end does not wake it.
        launcher.run(&bench.job("true"), &NEVER).unwrap();
        assert!(launcher.look(NAME, &NEVER).unwrap().is_frozen);
        launcher.thaw(NAME, &NEVER).unwrap();
        assert!(!launcher.look(NAME, &NEVER).unwrap().is_frozen);
        assert!(bench.ask(LONG).is_some());
    }
    launcher.freeze(NAME, &NEVER).unwrap();
    launcher.lower(NAME, LONG, &NEVER).unwrap();
    bench.assert_nothing_is_left("lowered while it stood still");
}

/// A filter that allows everything; it shows in the status of who has it.
#[test]
fn a_member_is_born_with_what_its_arm_has() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let program = vec![(6, 0, 0, 0x7fff_0000)];
    let mut launcher = launcher(&Setup::default().with(SeccompFilter { program, times: 1 }));
    let seen = launcher.raise(&bench.raise(), &NEVER).unwrap();
    assert_eq!(status_number(&seen.status, "Seccomp"), Some(2), "{}", seen.status);
}

#[test]
fn what_is_not_ready_is_not_there() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    let bench = Bench::new();
    let mut launcher = launcher(&Setup::default());
    let of = |command: &str, timeout_ms| StartServer {
        argv: ["/bin/sh", "-c", command].map(String::from).to_vec(),
        ready: Readiness::Exists(bench.path("ready")),
        timeout_ms,
        ..bench.raise()
    };
    let why = refused(launcher.raise(&of("echo no such port; exit 3", 20_000), &NEVER));
    assert!(why.contains("exit status: 3") && why.contains("no such port"), "{why}");
    let why = refused(launcher.raise(&of("sleep 1000 & sleep 1000", 50), &NEVER));
    assert!(why.contains("within 50 ms"), "{why}");
    bench.assert_nothing_is_left("it was not ready in time");
    let missing = StartServer { argv: vec!["/nonexistent/server".into()], ..bench.raise() };
    assert!(refused(launcher.raise(&missing, &NEVER)).contains("cannot execute its program"));
    // The name is free again.
    launcher.raise(&of("touch ready; exec sleep 1000", 20_000), &NEVER).unwrap();
    drop(launcher);
    bench.assert_nothing_is_left("the launcher was let go");
}

/// Who was killed ends a moment later.
fn look_until_it_ended(launcher: &mut Launcher) -> LauncherError {
    let deadline = Instant::now() + LONG;
    loop {
        match launcher.look(NAME, &NEVER) {
            Ok(seen) => assert!(Instant::now() < deadline, "taken for alive: {seen:?}"),
            Err(error) => return error,
        }
    }
}

#[test]
fn whoever_is_killed_at_whatever_stage_nothing_is_left() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    for stage in ["raised", "frozen", "thawed", "beside a job"] {
        for victim in ["member", "keeper", "launcher"] {
            let bench = Bench::new();
            let mut launcher = launcher(&Setup::default());
            let seen = launcher.raise(&bench.raise(), &NEVER).unwrap();
            if ["frozen", "thawed"].contains(&stage) {
                launcher.freeze(NAME, &NEVER).unwrap();
            }
            if stage == "thawed" {
                launcher.thaw(NAME, &NEVER).unwrap();
            }
            let keeper = parent(seen.pid);
            let pid = match victim {
                "member" => seen.pid,
                "keeper" => keeper,
                _ => parent(keeper),
            };
            let what = format!("the {victim} was killed when it was {stage}");
            if stage == "beside a job" {
                let job = bench.job(&format!("kill -9 {pid}; setsid sleep 1000 & echo ran"));
                let ran = launcher.run(&job, &NEVER);
                assert_eq!(ran.is_ok(), victim != "launcher", "{what}: {ran:?}");
            } else {
                kill(pid, Signal::KILL);
            }
            match look_until_it_ended(&mut launcher) {
                LauncherError::Refused(why) if victim != "launcher" => {
                    assert!(why.contains("ended") || why.contains("was killed"), "{what}: {why}");
                }
                error => assert_eq!(victim, "launcher", "{what}: {error}"),
            }
            if victim != "launcher" {
                // The arm goes on.
                let launched = launcher.run(&bench.job("echo ran"), &NEVER).unwrap();
                assert_eq!(launched.stdout.trim(), "ran", "{what}");
            }
            if victim == "keeper" {
                bench.assert_nothing_is_left(&what);
            }
            drop(launcher);
            bench.assert_nothing_is_left(&what);
        }
    }
}

/// Plays `weigh`, for the test below: raises a member, says so, and waits to be killed.
#[test]
#[ignore = "another test runs it"]
fn raise_and_wait() {
    let bench = Bench::new();
    let mut launcher = launcher(&Setup::default());
    let mark = std::env::var("BENCH_MARK").unwrap();
    let raise = StartServer { environment: vec![("MARK".into(), mark)], ..bench.raise() };
    launcher.raise(&raise, &NEVER).unwrap();
    let said = Path::new(&std::env::var("BENCH_SAID").unwrap()).to_owned();
    fs::File::create(said).unwrap().write_all(b"raised").unwrap();
    while !NEVER.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn who_asked_for_it_may_be_killed_too() {
    let _alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    for stops_launcher in [false, true] {
        let bench = Bench::new();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "launcher::raise_and_wait"])
            .env("BENCH_MARK", bench.mark())
            .env("BENCH_SAID", bench.path("said"))
            .spawn()
            .unwrap();
        let deadline = Instant::now() + LONG;
        while !bench.path("said").exists() {
            assert!(Instant::now() < deadline, "it does not raise");
            std::thread::sleep(Duration::from_millis(5));
        }
        let keeper = parent(*bench.alive().first().unwrap());
        // In whichever order they were found: a helper's parent is the server.
        let keeper = if bench.alive().contains(&keeper) { parent(keeper) } else { keeper };
        let launcher = parent(keeper);
        if stops_launcher {
            kill(launcher, Signal::KILL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        bench.assert_nothing_is_left("the parent was killed");
    }
}
