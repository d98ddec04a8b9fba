//! Times of commands, as people who time commands want them: mean, spread, median, CPU time and extremes.

use super::schemes;
use super::table::{Table, columns};
use weigh_model::format;
use weigh_model::result::summary::{State, Summary};
use weigh_model::result::versus::CommandTimes;
use weigh_model::result::warning::Warning;

/// How to read the table.
const LEGEND: &str = "±: standard deviation; user, system: CPU time";

/// Unit of all times of a table, so that they can be compared at a glance.
#[derive(Clone, Copy)]
pub struct TimeUnit {
    pub name: &'static str,
    per_s: f64,
}

impl TimeUnit {
    const ALL: [TimeUnit; 3] = [
        TimeUnit { name: "s", per_s: 1.0 },
        TimeUnit { name: "ms", per_s: 1e3 },
        TimeUnit { name: "µs", per_s: 1e6 },
    ];

    /// Returns the largest unit in which a time is at least 1.
    pub fn of(seconds: f64) -> TimeUnit {
        let [.., smallest] = TimeUnit::ALL;
        TimeUnit::ALL.into_iter().find(|unit| seconds * unit.per_s >= 1.0).unwrap_or(smallest)
    }

    pub fn text(self, seconds: f64, decimals: usize) -> String {
        match seconds.is_finite() {
            true => format!("{:.decimals$}", seconds * self.per_s),
            false => format::NONE.to_owned(),
        }
    }
}

/// Times of the commands of an experiment; empty without commands, or with rates of their own.
pub fn commands(s: &Summary) -> &[CommandTimes] {
    s.versus.as_ref().map_or(&[], |versus| &versus.commands)
}

pub fn table(s: &Summary) -> Option<(String, Table)> {
    let commands = commands(s);
    let fastest = commands.iter().map(CommandTimes::mean_s).reduce(f64::min)?;
    let unit = TimeUnit::of(fastest);
    let decimals = if unit.per_s * fastest < 10.0 { 2 } else { 1 };
    let text = |seconds: f64| unit.text(seconds, decimals);
    let known = |seconds: Option<f64>| seconds.map_or(format::NONE.to_owned(), text);
    let cells = |times: &CommandTimes| {
        vec![
            format::label(&times.command),
            text(times.mean_s()),
            known(times.deviation_s()),
            text(times.median_s()),
            known(times.user_s),
            known(times.system_s),
            format!("{} … {}", text(times.shortest_s()), text(times.longest_s())),
            format::integer(times.times_s.len() as u64),
        ]
    };
    let columns = columns("command|>mean|>±|>median|>user|>system|>min … max|>runs");
    let title = format!("Times in {}", unit.name);
    Some((title, Table::new(columns, commands.iter().map(cells).collect())))
}

/// Returns what was timed, and how to read the table.
pub fn legend(s: &Summary) -> String {
    let started = s.versus.as_ref().and_then(|versus| {
        let start = format::time_ns(versus.shell_start_ms? * 1e6);
        Some(format!(", including the start of `{}` ({start})", versus.shell.as_ref()?))
    });
    let is_known = !s.warnings.iter().any(|w| matches!(w, Warning::RequestUnread { .. }));
    let without = || if is_known { ", without a shell" } else { "" }.to_owned();
    let alone = if schemes::shares_cpu(s) { "; runs: those of sequential pairs" } else { "" };
    format!("Whole commands{}; {LEGEND}{alone}", started.unwrap_or_else(without))
}

/// Returns the time of a command that was compared with no other, in a sentence.
pub fn sentence(s: &Summary) -> Option<String> {
    let [times] = commands(s) else {
        let has_own_rate = s.failures.is_empty() && s.state == State::Complete;
        return has_own_rate.then(|| {
            format!(
                "{} prints a rate of its own, which weigh shows only in a comparison: add a second command.",
                format::quoted(&s.baseline)
            )
        });
    };
    let time = |seconds: f64| format::time_ns(seconds * 1e9);
    let (name, mean) = (format::quoted(&times.command), time(times.mean_s()));
    Some(match times.deviation_s() {
        Some(deviation) => format!(
            "{name} takes {mean} ± {} (mean and standard deviation of {}).",
            time(deviation),
            format::plural(times.times_s.len(), "run")
        ),
        None => format!("{name} took {mean} in 1 run."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::scheme::Scheme;

    #[test]
    fn all_times_have_the_unit_of_the_fastest() {
        let (title, table) = table(&example::versus()).unwrap();
        assert_eq!(title, "Times in ms");
        assert_eq!(
            table.to_lines(80),
            [
                "command   mean    ±  median   user  system      min … max  runs",
                "old --x  100.2  1.4   100.0   80.0    12.5   98.5 … 103.0     8",
                "new --x   97.2  1.3    97.0   77.6    12.1    95.5 … 99.9     8",
                "new --y  200.4  2.8   200.0  160.0    25.0  197.0 … 206.0     8",
            ]
        );
        assert!(
            legend(&example::versus()).contains("including the start of `/bin/sh -c` (620 µs)")
        );
        let mut shared = example::versus();
        shared.results[0].scheme = Some(Scheme::Interleaved);
        assert!(legend(&shared).ends_with("CPU time; runs: those of sequential pairs"));
    }

    #[test]
    fn units_fit_the_time() {
        let texts = [(2.5, 1, "2.5 s"), (0.0042, 2, "4.20 ms"), (3e-7, 2, "0.30 µs")];
        for (seconds, decimals, wanted) in texts {
            let unit = TimeUnit::of(seconds);
            assert_eq!(format!("{} {}", unit.text(seconds, decimals), unit.name), wanted);
        }
        assert_eq!(TimeUnit::of(1.0).text(f64::NAN, 1), format::NONE);
    }

    #[test]
    fn one_run_has_no_deviation() {
        let mut s = example::one_command();
        let said = sentence(&s).unwrap();
        assert_eq!(
            said,
            "`old --x` takes 100 ms ± 1.39 ms (mean and standard deviation of 8 runs)."
        );
        s.versus.as_mut().unwrap().commands[0].times_s.truncate(1);
        assert_eq!(sentence(&s).unwrap(), "`old --x` took 100 ms in 1 run.");
        assert!(table(&s).unwrap().1.to_lines(80)[1].starts_with("old --x  100.0  –"));
    }
}
