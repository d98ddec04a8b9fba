//! `weigh budget`: what audit rules write, and what they need.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use super::ask::answer;
use super::files::Files;
use super::formats::csv_of;
use super::measuring::WaitOption;
use super::reproduce::ReproduceCommand;
use super::{Context, INTERRUPTED, copies, exit_status, output};
use trust::allowed::executable;
use weigh_audit::budget::{BudgetRequest, Subject, check_typed, execute};
use weigh_audit::profile::file as profile_file;
use weigh_host::interruption::listen_for_signals;
use weigh_host::undo::left_behind::put_back_what_was_left;
use weigh_model::format;
use weigh_model::result::summary::State;
use weigh_model::shell::command_line;
use weigh_report::activity::Activity;
use weigh_treatment::undoings;

const EXAMPLES: &str = "\
Examples:
  sudo weigh budget -w exec
      Audit every system call; an operation is the start of a program.
  sudo weigh budget audit:rules=my.rules -w create-unlink --rate 200
      Use my rules, at 200 files created per second.
  sudo weigh budget audit:rules=my.rules --rate 5 -- ./handle-one-request
      Use my rules; an operation is a run of this command.
  sudo weigh budget audit:sink=auditd -w getppid --burst 20000
      Use the real auditd, and a burst of 20,000 operations.
  sudo weigh budget audit -w open-close --disk-full
      Show what happens when the log's disk is full.
  sudo weigh budget --profile server.json
      Run the command of a recorded profile; asks first.

Exit status: 0 done, 2 error or no result, 130 interrupted.";

/// Estimate how large the audit log gets, and the backlog limit that audit rules need
///
/// Runs a workload or a command with the rules loaded. Reports records and bytes of log per operation, and
/// the log per day at your rates, plain and gzipped. Finds the smallest backlog limit that loses no record in
/// a burst, and shows what happens at 2, 5 and 10 times your rate. docs/guide-budget.md explains the numbers.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("dialect", |table| table.hide(true)))]
#[command(mut_arg("csv", |csv| csv_of(csv, "value of --rate")))]
pub struct BudgetArgs {
    /// Treatment `audit` with its parameters, such as audit:rules=my.rules (`weigh list treatments audit`).
    /// `audit` alone audits every system call
    #[arg(value_name = "TREATMENT", default_value = "audit")]
    treatment: String,
    /// Workload whose operations are counted, such as exec (`weigh list workloads`) [default: open-close]
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["command", "profile"])]
    workload: Option<String>,
    /// Run the command of this profile, which `weigh profile` recorded. weigh shows the command, and runs
    /// it as root only after you confirm on a terminal
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    profile: Option<PathBuf>,
    /// Operations (or runs of the command) per second to assume, such as 200 (may be repeated). The log per
    /// day is also shown for 2, 5 and 10 times each rate [default: 1, 10, 100, 1000]
    #[arg(long = "rate", value_name = "N", value_parser = rate)]
    rates: Vec<f64>,
    /// Number of operations in a burst whose records the backlog must hold [default: as many as 100 ms at
    /// full speed hold, or as make 100000 records, whichever is fewer]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    burst: Option<u64>,
    /// Also fill a file system of 8 MiB, to show what auditd does if its disk is full. Does this once with
    /// each of auditd's disk_full_action IGNORE, SYSLOG, ROTATE and SUSPEND. HALT, SINGLE and EXEC are not
    /// tried. Needs auditd installed but not running; takes half a minute more
    #[arg(long)]
    disk_full: bool,
    /// Command whose runs are counted as operations, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    queue: WaitOption,
    #[command(flatten)]
    files: Files,
}

/// A number of operations a second.
fn rate(text: &str) -> Result<f64, String> {
    const RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e9;
    let rate: Option<f64> = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| "takes operations a second, such as 100 or 0.5".into())
}

impl BudgetArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        self.files.check_without_table()?;
        let Some(subject) = self.subject(&context.again)? else {
            output::problem("nothing was run");
            return Ok(super::ERROR);
        };
        let request = BudgetRequest {
            treatment: self.treatment.clone(),
            again: self.again(&subject, &context.again),
            subject,
            rates: self.rates.clone(),
            burst: self.burst,
            disk_full: self.disk_full,
            wait: self.queue.wait,
        };
        let store = context.open_store_or(|| check_typed(&request))?;
        put_back_what_was_left(Path::new("/"), &undoings(), &mut output::note)?;
        let interrupted = listen_for_signals()?;
        let began = Instant::now();
        let mut activity = Activity::on_stderr();
        activity.begins("measuring the log");
        let mut announce = |text: &str| activity.above(|| output::note(text));
        let done = execute(&request, &interrupted, &mut announce)?;
        drop(activity);
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let Some(report) = done.report else {
            output::problem("interrupted before anything was measured");
            return Ok(exit_status(is_as_before, INTERRUPTED));
        };
        let (state, status) = match report.failure {
            _ if report.interrupted => (State::Interrupted, INTERRUPTED),
            Some(_) => (State::Failed, super::ERROR),
            None => (State::Complete, 0),
        };
        let how = (began.elapsed().as_secs_f64(), state);
        self.files.keep(report.into(), how, &store, context)?;
        Ok(exit_status(is_as_before, status))
    }

    /// Returns the subject to launch; `None` if the user does not agree to it.
    fn subject(&self, typed: &ReproduceCommand) -> Result<Option<Subject>, String> {
        if let Some(path) = &self.profile {
            let command = command_of(path)?;
            let subject = Subject::Command(command.clone());
            return Ok(agrees(path, &command, &self.again(&subject, typed))?.then_some(subject));
        }
        Ok(Some(match self.command.is_empty() {
            true => {
                let workload = self.workload.clone().unwrap_or("open-close".into());
                copies::refuse_many(std::slice::from_ref(&workload))?;
                Subject::Workload(workload)
            }
            false => Subject::Command(self.command.clone()),
        }))
    }

    /// The command line that measures the same again, and asks nothing.
    fn again(&self, subject: &Subject, typed: &ReproduceCommand) -> String {
        let again = typed.clone().of_these(std::slice::from_ref(&self.treatment));
        let again = match subject {
            Subject::Command(command) => again.without("--profile").of_command(command),
            Subject::Workload(_) => again,
        };
        again.to_string()
    }
}

/// A file's command is run as root: so who runs it has seen it. `again` is what runs it without asking.
fn agrees(path: &Path, command: &[String], again: &str) -> Result<bool, String> {
    let shown = command_line(command.iter().map(String::as_str));
    if format::label(&shown) != shown {
        return Err(format!(
            "{}: the command of this profile contains control characters, so it cannot be shown: give a \
             command after `--`",
            path.display()
        ));
    }
    answer(&format!("{} runs this command, as root:\n  {shown}\nRun it? [y/N] ", path.display()))
        .ok_or_else(|| {
            format!(
                "{}: the command of a profile runs as root, so it needs your confirmation, and there is \
                 no terminal to ask on. The command is `{shown}`; to run it, type `{again}`",
                path.display()
            )
        })
}

/// Which calls match rules depends on their arguments, which a profile does not hold; so its command is
/// run again.
fn command_of(path: &Path) -> Result<Vec<String>, String> {
    let checked = executable(path).map_err(|error| {
        format!("{}: root does not run the command of this profile: {error}", path.display())
    })?;
    let profile = profile_file::read(&checked)?;
    if profile.command.is_empty() {
        return Err(format!(
            "{}: this profile names no command to run; give one after `--`",
            path.display()
        ));
    }
    if profile.is_of_period {
        return Err(format!(
            "{}: this profile covers a period of a running program, so there is no command that can be run \
             again; rules depend on the arguments of calls, which a profile does not hold: give a command \
             after `--` that does a part of the work and exits, such as one request",
            path.display()
        ));
    }
    Ok(profile.command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::profile::{SCHEMA, SyscallProfile};

    #[test]
    fn root_runs_no_command_of_another_users_profile() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("profile.json");
        let profile = SyscallProfile {
            schema: SCHEMA.into(),
            command: vec!["true".into()],
            calls: [("read".to_owned(), 1)].into(),
            ..SyscallProfile::default()
        };
        profile_file::write(&profile, &file).unwrap();
        assert_eq!(command_of(&file), Ok(vec!["true".to_owned()]));
        std::os::unix::fs::chown(&file, Some(1002), None).unwrap();
        assert!(command_of(&file).unwrap_err().contains("belongs to another user (uid 1002)"));
    }

    #[test]
    fn rates_are_numbers_above_nothing() {
        assert_eq!(rate("0.5"), Ok(0.5));
        for wrong in ["0", "-1", "NaN", "inf", "many", ""] {
            assert!(rate(wrong).unwrap_err().contains("such as 100"), "{wrong}");
        }
    }
}
