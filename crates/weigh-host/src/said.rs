//! Reads another program's output and waits for its end, both up to a limit. No other module does so by
//! itself. The output goes through a pipe. When the pipe is full, the program waits until we read, so it can
//! fill neither our memory nor a disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::orphans;
use trust::program::end_with_us;
use weigh_model::printable;

/// As much of it as anybody wants to read.
pub const KEPT_BYTES: usize = 64 << 10;
/// Making and mounting file systems may wait for a slow disk; what takes longer hangs.
const ENDS_WITHIN: Duration = Duration::from_secs(300);
/// Whoever waits for a program looks this often whether to go on.
const LOOK_UP: Duration = Duration::from_millis(20);
/// As much of what another machine says as makes a sentence.
pub const WORDS_CHARS: usize = 400;

/// Part of the output that is kept where it exceeds the limit.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    First(usize),
    Last(usize),
}

/// The reading end.
pub struct Said {
    /// `None` at its end.
    pipe: Option<File>,
    keep: Keep,
    kept: Vec<u8>,
    all_bytes: u64,
}

impl Said {
    /// Creates a pipe. The returned descriptor is for a program's stdout or stderr, or both.
    pub fn pipe(keep: Keep) -> io::Result<(Said, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok((Said::over(reader, keep)?, writer))
    }

    /// Takes the reading end of a pipe whose other end a program has already.
    pub fn over(reader: OwnedFd, keep: Keep) -> io::Result<Said> {
        ioctl_fionbio(&reader, true)?;
        Ok(Said { pipe: Some(reader.into()), keep, kept: Vec::new(), all_bytes: 0 })
    }

    /// Hears it on a thread of its own, until its end: for whoever does not look now and then.
    pub fn heard_by_a_thread(self) -> io::Result<Arc<Mutex<Said>>> {
        let waiting = self.pipe.as_ref().map(File::try_clone).transpose()?;
        let said = Arc::new(Mutex::new(self));
        let heard = Arc::downgrade(&said);
        thread::Builder::new().spawn(move || {
            let Some(waiting) = waiting else { return };
            let is_heard = || {
                let mut ready = [PollFd::new(&waiting, PollFlags::IN)];
                let waited = poll(&mut ready, None);
                let Some(said) = heard.upgrade().filter(|_| waited != Err(Errno::BADF)) else {
                    return false;
                };
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.hear();
                said.pipe.is_some()
            };
            while is_heard() {}
        })?;
        Ok(said)
    }

    /// Takes what is in the pipe, without waiting. Whoever waits for a program calls this again and again.
    pub fn hear(&mut self) {
        /// Most bytes read at once, so that a program that fills the pipe as fast as it is emptied
        /// does not keep us.
        const MOST_AT_ONCE: u64 = 16 << 20;
        let enough = self.all_bytes.saturating_add(MOST_AT_ONCE);
        let mut chunk = [0; 16 << 10];
        while let Some(pipe) = self.pipe.as_mut().filter(|_| self.all_bytes < enough) {
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.add(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    fn add(&mut self, chunk: &[u8]) {
        self.all_bytes += chunk.len() as u64;
        match self.keep {
            Keep::First(most) => {
                let room = most.saturating_sub(self.kept.len()).min(chunk.len());
                self.kept.extend_from_slice(&chunk[..room]);
            }
            // Makes room by halves, as to move what is kept for every chunk would cost much more.
            Keep::Last(most) => {
                self.kept.extend_from_slice(chunk);
                if self.kept.len() > 2 * most {
                    self.kept.drain(..self.kept.len() - most);
                }
            }
        }
    }

    /// Returns the kept part of its output so far.
    pub fn bytes(&mut self) -> &[u8] {
        self.hear();
        let most = match self.keep {
            Keep::First(most) | Keep::Last(most) => most,
        };
        &self.kept[self.kept.len().saturating_sub(most)..]
    }

    /// Returns the kept part of its output as text.
    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Returns true if part of the output was dropped.
    pub fn is_cut(&mut self) -> bool {
        self.bytes().len() as u64 != self.all_bytes
    }

    /// Its end on one line, fit for a sentence; `None` where it said nothing.
    pub fn last_words(&mut self) -> Option<String> {
        Some(words(self.bytes())).filter(|words| !words.is_empty())
    }
}

/// The end of what was said on one line, fit for a sentence.
pub fn words(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let words = printable::line(&lines.collect::<Vec<_>>().join("; "));
    let left_out = words.chars().count().saturating_sub(WORDS_CHARS);
    words.chars().skip(left_out).collect()
}

/// The end of a file into which a program prints that may outlive who reads it; nothing of one that cannot
/// be read.
pub fn end_of(file: io::Result<File>) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = file?;
        let most = KEPT_BYTES as u64;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(most)))?;
        let mut end = Vec::new();
        file.take(most).read_to_end(&mut end)?;
        Ok(end)
    };
    read().unwrap_or_default()
}

/// A program that is heard while it runs. If this is dropped before its end, it is killed with its group.
pub struct Heard {
    child: Child,
    has_ended: bool,
    pub stdout: Said,
    /// `None` where it goes the same way as stdout.
    stderr: Option<Said>,
}

impl Heard {
    /// Starts a program in a process group of its own.
    pub fn start(mut command: Command, [stdout, stderr]: [Keep; 2]) -> io::Result<Heard> {
        let (stdout, writer) = Said::pipe(stdout)?;
        let (stderr, complaints) = Said::pipe(stderr)?;
        command.stdout(writer).stderr(complaints);
        Heard::over(command, stdout, Some(stderr))
    }

    /// Starts a program as [`Heard::start`] does, with stdout and stderr in one pipe.
    pub fn start_joined(mut command: Command, keep: Keep) -> io::Result<Heard> {
        let (said, writer) = Said::pipe(keep)?;
        command.stdout(writer.try_clone()?).stderr(writer);
        Heard::over(command, said, None)
    }

    /// Starts a command whose stdout and stderr lead into these pipes already.
    pub fn over(mut command: Command, stdout: Said, stderr: Option<Said>) -> io::Result<Heard> {
        end_with_us(&mut command, Signal::KILL);
        let child = command.process_group(0).spawn()?;
        orphans::keep(child.id());
        Ok(Heard::running(child, stdout, stderr))
    }

    /// Takes over a process that leads a process group and that [`orphans::keep`] knows.
    pub fn running(child: Child, stdout: Said, stderr: Option<Said>) -> Heard {
        Heard { child, has_ended: false, stdout, stderr }
    }

    /// Reads the output since the last call; gives the program's status if it has ended. Does not wait for
    /// processes that the program started: they may hold the pipes open for ever.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.stdout.hear();
        if let Some(stderr) = &mut self.stderr {
            stderr.hear();
        }
        let status = self.child.try_wait()?;
        self.has_ended = status.is_some();
        Ok(status)
    }

    /// Waits for its end, for as long as `goes_on` says so.
    ///
    /// # Errors
    /// `TimedOut` where it takes longer than `limit`, `Interrupted` where it is not to go on.
    pub fn wait(
        &mut self,
        limit: Duration,
        mut goes_on: impl FnMut(&mut Heard) -> bool,
    ) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if !goes_on(self) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if Instant::now() > deadline {
                let late = format!("it took more than {} s", limit.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, late));
            }
            let pipes = [Some(&self.stdout), self.stderr.as_ref()].into_iter().flatten();
            let pipes: Vec<&File> = pipes.filter_map(|said| said.pipe.as_ref()).collect();
            orphans::wait_for_news(&self.child, &pipes, LOOK_UP);
        }
    }

    /// Waits for its end, and gives what was kept.
    ///
    /// # Errors
    /// `TimedOut` where it takes longer.
    pub fn output(self, limit: Duration) -> io::Result<Output> {
        self.output_while(limit, || true)
    }

    fn output_while(mut self, limit: Duration, goes_on: impl Fn() -> bool) -> io::Result<Output> {
        let status = self.wait(limit, |_| goes_on())?;
        Ok(Output { status, stdout: self.stdout.bytes().into(), stderr: self.stderr().into() })
    }

    /// The kept part of stderr; empty if stderr goes into the pipe of stdout.
    pub fn stderr(&mut self) -> &[u8] {
        self.stderr.as_mut().map_or(&[], Said::bytes)
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            // One that waits for a disk that does not answer ends when that does.
            orphans::wait_for(&mut self.child, Instant::now() + orphans::LIMIT);
        }
        orphans::forget(self.child.id());
    }
}

/// Runs a program of the system to its end. The beginning of what it prints is kept, and the end of its
/// complaints.
///
/// # Errors
/// As [`Heard::start`]; `TimedOut` where it does not end.
pub fn output(command: Command) -> io::Result<Output> {
    output_while(command, || true)
}

/// Runs a program as [`output`] does, for as long as `goes_on` says so.
///
/// # Errors
/// As [`output`]; `Interrupted` where it is not to go on: then the program was killed.
pub fn output_while(mut command: Command, goes_on: impl Fn() -> bool) -> io::Result<Output> {
    command.stdin(Stdio::null());
    let keep = [Keep::First(KEPT_BYTES), Keep::Last(KEPT_BYTES)];
    Heard::start(command, keep)?.output_while(ENDS_WITHIN, goes_on)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::orphans::wait_until;

    fn kept(keep: Keep, said: &[u8]) -> (String, bool) {
        let (mut heard, writer) = Said::pipe(keep).unwrap();
        let mut writer = File::from(writer);
        for part in said.chunks(3) {
            writer.write_all(part).unwrap();
            heard.hear();
        }
        (heard.text(), heard.is_cut())
    }

    /// More than a pipe holds.
    #[test]
    fn who_says_too_much_is_not_held_up_where_nobody_looks() {
        let (heard, writer) = Said::pipe(Keep::Last(4)).unwrap();
        let heard = heard.heard_by_a_thread().unwrap();
        let mut writer = File::from(writer);
        writer.write_all(&[b'x'; 1 << 20]).unwrap();
        writer.write_all(b"the end").unwrap();
        drop(writer);
        while heard.lock().unwrap().pipe.is_some() {
            thread::yield_now();
        }
        assert_eq!(heard.lock().unwrap().last_words().as_deref(), Some(" end".trim()));
    }

    #[test]
    fn a_part_is_kept_of_what_is_too_much() {
        assert_eq!(kept(Keep::First(4), b"1234567890"), ("1234".into(), true));
        assert_eq!(kept(Keep::Last(4), b"1234567890"), ("7890".into(), true));
        assert_eq!(kept(Keep::Last(10), b"1234567890"), ("1234567890".into(), false));
    }

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(Stdio::null());
        command
    }

    #[test]
    fn what_is_not_to_go_on_is_killed() {
        let stopped = output_while(shell("sleep 600"), || false).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_flood_costs_no_more_than_the_limit() {
        let flood = shell("yes '\u{1b}]0;' | head -c 3000000; echo the end");
        let mut heard = Heard::start_joined(flood, Keep::Last(KEPT_BYTES)).unwrap();
        assert!(heard.wait(ENDS_WITHIN, |_| true).unwrap().success());
        let words = heard.stdout.last_words().unwrap();
        assert!(words.ends_with("the end") && !words.contains('\u{1b}'), "{words}");
        assert!(heard.stdout.all_bytes > 3_000_000 && heard.stdout.kept.len() <= 2 * KEPT_BYTES);
    }

    /// Also where it prints endlessly on both.
    #[test]
    fn of_both_outputs_a_part_is_kept() {
        let flood = "yes one | head -c 200000; yes two | head -c 200000 >&2; echo end >&2; exit 3";
        let output = output(shell(flood)).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout.len(), output.stderr.len()), (KEPT_BYTES, KEPT_BYTES));
        assert!(output.stdout.starts_with(b"one\n") && output.stderr.ends_with(b"two\nend\n"));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let mut command = shell("sleep 600 & echo $! >pid.new; mv pid.new pid; wait");
        command.current_dir(directory.path());
        let mut heard = Heard::start(command, [Keep::First(0), Keep::First(0)]).unwrap();
        let is_left_alone = |_: &mut Heard| !file.exists();
        let interrupted = heard.wait(ENDS_WITHIN, is_left_alone).unwrap_err();
        assert_eq!(interrupted.kind(), io::ErrorKind::Interrupted);
        let late = heard.wait(Duration::ZERO, |_| true).unwrap_err();
        assert_eq!(late.to_string(), "it took more than 0 s");
        drop(heard);
        let pid: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        // Somebody else reaps it.
        let is_gone = || rustix::process::test_kill_process(pid).is_err() || is_zombie(pid);
        assert!(wait_until(Instant::now() + Duration::from_secs(20), is_gone));
    }

    fn is_zombie(pid: Pid) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
        status.is_ok_and(|status| status.contains("State:\tZ"))
    }

    /// Does not wait for the end of the pipe: a descendant of the program may hold it for ever.
    #[test]
    fn nobody_waits_for_the_end_of_the_pipe() {
        let (mut said, _writer) = Said::pipe(Keep::First(8)).unwrap();
        assert_eq!((said.text(), said.last_words()), (String::new(), None));
    }
}
