//! The options of every command that measures.

use std::time::Duration;

use clap::{Arg, Args};

use super::naming::Names;
use super::reproduce::ReproduceCommand;
use super::value;
use weigh_engine::request::Common;
use weigh_host::chance;
use weigh_station::remote_client;
use weigh_store::names::Naming;
use weigh_treatment as treatment;

/// Heading of the options that say how much is measured, and how it is judged.
pub const MEASURING: &str = "Measuring";

/// How long is measured, in which order, and what the experiment is called.
#[derive(Debug, Args)]
pub struct Measuring {
    /// Stop measuring after this time
    #[arg(long, value_name = "TIME", value_parser = value::duration, allow_hyphen_values = true)]
    #[arg(help_heading = MEASURING)]
    pub budget: Option<Duration>,
    /// Kill a run of a workload, command or hook line (--setup, --prepare, --cleanup) after this time, and
    /// report no result for it
    #[arg(long, value_name = "TIME", value_parser = value::duration, hide_short_help = true)]
    #[arg(help_heading = MEASURING)]
    timeout: Option<Duration>,
    /// Seed of the random order; the same seed gives the same order [default: random]
    #[arg(long, value_name = "N", hide_short_help = true)]
    #[arg(help_heading = MEASURING)]
    seed: Option<u64>,
    #[command(flatten)]
    pub queue: WaitOption,
    #[command(flatten)]
    names: Names,
}

/// `--wait`.
#[derive(Debug, Args)]
pub struct WaitOption {
    /// Wait up to TIME if another experiment is running on this host; `--wait` alone waits 1h [default: fail
    /// at once]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, hide_short_help = true)]
    #[arg(default_missing_value = "1h", value_parser = value::duration)]
    pub wait: Option<Duration>,
}

impl Measuring {
    /// The seed that was given, or one that is drawn now.
    pub fn seed(&self) -> Result<u64, String> {
        self.seed.map_or_else(chance::seed, Ok)
    }

    /// The seed of the experiment of this number, from 0: a given one counts up.
    pub fn seed_of(&self, number: u32) -> Result<u64, String> {
        self.seed().map(|seed| seed.wrapping_add(u64::from(number)))
    }

    /// Draws the seed now, unless one was given; from now on it is as if it had been.
    pub fn fix_seed(&mut self) -> Result<u64, String> {
        let seed = self.seed()?;
        self.seed = Some(seed);
        Ok(seed)
    }

    pub fn naming(&self) -> Naming {
        self.names.naming()
    }

    /// The part of a request that any plan has.
    pub fn common(&self, again: &ReproduceCommand, seed: u64) -> Common {
        Common {
            again: again.to_string(),
            seed,
            budget: self.budget.unwrap_or_default(),
            timeout: self.timeout,
            naming: self.naming(),
            wait: self.queue.wait,
            ..Common::default()
        }
    }
}

/// Option with `text` behind its help, for a command in which it means more than in others.
pub fn also(option: Arg, text: &str) -> Arg {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    option.help(help + text)
}

/// Option with a default behind its help that is not one value.
pub fn defaults_to(option: Arg, what: &str) -> Arg {
    also(option, &format!(" [default: {what}]"))
}

/// `--fixture`.
#[derive(Debug, Args)]
pub struct FixtureOption {
    /// Run every workload in this fixture, such as fs:xfs. A fixture is an environment that is made for the
    /// workload, such as a new XFS file system (`weigh list fixtures`). May be repeated
    #[arg(long = "fixture", value_name = "FIXTURE")]
    fixtures: Vec<String>,
}

impl FixtureOption {
    /// Their labels.
    pub fn labels(&self) -> Result<Vec<String>, String> {
        treatment::canonical_fixtures(&self.fixtures)
    }
}

/// `--workload`.
#[derive(Debug, Args)]
pub struct WorkloadOption {
    /// Workload or suite to measure, such as stat or unixbench. May be a file with a suite, such as
    /// ./my.toml; may be repeated [default: quick]
    #[arg(short, long = "workload", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
}

impl WorkloadOption {
    /// Returns the named workloads, or the suite `quick`.
    pub fn or_quick(&self) -> Vec<String> {
        match self.workloads.is_empty() {
            true => vec!["quick".into()],
            false => self.workloads.clone(),
        }
    }
}

/// Options for the surroundings of workloads: other work, and another machine.
#[derive(Debug, Args)]
pub struct BesideOptions {
    /// Measure each workload alone, and once more while WORKLOAD runs. It may also be a mix or an
    /// application. One copy per CPU that weigh may use; NAME:copies=N sets the number: `--beside
    /// dc:copies=4` runs four copies of `dc`. May be repeated
    #[arg(long, value_name = "WORKLOAD")]
    pub beside: Vec<String>,
    /// Send requests to servers from USER@HOST, including the requests of --beside. Databases and web servers
    /// only. Over the network, these servers then answer only that machine, without a password.
    ///
    /// weigh reaches the machine by ssh; the requests go to the servers directly.
    /// Options follow USER@HOST: `,port=N`, `,identity=FILE`, `,known_hosts=FILE`. If addresses are
    /// translated on the way, name them: `,address=IP` (of this machine, as the client reaches it) and
    /// `,from=IP` (of the client, as this machine sees it). Example: `--client root@10.0.0.7,port=2222`
    /// (docs/applications-client.md).
    #[arg(long, value_name = "USER@HOST", value_parser = remote_client::checked, hide_short_help = true)]
    pub client: Option<String>,
}
