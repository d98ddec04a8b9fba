//! A load that does not wait for anybody: it opens a file so many times a second, whatever each time
//! takes (an open loop), and tells how far it got. `weigh budget` has this audited.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::launcher::Job;

/// The hidden subcommand that turns `weigh` into this load.
pub const SUBCOMMAND: &str = "__paced";
/// It sleeps no more often than this: a hundred sleeps a second make few records of their own.
const TICK: Duration = Duration::from_millis(10);

/// How far it got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paced {
    /// Steps that were due within the time.
    pub due: u64,
    pub made: u64,
    pub elapsed_s: f64,
    pub longest_s: f64,
}

/// Work to do at a set pace.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    pub file: PathBuf,
    /// Evenly over the time, as far as they can be made in it.
    pub steps: u64,
    pub seconds: f64,
}

impl Pace {
    /// The launch of it.
    pub fn job(&self, directory: &Path) -> Job {
        // The launcher is this program, too.
        let argv = [
            "/proc/self/exe".into(),
            SUBCOMMAND.into(),
            self.file.display().to_string(),
            self.steps.to_string(),
            self.seconds.to_string(),
        ];
        Job::new(argv.into(), directory, (self.seconds * 1000.0) as u64 + 60_000)
    }

    /// Makes the steps: all that are due, then sleeps until the next tick.
    fn run(&self) -> io::Result<Paced> {
        let due = self.steps;
        let per_second = due as f64 / self.seconds;
        let tick_s = TICK.as_secs_f64().max(1.0 / per_second);
        let started = Instant::now();
        let mut longest = Duration::ZERO;
        let mut made = 0;
        while made < due && started.elapsed().as_secs_f64() < self.seconds {
            let due_now = (started.elapsed().as_secs_f64() * per_second).ceil() as u64;
            while made < due_now.clamp(1, due) {
                let step = Instant::now();
                std::fs::File::open(&self.file)?;
                longest = longest.max(step.elapsed());
                made += 1;
                if started.elapsed().as_secs_f64() >= self.seconds {
                    break;
                }
            }
            let next_s = ((started.elapsed().as_secs_f64() / tick_s).floor() + 1.0) * tick_s;
            let next = Duration::from_secs_f64(next_s);
            std::thread::sleep(next.saturating_sub(started.elapsed()));
        }
        let elapsed_s = started.elapsed().as_secs_f64();
        Ok(Paced { due, made, elapsed_s, longest_s: longest.as_secs_f64() })
    }
}

/// The load's process: file, steps and seconds are its arguments.
pub fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let arguments: Vec<OsString> = arguments.collect();
    let pace = parse(&arguments).ok_or("takes a file, a number of steps, and seconds")?;
    let paced = pace.run().map_err(|error| format!("{}: {error}", pace.file.display()))?;
    let line = serde_json::to_string(&paced).map_err(|error| error.to_string())?;
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())
}

fn parse(arguments: &[OsString]) -> Option<Pace> {
    let [file, steps, seconds] = arguments else { return None };
    let steps = steps.to_str()?.parse().ok().filter(|steps| *steps > 0)?;
    let seconds: f64 = seconds.to_str()?.parse().ok()?;
    let is_time = seconds > 0.0 && seconds < 3600.0;
    is_time.then(|| Pace { file: file.into(), steps, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_are_made_where_there_is_time_and_some_where_there_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pace =
            |steps, seconds| Pace { file: file.path().into(), steps, seconds }.run().unwrap();
        let slow = pace(5, 5.0);
        assert_eq!((slow.due, slow.made), (5, 5));
        let impossible = pace(100_000_000, 0.05);
        assert!(impossible.made > 0 && impossible.made < impossible.due, "{impossible:?}");
        assert!(impossible.longest_s > 0.0);
    }

    #[test]
    fn arguments_that_are_no_pace_are_refused() {
        for wrong in
            [vec![], vec!["f"], vec!["f", "0", "1"], vec!["f", "1", "NaN"], vec!["f", "1", "-1"]]
        {
            assert!(run(wrong.into_iter().map(Into::into)).unwrap_err().contains("takes a file"));
        }
        let missing = ["/nonexistent/x", "1", "1"].into_iter().map(Into::into);
        assert!(run(missing).unwrap_err().contains("/nonexistent/x"));
    }
}
