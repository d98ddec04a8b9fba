//! `--for` and `--pass`: passes over servers that are never started anew.

use std::time::Duration;

use clap::Args;

use super::value;
use weigh_engine::request::Endurance;
use weigh_model::format;

/// Shortest length of a pass that is chosen by default.
const LEAST_PASS: Duration = Duration::from_secs(5);
const MOST_PASS: Duration = Duration::from_secs(600);

#[derive(Debug, Args)]
pub struct EnduranceOptions {
    /// Test a server's endurance: send requests for TIME. All requests go to one server; the test takes a
    /// time such as 2h, divided into passes. Wrong answers and hangs are counted; they do not end the test.
    /// For workloads that send requests to a server
    #[arg(long = "for", value_name = "TIME", value_parser = value::duration)]
    pub lasting: Option<Duration>,
    /// Length of a pass of --for, such as 30s [default: 1/24 of the time of --for, but at least 5s and at
    /// most 10m]
    #[arg(long, value_name = "TIME", value_parser = pass, requires = "lasting", hide_short_help = true)]
    pass: Option<Duration>,
}

impl EnduranceOptions {
    pub fn check(&self) -> Result<(), String> {
        match (self.lasting, self.pass) {
            (Some(lasting), Some(pass)) if pass > lasting => {
                let [lasting, pass] =
                    [lasting, pass].map(|time| format::seconds(time.as_secs_f64()));
                Err(format!("--pass {pass} is longer than --for {lasting}"))
            }
            _ => Ok(()),
        }
    }

    pub fn pass_length(&self) -> Option<Duration> {
        let lasting = self.lasting?;
        Some(self.pass.unwrap_or((lasting / 24).clamp(LEAST_PASS.min(lasting), MOST_PASS)))
    }

    /// The passes, if they are asked for; `per_1000s` as in [`Endurance`].
    pub fn passes(&self, per_1000s: u64) -> Option<Endurance> {
        let (lasting, pass) = self.lasting.zip(self.pass_length())?;
        let passes = (lasting.as_secs_f64() / pass.as_secs_f64()).round().max(1.0) as usize;
        Some(Endurance { passes, per_1000s })
    }
}

/// Parses the value of `--pass`.
fn pass(text: &str) -> Result<Duration, String> {
    let time = value::duration(text).ok().filter(|time| *time <= MOST_PASS);
    time.ok_or_else(|| "takes a time from a second to 10 minutes, such as 30s".into())
}
