//! Where a launcher takes its orders: jobs it runs itself, one at a time; what concerns members it passes
//! on to their keepers, also while a job runs, and passes their answers back.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::deaths::DeathWatch;
use super::executable;
use super::keeper::{AskedOfKeeper, Keeper, KeeperEnd};
use super::kills::{KillCounters, Kills};
use super::launcher::{Job, LauncherAnswer, LauncherOrder, Numbered};
use super::member::StartServer;
use super::setup::Setup;
use weigh_host::lines::Lines;
use weigh_host::orphans;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The launcher's side of the pipe, and its keepers.
pub struct LaunchQueue {
    lines: Lines,
    pub setup: Setup,
    /// Kill counters of the launcher's groups and of the groups that workers enter.
    pub kills: KillCounters,
    /// The CPUs by kind, on a machine whose CPUs are not equally fast.
    pub kinds: Result<Vec<Vec<usize>>, String>,
    /// Reports deaths while a job runs a command. Our own workloads need no reports: they check themselves
    /// how their processes end.
    deaths: Option<DeathWatch>,
    is_listening: bool,
    keepers: Vec<Keeper>,
    /// True if processes of a member may be left whose keeper was killed.
    has_strays: bool,
}

impl LaunchQueue {
    pub fn new(
        lines: Lines,
        setup: Setup,
        kills: KillCounters,
        deaths: Option<DeathWatch>,
        kinds: Result<Vec<Vec<usize>>, String>,
    ) -> LaunchQueue {
        let (keepers, is_listening, has_strays) = (Vec::new(), false, false);
        LaunchQueue { lines, setup, kills, kinds, deaths, is_listening, keepers, has_strays }
    }

    pub fn answer(&mut self, id: u64, what: LauncherAnswer) -> io::Result<()> {
        self.lines.send(&Numbered { id, what })
    }

    /// The next job, with its number; until there is one, does what else is asked. `None` where the parent is
    /// gone.
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

    /// Returns the files that become readable when there is something to do.
    pub fn inputs(&self) -> Vec<BorrowedFd<'_>> {
        let keepers = self.keepers.iter().map(|keeper| keeper.lines.as_fd());
        std::iter::once(self.lines.as_fd()).chain(keepers).collect()
    }

    /// Does what there is to do while a job runs; `false` where the parent is gone.
    pub fn attend_during_job(&mut self) -> io::Result<bool> {
        let is_there = self.attend(Some(&AT_ONCE))?;
        while let Some(order) = self.lines.unread() {
            match order? {
                Numbered { id, what: LauncherOrder::Run(_) | LauncherOrder::StartServer(_) } => {
                    self.answer(id, LauncherAnswer::Error("a job is running".into()))?;
                }
                Numbered { id, what } => self.pass_on(id, what)?,
            }
        }
        Ok(is_there)
    }

    /// The parent's pipe: it becomes readable when the parent gives the job up.
    pub fn parent(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }

    /// Listens for deaths in this job, where it may have processes that nobody else looks at.
    pub fn listen(&mut self, job: &Job) -> io::Result<()> {
        let program = job.argv.first().and_then(|program| Path::new(program).file_name());
        if program.is_some_and(|name| name != executable::FILE_NAME) {
            self.is_listening = match &mut self.deaths {
                Some(deaths) => deaths.begin()?,
                None => false,
            };
        }
        Ok(())
    }

    /// Returns the file that becomes readable when a process has died.
    pub fn deaths(&self) -> Option<BorrowedFd<'_>> {
        self.deaths.as_ref().filter(|_| self.is_listening).map(AsFd::as_fd)
    }

    /// Reads the deaths reported so far, and keeps those of this worker's descendants.
    pub fn hear_of_deaths(&mut self, worker: Pid) -> io::Result<()> {
        let Some(deaths) = self.deaths.as_mut().filter(|_| self.is_listening) else {
            return Ok(());
        };
        let is_keeper = |pid: u32| self.keepers.iter().any(|keeper| number_of(keeper.pid) == pid);
        deaths.hear(number_of(worker), is_keeper)
    }

    /// The signals of errors that killed processes of this worker, which has ended; as far as they are known.
    pub fn fatal_signals(&mut self, worker: Pid) -> io::Result<Vec<i32>> {
        self.hear_of_deaths(worker)?;
        match self.deaths.as_mut().filter(|_| self.is_listening) {
            Some(deaths) => Ok(deaths.take()),
            None => orphans::fatal_signals(|child| {
                child == worker.as_raw_nonzero().get() || self.is_keeper(child)
            }),
        }
    }

    /// Number of processes that a worker which has ended left running.
    pub fn living_orphans(&self, worker: Pid) -> io::Result<usize> {
        orphans::living(|child| child == worker.as_raw_nonzero().get() || self.is_keeper(child))
    }

    /// The job is over.
    pub fn stop_listening(&mut self) {
        if std::mem::take(&mut self.is_listening)
            && self.deaths.as_ref().is_some_and(|deaths| deaths.end().is_err())
        {
            // The kernel forgets a socket that is closed.
            self.deaths = None;
        }
    }

    /// Returns true if this process is a keeper, not a process of a job.
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
            let mut answer = answer?;
            if let LauncherAnswer::Error(problem) = &mut answer.what {
                problem.push_str(&limits_met(&self.kills, &keeper.kills));
            }
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
            let Keeper { pid, name, asked, kills, .. } = self.keepers.remove(number);
            let limits = limits_met(&self.kills, &kills);
            waitpid(Some(pid), WaitOptions::empty())?;
            self.has_strays = true;
            for AskedOfKeeper { id, .. } in asked {
                let problem = format!("the process that kept `{name}` was killed{limits}");
                self.answer(id, LauncherAnswer::Error(problem))?;
            }
        }
        Ok(())
    }

    /// Passes on an order that is not for the launcher itself.
    fn pass_on(&mut self, id: u64, order: LauncherOrder) -> io::Result<()> {
        let name = match &order {
            LauncherOrder::StartServer(raise) => return self.raise(id, raise.clone()),
            LauncherOrder::SetUp(_) | LauncherOrder::Run(_) => {
                return self
                    .answer(id, LauncherAnswer::Error("the launcher is already set up".into()));
            }
            LauncherOrder::Freeze(name)
            | LauncherOrder::Thaw(name)
            | LauncherOrder::Look(name)
            | LauncherOrder::StopServer { name, .. } => name.clone(),
        };
        let Some(keeper) = self.keepers.iter_mut().find(|keeper| keeper.name == name) else {
            let problem = format!("`{name}` does not run: it was not started, or has ended");
            return self.answer(id, LauncherAnswer::Error(problem));
        };
        let is_last = matches!(order, LauncherOrder::StopServer { .. });
        let ends_with = is_last.then_some(KeeperEnd::Done);
        keeper.asked.push(AskedOfKeeper { id, ends_with });
        // One that was killed is found so when it is heard.
        let _ = keeper.lines.send(&Numbered { id, what: order });
        Ok(())
    }

    fn raise(&mut self, id: u64, raise: StartServer) -> io::Result<()> {
        if self.keepers.iter().any(|keeper| keeper.name == raise.name) {
            let problem = format!("`{}` already runs", raise.name);
            return self.answer(id, LauncherAnswer::Error(problem));
        }
        let kept = self.kills.read().and_then(|kills| Keeper::start(&self.setup, id, raise, kills));
        match kept {
            Ok(keeper) => self.keepers.push(keeper),
            Err(problem) => self.answer(id, LauncherAnswer::Error(problem.to_string()))?,
        }
        Ok(())
    }
}

/// Which limits of their groups the members met since then, for a sentence about one that failed.
fn limits_met(counters: &KillCounters, before: &Kills) -> String {
    let met = counters.read().map(|now| now.since(before).sentence());
    met.ok().flatten().map_or_else(String::new, |kills| format!("; {kills}"))
}

fn number_of(process: Pid) -> u32 {
    process.as_raw_nonzero().get().cast_unsigned()
}
