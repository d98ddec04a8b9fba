//! The gate of two commands that share a CPU: each launcher holds its command when it has executed its
//! program, and both let theirs go when both are there.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};

/// How long a launcher waits for the other one. If the other command cannot be started, `weigh` hears of that
/// at once and ends both launchers.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };
/// The second launcher tells by this pipe that its command is there, and the first one by the other pipe that
/// its command was let go.
const ARRIVED: &str = "arrived";
const GONE: &str = "gone";

/// A command's place at the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The directory of [`Gate::make`].
    pub directory: PathBuf,
    /// True for the command that is let go first.
    pub is_first: bool,
}

/// Both commands are there, and this one may go.
pub struct Meeting {
    is_first: bool,
    /// Kept open: what is in a pipe is lost when nobody has it open.
    _arrived: File,
    gone: File,
}

impl Gate {
    /// Makes the gate of a pair in a new directory.
    ///
    /// # Errors
    /// As `mkdir(2)` and `mknod(2)`.
    pub fn make(directory: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(directory)?;
        for name in [ARRIVED, GONE] {
            mkfifoat(CWD, directory.join(name), Mode::RUSR | Mode::WUSR)?;
        }
        Ok(())
    }

    /// Waits for the other command, and for its turn to be let go.
    ///
    /// # Errors
    /// Where the other command does not come; `BrokenPipe` where `weigh` has given the pair up, whose pipe
    /// is `parent`.
    pub fn wait(&self, parent: BorrowedFd) -> io::Result<Meeting> {
        // Open in both directions, a named pipe waits for nobody.
        let open =
            |name: &str| OpenOptions::new().read(true).write(true).open(self.directory.join(name));
        let (mut arrived, mut gone) = (open(ARRIVED)?, open(GONE)?);
        match self.is_first {
            true => hear(&mut arrived, parent)?,
            false => {
                tell(&mut arrived)?;
                hear(&mut gone, parent)?;
            }
        }
        Ok(Meeting { is_first: self.is_first, _arrived: arrived, gone })
    }
}

impl Meeting {
    /// Tells the other launcher that this command was let go.
    ///
    /// # Errors
    /// As `write(2)`.
    pub fn passed(mut self) -> io::Result<()> {
        if self.is_first { tell(&mut self.gone) } else { Ok(()) }
    }
}

fn tell(pipe: &mut File) -> io::Result<()> {
    pipe.write_all(&[1])
}

fn hear(pipe: &mut File, parent: BorrowedFd) -> io::Result<()> {
    let mut files =
        [PollFd::new(&*pipe, PollFlags::IN), PollFd::from_borrowed_fd(parent, PollFlags::IN)];
    retry_on_intr(|| poll(&mut files, Some(&PATIENCE)))?;
    let [has_come, is_given_up] = files.map(|file| !file.revents().is_empty());
    if has_come {
        return pipe.read_exact(&mut [0]);
    }
    Err(match is_given_up {
        true => io::Error::new(io::ErrorKind::BrokenPipe, "the pair was given up"),
        false => io::Error::other("the other command of its pair did not start in time"),
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::mpsc::channel;

    use super::*;

    fn gates() -> (tempfile::TempDir, [Gate; 2]) {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("gate");
        Gate::make(&directory).unwrap();
        let gate = |is_first| Gate { directory: directory.clone(), is_first };
        let gates = [gate(true), gate(false)];
        (home, gates)
    }

    #[test]
    fn the_second_goes_after_the_first_and_the_first_waits_for_it() {
        let (_home, [first, second]) = gates();
        let (parent, _alive) = io::pipe().unwrap();
        let (tell, heard) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let meeting = first.wait(parent.as_fd()).unwrap();
                tell.send("first").unwrap();
                meeting.passed().unwrap();
            });
            scope.spawn(|| {
                let meeting = second.wait(parent.as_fd()).unwrap();
                tell.send("second").unwrap();
                meeting.passed().unwrap();
            });
        });
        assert_eq!([heard.recv().unwrap(), heard.recv().unwrap()], ["first", "second"]);
    }

    #[test]
    fn nobody_waits_when_the_pair_was_given_up() {
        let (_home, gates) = gates();
        let (parent, alive) = io::pipe().unwrap();
        drop(alive);
        for gate in gates {
            let problem = gate.wait(parent.as_fd()).err().unwrap();
            assert_eq!(problem.kind(), io::ErrorKind::BrokenPipe);
        }
    }
}
