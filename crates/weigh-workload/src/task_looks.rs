//! Looks at the tasks of a command while it runs: whether any of them can use a CPU.
//!
//! A task that waits for a CPU is in the same state as one that has it. So a busy machine does not make a
//! command look as if it waited for something else.

use std::collections::HashMap;
use std::fs;
use std::mem::take;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

use weigh_host::machine::stat::Stat;
use weigh_host::orphans;

/// A short command is looked at often; the rest of a long one more seldom, as a look takes CPU time.
const FIRST_LOOKS: u64 = 100;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LATER_PAUSE: Duration = Duration::from_millis(10);
/// Fields of proc_pid_stat(5): the user time, before the system time, and the start.
const USER: usize = 14;
const START: usize = 22;

/// Counts of looks at a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    pub all: u64,
    /// Looks that found all tasks waiting for something other than a CPU.
    pub idle: u64,
    /// CPU time of all tasks but the busiest one, while several of them ran or waited for a CPU: a second CPU
    /// could have done this part meanwhile.
    pub parallel_ns: u64,
    /// CPU time that all tasks together had when they were last seen. Those that nobody waits for, because
    /// their parent ignores SIGCHLD, are in no other sum.
    #[serde(default)]
    pub seen_cpu_ns: u64,
}

impl Looks {
    /// The share of its time in which it waited; `None` if nobody looked.
    pub fn idle_share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.idle as f64 / self.all as f64)
    }

    /// Adds a look that found tasks in these states, as proc_pid_stat(5) names them.
    fn add(&mut self, states: &[&str]) {
        // One that has ended waits for nothing.
        if states.iter().all(|state| matches!(*state, "Z" | "X" | "")) {
            return;
        }
        let runnable = states.iter().filter(|state| **state == "R").count();
        self.all += 1;
        self.idle += u64::from(runnable == 0);
    }
}

/// A task of the command: a number may come again, but not with the same start.
type Task = (String, u64);

/// The CPU time of each task in consecutive looks that found several of them runnable.
///
/// The number of such looks alone shows nothing on a busy machine: a shell that has started a command is in
/// the queue for a CPU then, only to find that it has to wait. The CPU's ticks count a task's time late, so
/// one look may see just one of two tasks use any.
#[derive(Debug, Default)]
struct Streak(HashMap<Task, u64>);

impl Streak {
    /// Adds what a task has used since the last look.
    fn add(&mut self, task: &Task, used_ns: u64) {
        *self.0.entry(task.clone()).or_default() += used_ns;
    }

    /// CPU time of all tasks but the busiest one.
    fn beside_the_busiest_ns(&self) -> u64 {
        self.0.values().sum::<u64>() - self.0.values().max().copied().unwrap_or(0)
    }
}

/// Looks at all that this process has started, again and again, if anybody is to.
pub struct TaskLooks {
    found: Looks,
    ticks: HashMap<Task, u64>,
    ran_ns: HashMap<Task, u64>,
    streak: Streak,
    due: Option<Instant>,
}

impl TaskLooks {
    pub fn begin(is_wanted: bool) -> TaskLooks {
        let due = is_wanted.then(|| Instant::now() + FIRST_PAUSE);
        TaskLooks {
            found: Looks::default(),
            ticks: HashMap::new(),
            ran_ns: HashMap::new(),
            streak: Streak::default(),
            due,
        }
    }

    /// Returns how long it is until the next look.
    pub fn due_in(&self) -> Duration {
        let left = |due: Instant| due.saturating_duration_since(Instant::now());
        self.due.map_or(Duration::MAX, left)
    }

    /// Looks, if it is time.
    pub fn look(&mut self) {
        if !self.due_in().is_zero() {
            return;
        }
        let tasks = tasks_of_descendants();
        let states: Vec<&str> = tasks.iter().map(|(_, stat, _)| stat.state()).collect();
        self.found.add(&states);
        let is_parallel = states.iter().filter(|state| **state == "R").count() > 1;
        if !is_parallel {
            self.end_streak();
        }
        for (number, stat, ran_ns) in &tasks {
            if let (Some(start), Some(ticks)) = (stat.number(START), cpu_ticks(stat)) {
                self.count((number.clone(), start), ticks, *ran_ns, is_parallel);
            }
        }
        let pause = if self.found.all < FIRST_LOOKS { FIRST_PAUSE } else { LATER_PAUSE };
        self.due = Some(Instant::now() + pause);
    }

    /// Notes what a task has used. A new one began after the last look.
    fn count(&mut self, task: Task, ticks: u64, ran_ns: u64, is_parallel: bool) {
        let before_ns = self.ran_ns.insert(task.clone(), ran_ns).unwrap_or(0);
        if is_parallel {
            self.streak.add(&task, ran_ns.saturating_sub(before_ns));
        }
        self.ticks.insert(task, ticks);
    }

    fn end_streak(&mut self) {
        self.found.parallel_ns += take(&mut self.streak).beside_the_busiest_ns();
    }

    pub fn found(&self) -> Looks {
        let parallel_ns = self.found.parallel_ns + self.streak.beside_the_busiest_ns();
        let ticks = self.ticks.values().sum::<u64>();
        let seen_cpu_ns = ticks * 1_000_000_000 / clock_ticks_per_second();
        Looks { seen_cpu_ns, parallel_ns, ..self.found }
    }
}

/// User and system time of a task.
fn cpu_ticks(stat: &Stat) -> Option<u64> {
    Some(stat.number::<u64>(USER)? + stat.number::<u64>(USER + 1)?)
}

/// All threads of all descendants, each with its number and the time that it ran in ns. One that ends
/// meanwhile is left out.
fn tasks_of_descendants() -> Vec<(String, Stat, u64)> {
    let threads_of = |pid: rustix::process::Pid| {
        let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
        threads.into_iter().flatten().flatten()
    };
    let stat = |thread: fs::DirEntry| {
        let number = thread.file_name().to_string_lossy().into_owned();
        let stat = Stat::read(&thread.path().join("stat")).ok()?;
        let ran = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((number, stat, ran.split_whitespace().next()?.parse().ok()?))
    };
    orphans::descendants().flat_map(threads_of).filter_map(stat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_waits_if_none_of_its_tasks_can_use_a_cpu() {
        let mut looks = Looks::default();
        let mut add = |states: &str| {
            let states: Vec<String> = states.chars().map(String::from).collect();
            looks.add(&states.iter().map(String::as_str).collect::<Vec<_>>());
            (looks.all, looks.idle)
        };
        assert_eq!(add("SR"), (1, 0), "a shell that waits for its child");
        assert_eq!(add("SS"), (2, 1));
        assert_eq!(add("DZ"), (3, 2), "a disk");
        assert_eq!(add("SRR"), (4, 2));
        assert_eq!(add("Z"), (4, 2), "it has just ended");
        assert_eq!(add(""), (4, 2));
        assert_eq!(looks.idle_share(), Some(0.5));
        assert_eq!(Looks::default().idle_share(), None);
    }

    /// On a busy machine a shell stands in the queue although it has nothing to do but wait; and a script
    /// runs one command after the other.
    #[test]
    fn only_cpu_time_beside_the_busiest_task_is_parallel() {
        let parallel_ns = |looks: &[&[(&str, u64)]]| {
            let mut seen = TaskLooks::begin(true);
            for look in looks {
                if look.len() < 2 {
                    seen.end_streak();
                }
                for (name, ran_ns) in *look {
                    seen.count(((*name).to_owned(), 7), 0, *ran_ns, look.len() > 1);
                }
            }
            seen.found().parallel_ns
        };
        assert_eq!(parallel_ns(&[&[("sh", 3), ("loop", 0)], &[("sh", 3), ("loop", 90)]]), 3);
        assert_eq!(parallel_ns(&[&[("a", 5), ("b", 0)], &[("a", 5), ("b", 6)], &[("b", 90)]]), 5);
        let script: [&[(&str, u64)]; 3] =
            [&[("sh", 1), ("a", 50)], &[("sh", 2)], &[("sh", 3), ("b", 50)]];
        assert_eq!(parallel_ns(&script), 2);
    }
}
