//! The launcher itself: reads orders from stdin, runs each job as a fresh process, answers on stdout.
//!
//! It is single-threaded, so that forking is safe, and it ends at the end of its input, whatever
//! ended the parent; the worker's whole process group goes with it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use serde::de::DeserializeOwned;

use super::cpu_use::{HeldCounters, Scheduled};
use super::deaths::DeathWatch;
use super::gate::{Gate, Meeting};
use super::hold;
use super::kills::{KillCounters, Kills};
use super::launch_queue::LaunchQueue;
use super::launcher::{Job, Launched, LauncherAnswer, LauncherOrder, Numbered, status_number};
use super::pipes::{self, Pipes};
use super::setup::Setup;
use super::setup::kind::allowed_cpus::AllowedCpus;
use super::setup::kind::enter_root::EnterRoot;
use super::stamp::{Stamp, monotonic_ns};
use super::start_cpu::{Range, StartCpu, allowed_cpus, keep_to_cpus};
use super::stdout_use::StdoutSink;
use super::task_looks::TaskLooks;
use trust::program::end_with_us;
use trust::start::{self, Inherited};
use weigh_host::lines::Lines;
use weigh_host::machine::cpu_share;
use weigh_host::machine::pressure::Moment;
use weigh_host::orphans;
use weigh_host::own_program::be_signalled_as_usual;

/// The units of `ru_maxrss`, and of `ru_inblock` and `ru_oublock` (getrusage(2)).
const KIBIBYTE: u64 = 1024;
const BLOCK: u64 = 512;
/// How long a worker sleeps before it is released: long enough to be taken off its CPU.
const ASLEEP: Duration = Duration::from_millis(1);
/// Memory that a worker may add to its launcher's before it executes its program.
const MEMORY_GRAIN: u64 = 256 << 10;

/// Runs the launcher on stdin and stdout until end of input.
///
/// # Errors
/// Where stdin or stdout fail.
pub fn run() -> io::Result<()> {
    let [requests, answers] =
        [io::stdin().as_fd(), io::stdout().as_fd()].map(|it| it.try_clone_to_owned());
    serve(Lines::over(answers?, requests?))
}

/// Takes the set-up, and then runs one job after the other.
fn serve(mut lines: Lines) -> io::Result<()> {
    let Some(Numbered { id, what: LauncherOrder::SetUp(setup) }) = first(&mut lines)? else {
        return Ok(());
    };
    // In its network namespace.
    let deaths = DeathWatch::open()?;
    // Another root may not have these files.
    let kinds = cpu_share::kinds(Path::new("/"))
        .map_err(|problem| format!("cannot find out which CPUs are equally fast: {problem}"));
    let kills = match take(&setup) {
        Ok(taken) => taken,
        Err(problem) => {
            return lines.send(&Numbered { id, what: LauncherAnswer::Error(problem) });
        }
    };
    let mut desk = LaunchQueue::new(lines, setup, kills, deaths, kinds);
    let stamp = Stamp::map()?;
    let served = desk.answer(id, LauncherAnswer::Done(())).and_then(|()| run_all(&mut desk, stamp));
    // Keepers too: what a member left is then ours, and ended.
    orphans::end_all_but(|_| false);
    served
}

/// Runs one job after the other, until the parent is gone.
fn run_all(desk: &mut LaunchQueue, stamp: &'static Stamp) -> io::Result<()> {
    while let Some((id, job)) = desk.next_job()? {
        let executed = desk.setup.command_line(&job.argv);
        let launched = desk.listen(&job).and_then(|()| launch(desk, &job, executed.clone(), stamp));
        desk.stop_listening();
        let answer = match launched {
            Ok(Some(launched)) => LauncherAnswer::Launched(Box::new(launched)),
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                LauncherAnswer::Error(error.to_string())
            }
            Err(error) => {
                let place = desk.setup.get::<EnterRoot>();
                let place = place.map_or("", |_| " in the arm's root file system");
                LauncherAnswer::Error(cannot_run(&job, &executed, &error, place))
            }
        };
        desk.answer(id, answer)?;
    }
    Ok(())
}

/// The error of a launch in this place, such as ` in the arm's root file system`.
fn cannot_run(job: &Job, executed: &[String], error: &io::Error, place: &str) -> String {
    let program = executed.first().map_or("", String::as_str);
    // What the set-up puts before the command may be missing too.
    let is_its_own = job.argv.first().is_some_and(|own| own == program);
    match &job.if_missing {
        Some(install) if is_its_own && error.kind() == io::ErrorKind::NotFound => {
            format!("{program} is not installed{place}: {install}")
        }
        _ => format!("cannot run `{program}`{place}: {error}"),
    }
}

/// The first line; `None` where there is none.
fn first<T: DeserializeOwned>(lines: &mut Lines) -> io::Result<Option<T>> {
    loop {
        if let Some(line) = lines.unread() {
            return line.map(Some);
        }
        if !lines.fill()? {
            return Ok(None);
        }
    }
}

fn take(setup: &Setup) -> Result<KillCounters, String> {
    // Another root may not have these files.
    let kills = KillCounters::open(setup)
        .map_err(|error| format!("cannot read the counters of its control groups: {error}"))?;
    setup.steps().try_for_each(|step| step.in_launcher())?;
    // Orphans of a worker become ours, so that none outlives its sample.
    orphans::adopt().map_err(|error| error.to_string())?;
    Ok(kills)
}

/// Runs a job by this command; `None` where the parent went away meanwhile.
fn launch(
    desk: &mut LaunchQueue,
    job: &Job,
    executed: Vec<String>,
    stamp: &'static Stamp,
) -> io::Result<Option<Launched>> {
    let kills = desk.kills.read()?;
    let began = Moment::now();
    let inherited = resident_bytes();
    let sink = StdoutSink::open(&job.stdout)?;
    let beginning = Beginning::of(job, &desk.setup, &desk.kinds)?;
    let mut child = spawn(&desk.setup, job, &executed, (&beginning, stamp))?;
    let pid = Pid::from_child(&child);
    let mut seen = BTreeMap::new();
    let gate = job.start.as_ref().and_then(|start| start.gate.as_ref());
    let Looked { status, counters, treatment: looked, release } =
        look(desk, pid, stamp, gate, &mut seen);
    let mut pipes = Pipes::new(&mut child, sink);
    let mut looks = TaskLooks::begin(job.start.as_ref().is_some_and(|start| start.counts_cpu));
    let watched = watch(&mut pipes, pid, (stamp.executed_ns(), job.timeout_ms), &mut looks, desk);
    if matches!(watched, Ok((WorkerEnd::Ended, _))) {
        desk.setup.steps().for_each(|step| step.before_orphans_end(child.id()));
    }
    let (signals, outlived) = (desk.fatal_signals(pid), desk.living_orphans(pid));
    end_everything(pid, desk)?;
    let ended = Moment::now();
    let looked = looked.and_then(|()| {
        desk.setup.steps().try_for_each(|step| step.look_back(child.id(), &mut seen))
    });
    let mut launched = Launched {
        pid: pid.as_raw_nonzero().get() as u32,
        began,
        ended,
        cpus: cpus_online(),
        cpu: beginning.map(|beginning| beginning.cpu),
        ..Launched::default()
    };
    let scheduled = Scheduled::of(launched.pid);
    let maxrss = reap(pid, &mut launched)?;
    launched.cpu_use = (counters.zip(scheduled))
        .map(|(held, end)| held.until(end, launched.voluntary_switches, looks.found()));
    launched.outlived = outlived?;
    launched.kills = Kills { signals: signals?, ..desk.kills.read()?.since(&kills) };
    // The kernel keeps the maximum across execve(2): what is not above ours may be that of our fork.
    launched.peak_memory_bytes =
        inherited.and_then(|ours| Some(maxrss).filter(|bytes| *bytes > ours + MEMORY_GRAIN));
    launched.least_cpu_ns = stamp.least_cpu_ns(launched.user_ns + launched.system_ns);
    launched.cpu_clock_behind_ns = stamp.behind_ns();
    let (outcome, wall_ns) = watched?;
    pipes.drain()?;
    let printed = pipes.into_printed()?;
    if release.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return Ok(None);
    }
    release?;
    looked.map_err(|error| io::Error::other(format!("cannot check its treatment: {error}")))?;
    if let WorkerEnd::ParentGone = outcome {
        return Ok(None);
    }
    launched.timed_out = matches!(outcome, WorkerEnd::TimedOut);
    launched.wall_ns = wall_ns;
    launched.stdout = printed.stdout;
    launched.stderr = printed.stderr;
    launched.printed_bytes = printed.bytes;
    launched.difference = printed.difference;
    launched.executed = executed;
    launched.status = status.unwrap_or_default();
    launched.seen = seen;
    for step in desk.setup.steps() {
        launched.afterwards.extend(step.after_worker(&mut launched.seen)?);
    }
    Ok(Some(launched))
}

/// How a worker begins that is one sample of a pair: bound to the drawn CPU, asleep, released.
///
/// Both arms go through these last steps, whatever the steps of their set-ups did to the process before: one
/// that was moved into a control group has waited for that, and woke up wherever a CPU was idle.
#[derive(Clone)]
struct Beginning {
    cpu: usize,
    /// The CPUs that it may use from then on, where it does not stay.
    then: Option<Vec<usize>>,
}

impl Beginning {
    fn of(
        job: &Job,
        setup: &Setup,
        kinds: &Result<Vec<Vec<usize>>, String>,
    ) -> io::Result<Option<Beginning>> {
        let Some(start) = &job.start else { return Ok(None) };
        let allowed = allowed_cpus()?;
        let Some(cpu) = start.choose(&allowed) else { return Ok(None) };
        let own = setup.get::<AllowedCpus>().map(|step| &step.cpus);
        let open = own.filter(|cpus| !cpus.is_empty()).unwrap_or(&allowed);
        let then = match (start.then, kinds) {
            (Range::ThatCpu, _) => None,
            (Range::ThatKind, Err(problem)) => return Err(io::Error::other(problem.clone())),
            (_, kinds) => Some(start.range(cpu, open, kinds.as_deref().unwrap_or(&[]))),
        };
        Ok(Some(Beginning { cpu, then }))
    }

    /// In the worker, before steps that may forbid it.
    fn go_through(&self) -> io::Result<()> {
        keep_to_cpus(&[self.cpu])?;
        sleep(ASLEEP);
        self.then.as_ref().map_or(Ok(()), |cpus| keep_to_cpus(cpus))
    }
}

/// Observations of a worker that has executed its program.
struct Looked {
    status: io::Result<String>,
    /// Counters of a held worker, where the kernel counts.
    counters: Option<HeldCounters>,
    /// Result of the steps' look.
    treatment: io::Result<()>,
    /// Result of letting it go as its job says.
    release: io::Result<()>,
}

/// Looks at a worker that has executed its program: its `/proc/PID/status`, and what the steps see. One that
/// is held is let go.
fn look(
    desk: &LaunchQueue,
    worker: Pid,
    stamp: &Stamp,
    gate: Option<&Gate>,
    seen: &mut BTreeMap<String, String>,
) -> Looked {
    let setup = &desk.setup;
    let pid = worker.as_raw_nonzero().get().cast_unsigned();
    let held = if stamp.is_held() { hold::wait_until_executed(worker) } else { Ok(()) };
    // One that was killed meanwhile has no counters.
    let is_off_cpu = stamp.is_held() && hold::wait_until_off_cpu(worker).is_ok();
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    let looked = held.and_then(|()| setup.steps().try_for_each(|step| step.look(pid, seen)));
    let counters = status.as_ref().ok().filter(|_| is_off_cpu).and_then(|status| {
        let waits = status_number(status, "voluntary_ctxt_switches")?;
        HeldCounters::read(pid, waits.into())
    });
    let release = release(worker, stamp, gate, desk.parent());
    let treatment =
        looked.and_then(|()| setup.steps().try_for_each(|step| step.look_on(pid, seen)));
    Looked { status, counters, treatment, release }
}

/// Lets a worker go that is held: at a gate, when the other command is there too. If that fails, the worker
/// is killed.
fn release(worker: Pid, stamp: &Stamp, gate: Option<&Gate>, parent: BorrowedFd) -> io::Result<()> {
    let is_held = stamp.is_held();
    let meeting = match gate {
        None => Ok(None),
        Some(gate) if is_held => gate.wait(parent).map(Some),
        Some(_) => Err(io::Error::other("it cannot be held until the other command is there")),
    };
    if meeting.is_err() {
        let _ = kill_process_group(worker, Signal::KILL);
    }
    if is_held {
        stamp.execute();
        hold::let_go(worker);
    }
    meeting?.map_or(Ok(()), Meeting::passed)
}

fn spawn(
    setup: &Setup,
    job: &Job,
    argv: &[String],
    (beginning, stamp): (&Option<Beginning>, &'static Stamp),
) -> io::Result<Child> {
    let (program, arguments) =
        argv.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = start::command(program, Inherited::Callers);
    command
        .args(arguments)
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .envs(setup.environment())
        .current_dir(setup.directory(&job.directory))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    end_with_us(&mut command, Signal::KILL);
    let is_wanted = setup.holds() || job.start.as_ref().is_some_and(StartCpu::holds);
    let is_to_be_held = is_wanted && !hold::gains_privileges(program);
    let (setup, beginning) = (setup.clone(), beginning.clone());
    // SAFETY: the launcher has one thread, so the forked child may use the heap.
    unsafe {
        command.pre_exec(move || {
            be_signalled_as_usual()?;
            let (forbidding, others): (Vec<_>, Vec<_>) =
                setup.steps().partition(|step| step.forbids());
            others.into_iter().try_for_each(|step| step.in_worker())?;
            beginning.as_ref().map_or(Ok(()), Beginning::go_through)?;
            stamp.get_ready();
            if is_to_be_held && hold::be_held() {
                stamp.hold();
            }
            forbidding.into_iter().try_for_each(|step| step.in_worker())?;
            stamp.execute();
            Ok(())
        });
    }
    let child = command.spawn()?;
    if job.start.as_ref().is_some_and(StartCpu::holds) {
        pipes::widen(&child);
    }
    Ok(child)
}

enum WorkerEnd {
    Ended,
    TimedOut,
    ParentGone,
}

/// Gathers output until the worker ends, the time is up, or the parent is gone. Gives the time since the
/// worker executed its program too.
fn watch(
    pipes: &mut Pipes,
    pid: Pid,
    (executed_ns, timeout_ms): (u64, u64),
    looks: &mut TaskLooks,
    desk: &mut LaunchQueue,
) -> io::Result<(WorkerEnd, u64)> {
    // Linux 5.3; before, we look every millisecond.
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok();
    let elapsed_ns = || monotonic_ns().saturating_sub(executed_ns);
    let outcome = loop {
        let left =
            Duration::from_millis(timeout_ms).saturating_sub(Duration::from_nanos(elapsed_ns()));
        let inputs: Vec<_> = desk.inputs().into_iter().chain(desk.deaths()).collect();
        let is_asked = pipes.wait(&inputs, pidfd.as_ref(), looks.due_in().min(left))?;
        drop(inputs);
        desk.hear_of_deaths(pid)?;
        if has_ended(pid)? {
            break WorkerEnd::Ended;
        }
        if is_asked && !desk.attend_during_job()? {
            break WorkerEnd::ParentGone;
        }
        looks.look();
        if left.is_zero() {
            break WorkerEnd::TimedOut;
        }
    };
    Ok((outcome, elapsed_ns()))
}

/// Not how many this process may use: a worker chooses its own.
fn cpus_online() -> u32 {
    // SAFETY: it takes a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u32
}

fn has_ended(pid: Pid) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(pid), options)?.is_some())
}

/// Returns the resident memory of this process: field 2 of `statm` (proc_pid_statm(5)).
fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Fills in how the worker ended and what it used; gives its `ru_maxrss` in bytes.
fn reap(pid: Pid, launched: &mut Launched) -> io::Result<u64> {
    let mut status = 0;
    // SAFETY: `rusage` is plain data, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right type.
    if unsafe { libc::wait4(pid.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if libc::WIFEXITED(status) {
        launched.exit_code = Some(libc::WEXITSTATUS(status));
    } else {
        launched.signal = Some(libc::WTERMSIG(status));
    }
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    launched.user_ns = ns(usage.ru_utime);
    launched.system_ns = ns(usage.ru_stime);
    launched.voluntary_switches = usage.ru_nvcsw as u64;
    launched.involuntary_switches = usage.ru_nivcsw as u64;
    launched.minor_faults = usage.ru_minflt as u64;
    launched.major_faults = usage.ru_majflt as u64;
    launched.block_input_bytes = (usage.ru_inblock as u64).saturating_mul(BLOCK);
    launched.block_output_bytes = (usage.ru_oublock as u64).saturating_mul(BLOCK);
    Ok((usage.ru_maxrss as u64).saturating_mul(KIBIBYTE))
}

fn is_worker(worker: Pid, pid: i32) -> bool {
    pid == worker.as_raw_nonzero().get()
}

/// Kills the worker if it still runs, and kills and reaps whatever else it left, in its group or
/// outside of it. The worker itself is left to be reaped, and members live on.
///
/// # Errors
/// Where it has not ended after a while. A program that runs as another user may not be killed, and one that
/// waits for a device cannot be.
fn end_everything(worker: Pid, desk: &LaunchQueue) -> io::Result<()> {
    let _ = kill_process_group(worker, Signal::KILL);
    let deadline = Instant::now() + orphans::LIMIT;
    if !orphans::wait_until(deadline, || has_ended(worker).unwrap_or(true)) {
        let problem = format!(
            "it did not end (see `--timeout`) and still runs {} s after SIGKILL, as a different user or \
             while it waits for a device: end process {} yourself",
            orphans::LIMIT.as_secs(),
            worker.as_raw_nonzero()
        );
        return Err(io::Error::new(io::ErrorKind::TimedOut, problem));
    }
    orphans::end_all_but(|pid| is_worker(worker, pid) || desk.is_keeper(pid));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(if_missing: Option<&str>) -> Job {
        let if_missing = if_missing.map(Into::into);
        Job { if_missing, ..Job::new(vec!["lua".into(), "fib.lua".into()], "/", 1000) }
    }

    /// As the clients of a server have CPUs of their own, of which some may be slower.
    #[test]
    fn a_worker_with_cpus_of_its_own_stays_on_those_of_one_kind() {
        let (here, elsewhere) = (allowed_cpus().unwrap()[0], 100_000);
        let setup = Setup::default().with(AllowedCpus { cpus: vec![here, elsewhere] });
        let kinds = Ok(vec![vec![here], vec![elsewhere]]);
        let range = |then, kinds| {
            let start =
                StartCpu { chance: 0, among: vec![here], then, gate: None, counts_cpu: false };
            let start = Some(start);
            let beginning = Beginning::of(&Job { start, ..job(None) }, &setup, kinds);
            beginning.map(|beginning| beginning.unwrap().then)
        };
        assert_eq!(range(Range::ThatKind, &kinds).unwrap(), Some(vec![here]));
        assert_eq!(range(Range::All, &kinds).unwrap(), Some(vec![here, elsewhere]));
        assert_eq!(range(Range::ThatCpu, &kinds).unwrap(), None);
        assert!(range(Range::ThatKind, &Err("unreadable".into())).is_err());
    }

    #[test]
    fn only_a_program_that_is_missing_itself_is_to_be_installed() {
        let said = |job: &Job, executed: &[&str], error: i32| {
            let executed: Vec<String> = executed.iter().copied().map(Into::into).collect();
            cannot_run(job, &executed, &io::Error::from_raw_os_error(error), " in a place")
        };
        let known = job(Some("apt-get install lua5.4"));
        assert_eq!(
            said(&known, &["lua", "fib.lua"], libc::ENOENT),
            "lua is not installed in a place: apt-get install lua5.4"
        );
        let refused = said(&known, &["lua", "fib.lua"], libc::EACCES);
        assert!(refused.starts_with("cannot run `lua` in a place: Permission denied"), "{refused}");
        let wrapper = said(&known, &["nice", "lua", "fib.lua"], libc::ENOENT);
        assert!(wrapper.starts_with("cannot run `nice` in a place: No such file"), "{wrapper}");
        let unknown = said(&job(None), &["lua"], libc::ENOENT);
        assert!(unknown.starts_with("cannot run `lua` in a place: No such file"), "{unknown}");
    }
}
