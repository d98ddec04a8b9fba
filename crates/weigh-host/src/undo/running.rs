//! The command that changes the system at this moment: known beside the journal before it does anything, and
//! ended before anybody undoes what it may change.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_parent_process_death_signal, waitid,
};

use crate::machine::process::{ProcessLife, process_life, process_start, processes, read_proc};
use crate::said::{Heard, KEPT_BYTES, Keep, Said};
use crate::undo::state_dir::{StateDir, running_name};
use crate::{chance, orphans};
use trust::program::follow_parent;

/// Variable in the environment of a command's processes. Processes that left its group and its
/// parent have it too.
pub const MARK: &str = "WEIGH_COMMAND";

/// Note of a command. The kernel reuses process numbers, so its start identifies it as well.
#[derive(Debug, Serialize, Deserialize)]
pub struct NotedCommand {
    /// It leads a process group.
    pub pid: u32,
    /// In clock ticks since boot.
    pub start: i64,
    pub mark: String,
}

/// A command gets so long to end by itself, and then as long until it has to be gone.
const GRACE: Duration = Duration::from_secs(5);
/// Processes are looked for so often meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Thousands of rules may take auditctl minutes.
const ENDS_WITHIN: Duration = Duration::from_secs(600);
const LAST: Keep = Keep::Last(KEPT_BYTES);
/// Answer that lets a held command go on.
const GO_ON: u8 = b'y';
const LEAVE_IT: u8 = b'n';

/// Where the command that runs is kept: for this journal.
pub struct CurrentCommand {
    directory: StateDir,
    journal: String,
    name: String,
    guard: Option<Pid>,
    /// Which file the journal was when we wrote it last.
    known: Cell<Option<(u64, u64)>>,
}

impl CurrentCommand {
    pub fn of(directory: &StateDir, journal: &str) -> CurrentCommand {
        CurrentCommand {
            directory: directory.clone(),
            journal: journal.to_owned(),
            name: running_name(journal),
            guard: None,
            known: Cell::new(None),
        }
    }

    pub fn guarded_by(self, guard: &Child) -> CurrentCommand {
        CurrentCommand { guard: Some(Pid::from_child(guard)), ..self }
    }

    /// The journal was written just now: from now on it has to stay the same file.
    pub fn know_journal(&self) -> io::Result<()> {
        self.known.set(Some(self.directory.identity(&self.journal)?));
        Ok(())
    }

    /// Checks that the guard lives and finds the journal. Without them, changes would stay when we
    /// die.
    pub fn check_undoing(&self) -> io::Result<()> {
        self.check_guard()?;
        let Some(known) = self.known.get() else { return Ok(()) };
        let what = match self.directory.identity(&self.journal) {
            Ok(found) if found == known => return Ok(()),
            Ok(_) => "was replaced by a different file".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "was removed".to_owned(),
            Err(error) => format!("became inaccessible ({error})"),
        };
        Err(io::Error::other(format!(
            "the journal of changes, {}, {what} while weigh ran. weigh changes nothing without a journal: \
             start the experiment again",
            self.directory.path(&self.journal).display()
        )))
    }

    fn check_guard(&self) -> io::Result<()> {
        let Some(guard) = self.guard else { return Ok(()) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(guard), options) {
            Ok(None) => Ok(()),
            _ => Err(io::Error::other(
                "the guard process has ended, and nothing is changed without it. Check `dmesg` for a lack of \
                 memory, and start the experiment again",
            )),
        }
    }

    /// Starts a command that changes the system, in a group of its own. Before it is executed, whoever undoes
    /// what it changes knows of it.
    ///
    /// # Errors
    /// Where it cannot be kept or executed: then it has not run.
    pub fn start(&self, mut command: Command) -> io::Result<Child> {
        self.check_undoing()?;
        let mark = mark()?;
        command.process_group(0).env(MARK, &mark);
        let child = start_held(command, |pid| {
            let life = process_life(pid)?.ok_or(io::ErrorKind::NotFound)?;
            let known = NotedCommand { pid, start: life.start, mark };
            self.directory.keep(&self.name, &serde_json::to_vec(&known)?)
        })?;
        orphans::keep(child.id());
        Ok(child)
    }

    /// File and mark for a command that a launcher starts; the command writes its [`NotedCommand`] there
    /// itself.
    pub fn note_place(&self) -> io::Result<(PathBuf, String)> {
        Ok((self.directory.path(&self.name), mark()?))
    }

    /// Runs a command that changes the system to its end, and gives its output.
    ///
    /// # Errors
    /// As [`CurrentCommand::start`]; `TimedOut` where the command took too long and was killed.
    pub fn output(&self, mut command: Command) -> io::Result<Output> {
        let [(stdout, writer), (stderr, complaints)] = [Said::pipe(LAST)?, Said::pipe(LAST)?];
        command.stdin(Stdio::null()).stdout(writer).stderr(complaints);
        let heard = Heard::running(self.start(command)?, stdout, Some(stderr));
        let output = heard.output(ENDS_WITHIN);
        match &output {
            // With what left its group.
            Err(_) => self.stop().map_err(io::Error::other)?,
            Ok(_) => self.forget(),
        }
        output
    }

    /// It has ended. If this fails, a process is looked for later that is not there.
    pub fn forget(&self) {
        let _ = self.directory.remove(&self.name);
    }

    /// Ends the command that is known to run, with all that it started, and waits for its end.
    ///
    /// # Errors
    /// A sentence, where it cannot be seen or does not end: then what it changes cannot be undone yet.
    pub fn stop(&self) -> Result<(), String> {
        let cannot = |error: io::Error| {
            let file = self.directory.path(&self.name);
            format!("cannot end the command that {} names: {error}", file.display())
        };
        let text = match self.directory.read(&self.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(cannot)?,
        };
        let command: NotedCommand =
            serde_json::from_slice(&text).map_err(|error| cannot(error.into()))?;
        end(&command, Spared::None).map_err(cannot)?;
        self.forget();
        Ok(())
    }
}

/// A new mark.
pub fn mark() -> io::Result<String> {
    Ok(format!("{:016x}", chance::number()?))
}

/// Whoever starts it holds it until `is_known` has returned. If he dies before that, it ends.
fn start_held(
    mut command: Command,
    is_known: impl FnOnce(u32) -> io::Result<()>,
) -> io::Result<Child> {
    let (pid_here, pid_there) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (answer_there, answer_here) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let own = getpid();
    // SAFETY: system calls alone, between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let is_followed = follow_parent(own, Signal::KILL)?;
            let pid = getpid().as_raw_nonzero().get();
            rustix::io::write(&pid_there, &pid.to_ne_bytes())?;
            let is_told_to = is_followed && answer(&answer_there)? == GO_ON;
            // It would be that of the thread that forks.
            set_parent_process_death_signal(None)?;
            if is_told_to { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        });
    }
    thread::scope(|scope| {
        // `spawn` returns when the command is executed, so it waits in a thread of its own. With the command
        // goes the end of the pipe that says which process it is.
        let starting = thread::Builder::new().spawn_scoped(scope, move || command.spawn())?;
        let mut pid = [0; 4];
        let known = match rustix::io::read(&pid_here, &mut pid) {
            Ok(4) => Some(is_known(u32::from_ne_bytes(pid))),
            _ => None,
        };
        let word = if matches!(known, Some(Ok(()))) { GO_ON } else { LEAVE_IT };
        // Where nobody reads it any more, it has failed before, and says so itself.
        let _ = rustix::io::write(&answer_here, &[word]);
        let started = starting.join().map_err(|_| io::Error::other("the thread panicked"))?;
        match known {
            Some(Err(problem)) => Err(problem),
            _ => started,
        }
    })
}

fn answer(from: &OwnedFd) -> io::Result<u8> {
    let mut word = [LEAVE_IT];
    rustix::io::read(from, &mut word)?;
    Ok(word[0])
}

/// Which process of a command goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spared {
    None,
    /// The command itself, but nothing that it started.
    First,
}

/// First asks, then kills; new processes of it may appear meanwhile.
pub(super) fn end(command: &NotedCommand, spared: Spared) -> io::Result<()> {
    let began = Instant::now();
    let mut asked = BTreeSet::new();
    loop {
        let all = processes()?;
        let mut left = processes_of(command, &all)?;
        if spared == Spared::First {
            left.remove(&command.pid);
        }
        if left.is_empty() {
            return Ok(());
        }
        let has_to = began.elapsed() > GRACE;
        if began.elapsed() > 2 * GRACE {
            let left: Vec<String> = left.iter().map(u32::to_string).collect();
            return Err(io::Error::other(format!("process {} does not end", left.join(", "))));
        }
        for (pid, life) in all.iter().filter(|(pid, _)| left.contains(pid)) {
            if has_to || asked.insert(*pid) {
                send(*pid, life.start, if has_to { Signal::KILL } else { Signal::TERM })?;
            }
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Sends a signal to the process that had this number and start when it was found. Its number may be that of
/// another by now.
fn send(pid: u32, start: i64, signal: Signal) -> io::Result<()> {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let held = match pidfd_open(process, PidfdFlags::empty()) {
        Ok(held) => Some(held),
        Err(Errno::SRCH) => return Ok(()),
        // Linux before 5.3, or a sandbox without it: a signal by number is better than none.
        Err(_) => None,
    };
    if process_start(pid)? != Some(start) {
        return Ok(());
    }
    // It may have been stopped.
    for signal in [signal, Signal::CONT] {
        let _ = match &held {
            Some(held) => pidfd_send_signal(held, signal),
            None => kill_process(process, signal),
        };
    }
    Ok(())
}

/// Finds the processes of its group, the processes with its mark, and their descendants.
pub(super) fn processes_of(
    command: &NotedCommand,
    all: &[(u32, ProcessLife)],
) -> io::Result<BTreeSet<u32>> {
    // Its number is that of another process by now, and so is that of the group.
    let has_come_again =
        all.iter().any(|(pid, life)| *pid == command.pid && life.start != command.start);
    let is_of_group = |life: &ProcessLife| {
        !has_come_again && life.group == command.pid && life.start >= command.start
    };
    let own = std::process::id();
    let others = || all.iter().filter(|(pid, _)| *pid != own);
    let mut found = BTreeSet::new();
    for (pid, life) in others() {
        if is_of_group(life) || has_mark(*pid, &command.mark)? {
            found.insert(*pid);
        }
    }
    // Also where the command itself looks for them.
    let is_first = |pid: u32| pid == command.pid && !has_come_again;
    loop {
        let before = found.len();
        let below: Vec<u32> = others()
            .filter(|(_, life)| found.contains(&life.parent) || is_first(life.parent))
            .map(|(pid, _)| *pid)
            .collect();
        found.extend(below);
        if found.len() == before {
            return Ok(found);
        }
    }
}

/// Returns true if the process has this mark. Only root can read another user's environment, and no
/// process of ours belongs to another user.
fn has_mark(pid: u32, mark: &str) -> io::Result<bool> {
    let wanted = format!("{MARK}={mark}");
    let environment = match read_proc(pid, "environ") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
        // A thread of the kernel has no memory, and neither has what is about to end.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
        Err(_) if process_life(pid)?.is_none() => return Ok(false),
        environment => environment?,
    };
    Ok(environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::orphans::wait_until;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// A state directory, and what runs in it.
    fn running() -> (tempfile::TempDir, CurrentCommand) {
        let home = tempfile::tempdir().unwrap();
        let running = CurrentCommand::of(&StateDir::at(home.path()).unwrap(), "7.journal");
        (home, running)
    }

    #[test]
    fn a_command_is_known_before_it_runs_and_is_not_run_where_it_cannot_be_kept() {
        let (home, running) = running();
        let made = home.path().join("made");
        let line = format!("cat {0}/7.running >{0}/made", home.path().display());
        let output = running.output(shell(&line)).unwrap();
        assert!(output.status.success());
        let known: NotedCommand = serde_json::from_slice(&std::fs::read(&made).unwrap()).unwrap();
        assert!(known.start > 0 && !home.path().join("7.running").exists());
        std::fs::remove_file(&made).unwrap();
        let (mut printed, to_print) = io::pipe().unwrap();
        let mut command = shell(&line);
        command.stderr(to_print);
        let refused = start_held(command, |_| Err(io::Error::other("no room")));
        assert_eq!(refused.unwrap_err().to_string(), "no room");
        // Until the last process that could have run has ended: `cat` finds no note.
        assert_eq!(io::read_to_string(&mut printed).unwrap(), "");
        assert!(!made.exists());
        assert_eq!(running.stop(), Ok(()));
        std::fs::create_dir(home.path().join("7.running")).unwrap();
        assert!(running.stop().unwrap_err().starts_with("cannot end the command that "));
    }

    #[test]
    fn what_cannot_be_executed_is_an_error() {
        let (_home, running) = running();
        let absent = running.start(Command::new("/absent/program")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        let mut nowhere = shell("true");
        nowhere.current_dir("/absent");
        assert_eq!(running.start(nowhere).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Also what left its group, and what left its parent.
    #[test]
    fn what_runs_is_ended_with_all_that_it_started() {
        let (home, running) = running();
        let made = home.path().join("made");
        let line = "trap '' TERM; (setsid sleep 600 &) ; setsid sleep 601 & touch made; sleep 602";
        let mut command = shell(line);
        command.current_dir(home.path());
        let mut child = running.start(command).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        assert!(wait_until(deadline, || made.exists()));
        let known = running.directory.read("7.running").unwrap();
        let known: NotedCommand = serde_json::from_slice(&known).unwrap();
        let left = || processes_of(&known, &processes().unwrap()).unwrap();
        assert!(wait_until(deadline, || left().len() == 4), "{:?}", left());
        let other = NotedCommand { start: known.start - 1, mark: "x".into(), ..known };
        assert_eq!(processes_of(&other, &processes().unwrap()).unwrap(), BTreeSet::new());
        let ended = thread::spawn(move || child.wait());
        running.stop().unwrap();
        assert_eq!(left(), BTreeSet::new());
        ended.join().unwrap().unwrap();
        assert!(!home.path().join("7.running").exists());
    }

    #[test]
    fn nothing_is_changed_without_a_guard() {
        let (_home, running) = running();
        let mut guard = Command::new("sleep").arg("600").spawn().unwrap();
        let running = running.guarded_by(&guard);
        assert!(running.check_guard().is_ok());
        guard.kill().unwrap();
        let has_ended = || running.start(shell("true")).is_err();
        assert!(wait_until(Instant::now() + Duration::from_secs(10), has_ended));
        assert!(running.check_guard().unwrap_err().to_string().contains("guard process has ended"));
        guard.wait().unwrap();
    }

    #[test]
    fn nothing_is_changed_once_the_journal_is_another_file_or_gone() {
        let (home, running) = running();
        let journal = || running.directory.keep("7.journal", b"{}").unwrap();
        journal();
        assert!(running.check_undoing().is_ok(), "it is not known yet");
        running.know_journal().unwrap();
        assert!(running.start(shell("true")).unwrap().wait().unwrap().success());
        let said = || running.start(shell("true")).unwrap_err().to_string();
        journal();
        assert!(said().contains("was replaced by a different file"), "{}", said());
        running.directory.remove("7.journal").unwrap();
        assert!(said().contains("was removed while weigh ran"), "{}", said());
        std::fs::remove_dir_all(home.path()).unwrap();
        std::fs::write(home.path(), "").unwrap();
        let problem = running.check_undoing().unwrap_err().to_string();
        std::fs::remove_file(home.path()).unwrap();
        assert!(problem.contains("became inaccessible"), "{problem}");
    }

    #[test]
    fn what_runs_is_asked_before_it_is_killed() {
        let (home, running) = running();
        let [made, asked] = ["made", "asked"].map(|name| home.path().join(name));
        // By the shell itself: a new process would be asked to end too, perhaps before it has done anything.
        let line = "trap ': >asked; exit' TERM; : >made; for i in $(seq 1000); do sleep 0.02; done";
        let mut command = shell(line);
        command.current_dir(home.path());
        let mut child = running.start(command).unwrap();
        assert!(wait_until(Instant::now() + Duration::from_secs(20), || made.exists()));
        let ended = thread::spawn(move || child.wait());
        running.stop().unwrap();
        ended.join().unwrap().unwrap();
        assert!(asked.exists());
    }

    #[test]
    fn a_number_that_is_another_process_by_now_gets_no_signal() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let start = process_start(child.id()).unwrap().unwrap();
        send(child.id(), start - 1, Signal::KILL).unwrap();
        send(child.id(), start, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn a_mark_is_in_the_environment_and_what_has_ended_has_none() {
        let mut child = Command::new("sleep").arg("600").env(MARK, "x").spawn().unwrap();
        let pid = child.id();
        let is_marked = |mark: &str| has_mark(pid, mark).unwrap();
        // The new program gets its environment while it is executed.
        assert!(wait_until(Instant::now() + Duration::from_secs(20), || is_marked("x")));
        assert!(!is_marked("y"));
        child.kill().unwrap();
        // It keeps its number until it is reaped.
        let is_ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), is_ended).unwrap();
        assert!(!is_marked("x"));
        child.wait().unwrap();
        assert!(!is_marked("x"));
    }

    /// Numbers that no process has: only the list says what they are.
    #[test]
    fn a_command_has_its_group_from_its_start_on_and_all_that_descend_from_it() {
        const FIRST: u32 = 5_000_000;
        let command = NotedCommand { pid: FIRST, start: 100, mark: "x".into() };
        let life = |number: u32, parent: u32, group: u32, start: i64| {
            (FIRST + number, ProcessLife { parent: FIRST + parent, group: FIRST + group, start })
        };
        let others = [
            life(1, 90, 0, 101),
            life(2, 90, 0, 100),
            // Of another command, which had this number before.
            life(3, 90, 0, 99),
            life(5, 4, 5, 102),
            life(4, 1, 4, 101),
            life(6, 90, 6, 101),
        ];
        let of = |first: (u32, ProcessLife)| {
            let all: Vec<(u32, ProcessLife)> = [first].into_iter().chain(others).collect();
            let found = processes_of(&command, &all).unwrap();
            found.into_iter().map(|pid| pid - FIRST).collect::<Vec<_>>()
        };
        assert_eq!(of(life(0, 90, 0, 100)), [0, 1, 2, 4, 5]);
        assert_eq!(of(life(0, 90, 0, 101)), [0; 0], "its number has come again");
    }

    /// As a keeper looks for what it started, which left its group and cleared its environment.
    #[test]
    fn descendants_of_the_one_that_looks_are_found_without_itself() {
        let (own, child) = (std::process::id(), 5_000_001);
        let command = NotedCommand { pid: own, start: 100, mark: "x".into() };
        let life = |parent, group, start| ProcessLife { parent, group, start };
        let found = |own_start| {
            let all = [(own, life(1, own, own_start)), (child, life(own, child, 101))];
            processes_of(&command, &all).unwrap()
        };
        assert_eq!(found(100), BTreeSet::from([child]));
        assert_eq!(found(102), BTreeSet::new(), "its number has come again");
    }

    #[test]
    fn each_command_has_a_mark_of_its_own_and_its_note_beside_the_journal() {
        let (home, running) = running();
        let [one, other] = [(); 2].map(|()| running.note_place().unwrap());
        assert_eq!([&one.0, &other.0], [&running.directory.path("7.running"); 2]);
        assert!(one.0.starts_with(home.path().canonicalize().unwrap()));
        assert!(one.1 != other.1 && one.1.len() == 16, "{} {}", one.1, other.1);
    }
}
