//! Outcome of a launch: a sample, or the reason why it gives no sample.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::command_comparison::ExpectedExit;
use super::suite_report;
use super::work::{OWN_OPERATIONS, UserLoad, Work};
use paired::histogram::Histogram;
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::printable;
use weigh_model::workload::detail::Detail;
use weigh_model::workload::metric::WHOLE_RUNS;
use weigh_model::workload::metric::{Direction, Percentile};
use weigh_model::workload::sample::{OwnReading, Sample};
use weigh_model::workload::wrong_answers::WrongAnswers;
use weigh_workload::catalogue::Workload;
use weigh_workload::interpreted::Interpreted;
use weigh_workload::launcher::Launched;
use weigh_workload::pipes::KEEP_OUTPUT_BYTES;

/// As much of a worker's last words as makes a sentence.
const MAX_WORDS_CHARS: usize = 200;
/// No CPU does an operation of any workload in 50 ps; `workloads/driver/sample.c` has the same limit.
const MAX_OPERATIONS_PER_NS: f64 = 20.0;
/// A kernel that tells CPU time by the ticks of a clock may be wrong by one, which is 10 ms at most.
const CPU_TIME_GRAIN_NS: f64 = 10e6;
/// Times are of a clock that NTP steers, by 0.05 % at most, and CPU times of one that it does not.
const CLOCKS_DIFFER_BY: f64 = 1.01;
/// The workloads print ten digits of a rate.
const RATE_TOLERANCE: f64 = 1e-6;

impl Work {
    /// The sample that a launch amounts to.
    pub fn read(&self, launched: &Launched) -> Result<Sample, String> {
        match self.wrong_answers(launched) {
            Some(wrong) => Err(wrong.sentence()),
            None => match self.read_whatever_is_wrong(launched)? {
                sample if sample.copy_rates.contains(&0.0) => {
                    let copies = sample.copy_rates.len();
                    Err(format!(
                        "one or more of its {copies} copies did nothing while it was timed"
                    ))
                }
                sample => Ok(sample),
            },
        }
    }

    /// Reads a launch in which wrong answers are expected: the good answers are the sample.
    pub fn read_whatever_is_wrong(&self, launched: &Launched) -> Result<Sample, String> {
        let usual = ExpectedExit::default();
        let contest = self.contest();
        let expected = contest.map_or(&usual, |contest| &contest.expected);
        if let Some(problem) = failure_of(launched, expected) {
            return Err(problem);
        }
        if let Some(problem) = contest.and_then(|contest| contest.difference(launched)) {
            return Err(problem);
        }
        let knows_cpu_time = hold_against_cpu_time(launched)?;
        let sample = Sample::parse(&launched.stdout).transpose()?;
        let sample = match self {
            Work::Command { .. } | Work::CommandComparison { .. } => match sample {
                Some(sample) => {
                    sample.hold_against_wall_time(launched.wall_ns)?;
                    own_sample(sample)
                }
                None => {
                    let readings = suite_report::readings(&launched.stdout)?;
                    Ok(Sample { readings, ..whole_process(launched) })
                }
            },
            Work::Interpreted(one) => {
                if let Some(size) = flood(launched) {
                    return Err(format!("it printed {size} instead of its result"));
                }
                of_program(one, sample, launched)
            }
            Work::Net(_) => return cell_sample(launched),
            Work::Load(load) => {
                let Some(sample) = sample else { return Err(instead_of_a_result(launched)) };
                with_latencies(is_all_done(sample, load, launched)?, launched, load.times_at_once())
            }
            Work::Builtin { workload, copies, .. } => {
                if let Some(size) = flood(launched) {
                    return Err(format!("it printed {size} instead of one line with the result"));
                }
                let Some(sample) = sample else { return Err(instead_of_a_result(launched)) };
                is_possible(&sample, workload, *copies)?;
                sample.hold_against_wall_time(launched.wall_ns)?;
                // Of several processes the times are together; and what begins when it is to may wait.
                let waits = launched.executed.iter().any(|word| word == "--per-1000s");
                let at_once = if waits { sample.operations as u64 } else { *copies as u64 };
                with_latencies(sample, launched, at_once)
            }
        }?;
        let sample = with_usage(sample, launched);
        Ok(if knows_cpu_time { sample } else { without_cpu_time(sample) })
    }

    /// Returns the wrong answers of a launch, if the work is one of our workloads.
    pub fn wrong_answers(&self, launched: &Launched) -> Option<WrongAnswers> {
        let is_ours = matches!(self, Work::Builtin { .. } | Work::Load(_));
        is_ours.then(|| WrongAnswers::parse(&launched.stdout)).flatten()
    }
}

/// Holds what a small program gave against what it must give.
fn of_program(
    one: &Interpreted,
    sample: Option<Sample>,
    launched: &Launched,
) -> Result<Sample, String> {
    let expected = one.result();
    let is_right = |given: &str| match given == expected {
        true => Ok(()),
        false => {
            let given = format::shorten(&printable::line(given), MAX_WORDS_CHARS);
            Err(format!("its result is `{given}`, not `{expected}`"))
        }
    };
    if !one.times_itself() {
        is_right(launched.stdout.trim_end())?;
        return Ok(whole_process(launched));
    }
    let Some(sample) = sample else { return Err(instead_of_a_result(launched)) };
    let given: GivenResult = launched
        .stdout
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .ok_or("its output has no line with a `result`")?;
    is_right(&given.result)?;
    is_possible(&sample, &one.listed(), 1)?;
    sample.hold_against_wall_time(launched.wall_ns)?;
    Ok(sample)
}

/// The part of a small program's line that tells what it gave.
#[derive(Deserialize)]
struct GivenResult {
    result: String,
}

pub fn cell_sample(launched: &Launched) -> Result<Sample, String> {
    if let Some(problem) = failure_of(launched, &ExpectedExit::default()) {
        return Err(problem);
    }
    let Some(sample) = Sample::parse(&launched.stdout).transpose()? else {
        return Err(instead_of_a_result(launched));
    };
    sample.hold_against_wall_time(launched.wall_ns)?;
    Ok(with_usage(sample, launched))
}

fn instead_of_a_result(launched: &Launched) -> String {
    let instead = last_line(&launched.stdout).map(|words| format!(", but {words}"));
    "it printed no result".to_owned() + &instead.unwrap_or_default()
}

/// Refuses a load of which not every user did every job.
fn is_all_done(sample: Sample, load: &UserLoad, launched: &Launched) -> Result<Sample, String> {
    if !load.is_done(sample.operations) || sample.unit.as_deref() != Some(UserLoad::UNIT) {
        let (done, all) = (sample.operations, load.all_jobs());
        return Err(format!("it reported {done} of the {all} jobs of all users"));
    }
    sample.hold_against_wall_time(launched.wall_ns)?;
    let rate = sample.operations * 60e9 / sample.elapsed_ns as f64;
    match (sample.rate() / rate - 1.0).abs() <= RATE_TOLERANCE {
        true => Ok(sample),
        false => Err(format!(
            "it reported {} jobs/min, but its jobs and their time give {rate}",
            sample.rate()
        )),
    }
}

/// Adds the percentiles of what each operation took, where the launch timed them one by one.
/// So many `at_once`.
fn with_latencies(mut sample: Sample, launched: &Launched, at_once: u64) -> Result<Sample, String> {
    let Some(detail) = Detail::parse(&launched.stdout) else { return Ok(sample) };
    detail.check(launched.wall_ns.saturating_mul(at_once))?;
    let Some(latencies) = detail.latencies else { return Ok(sample) };
    let histogram = Histogram::new(latencies.buckets);
    for percentile in Percentile::ALL {
        let value = histogram.located(percentile.quantile());
        sample.readings.extend(value.map(|value| OwnReading::of_ns(percentile.name(), value)));
    }
    Ok(sample)
}

/// Adds what the launcher saw of the whole process.
fn with_usage(sample: Sample, launched: &Launched) -> Sample {
    let exit_code = launched.exit_code.and_then(|code| u8::try_from(code).ok());
    Sample {
        peak_memory_bytes: launched.peak_memory_bytes,
        block_input_bytes: Some(launched.block_input_bytes),
        block_output_bytes: Some(launched.block_output_bytes),
        exit_code: exit_code.filter(|code| *code != 0),
        ..sample
    }
}

/// Refuses a sample in another unit than the `first` of the same work: they measure different things.
pub fn hold_unit(first: &mut Option<String>, sample: &Sample, work: &Work) -> Result<(), String> {
    let unit = sample.unit.clone().unwrap_or_else(|| work.unit());
    let expected = first.get_or_insert_with(|| unit.clone());
    if *expected == unit {
        return Ok(());
    }
    Err(match (expected.as_str(), unit.as_str()) {
        (expected, WHOLE_RUNS) => {
            format!(
                "its last line was a sample in `{expected}` in the first launch, but not in this one"
            )
        }
        (WHOLE_RUNS, unit) => {
            format!(
                "its last line was not a sample in the first launch, but is a sample in `{unit}` in this one"
            )
        }
        (expected, unit) => {
            format!("it reported `{expected}` in the first launch and `{unit}` in this one")
        }
    })
}

/// Refuses a reading whose unit or direction is not that of the `first` of its name of the same work.
pub fn hold_readings(
    first: &mut BTreeMap<String, (String, Direction)>,
    sample: &Sample,
) -> Result<(), String> {
    for OwnReading { name, unit, better, .. } in &sample.readings {
        let known = first.entry(name.clone()).or_insert_with(|| (unit.clone(), *better));
        if (&known.0, known.1) != (unit, *better) {
            return Err(format!(
                "it reported `{name}` with a different unit or `better` than in the first launch"
            ));
        }
    }
    Ok(())
}

/// Refuses a time in which all CPUs together could not have done what was done, but for what the clock of CPU
/// times may have been behind: then the time is right, and it is the CPU time that is not known (`false`).
fn hold_against_cpu_time(launched: &Launched) -> Result<bool, String> {
    let cpus = f64::from(launched.cpus.max(1));
    let in_time_ns = |wall_ns: u64| wall_ns as f64 * cpus * CLOCKS_DIFFER_BY + CPU_TIME_GRAIN_NS;
    let used_ns = launched.least_cpu_ns as f64;
    let with_before_ns = launched.wall_ns.saturating_add(launched.cpu_clock_behind_ns);
    if used_ns <= in_time_ns(with_before_ns) {
        return Ok(used_ns <= in_time_ns(launched.wall_ns));
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    Err(format!(
        "it used {:.1} ms of CPU time in {:.1} ms, more than {} can provide: its time was not measured \
         correctly",
        ms(launched.least_cpu_ns),
        ms(launched.wall_ns),
        format::plural(cpus as usize, "CPU")
    ))
}

fn without_cpu_time(sample: Sample) -> Sample {
    Sample { user_ns: None, system_ns: None, ..sample }
}

/// The last rate of an arm, and how often it came in a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeated {
    rate: f64,
    times: usize,
}

impl Repeated {
    /// Refuses a rate that is always the same to the last digit: that is not of a clock, or of one that is
    /// too coarse, and no statistics can tell how far such numbers are from the truth.
    pub fn hold(&mut self, rate: f64) -> Result<(), String> {
        self.times = if rate.to_bits() == self.rate.to_bits() { self.times + 1 } else { 1 };
        self.rate = rate;
        if self.times < MIN_PAIRS {
            return Ok(());
        }
        Err(format!(
            "its rate was exactly {rate} in each of {MIN_PAIRS} launches: it was not measured with a clock, \
             or with one that is too coarse (print the elapsed time in nanoseconds)"
        ))
    }
}

/// Why a launch failed, with its last words; `None` where it did not.
pub fn failure_of(launched: &Launched, expected: &ExpectedExit) -> Option<String> {
    let kills = launched.kills.sentence();
    let Some(end) = bad_end(launched, expected) else {
        let code = launched.exit_code.unwrap_or_default();
        return kills.map(|kills| format!("{kills}, although the exit status was {code}"));
    };
    let flood = flood(launched).map(|size| format!(" after printing {size}"));
    let kills = kills.map(|kills| format!(" ({kills})"));
    let because = last_line(&launched.stderr).map(|words| format!(": {words}"));
    Some([Some(end), flood, kills, because].into_iter().flatten().collect())
}

/// How the process ended, where that was not well.
fn bad_end(launched: &Launched, expected: &ExpectedExit) -> Option<String> {
    if launched.timed_out {
        let seconds = launched.wall_ns / 1_000_000_000;
        return Some(format!("it did not end within {seconds} s and was killed (see `--timeout`)"));
    }
    if let Some(signal) = launched.signal {
        return Some(format!("it was killed by signal {signal}"));
    }
    match launched.exit_code {
        Some(code) if expected.allows(code) => None,
        Some(code) => Some(format!("it exited with status {code}")),
        None => Some("its exit status is unknown".into()),
    }
}

/// How much was printed, where that is more than any workload has to say.
fn flood(launched: &Launched) -> Option<String> {
    let printed_bytes = launched.printed_bytes;
    (printed_bytes > KEEP_OUTPUT_BYTES as u64).then(|| match printed_bytes >> 20 {
        0 => format!("{} KiB", printed_bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    })
}

/// The last line with something in it, fit for a report whatever it is.
fn last_line(output: &str) -> Option<String> {
    let line = output.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(format::shorten(&printable::line(line), MAX_WORDS_CHARS))
}

/// Holds what a workload reports against what it declares.
fn is_possible(sample: &Sample, workload: &Workload, copies: usize) -> Result<(), String> {
    let per_ns = sample.operations / sample.elapsed_ns as f64;
    if per_ns / copies as f64 >= MAX_OPERATIONS_PER_NS {
        let Sample { operations, elapsed_ns, .. } = sample;
        return Err(format!(
            "it reported {operations} operations in {elapsed_ns} ns, more than any CPU can do"
        ));
    }
    if let Some(unit) = sample.unit.as_ref().filter(|unit| **unit != workload.unit) {
        return Err(format!("it reported `{unit}`, but declares `{}`", workload.unit));
    }
    // Of copies the rates are added, and each has a time of its own.
    let expected = per_ns * 1e9 * workload.units_per_op;
    if copies == 1 && (sample.rate() / expected - 1.0).abs() > RATE_TOLERANCE {
        return Err(format!(
            "it reported a rate of {} {}, but its operations and their time give {expected}",
            sample.rate(),
            workload.unit
        ));
    }
    Ok(())
}

/// The sample that a command printed. It always has a unit, and never that of whole runs: the host
/// refuses a work whose unit changes, so one launch without a sample among those with one is a
/// failure and no number.
fn own_sample(sample: Sample) -> Result<Sample, String> {
    if sample.unit.as_deref() == Some(WHOLE_RUNS) {
        return Err(format!(
            "it reported the unit `{WHOLE_RUNS}`, which is reserved for commands that report no sample: use \
             a different unit"
        ));
    }
    Ok(Sample { unit: sample.unit.or_else(|| Some(OWN_OPERATIONS.into())), ..sample })
}

/// A process that says nothing of itself is one operation, timed from its execution to its end.
fn whole_process(launched: &Launched) -> Sample {
    Sample {
        operations: 1.0,
        total_operations: Some(1.0),
        elapsed_ns: launched.wall_ns.max(1),
        unit: Some(WHOLE_RUNS.into()),
        user_ns: Some(launched.user_ns),
        system_ns: Some(launched.system_ns),
        voluntary_switches: Some(launched.voluntary_switches),
        involuntary_switches: Some(launched.involuntary_switches),
        minor_faults: Some(launched.minor_faults),
        major_faults: Some(launched.major_faults),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_workload::kills::Kills;

    fn command() -> Work {
        Work::Command { argv: vec!["true".into()], directory: "/".into() }
    }

    fn ended(exit_code: i32, stdout: &str, stderr: &str) -> Launched {
        Launched {
            exit_code: Some(exit_code),
            stdout: stdout.into(),
            stderr: stderr.into(),
            wall_ns: 2_000_000,
            ..Launched::default()
        }
    }

    #[test]
    fn a_small_program_that_gives_something_else_is_no_sample() {
        let read = |name: &str, stdout: &str| {
            let work = Work::Interpreted(Interpreted::named(name).unwrap());
            work.read(&ended(0, stdout, ""))
        };
        let line = |result: &str| {
            let numbers = r#""operations":5,"elapsed_ns":1000000,"unit":"ops/s""#;
            format!("{{{numbers},\"result\":\"{result}\"}}\n")
        };
        assert_eq!(read("interp:perl.fib", &line("6765")).unwrap().rate(), 5000.0);
        let problem = read("interp:perl.fib", &line("6766")).unwrap_err();
        assert_eq!(problem, "its result is `6766`, not `6765`");
        assert!(read("interp:perl.fib", "6765\n").unwrap_err().contains("no result"));
        assert!(read("interp:perl.fib", &line("6765").replace("result", "r")).is_err());
        let whole = read("interp:lua.fib", "6765\n").unwrap();
        assert_eq!((whole.operations, whole.unit.as_deref()), (1.0, Some(WHOLE_RUNS)));
        assert!(read("interp:lua.fib", "6764\n").is_err());
    }

    #[test]
    fn an_ordinary_command_is_one_run() {
        let sample = command().read(&ended(0, "hello\n", "")).unwrap();
        assert_eq!(sample.rate(), 500.0);
    }

    #[test]
    fn a_command_that_prints_a_sample_is_believed() {
        let sample =
            command().read(&ended(0, "{\"operations\":7,\"elapsed_ns\":1000}", "")).unwrap();
        assert_eq!(sample.operations, 7.0);
        assert_eq!(sample.unit.as_deref(), Some("ops/s"));
    }

    /// Runs and what a command counts itself are two metrics, and their units tell them apart.
    #[test]
    fn a_launch_with_a_sample_and_one_without_have_different_units() {
        let unit = |stdout| command().read(&ended(0, stdout, "")).unwrap().unit;
        assert_eq!(unit("{\"operations\":7,\"elapsed_ns\":9}\nwarning\n").unwrap(), "runs/s");
        assert_eq!(unit("{\"operations\":7,\"elapsed_ns\":9,\"unit\":\"p/s\"}").unwrap(), "p/s");
        let line = "{\"operations\":7,\"elapsed_ns\":9,\"unit\":\"runs/s\"}";
        assert!(command().read(&ended(0, line, "")).unwrap_err().contains("a different unit"));
    }

    #[test]
    fn a_work_stays_with_its_first_unit() {
        let own = command().read(&ended(0, "{\"operations\":7,\"elapsed_ns\":9}", "")).unwrap();
        let whole = command().read(&ended(0, "warning\n", "")).unwrap();
        let hold = |first: &Sample, next: &Sample| {
            let mut unit = None;
            hold_unit(&mut unit, first, &command()).unwrap();
            hold_unit(&mut unit, next, &command())
        };
        assert_eq!((hold(&own, &own), hold(&whole, &whole)), (Ok(()), Ok(())));
        assert!(
            hold(&own, &whole)
                .unwrap_err()
                .contains("`ops/s` in the first launch, but not in this one")
        );
        assert!(hold(&whole, &own).unwrap_err().contains(
            "not a sample in the first launch, but is a sample in \
            `ops/s`"
        ));
    }

    #[test]
    fn no_result_comes_from_a_failed_launch() {
        let problem = command().read(&ended(3, "", "oh\nno file\n")).unwrap_err();
        assert_eq!(problem, "it exited with status 3: no file");
        let killed = Launched { signal: Some(9), exit_code: None, ..ended(0, "", "") };
        assert!(command().read(&killed).unwrap_err().contains("signal 9"));
        let hidden = Kills { out_of_memory: 3, ..Kills::default() };
        let hidden = Launched { kills: hidden, ..ended(0, "", "") };
        let problem = command().read(&hidden).unwrap_err();
        assert_eq!(
            problem,
            "the out-of-memory killer killed 3 processes, although the exit status was 0"
        );
        let hung = Launched { timed_out: true, wall_ns: 5_100_000_000, ..ended(0, "", "") };
        assert!(command().read(&hung).unwrap_err().contains("not end within 5 s"));
    }

    #[test]
    fn the_same_number_again_and_again_is_not_measured() {
        let mut repeated = Repeated::default();
        for launch in 1..MIN_PAIRS {
            assert!(repeated.hold(50.0).is_ok(), "{launch}");
        }
        let mut broken = repeated;
        assert!(broken.hold(50.000_001).is_ok() && broken.hold(50.0).is_ok());
        assert!(repeated.hold(50.0).unwrap_err().contains("in each of 8 launches"));
    }

    #[test]
    fn more_cpu_time_than_the_cpus_have_is_refused() {
        let used = |least_cpu_ns| Launched { least_cpu_ns, ..ended(0, "", "") };
        assert!(command().read(&used(10_000_000)).is_ok(), "a tick");
        let problem = command().read(&used(60_000_000_000)).unwrap_err();
        assert!(problem.starts_with("it used 60000.0 ms of CPU time in 2.0 ms"), "{problem}");
    }

    /// As in a guest whose last tick was 50 ms ago when the process began, and which caught up then.
    #[test]
    fn what_the_clock_of_cpu_times_was_behind_is_no_fault_of_the_time() {
        let used = |least_cpu_ns| Launched {
            least_cpu_ns,
            cpu_clock_behind_ns: 50_000_000,
            ..ended(0, "", "")
        };
        let right = command().read(&used(10_000_000)).unwrap();
        assert!(right.user_ns.is_some() && right.system_ns.is_some());
        let late = command().read(&used(52_000_000)).unwrap();
        assert_eq!((late.user_ns, late.system_ns), (None, None));
        assert_eq!(late.rate(), right.rate());
        assert!(command().read(&used(70_000_000)).unwrap_err().contains("more than 1 CPU can"));
    }

    #[test]
    fn last_words_fit_a_report() {
        assert_eq!(last_line("one\n \x1b[2Jtwo\n\n").unwrap(), "\u{fffd}[2Jtwo");
        assert_eq!(last_line(&"x".repeat(100_000)).unwrap().chars().count(), MAX_WORDS_CHARS);
        assert_eq!(last_line(" \n"), None);
    }

    /// A build prints a lot, and its end may be what matters.
    #[test]
    fn much_output_of_a_command_is_no_failure() {
        let chatty = Launched { printed_bytes: 5 << 20, ..ended(0, "done\n", "") };
        assert_eq!(command().read(&chatty).unwrap().rate(), 500.0);
        let failed = Launched { printed_bytes: 5 << 20, ..ended(2, "", "no rule\n") };
        let problem = command().read(&failed).unwrap_err();
        assert_eq!(problem, "it exited with status 2 after printing 5 MiB: no rule");
    }
}
