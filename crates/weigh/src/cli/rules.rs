//! `weigh rules`: what every audit rule of some files costs.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::files::Files;
use super::formats::csv_of;
use super::measuring::WaitOption;
use super::{Context, INTERRUPTED, exit_status, output, value};
use weigh_audit::attribution::{RulesRequest, measure_rules, read_rules};
use weigh_audit::profile::file as profile_file;
use weigh_host::interruption::listen_for_signals;
use weigh_model::result::summary::State;
use weigh_report::activity::Activity;

const EXAMPLES: &str = "\
Examples:
  sudo weigh rules my.rules                     what does each rule cost?
  sudo weigh rules /etc/audit/rules.d --top 50  show up to 50 rules
  sudo weigh rules my.rules --budget 5m         narrower intervals
  sudo weigh rules my.rules --json rules.json --html rules.html
  sudo weigh show latest                        the stored result again
  weigh profile -o server.json -- ./my-server --once
  sudo weigh rules my.rules --profile server.json
      The cost for your own program, with its own mix of system calls.

Exit status: 0 done, 2 error, 130 interrupted.";

/// Measure what each audit rule costs
///
/// Loads the rules with auditctl and reads them back from the kernel. Then adds and removes single rules,
/// and kinds of rules (groups with the same conditions), while a process of weigh makes system calls. The
/// rules of this host stay in force, and weigh restores everything at the end. See docs/guide-rules.md.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("dialect", |table| table.hide(true)))]
#[command(mut_arg("csv", |csv| csv_of(csv, "audit rule")))]
pub struct RulesArgs {
    /// Rule files, or directories with `*.rules` files, such as /etc/audit/rules.d
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Show the N most expensive rules, and check each by a second measurement. Similar rules share a row
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    top: u16,
    /// Compute the cost of each rule for one program: FILE is what `weigh profile` wrote about it [default: a
    /// fixed mix of calls]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Time for measuring the costs of all rules; more time makes intervals narrower. Loading the rules,
    /// finding those that match and trying cheaper rewrites take additional time, which `weigh` announces.
    /// The report lists rules whose second measurement does not fit [default: 15s if the CPU's hardware
    /// counters (PMU) can be read, otherwise 50s]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    #[arg(allow_hyphen_values = true)]
    budget: Option<Duration>,
    #[command(flatten)]
    queue: WaitOption,
    #[command(flatten)]
    files: Files,
}

impl RulesArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        let profile = self.profile.as_deref().map(profile_file::read).transpose()?;
        self.files.check_without_table()?;
        self.files.rules = Some(self.top.into());
        let request = RulesRequest {
            paths: self.paths.clone(),
            top: self.top.into(),
            profile,
            command: context.again.to_string(),
            time: self.budget,
            wait: self.queue.wait,
        };
        read_rules(&request)?;
        let store = context.open_store()?;
        let interrupted = listen_for_signals()?;
        let activity = RefCell::new(Activity::on_stderr());
        activity.borrow_mut().begins("preparing");
        let mut announce = |text: &str| activity.borrow_mut().above(|| output::note(text));
        let mut progress = |what: &str, share: f64| {
            activity.borrow_mut().begins(&format!("{what}: {:.0} %", 100.0 * share));
        };
        let done = measure_rules(&request, &interrupted, &mut announce, &mut progress)?;
        drop(activity);
        let is_as_before = output::tell_what_is_left(done.left.as_deref());
        let (state, status) = match done.is_cut_short {
            true => (State::Interrupted, INTERRUPTED),
            false => (State::Complete, 0),
        };
        match done.report {
            Some(report) => {
                let how = (report.elapsed_s, state);
                self.files.keep(report.into(), how, &store, context)?;
            }
            None => output::problem("interrupted before anything was measured"),
        }
        Ok(exit_status(is_as_before, status))
    }
}
