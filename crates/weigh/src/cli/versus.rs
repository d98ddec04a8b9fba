//! `weigh versus`: commands against each other.

use clap::Args;

use super::Context;
use super::files::Files;
use super::go_on::{ContinueOption, settled_by_continue};
use super::hooks::{AROUND, HookArgs};
use super::measuring::defaults_to;
use super::pairing::Pairing;
use super::reproduce::ReproduceCommand;
use weigh_engine::command_comparison::{CommandComparison, ExpectedExit, distinct};
use weigh_engine::request::{Common, Compared, Comparison, Plan, Request};
use weigh_model::shell;

const EXAMPLES: &str = "\
Examples:
  weigh versus 'grep -c x big.txt' 'rg -c x big.txt'
      Is the second command faster than the first?
  weigh versus -N './old --fast' './new --fast' './new --faster'
      Without a shell, whose start is part of a short command's time.
  weigh versus --prepare 'make clean' 'make -j1' 'make -j2'
      With something to do before each run, which is not timed.
  weigh versus --prepare 'rm -f out.gz' --prepare 'rm -f out.zst' -n gzip -n zstd \\
      'gzip -k out' 'zstd -k out'
      Each command with its own preparation and its own name.
  weigh versus --same-output './sort-old big.txt' './sort-new big.txt'
      Only a command that writes the same has a result.
  weigh versus --fail-above 2% --timeout 30s './main --bench' './branch --bench'
      For CI: exit status 1 if the branch is significantly more than 2 % slower.
  weigh versus --continue k3f9qx --budget 5m
      Continue an experiment that has no verdict yet.

Time is that of the whole command, from its execution to its end, with the start of the shell. A
command that prints a line {\"operations\":N,\"elapsed_ns\":N} is compared by that rate instead.

Exit status: 0 done, 1 slower than --fail-above, 2 error or no result, 3 inconclusive, 130 interrupted.";

/// Weigh commands against each other; the first is the baseline
///
/// Runs each command in pairs with the first, in random order, until it is shown to be slower, faster or
/// equivalent within the margin, or the budget is spent. Write each command in quotes, as a shell
/// would take it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("budget", |budget| defaults_to(budget, "2m, or 8s per command where that is longer")))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "24h")))]
#[command(mut_args(settled_by_continue))]
pub struct VersusArgs {
    /// The commands, each in quotes: the baseline, and one or more to hold against it
    #[arg(value_name = "COMMAND", required_unless_present = "go_on")]
    command: Vec<String>,
    /// Execute commands with this shell, which gets `-c COMMAND`; `none` splits them into words instead
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "/bin/sh")]
    shell: String,
    /// Execute commands without a shell, like --shell none
    #[arg(short = 'N', long, conflicts_with = "shell")]
    no_shell: bool,
    /// Name of a command in the reports; repeat it for the next one [default: the command]
    #[arg(short = 'n', long = "command-name", value_name = "NAME")]
    command_names: Vec<String>,
    /// Exit statuses that count as success, as 0,1; a command that exits with another has no result
    #[arg(long, value_name = "CODES", value_delimiter = ',', default_value = "0")]
    expect_exit: Vec<u8>,
    /// Accept any exit status; a command that a signal ends still has no result
    #[arg(short, long, conflicts_with = "expect_exit")]
    ignore_failure: bool,
    /// Compare everything that each run writes to stdout with what the first command wrote in a first run;
    /// a command that writes something else has no result
    #[arg(long)]
    same_output: bool,
    /// Run each command once before the first pair, and show what it prints, its last 64 KiB
    #[arg(long)]
    show_output: bool,
    #[command(flatten)]
    pairing: Pairing,
    #[command(flatten)]
    later: ContinueOption,
    /// Run this with `sh` before every launch of a command, for example `make clean`; repeated, once for each
    /// command, in their order. It is neither timed nor compared. If it fails, there is no result.
    /// Processes that it leaves running are killed
    #[arg(long, value_name = "LINE", requires = "command", help_heading = AROUND)]
    prepare: Vec<String>,
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    files: Files,
}

impl VersusArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        if self.later.go_on.is_none() && self.command.len() < 2 {
            return Err(
                "there is one command only: to hold one against it, write each in quotes, as in \
                 weigh versus 'old --x' 'new --x'"
                    .into(),
            );
        }
        let request = || self.request(&context.again);
        self.pairing.measure(self.later.go_on.as_deref(), request, &self.files, context)
    }

    fn request(&self, typed: &ReproduceCommand) -> Result<Request, String> {
        let contest = self.contest()?;
        contest.argvs()?;
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
        let comparison = Comparison {
            compared: Compared::CommandComparison(contest),
            around: self.hooks.around(prepare, prepare_arms),
            ..pairing.comparison()
        };
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
    const COMMAND: &str = "-c";
    let mut words = match shell {
        NONE => return Ok(Vec::new()),
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
        assert!(shell_words("").unwrap_err().contains("names no shell"));
    }
}
