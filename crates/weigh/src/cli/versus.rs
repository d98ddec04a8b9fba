//! `weigh versus`: commands against each other, or the times of one command.

use std::mem;

use std::time::Duration;

use clap::Args;

use super::Context;
use super::files::Files;
use super::formats::{HyperfineFiles, csv_of};
use super::go_on::{ContinueOption, settled_by_continue};
use super::hooks::{AROUND, HookArgs};
use super::interleaving::Interleaving;
use super::measuring::defaults_to;
use super::pairing::Pairing;
use super::parameters::{ParameterOptions, Variant, besides, filled};
use super::reproduce::ReproduceCommand;
use super::value;
use weigh_engine::command_comparison::{CommandComparison, ExpectedExit, distinct};
use weigh_engine::hooks::Hooks;
use weigh_engine::request::{Common, Compared, Comparison, Plan, Request};
use weigh_model::format;
use weigh_model::shell;

const EXAMPLES: &str = "\
Examples:
  weigh versus 'grep -c x big.txt' 'rg -c x big.txt'
      Is the second command faster than the first?
  weigh versus 'sort -n nums'
      How long does this command take?
  weigh versus -L jobs 1,2,4 --prepare 'make clean' 'make -j{jobs}'
      Compare three commands that differ in a parameter.
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

const BUDGET_HELP: &str = "Stop after this time: 2m by default, or more. Commands may then have no \
                           verdict yet [default: 2m; at least 8s for each command after the first]";

/// Limit of an experiment with `--runs`, which ends when all runs are made.
const ALL_RUNS: Duration = Duration::from_secs(30 * 24 * 3600);

const MARGIN_HELP: &str =
    "Differences within PERCENT are equivalent; they are differences of the runs per second";

const FAIL_ABOVE_HELP: &str = "Exit with 1 if a command is over PERCENT slower. Compares rates, in runs per \
                               second. Status 1: a command is shown to be slower by more, with 95 % \
                               confidence over all commands together. Status 0: every command has a verdict \
                               and is shown not to be slower by more. Otherwise status 3";
const INTERLEAVE_HELP: &str = "\
Run both commands of a pair at the same time on one CPU, and compare their CPU time. `auto` does so for \
CPU-bound commands that take 5 ms or more, without --prepare. `off` runs one after the other, \
and compares their time (docs/versus.md)";

const USAGE: &str = "weigh versus [OPTIONS] '<FIRST>' '<COMMAND>'...
       weigh versus [OPTIONS] '<COMMAND>'
       weigh versus [OPTIONS] --continue <ID>";

/// Compare the run time of commands with that of the first one, or time one command
///
/// Runs each command in pairs with the first one, in random order. Stops when each has a verdict (slower,
/// faster, or equivalent within the margin) and a narrow interval, or when the budget is spent. One command
/// alone is run 20 times. Write each command in quotes, as for a shell. An arm is one of the commands; a row
/// of the report is one command compared with the first. Options have hyperfine's names where it has them
/// (docs/guide-versus.md lists the differences).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP)))]
#[command(mut_arg("timeout", |timeout| defaults_to(timeout, "24h")))]
#[command(mut_arg("margin", |margin| margin.help(MARGIN_HELP)))]
#[command(mut_arg("fail_above", |fail_above| fail_above.help(FAIL_ABOVE_HELP)))]
#[command(mut_arg("csv", |csv| csv_of(csv, "pair")))]
#[command(mut_arg("pairs", |pairs| pairs.hide_short_help(true)))]
#[command(mut_arg("metrics", |metrics| metrics.hide_short_help(true)))]
#[command(mut_arg("interleave", |arg| arg.help(INTERLEAVE_HELP).hide_possible_values(true)))]
#[command(mut_arg("setup", |setup| setup.short('s')))]
#[command(mut_arg("cleanup", |cleanup| cleanup.short('c')))]
#[command(mut_arg("warmup", |warmup| warmup.short('w')))]
#[command(mut_args(settled_by_continue))]
pub struct VersusArgs {
    /// Commands, each in quotes. The first is the baseline, with which the others are compared; one command
    /// alone is timed
    #[arg(value_name = "COMMAND", required_unless_present = "go_on")]
    command: Vec<String>,
    /// Shell that runs the commands. It gets `-c COMMAND`, such as 'bash --norc'. `default` is /bin/sh, and
    /// `none` splits a command into words and runs it without a shell
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "/bin/sh")]
    shell: String,
    /// Run the commands without a shell, like --shell none
    #[arg(short = 'N', long, conflicts_with = "shell")]
    no_shell: bool,
    /// Name for a command in the reports (may be repeated). The first -n names the first command, the second
    /// -n the second command, and so on [default: the command]
    #[arg(short = 'n', long = "command-name", value_name = "NAME")]
    command_names: Vec<String>,
    /// Exit statuses that count as success, such as 0,1. A command with another exit status has no result
    #[arg(
        long,
        hide_short_help = true,
        value_name = "CODES",
        value_delimiter = ',',
        default_value = "0"
    )]
    expect_exit: Vec<u8>,
    /// Accept any exit status. A command that is killed by a signal still has no result
    #[arg(short, long, conflicts_with = "expect_exit")]
    ignore_failure: bool,
    /// Require the same output from all commands. Every run must print the same to stdout as the first run of
    /// the first command. A command with different output has no result
    #[arg(long, hide_short_help = true)]
    same_output: bool,
    /// Run each command once before the first pair, and show the last 64 KiB of its output
    #[arg(long, hide_short_help = true)]
    show_output: bool,
    /// Run each pair of commands N times, such as -r 10. With three commands there are two comparisons, so
    /// the first command runs 2 × N times; one command alone runs N times. --budget may end them earlier.
    /// Judge once, at the end; a verdict needs at least 8 [default: as many as the verdict needs; 20 for one
    /// command]
    #[arg(short, long, value_name = "N", conflicts_with_all = ["pairs", "fdr", "sets"], requires = "command")]
    #[arg(value_parser = value::at_least(1))]
    runs: Option<u32>,
    #[command(flatten)]
    parameters: ParameterOptions,
    #[command(flatten)]
    pairing: Pairing,
    #[command(flatten)]
    interleaving: Interleaving,
    #[command(flatten)]
    later: ContinueOption,
    /// Shell line before every run, such as 'make clean'. Give it once for all commands, or once for
    /// each, in their order. It is not timed. If it fails, there is no result. weigh kills processes that it
    /// leaves running
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
        let variants = self.variants()?;
        let contest = self.contest(&variants)?;
        contest.argvs()?;
        if variants.len() == 1 {
            self.pairing.check_one_command()?;
        }
        let pairing = &self.pairing;
        let seed = pairing.measuring.seed()?;
        let again = typed.clone().with("--seed", seed);
        let common = Common {
            arms: contest.labels.clone(),
            budget: match self.runs {
                Some(_) => pairing.measuring.budget.unwrap_or(ALL_RUNS),
                None => pairing.budget(&[], &[]),
            },
            ..pairing.measuring.common(&again, seed)
        };
        let mut comparison = Comparison {
            compared: Compared::CommandComparison(contest),
            around: self.around(&variants)?,
            interleave: self.interleaving.of_commands()?,
            ..pairing.comparison()
        };
        let runs = self.runs.map(|runs| runs as usize);
        comparison.design.fixed_pairs = runs.or(comparison.design.fixed_pairs);
        Ok(Request { common, plan: Plan::Compare(comparison) })
    }

    /// The commands with their parameters.
    fn variants(&self) -> Result<Vec<Variant>, String> {
        let texts = self.command.iter().chain(&self.prepare);
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        self.parameters.variants(self.command.len(), &texts)
    }

    fn contest(&self, variants: &[Variant]) -> Result<CommandComparison, String> {
        let line = |variant: &Variant| filled(&self.command[variant.of], &variant.values);
        let has_parameters = self.parameters.are_given();
        let parameters = variants.iter().map(|variant| variant.values.clone());
        Ok(CommandComparison {
            shell: if self.no_shell { Vec::new() } else { shell_words(&self.shell)? },
            lines: variants.iter().map(line).collect(),
            labels: self.labels(variants)?,
            parameters: parameters.filter(|_| has_parameters).collect(),
            expected: match self.ignore_failure {
                true => ExpectedExit::Any,
                false => ExpectedExit::Codes(self.expect_exit.clone()),
            },
            same_output: self.same_output,
            show_output: self.show_output,
        })
    }

    /// A name is of a command as it was typed, or of one of its variants where there are as many names.
    fn labels(&self, variants: &[Variant]) -> Result<Vec<String>, String> {
        let names = &self.command_names;
        if names.len() > variants.len() {
            return Err(format!(
                "there are {}, but {} names",
                format::plural(variants.len(), "command"),
                names.len()
            ));
        }
        if names.iter().any(|name| name.trim().is_empty()) {
            return Err("a --command-name is empty; is a shell variable unset?".into());
        }
        let are_of_variants = names.len() > self.command.len();
        let label = |(number, variant): (usize, &Variant)| {
            let name = names.get(if are_of_variants { number } else { variant.of });
            let text = name.unwrap_or(&self.command[variant.of]);
            let besides = besides(text, &variant.values);
            let besides = if are_of_variants { "" } else { besides.as_str() };
            match filled(text, &variant.values).trim() {
                "" if !variant.values.is_empty() => Err(format!(
                    "{} is empty for one value of a parameter: remove the empty value, or add text around \
                     the parameter",
                    format::quoted(text)
                )),
                filled => Ok(format!("{filled}{besides}")),
            }
        };
        let labels = variants.iter().enumerate().map(label).collect::<Result<_, String>>()?;
        Ok(distinct(labels))
    }

    /// The lines around the commands, with their parameters.
    fn around(&self, variants: &[Variant]) -> Result<Hooks, String> {
        let has_parameters = self.parameters.are_given();
        let lines = |which: fn(usize, &Variant) -> usize| -> Vec<String> {
            let line = |(number, variant): (usize, &Variant)| {
                filled(&self.prepare[which(number, variant)], &variant.values)
            };
            variants.iter().enumerate().map(line).collect()
        };
        let (prepare, prepare_arms) = match &self.prepare[..] {
            [] => (None, Vec::new()),
            [one] if !has_parameters => (Some(one.clone()), Vec::new()),
            [_] => (None, lines(|_, _| 0)),
            several if several.len() == self.command.len() => {
                (None, lines(|_, variant| variant.of))
            }
            several if several.len() == variants.len() => (None, lines(|number, _| number)),
            several => {
                return Err(format!(
                    "there are {} and {} times --prepare: give it once, or once for each command",
                    format::plural(variants.len(), "command"),
                    several.len()
                ));
            }
        };
        let around = self.hooks.around(prepare, prepare_arms);
        let all = |line: &String| -> Vec<String> {
            let mut lines: Vec<String> = Vec::new();
            for line in variants.iter().map(|variant| filled(line, &variant.values)) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            lines
        };
        Ok(Hooks {
            setup: around.setup.as_ref().map(|line| until_one_fails(&all(line))),
            cleanup: around.cleanup.as_ref().map(|line| whatever_fails(&all(line))),
            ..around
        })
    }
}

/// A line for `sh` that runs these lines one after the other, up to the first that fails.
fn until_one_fails(lines: &[String]) -> String {
    match lines {
        [one] => one.clone(),
        lines => lines.iter().map(|line| format!("({line}\n)")).collect::<Vec<_>>().join(" && "),
    }
}

/// A line for `sh` that runs all of these lines, and fails if one of them does.
fn whatever_fails(lines: &[String]) -> String {
    match lines {
        [one] => one.clone(),
        lines => {
            let all = lines.iter().map(|line| format!("({line}\n) || failed=$?\n"));
            format!("failed=0\n{}exit $failed", all.collect::<String>())
        }
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

    /// The commands of a command line: their labels, and what runs around them.
    fn made(words: &[&str]) -> Result<(Vec<String>, Vec<String>, Hooks), String> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            versus: VersusArgs,
        }
        let line = <Line as clap::Parser>::try_parse_from([&["versus"], words].concat());
        let versus = line.unwrap_or_else(|error| panic!("{error}")).versus;
        let variants = versus.variants()?;
        let contest = versus.contest(&variants)?;
        Ok((contest.lines, contest.labels, versus.around(&variants)?))
    }

    #[test]
    fn parameters_are_put_into_commands_names_and_lines_around_them() {
        let words =
            ["-L", "n", "1,2", "make -j{n}", "-s", "touch {n}", "-c", "rm {n}", "-p", "sync"];
        let (lines, labels, around) = made(&words).unwrap();
        assert_eq!(
            (&lines[..], &labels),
            (&["make -j1".to_owned(), "make -j2".into()][..], &lines)
        );
        assert_eq!(around.prepare_arms, ["sync", "sync"]);
        assert_eq!(around.setup.unwrap(), "(touch 1\n) && (touch 2\n)");
        let cleanup = "failed=0\n(rm 1\n) || failed=$?\n(rm 2\n) || failed=$?\nexit $failed";
        assert_eq!(around.cleanup.unwrap(), cleanup);
        let (_, labels, around) =
            made(&["-P", "n", "1", "2", "make", "-n", "all", "-p", "git checkout v{n}"]).unwrap();
        assert_eq!(labels, ["all (n = 1)", "all (n = 2)"]);
        assert_eq!(around.prepare_arms, ["git checkout v1", "git checkout v2"]);
        let (_, labels, _) = made(&["-L", "n", "1,2", "a {n}", "-n", "{n} x", "-n", "y"]).unwrap();
        assert_eq!(labels, ["1 x", "y"]);
        let (_, labels, _) = made(&["-L", "n", ",2", "a {n}"]).unwrap();
        assert_eq!(labels, ["a", "a 2"]);
        for words in [&["-L", "n", "a,", "{n}"][..], &["-L", "n", "1,", "a {n}", "-n", "{n}"]] {
            let problem = made(words).unwrap_err();
            assert!(problem.starts_with("`{n}` is empty for one value of a parameter"));
        }
    }

    #[test]
    fn a_line_around_all_commands_is_one_line() {
        let (_, _, around) = made(&["a", "b", "-s", "{x}", "-p", "sync"]).unwrap();
        let hooks = (around.setup.as_deref(), around.prepare.as_deref());
        assert_eq!(hooks, (Some("{x}"), Some("sync")));
        let problem = made(&["a", "-L", "n", "1,2,3", "-p", "{n}", "-p", "x"]).unwrap_err();
        assert!(problem.starts_with("there are 3 commands and 2 times --prepare"), "{problem}");
    }
}
