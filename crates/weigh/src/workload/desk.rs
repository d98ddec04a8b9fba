//! Where a launcher takes its orders: jobs it runs itself, one at a time; what concerns members it passes
//! on to their keepers, also while a job runs, and passes their answers back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, waitpid};

use super::keeper::{AskedOfKeeper, Keeper, KeeperEnd};
use super::launcher::{Job, LauncherAnswer, LauncherOrder, Numbered};
use super::member::Raise;
use super::setup::Setup;
use crate::lines::Lines;
use crate::orphans;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The launcher's side of the pipe, and its keepers.
pub struct Desk {
    lines: Lines,
    pub setup: Setup,
    keepers: Vec<Keeper>,
    /// Whether there may be processes of a member whose keeper was killed.
    has_strays: bool,
}

impl Desk {
    pub fn new(lines: Lines, setup: Setup) -> Desk {
        Desk { lines, setup, keepers: Vec::new(), has_strays: false }
    }

    /// Answers an order.
    ///
    /// # Errors
    /// As `write(2)`.
    pub fn answer(&mut self, id: u64, what: LauncherAnswer) -> io::Result<()> {
        self.lines.send(&Numbered { id, what })
    }

    /// The next job, with its number; until there is one, does what else is asked. `None` where the parent is
    /// gone.
    ///
    /// # Errors
    /// As `read(2)`, and where a line makes no sense.
    pub fn next_job(&mut self) -> io::Result<Option<(u64, Job)>> {
        loop {
            while let Some(order) = self.lines.unread() {
                match order? {
                    Numbered { id, what: LauncherOrder::Run(job) } => return Ok(Some((id, job))),
                    Numbered { id, what } => self.pass_on(id, what)?,
                }
            }
            if std::mem::take(&mut self.has_strays) {
                orphans::end_all_but(|pid| self.is_keeper(pid));
            }
            if !self.attend(None)? {
                return Ok(None);
            }
        }
    }

    /// What becomes readable when there is something to do.
    pub fn inputs(&self) -> Vec<BorrowedFd<'_>> {
        let keepers = self.keepers.iter().map(|keeper| keeper.lines.as_fd());
        std::iter::once(self.lines.as_fd()).chain(keepers).collect()
    }

    /// Does what there is to do while a job runs; `false` where the parent is gone.
    ///
    /// # Errors
    /// As [`Desk::next_job`].
    pub fn attend_during_job(&mut self) -> io::Result<bool> {
        let is_there = self.attend(Some(&AT_ONCE))?;
        while let Some(order) = self.lines.unread() {
            match order? {
                Numbered { id, what: LauncherOrder::Run(_) | LauncherOrder::Raise(_) } => {
                    self.answer(id, LauncherAnswer::Error("a job is running".into()))?;
                }
                Numbered { id, what } => self.pass_on(id, what)?,
            }
        }
        Ok(is_there)
    }

    /// Whether this is a process of ours that is not a job's.
    pub fn is_keeper(&self, pid: i32) -> bool {
        self.keepers.iter().any(|keeper| keeper.pid.as_raw_nonzero().get() == pid)
    }

    /// Reads what came, and passes on what keepers answered.
    fn attend(&mut self, limit: Option<&Timespec>) -> io::Result<bool> {
        let inputs = self.inputs();
        let mut ready: Vec<PollFd> =
            inputs.iter().map(|input| PollFd::from_borrowed_fd(*input, PollFlags::IN)).collect();
        match poll(&mut ready, limit) {
            Err(rustix::io::Errno::INTR) => return Ok(true),
            other => other?,
        };
        let ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(inputs);
        // From the last, as those that end leave the list.
        for number in (0..self.keepers.len()).rev().filter(|number| ready[1 + number]) {
            self.hear(number)?;
        }
        Ok(!ready[0] || self.lines.fill()?)
    }

    /// Passes on the answers of a keeper; one that has ended is forgotten.
    fn hear(&mut self, number: usize) -> io::Result<()> {
        let keeper = &mut self.keepers[number];
        let mut has_ended = !keeper.lines.fill().unwrap_or(false);
        while let Some(answer) = keeper.lines.unread::<Numbered<LauncherAnswer>>() {
            let answer = answer?;
            let is_it = |asked: &AskedOfKeeper| asked.id == answer.id;
            if let Some(place) = keeper.asked.iter().position(is_it) {
                let end = match answer.what {
                    LauncherAnswer::Error(_) => KeeperEnd::Error,
                    _ => KeeperEnd::Done,
                };
                has_ended |= keeper.asked.remove(place).ends_with == Some(end);
            }
            self.lines.send(&answer)?;
        }
        if has_ended {
            let Keeper { pid, name, asked, .. } = self.keepers.remove(number);
            waitpid(Some(pid), WaitOptions::empty())?;
            self.has_strays = true;
            for AskedOfKeeper { id, .. } in asked {
                let problem = format!("the process that kept `{name}` was killed");
                self.answer(id, LauncherAnswer::Error(problem))?;
            }
        }
        Ok(())
    }

    /// What is not for the launcher itself.
    fn pass_on(&mut self, id: u64, order: LauncherOrder) -> io::Result<()> {
        let name = match &order {
            LauncherOrder::Raise(raise) => return self.raise(id, raise.clone()),
            LauncherOrder::SetUp(_) | LauncherOrder::Run(_) => {
                return self.answer(id, LauncherAnswer::Error("it is set up already".into()));
            }
            LauncherOrder::Freeze(name)
            | LauncherOrder::Thaw(name)
            | LauncherOrder::Look(name)
            | LauncherOrder::Lower { name, .. } => name.clone(),
        };
        let Some(keeper) = self.keepers.iter_mut().find(|keeper| keeper.name == name) else {
            let problem = format!("there is no `{name}`: it was not raised, or has ended");
            return self.answer(id, LauncherAnswer::Error(problem));
        };
        let is_last = matches!(order, LauncherOrder::Lower { .. });
        let ends_with = is_last.then_some(KeeperEnd::Done);
        keeper.asked.push(AskedOfKeeper { id, ends_with });
        // One that was killed is found so when it is heard.
        let _ = keeper.lines.send(&Numbered { id, what: order });
        Ok(())
    }

    fn raise(&mut self, id: u64, raise: Raise) -> io::Result<()> {
        if self.keepers.iter().any(|keeper| keeper.name == raise.name) {
            let problem = format!("there is a `{}` already", raise.name);
            return self.answer(id, LauncherAnswer::Error(problem));
        }
        match Keeper::start(&self.setup, id, raise) {
            Ok(keeper) => self.keepers.push(keeper),
            Err(problem) => self.answer(id, LauncherAnswer::Error(problem.to_string()))?,
        }
        Ok(())
    }
}
