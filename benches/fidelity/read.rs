//! Reads output of other suites' programs as a rate.

/// How a program says what it measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `COUNT|n|timebase|unit`, and `TIME|seconds` if it measures its own time. A timebase of 0
    /// says that n is a rate already.
    UnixBench,
    /// `NAME: x microseconds`: operations per second.
    LmbenchLatency(&'static str),
    /// `megabytes megabytes-per-second`, a megabyte being 10⁶ bytes.
    LmbenchBandwidth,
    /// `x usecs/op`: operations per second.
    PerfMicroseconds,
    /// `Averaged x operations/sec`.
    PerfOperations,
    /// With `--format simple`, bytes per second: megabytes per second.
    PerfBytes,
}

impl Form {
    /// The rate in a program's output; `wall_s` is how long it ran, for those that do not say.
    ///
    /// # Errors
    /// A sentence, where the output holds no such thing, or an impossible rate.
    pub fn rate(self, output: &str, wall_s: f64) -> Result<f64, String> {
        let rate = match self {
            Form::UnixBench => unixbench(output, wall_s),
            Form::LmbenchLatency(name) => after(output, name)
                .and_then(|rest| number_before(rest.trim_start_matches(':'), "microseconds"))
                .map(|us| 1e6 / us),
            Form::LmbenchBandwidth => output.lines().rev().find_map(pair),
            Form::PerfMicroseconds => {
                output.lines().find_map(|line| number_before(line, "usecs/op")).map(|us| 1e6 / us)
            }
            Form::PerfOperations => {
                after(output, "Averaged").and_then(|rest| number_before(rest, "operations/sec"))
            }
            Form::PerfBytes => {
                let number = |line: &str| line.trim().parse::<f64>().ok();
                output.lines().rev().find_map(number).map(|bytes| bytes / 1e6)
            }
        };
        match rate {
            Some(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
            Some(rate) => Err(format!("it reported a rate of {rate}, which is no measurement")),
            None => Err(format!("it printed no result but {:?}", tail(output))),
        }
    }
}

fn unixbench(output: &str, wall_s: f64) -> Option<f64> {
    // Two processes of `context1` print; UnixBench keeps the last.
    let fields = |name: &str| {
        let of = |line: &str| {
            let mut fields = line.trim().split('|');
            (fields.next() == Some(name)).then(|| fields.map(str::to_owned).collect::<Vec<_>>())
        };
        output.lines().rev().find_map(of)
    };
    let count = fields("COUNT")?;
    let n: f64 = count.first()?.trim().parse().ok()?;
    let timebase: f64 = count.get(1)?.trim().parse().ok()?;
    let seconds = match fields("TIME") {
        Some(time) => time.first()?.trim().parse().ok()?,
        None => wall_s,
    };
    Some(if timebase > 0.0 { n * timebase / seconds } else { n })
}

/// The rest of the line behind the first `name`.
fn after<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    output.split_once(name).and_then(|(_, rest)| rest.lines().next())
}

/// The number in front of the first `unit` of a line.
fn number_before(line: &str, unit: &str) -> Option<f64> {
    line.split_once(unit)?.0.split_whitespace().next_back()?.parse().ok()
}

/// The second number of a line of two.
fn pair(line: &str) -> Option<f64> {
    let numbers: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    match numbers?[..] {
        [_, rate] => Some(rate),
        _ => None,
    }
}

/// The last words, for an error.
fn tail(output: &str) -> String {
    let start = output.trim_end().chars().count().saturating_sub(160);
    output.trim_end().chars().skip(start).collect()
}
