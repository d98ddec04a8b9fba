//! `weigh versus`: commands against each other, or the times of one command.

use std::mem;

use clap::Args;

use super::Context;
use super::files::Files;
use super::formats::HyperfineFiles;
use super::go_on::{ContinueOption, settled_by_continue};
use super::hooks::{AROUND, HookArgs};
use super::measuring::defaults_to;
use super::pairing::Pairing;
use super::reproduce::ReproduceCommand;
use super::value;
use weigh_engine::command_comparison::{CommandComparison, ExpectedExit, distinct};
use weigh_engine::request::{Common, Compared, Comparison, Plan, Request};
use weigh_model::shell;

const EXAMPLES: &str = "\
Examples:
  weigh versus 'grep -c x big.txt' 'rg -c x big.txt'
      Is the second command faster than the first?
  weigh versus 'sort -n nums'
      How long does this command take?
  weigh versus -N './old --fast' './new --fast' './new --faster'
      Start the commands without a shell, to time short commands.
  weigh versus --prepare 'make clean' 'make -j1' 'make -j2'
      Run `make clean` before each run, untimed.
  weigh versus --prepare 'rm -f out.gz' --prepare 'rm -f out.zst' \\
      -n gzip -n zstd 'gzip -k out' 'zstd -k out'
      Give each command its own preparation and its own name.
  weigh versus --same-output './sort-old big.txt' './sort-new big.txt'
      Report no result for a command that prints something else.
  weigh versus --fail-above 2% --timeout 30s './main --bench' './new --bench'
      For CI: exit status 1 if ./new is shown to be more than 2 % slower.
  weigh versus --continue k3f9qx --budget 5m
      Continue an experiment that has no verdict yet.

The time of a command includes its start, and the start of the shell. If its
last line of output is {\"operations\":N,\"elapsed_ns\":N}, weigh compares that
rate instead.

Exit status: 0 done, 1 slower by more than --fail-above, 2 error or no result,
3 inconclusive (no verdict, or --fail-above undecided), 130 interrupted.";

const BUDGET_HELP: &str = "Stop measuring after this time, even if commands have no verdict yet [default: \
                           2m; at least 8s for each command after the first]";

const MARGIN_HELP: &str =
    "Difference of the rates (runs per second) below which two commands count as equivalent";

const USAGE: &str = "weigh versus [OPTIONS] '<FIRST>' '<COMMAND>'...
       weigh versus [OPTIONS] '<COMMAND>'
       weigh versus [OPTIONS] --continue <ID>";

/// Compare the run time of each command with that of the first one, the baseline; or time one command
///
/// Runs each command in pairs with the first one, in random order. Stops when each has a verdict (slower,
/// faster, or equivalent within the margin) and a narrow interval, or when the budget is spent. One command
/// alone is run 20 times. Write each command in quotes, as for a shell. An arm is one of the commands; a row
/// of the report is one command compared with the first. Options that hyperfine has too mean the same.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP)))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "24h")))]
#[command(mut_arg("margin", |margin| margin.help(MARGIN_HELP)))]
#[command(mut_arg("setup", |setup| setup.short('s')))]
#[command(mut_arg("cleanup", |cleanup| cleanup.short('c')))]
#[command(mut_arg("warmup", |warmup| warmup.short('w')))]
#[command(mut_args(settled_by_continue))]
pub struct VersusArgs {
    /// Commands, each in quotes: the baseline, and others to compare with it; or one command to time
    #[arg(value_name = "COMMAND", required_unless_present = "go_on")]
    command: Vec<String>,
    /// Shell that runs the commands with `-c COMMAND`, such as 'bash --norc'; `default` is /bin/sh, and
    /// `none` splits a command into words and runs it without a shell
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "/bin/sh")]
    shell: String,
    /// Run the commands without a shell, like --shell none
    #[arg(short = 'N', long, conflicts_with = "shell")]
    no_shell: bool,
    /// Name of the first command in the reports; repeat the option to name the next ones [default: the
    /// command]
    #[arg(short = 'n', long = "command-name", value_name = "NAME")]
    command_names: Vec<String>,
    /// Exit statuses that count as success, such as 0,1; a command with another exit status has no result
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_value = "0")]
    expect_exit: Vec<u8>,
    /// Accept any exit status; a command that is killed by a signal still has no result
    #[arg(short, long, conflicts_with = "expect_exit")]
    ignore_failure: bool,
    /// Require that every run prints the same to stdout as the first run of the first command; a command with
    /// different output has no result
    #[arg(long)]
    same_output: bool,
    /// Run each command once before the first pair, and show the last 64 KiB of its output
    #[arg(long)]
    show_output: bool,
    /// Run each command exactly N times, such as 10, and judge once, as --pairs does. The first command runs
    /// N times for each of the others. A verdict takes at least 8 runs [default: as many as the verdict
    /// needs; 20 for one command]
    #[arg(short, long, value_name = "N", conflicts_with_all = ["pairs", "fdr"], requires = "command")]
    #[arg(value_parser = value::at_least(1))]
    runs: Option<u32>,
    #[command(flatten)]
    pairing: Pairing,
    #[command(flatten)]
    later: ContinueOption,
    /// Run this with `sh` before every run of a command, for example 'make clean'. Give it once for all
    /// commands, or once for each, in their order. It is not timed. If it fails, there is no result. weigh
    /// kills processes that it leaves running
    #[arg(short, long, value_name = "LINE", requires = "command", help_heading = AROUND)]
    prepare: Vec<String>,
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    exports: HyperfineFiles,
}

impl VersusArgs {
    pub fn run(mut self, context: &Context) -> Result<u8, String> {
        self.files.add(mem::take(&mut self.exports.0));
        let request = || self.request(&context.again);
        self.pairing.measure(self.later.go_on.as_deref(), request, &self.files, context)
    }

    fn request(&self, typed: &ReproduceCommand) -> Result<Request, String> {
        let contest = self.contest()?;
        contest.argvs()?;
        if contest.lines.len() == 1 {
            self.pairing.check_one_command()?;
        }
        let (prepare, prepare_arms) = match &self.prepare[..] {
            [] => (None, Vec::new()),
            [one] => (Some(one.clone()), Vec::new()),
            several if several.len() == self.command.len() => (None, several.to_vec()),
            several => {
                return Err(format!(
                    "there are {} commands and {} times --prepare: give it once, or once for each command",
                    self.command.len(),
                    several.len()
                ));
            }
        };
        let pairing = &self.pairing;
        let seed = pairing.measuring.seed()?;
        let again = typed.clone().with("--seed", seed);
        let common = Common {
            arms: contest.labels.clone(),
            budget: pairing.budget(&[], &[]),
            ..pairing.measuring.common(&again, seed)
        };
        let mut comparison = Comparison {
            compared: Compared::CommandComparison(contest),
            around: self.hooks.around(prepare, prepare_arms),
            ..pairing.comparison()
        };
        let runs = self.runs.map(|runs| runs as usize);
        comparison.design.fixed_pairs = runs.or(comparison.design.fixed_pairs);
        Ok(Request { common, plan: Plan::Compare(comparison) })
    }

    fn contest(&self) -> Result<CommandComparison, String> {
        let names = &self.command_names;
        if names.len() > self.command.len() {
            return Err(format!(
                "there are {} commands, but {} names",
                self.command.len(),
                names.len()
            ));
        }
        if names.iter().any(|name| name.trim().is_empty()) {
            return Err("a --command-name is empty; is a shell variable unset?".into());
        }
        let unnamed = self.command.iter().skip(names.len());
        let labels = names.iter().chain(unnamed).map(|label| label.trim().to_owned());
        Ok(CommandComparison {
            shell: if self.no_shell { Vec::new() } else { shell_words(&self.shell)? },
            lines: self.command.clone(),
            labels: distinct(labels.collect()),
            parameters: Vec::new(),
            expected: match self.ignore_failure {
                true => ExpectedExit::Any,
                false => ExpectedExit::Codes(self.expect_exit.clone()),
            },
            same_output: self.same_output,
            show_output: self.show_output,
        })
    }
}

/// `bash --norc` is executed as `bash --norc -c COMMAND`.
fn shell_words(shell: &str) -> Result<Vec<String>, String> {
    const NONE: &str = "none";
    const DEFAULT: &str = "default";
    const COMMAND: &str = "-c";
    let mut words = match shell {
        NONE => return Ok(Vec::new()),
        DEFAULT => vec!["/bin/sh".into()],
        shell => shell::words(shell).unwrap_or_default(),
    };
    if words.is_empty() {
        return Err(format!(
            "`{shell}` names no shell: write a program such as bash, or `none` for none"
        ));
    }
    if words.last().is_some_and(|word| word != COMMAND) {
        words.push(COMMAND.into());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_a_program_with_options_or_none() {
        assert_eq!(shell_words("/bin/sh").unwrap(), ["/bin/sh", "-c"]);
        assert_eq!(shell_words("bash --norc -c").unwrap(), ["bash", "--norc", "-c"]);
        assert_eq!(shell_words("none").unwrap(), [""; 0]);
        assert_eq!(shell_words("default").unwrap(), ["/bin/sh", "-c"]);
        assert!(shell_words("").unwrap_err().contains("names no shell"));
    }
}
