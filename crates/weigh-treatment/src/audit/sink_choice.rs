//! `sink=` and `flush=`: which receiver of the records the user wants.

use super::receiver::{AUDITD_LIMIT, Receiver};
use super::system;
use crate::{ApplyContext, Parameter, TreatmentError};
use linux_audit::auditd::{Auditd, AuditdConfiguration, Flush, LogFormat, Plugin, find_auditd};
use linux_audit::netlink::Client;
use weigh_host::orphans;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::started::write_down;
use weigh_model::format;
use weigh_model::label::Parameters;

/// The parameters as they are explained.
pub const SINK: Parameter = Parameter {
    form: "sink=NAME",
    help: "receiver of the records: own (default), auditd, auditd+dispatcher, none, or with net: remote",
};
pub const FLUSH: Parameter = Parameter {
    form: "flush=WORD",
    help: "how auditd flushes its log (sink=auditd): none, incremental, incremental_async (default), data \
         or sync",
};
pub const FORMAT: Parameter = Parameter {
    form: "format=WORD",
    help: "how auditd writes a record (sink=auditd): raw (default) or enriched, with names for numbers",
};

pub const PLUGIN: Parameter = Parameter {
    form: "plugin=PROGRAM",
    help: "program, with its arguments, that gets all records from auditd's dispatcher \
           (sink=auditd+dispatcher), one to a line; default: one that discards them",
};
pub const DELAY: Parameter = Parameter {
    form: "delay=TIME",
    help: "a slow plugin instead, which waits for that time or longer per record, such as 1ms; at most 100ms",
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SinkChoice {
    /// Nothing: ourselves, or the audit daemon that this host has.
    #[default]
    Usual,
    Own,
    /// Ours, which ships them to W_passive.
    Remote,
    Auditd {
        format: LogFormat,
        flush: Flush,
        plugin: Option<Plugin>,
    },
    Nobody,
}

impl SinkChoice {
    pub fn parse(parameters: &Parameters) -> Result<SinkChoice, String> {
        let flush = parameters.value("flush").map(parse_flush).transpose()?;
        let format = parameters.value("format").map(parse_format).transpose()?;
        let plugin = Plugin::parse(parameters.value("plugin"), parameters.value("delay"))?;
        let has_plugin = plugin.is_some();
        let choice = match parameters.value("sink") {
            None => SinkChoice::Usual,
            Some("own") => SinkChoice::Own,
            Some("remote") => SinkChoice::Remote,
            Some("none") => SinkChoice::Nobody,
            Some(name @ ("auditd" | "auditd+dispatcher")) => SinkChoice::Auditd {
                format: format.unwrap_or(LogFormat::Raw),
                flush: flush.unwrap_or(Flush::IncrementalAsync),
                plugin: (name != "auditd").then(|| plugin.unwrap_or(Plugin::Discard)),
            },
            Some(other) => {
                return Err(format!(
                    "sink={other}: takes own, auditd, auditd+dispatcher, remote or none"
                ));
            }
        };
        for (name, is_given) in [("flush", flush.is_some()), ("format", format.is_some())] {
            if is_given && !matches!(choice, SinkChoice::Auditd { .. }) {
                return Err(format!(
                    "{name}= sets how auditd writes its log, so it needs sink=auditd"
                ));
            }
        }
        if has_plugin && !matches!(choice, SinkChoice::Auditd { plugin: Some(_), .. }) {
            return Err("plugin= and delay= are of auditd's dispatcher, so they need \
                        sink=auditd+dispatcher"
                .into());
        }
        Ok(choice)
    }

    /// Checks that this host can provide the receiver, before anything is changed.
    pub fn check(&self, daemon: Option<u32>) -> Result<(), TreatmentError> {
        match (self, daemon) {
            (SinkChoice::Usual, _) => Ok(()),
            (_, Some(pid)) => Err(TreatmentError::Unavailable(format!(
                "this host has an audit daemon (process {pid}), and the kernel sends records to one \
                 daemon only: leave `sink=` out to use this daemon, or stop the daemon first"
            ))),
            (SinkChoice::Auditd { .. }, None) => {
                find_auditd().map(drop).map_err(TreatmentError::Unavailable)
            }
            _ => Ok(()),
        }
    }

    /// Says what the user waits for that `--budget` does not end.
    pub fn sentence(&self) -> Option<String> {
        matches!(self, SinkChoice::Auditd { .. }).then(|| {
            format!(
                "After each sample, weigh waits until auditd has written the records. On a slow disk, the \
                 last wait may end up to {} after --budget.",
                format::clock(AUDITD_LIMIT.as_secs_f64())
            )
        })
    }

    /// Starts it, where it is not our own.
    pub fn start(
        &self,
        context: &ApplyContext,
        guard: &mut Guard,
        client: &mut Client,
        daemon: Option<u32>,
    ) -> Result<Receiver, TreatmentError> {
        match (self, daemon) {
            (_, Some(pid)) => Ok(Receiver::Host(pid)),
            (SinkChoice::Usual | SinkChoice::Own, None) => Ok(Receiver::Own),
            (SinkChoice::Remote, None) => {
                context.collector.clone().map(Receiver::Remote).ok_or_else(no_collector)
            }
            (SinkChoice::Nobody, None) => Ok(Receiver::Nobody),
            (SinkChoice::Auditd { format, flush, plugin }, None) => {
                // A set of its own has a directory of its own.
                let directory = tempfile::Builder::new()
                    .prefix("auditd-")
                    .tempdir_in(&context.place.scratch)
                    .map_err(system)?
                    .keep();
                let configuration = AuditdConfiguration {
                    format: *format,
                    ..AuditdConfiguration::new(directory, *flush, plugin.clone())
                };
                start_auditd(configuration, guard, client).map(Receiver::Auditd)
            }
        }
    }
}

/// Starts an auditd that the guard knows of, and waits until it has the records.
pub fn start_auditd(
    configuration: AuditdConfiguration,
    guard: &mut Guard,
    client: &mut Client,
) -> Result<Auditd, TreatmentError> {
    let program = find_auditd().map_err(TreatmentError::Unavailable)?;
    let mut auditd = Auditd::spawn(&program, configuration).map_err(system)?;
    orphans::keep(auditd.pid());
    write_down(guard, auditd.pid()).map_err(system)?;
    auditd.wait_until_registered(client).map_err(system)?;
    Ok(auditd)
}

fn no_collector() -> TreatmentError {
    TreatmentError::Unavailable(
        "sink=remote ships the records to W_passive, which only `net:` workloads have: use `weigh \
         compare audit:sink=remote -w net:btu-quick`"
            .into(),
    )
}

fn parse_flush(word: &str) -> Result<Flush, String> {
    Flush::ALL.into_iter().find(|flush| flush.word() == word).ok_or_else(|| {
        let words = Flush::ALL.map(Flush::word);
        format!("flush={word}: takes {}", words.join(", "))
    })
}

fn parse_format(word: &str) -> Result<LogFormat, String> {
    match word {
        "raw" => Ok(LogFormat::Raw),
        "enriched" => Ok(LogFormat::Enriched),
        _ => Err(format!("format={word}: takes raw or enriched")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters_of;
    use proptest::prelude::*;
    use std::time::Duration;

    fn parse(text: &str) -> Result<SinkChoice, String> {
        SinkChoice::parse(&parameters_of(text))
    }

    #[test]
    fn sinks_and_ways_to_flush_have_auditds_own_words() {
        let raw = LogFormat::Raw;
        let of = |flush, plugin| Ok(SinkChoice::Auditd { format: raw, flush, plugin });
        assert_eq!(parse("audit"), Ok(SinkChoice::Usual));
        assert_eq!(parse("audit:sink=own"), Ok(SinkChoice::Own));
        assert_eq!(parse("audit:sink=none"), Ok(SinkChoice::Nobody));
        assert_eq!(parse("audit:sink=remote"), Ok(SinkChoice::Remote));
        assert_eq!(parse("audit:sink=auditd"), of(Flush::IncrementalAsync, None));
        assert_eq!(
            parse("audit:sink=auditd+dispatcher,flush=sync"),
            of(Flush::Sync, Some(Plugin::Discard))
        );
        let slow = Some(Plugin::Slow(Duration::from_millis(2)));
        assert_eq!(
            parse("audit:sink=auditd+dispatcher,delay=2ms"),
            of(Flush::IncrementalAsync, slow)
        );
        let enriched = parse("audit:sink=auditd,format=enriched").unwrap();
        assert!(matches!(enriched, SinkChoice::Auditd { format: LogFormat::Enriched, .. }));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(parse("audit:sink=rsyslog").unwrap_err().contains("auditd+dispatcher"));
        assert!(parse("audit:sink=auditd,flush=often").unwrap_err().contains("incremental_async"));
        assert!(parse("audit:flush=sync").unwrap_err().contains("sink=auditd"));
        assert!(parse("audit:sink=auditd,format=xml").unwrap_err().contains("raw or enriched"));
        assert!(
            parse("audit:sink=auditd,delay=1ms").unwrap_err().contains("sink=auditd+dispatcher")
        );
        assert!(parse("audit:format=raw").unwrap_err().contains("sink=auditd"));
        assert!(parse("audit:sink=none,flush=data").unwrap_err().contains("sink=auditd"));
    }

    #[test]
    fn beside_a_daemon_of_the_host_there_is_no_choice() {
        assert!(SinkChoice::Usual.check(Some(7)).is_ok());
        let refused = SinkChoice::Nobody.check(Some(7)).unwrap_err().to_string();
        assert!(refused.contains("process 7"), "{refused}");
    }

    proptest! {
        #[test]
        fn any_words_are_taken_or_refused(sink in "[a-z+]{1,20}", flush in "[a-z_]{1,20}") {
            let _ = parse(&format!("audit:sink=\"{sink}\",flush={flush}"));
        }
    }
}
