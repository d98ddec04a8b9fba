//! The command line that measures the same again, from what was typed: no option has to say how it is written
//! back, so none is lost. What becomes of the results (the options under [`OUTPUT`]) is no part of it, and
//! neither are the global options.

use std::ffi::{OsStr, OsString};
use std::fmt;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use weigh_model::shell::command_line;

/// The heading of the options that say what becomes of the results.
pub const OUTPUT: &str = "Output";

/// The option that says how long another experiment is waited for, which changes no result.
const WAIT: &str = "wait";

/// A command line, argument by argument.
#[derive(Clone, Debug, Default)]
pub struct ReproduceCommand {
    command: String,
    positionals: Vec<String>,
    options: Vec<Typed>,
    /// After `--`.
    last: Vec<String>,
}

/// An option as it was typed.
#[derive(Clone, Debug)]
struct Typed {
    name: String,
    /// Its name, or another one that it has.
    called: String,
    words: Vec<String>,
}

impl ReproduceCommand {
    /// Collects the typed arguments of a subcommand from these words.
    pub fn of(cli: &Command, matches: &ArgMatches, typed: &[OsString]) -> ReproduceCommand {
        let Some((name, matches)) = matches.subcommand() else {
            return ReproduceCommand::default();
        };
        let mut again =
            ReproduceCommand { command: name.to_owned(), ..ReproduceCommand::default() };
        let arguments = cli.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
        for argument in arguments.filter(|argument| says_what_is_measured(argument)) {
            let id = argument.get_id().as_str();
            if matches.value_source(id) == Some(ValueSource::CommandLine) {
                let raw = matches.get_raw_occurrences(id).into_iter().flatten();
                let text = |word: &OsStr| word.to_string_lossy().into_owned();
                let occurrences = raw.map(|words| words.map(text).collect()).collect();
                again.add(argument, occurrences, typed);
            }
        }
        again
    }

    /// Adds an argument with the values of each time that it was typed.
    fn add(&mut self, argument: &Arg, occurrences: Vec<Vec<String>>, typed: &[OsString]) {
        let Some(long) = argument.get_long() else {
            let place = if argument.is_last_set() { &mut self.last } else { &mut self.positionals };
            return place.extend(occurrences.into_iter().flatten());
        };
        let takes_several = argument.get_num_args().is_some_and(|count| count.min_values() > 1);
        let occurrences = match takes_several {
            true => occurrences,
            // A delimiter may have parted them.
            false => occurrences.into_iter().flatten().map(|value| vec![value]).collect(),
        };
        let name = format!("--{long}");
        let called = alias(argument, typed).unwrap_or_else(|| name.clone());
        let short = argument.get_short().map(|short| format!("-{short}"));
        let words = match argument.get_action().takes_values() {
            true => option(&called, short.as_deref(), occurrences),
            false => vec![short.unwrap_or_else(|| called.clone())],
        };
        self.options.push(Typed { name, called, words });
    }

    /// Sets an option to this value, whatever its value was before.
    pub fn with(mut self, long: &str, value: impl ToString) -> ReproduceCommand {
        let values = vec![vec![value.to_string()]];
        match self.options.iter_mut().find(|typed| typed.name == long) {
            Some(typed) => typed.words = option(&typed.called, None, values),
            None => {
                let (name, called) = (long.to_owned(), long.to_owned());
                self.options.push(Typed { name, called, words: option(long, None, values) });
            }
        }
        self
    }

    pub fn without(mut self, long: &str) -> ReproduceCommand {
        self.options.retain(|typed| typed.name != long);
        self
    }

    /// Replaces the workloads, treatments or files.
    pub fn of_these(mut self, positionals: &[String]) -> ReproduceCommand {
        self.positionals = positionals.to_vec();
        self
    }

    /// Replaces the command after `--`.
    pub fn of_command(mut self, words: &[String]) -> ReproduceCommand {
        self.last = words.to_vec();
        self
    }

    fn words(&self) -> Vec<String> {
        let options = self.options.iter().flat_map(|typed| typed.words.iter().cloned());
        let mut words = vec!["weigh".to_owned(), self.command.clone()];
        let is_option = |word: &String| word.starts_with('-');
        if self.positionals.iter().any(is_option) {
            words.extend(options);
            words.push("--".into());
            words.extend(self.positionals.iter().cloned());
        } else {
            words.extend(self.positionals.iter().cloned());
            words.extend(options);
        }
        if !self.last.is_empty() {
            words.push("--".into());
            words.extend(self.last.iter().cloned());
        }
        words
    }
}

/// Returns true if an argument is part of the command line that measures the same again.
fn says_what_is_measured(argument: &Arg) -> bool {
    argument.get_help_heading() != Some(OUTPUT) && argument.get_id() != WAIT
}

/// By which other name an option was typed, if it was.
fn alias(argument: &Arg, typed: &[OsString]) -> Option<String> {
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|alias| format!("--{alias}"));
    let is_typed = |alias: &String| {
        let typed = typed.iter().filter_map(|word| word.to_str());
        let mut typed = typed.take_while(|word| *word != "--");
        typed.any(|word| word.split('=').next() == Some(alias.as_str()))
    };
    aliases.into_iter().find(is_typed)
}

/// An option with the values of each time. A single value that looks like an option itself has to be joined
/// to its name.
fn option(long: &str, short: Option<&str>, occurrences: Vec<Vec<String>>) -> Vec<String> {
    let words = |values: Vec<String>| match &values[..] {
        [value] if value.starts_with('-') => vec![format!("{long}={value}")],
        _ => std::iter::once(short.unwrap_or(long).to_owned()).chain(values).collect(),
    };
    occurrences.into_iter().flat_map(words).collect()
}

/// As a shell reads it.
impl fmt::Display for ReproduceCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&command_line(self.words().iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::cli::{Cli, parse};
    use needs::repetitions;

    /// A command, its positionals, and what may stand after `--`. Its options are what clap says.
    type Known = (&'static str, &'static [&'static str], &'static [&'static str]);

    const WORKLOADS: &[&str] = &["getppid", "pipe:copies=4", "unixbench", "quick"];
    const COMMAND: &[&str] = &["make", "-j2", "--", "it's", "", "a b", "$HOME", "--budget", "ü\n"];
    const TIMES: &[&str] = &["1s", "1500ms", "1.25s", "1h 30m", "90s"];
    const LENGTHS: &[&str] = &["10ms", "0.0125s", "12500us", "60s"];
    const SHARES: &[&str] = &["1%", "0.30000000000000004", "99.9 %", "1e-7"];
    const NAMES: &[&str] = &["nightly", "before-upgrade"];
    const LINES: &[&str] = &["make clean", "-x", "", "it's", "a \"b\" > c; d", "--prepare"];

    const KNOWN: &[Known] = &[
        (
            "compare",
            &["audit:rules=a b.rules", "seccomp:compares=10", "none", "audit:live"],
            COMMAND,
        ),
        ("versus", &["old --x", "new --x 'a b'", "-odd", "it's $HOME | cat"], &[]),
        ("run", WORKLOADS, &[]),
        ("calibrate", &[], &[]),
        ("load", &["shared", "./work file", "-odd"], &[]),
        ("net", &[], &[]),
        ("budget", &["audit:rules=a b.rules"], COMMAND),
        ("rules", &["my.rules", "/etc/audit/rules.d", "-odd.rules", "a b.rules"], &[]),
        ("import", &["RUN1.txt", "-odd.csv", "a b.json"], &[]),
    ];

    /// Odd values for what an option takes, by the name of its value; of an option or of one command's
    /// option, if these take others.
    const VALUES: &[(&str, &[&str])] = &[
        ("DIR", &["/tmp", "/usr"]),
        ("LINE", LINES),
        ("N", &["1", "10"]),
        ("NAME", NAMES),
        ("PERCENT", SHARES),
        ("TAG", NAMES),
        ("TIME", TIMES),
        ("WORKLOAD", WORKLOADS),
        ("WORKLOAD|SUITE", WORKLOADS),
        ("pass", &["2s", "10m"]),
        ("from-spec", &["spec.toml"]),
        ("spec", &["spec.toml"]),
        ("trace", &["packets", "a b"]),
        ("passive", &["root@p.lab"]),
        ("active", &["root@a.lab", "h,port=22,identity=a b"]),
        ("as", &["off,on", "none"]),
        ("base", &["seccomp", "audit:backlog=64,wait=0"]),
        ("beyond-cache", &["150%"]),
        ("block-size", &["4k", "1m"]),
        ("budget rate", &["5", "0.1", "1e-6", "123456.789"]),
        ("capacity", &["p99=50ms", "p99=1.5s"]),
        ("client", &["root@192.0.2.7", "h,port=22,address=192.0.2.1,identity=a b"]),
        ("command-name", LINES),
        ("config", &["reaim.config", "-x", "a b"]),
        ("copies", &["1", "3", "1024"]),
        ("disk-tree", &["/usr"]),
        ("expect-exit", &["0", "0,1", "255"]),
        ("file-size", &["10k", "2M"]),
        ("fixture", &["fs:ext4", "busy:memory=64M"]),
        ("format", &["perf", "table"]),
        ("grid", &["quick", "./a b.toml"]),
        ("import base", &["off", "-x"]),
        ("increment", &["adaptive", "10"]),
        ("interleave", &["auto", "on", "off"]),
        ("lengths", &["20ms", "2s,4s,45s"]),
        ("metric", &["peak_memory", "jobs,latency_p99"]),
        ("pairs", &["8", "4294967295"]),
        ("parameter-list", &["n 1,2", "v -x,a\\,b"]),
        ("parameter-scan", &["n 1 4", "n -2 -0.5"]),
        ("parameter-step-size", &["0.5"]),
        ("period", &["500ms", "10s"]),
        ("planted", &["1%", "0.5%"]),
        ("pool-size", &["0k", "25m"]),
        ("precision", &["5%", "0.5%"]),
        ("profiler", &["perf record -o 'a b' -p {pids}", "-odd {pid}"]),
        ("profile", &["server 1.json", "-"]),
        ("rate", &["200", "0.5"]),
        ("reboot-by", &["kexec", "grub"]),
        ("resident", &["64m"]),
        ("runs", &["1", "10"]),
        ("run copies", &["1", "1,2,4", "2..3", "1..16,1024"]),
        ("sample", LENGTHS),
        ("samples", &["3", "4294967295"]),
        ("seed", &["0", "18446744073709551615"]),
        ("shell", &["bash --norc", "none", "-odd"]),
        ("think", &["10ms"]),
        ("treat", &["both", "server", "client"]),
        ("to", &["peak", "quick", "500"]),
        ("users", &["1", "1,2,8", "10..50:10"]),
        ("workfile", &["workfile.a b", "-x"]),
    ];

    /// An option of none of them, or one that is about another experiment.
    const LEFT_OUT: &[&str] = &["help", "continue"];

    fn any<'a>(chance: &mut impl Rng, values: &[&'a str], at_most: usize) -> Vec<&'a str> {
        let count = if values.is_empty() { 0 } else { chance.random_range(0..=at_most) };
        (0..count).map(|_| values[chance.random_range(0..values.len())]).collect()
    }

    /// The options of a command that measure something, with values to try; none of a flag.
    fn options(name: &str) -> Vec<(String, &'static [&'static str])> {
        let cli = Cli::command();
        let command = cli.find_subcommand(name).unwrap();
        let measures = command.get_arguments().filter(|argument| says_what_is_measured(argument));
        let named = measures.filter_map(|argument| Some((argument, argument.get_long()?)));
        let values = |(argument, long): (&Arg, &str)| {
            if !argument.get_action().takes_values() {
                return (long.to_owned(), &[][..]);
            }
            let of = |key: &str| VALUES.iter().find(|(option, _)| *option == key);
            let named = argument.get_value_names().into_iter().flatten();
            let keys = [format!("{name} {long}"), long.to_owned()].into_iter();
            let keys: Vec<String> = keys.chain(named.map(ToString::to_string)).collect();
            let known = keys.iter().find_map(|key| of(key));
            (long.to_owned(), known.unwrap_or_else(|| panic!("none of {keys:?} has values")).1)
        };
        named.filter(|(_, long)| !LEFT_OUT.contains(long)).map(values).collect()
    }

    /// A command line that may be wrong: options that exclude each other, or none of what is needed.
    fn some_words(
        chance: &mut impl Rng,
        (name, positionals, last): &Known,
        options: &[(String, &[&str])],
    ) -> Vec<String> {
        let mut words = vec!["weigh".to_owned(), (*name).to_owned()];
        for (option, values) in options {
            // Those that may stand several times do.
            let repeated =
                "workload tag rate metric fixture beside command-name expect-exit parameter-list";
            let is_repeated = repeated.split(' ').any(|repeated| repeated == option);
            let times = if is_repeated { 3 } else { 1 };
            if !chance.random_bool(0.25) {
                continue;
            }
            if values.is_empty() {
                words.push(format!("--{option}"));
            }
            let takes_several = ["parameter-list", "parameter-scan"].contains(&option.as_str());
            let typed = |value: &str| match takes_several {
                true => format!("--{option} {value}").split(' ').map(str::to_owned).collect(),
                false => vec![format!("--{option}={value}")],
            };
            words.extend(any(chance, values, times).into_iter().flat_map(typed));
        }
        let at_most = if ["budget", "load"].contains(name) { 1 } else { 3 };
        let positionals = any(chance, positionals, at_most);
        let is_odd = positionals.iter().any(|word| word.starts_with('-'));
        words.extend(is_odd.then(|| "--".to_owned()));
        words.extend(positionals.into_iter().map(Into::into));
        if !last.is_empty() && chance.random_bool(0.5) {
            words.push("--".into());
            words.extend(any(chance, last, 5).into_iter().map(Into::into));
        }
        words
    }

    /// Parses words. Returns the command as understood, and the arguments to repeat it.
    fn arguments(words: &[String]) -> Result<(String, ReproduceCommand), clap::Error> {
        parse(words).map(|(cli, again)| (format!("{:?}", cli.command), again))
    }

    #[test]
    fn any_command_line_comes_back_with_equal_arguments() {
        let mut chance = ChaCha8Rng::seed_from_u64(12);
        for known in KNOWN {
            let (mut parsed, options) = (0, options(known.0));
            let often = repetitions(100, 400);
            for _ in 0..often {
                let words = some_words(&mut chance, known, &options);
                let (arguments_typed, again) = match arguments(&words) {
                    Ok(typed) => typed,
                    Err(error) => {
                        let may_be =
                            [ErrorKind::ArgumentConflict, ErrorKind::MissingRequiredArgument];
                        assert!(may_be.contains(&error.kind()), "{words:?}: {error}");
                        continue;
                    }
                };
                let (back, twice) = arguments(&again.words())
                    .unwrap_or_else(|error| panic!("{words:?}: {again}: {error}"));
                assert_eq!(back, arguments_typed, "{words:?}: {again}");
                assert_eq!(twice.to_string(), again.to_string());
                parsed += 1;
            }
            assert!(parsed > often / 5, "{}: {parsed}", known.0);
        }
    }

    #[test]
    fn what_becomes_of_the_results_is_left_out_and_what_was_drawn_is_put_in() {
        let again = |words: &str| {
            let words: Vec<String> = words.split(' ').map(Into::into).collect();
            arguments(&words).unwrap().1
        };
        let typed =
            again("weigh compare none -w pipe --json - --as unixbench --database x --copies all");
        let drawn = typed.with("--copies", 2).with("--seed", 7);
        assert_eq!(drawn.to_string(), "weigh compare none -w pipe --copies 2 --seed 7");
        assert_eq!(again("weigh compare none -v").to_string(), "weigh compare none");
        let typed = again("weigh run app:web.cookie --clients=8").with("--copies", 8);
        assert_eq!(typed.to_string(), "weigh run app:web.cookie --clients 8");
        let typed = again("weigh calibrate --repeat 3 --planted 1% --json x").without("--repeat");
        assert_eq!(typed.to_string(), "weigh calibrate --planted 1%");
    }
}
