//! The budget on a terminal: first a sentence, then a table for each part.

use std::fmt::Write as _;

use super::tables::{days, gzipped, limits, loads, policies};
use crate::paint::{BOLD, paint};
use crate::table::Table;
use crate::text::{emphasise, wrap};
use weigh_model::format;
use weigh_model::result::budget::{Backlog, BudgetReport};

/// The rate of the first sentence, where none was asked for.
const USUAL_RATE: f64 = 100.0;

/// The whole report, in lines of at most `width` characters.
pub fn render(report: &BudgetReport, width: usize, colour: bool) -> String {
    let mut text = String::new();
    let mut say = |sentence: &str| {
        for line in wrap(sentence, width, 0) {
            let _ = writeln!(text, "{}", emphasise(&line, colour));
        }
    };
    if report.interrupted {
        say("Interrupted: these are the results up to then.");
    }
    if let Some(failure) = &report.failure {
        say(&format!("Failed after the results below: {}", format::label(failure)));
    }
    say(&sentence(report));
    if report.per_operation.lost > 0 {
        say(&format!(
            "The kernel dropped {} records during the count, so the true numbers are higher.",
            format::integer(report.per_operation.lost)
        ));
    }
    let mut part = |title: &str, table: Table, remark: &str| {
        let _ = writeln!(text, "\n{}", paint(title, BOLD, colour));
        for line in table.to_lines(width).iter().map(String::as_str) {
            let _ = writeln!(text, "{line}");
        }
        for line in wrap(remark, width, 0) {
            let _ = writeln!(text, "{line}");
        }
    };
    if report.per_operation.records > 0.0 {
        part("Log per day", days(report), "");
    }
    if !report.loads.is_empty() {
        part("At several times the rate, for two seconds each", loads(report), LOADS);
    }
    if let Some(backlog) = &report.backlog {
        let title = format!(
            "A burst of {} {}s ({} records)",
            format::integer(backlog.burst),
            report.operation,
            format::integer(backlog.burst_records as u64)
        );
        part(&title, limits(backlog, report.backlog_bytes_per_record), BACKLOG);
    }
    if let Some(first) = report.disk_full.first() {
        let title =
            format!("A full disk ({} of 8 MiB, auditd's disk_full_action)", first.file_system);
        let remark = format!(
            "opened: audited opens of a file that were made, of {} that were due within {}. SINGLE \
             and HALT would stop the machine and EXEC would run a program of yours; they were not tried.",
            format::integer(first.due),
            format::seconds(first.due_s)
        );
        part(&title, policies(&report.disk_full), &remark);
        for outcome in report.disk_full.iter().filter(|outcome| !outcome.messages.is_empty()) {
            let said = format!("{}: auditd said: {}", outcome.action, outcome.messages.join("; "));
            for line in wrap(&format::label(&said), width, 2) {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    for (title, sentences) in [("Warnings", &report.warnings), ("What was changed", &report.facts)]
    {
        text += &list(title, sentences, width, colour);
    }
    let _ = writeln!(text, "again: {}", format::label(&report.command));
    text
}

/// A heading and a bullet for each; nothing of none.
fn list(title: &str, sentences: &[String], width: usize, colour: bool) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let bullets = sentences.iter().map(|one| format!("- {}", format::label(one)));
    let lines: Vec<String> = bullets.flat_map(|bullet| wrap(&bullet, width, 2)).collect();
    format!("\n{}\n{}\n", paint(title, BOLD, colour), lines.join("\n"))
}

const LOADS: &str = "asked, made: audit records per second. CPU: share of one CPU. not decided: repeated \
                     tries disagreed, or the kernel kept up with a larger load but not with a \
                     smaller one.";
const BACKLOG: &str = "lost: records lost in each burst without waiting (backlog_wait_time 0); the tries \
                       stop at the first burst that loses any. waited: time spent waiting with \
                       this host's backlog_wait_time. memory: of the kernel, when that many records \
                       wait.";

/// What most people want to know.
fn sentence(report: &BudgetReport) -> String {
    let made = &report.per_operation;
    if made.records <= 0.0 {
        return format!(
            "Nothing matched: in {} launches of `{}`, no {} produced a record under `{}`, so there is no log \
             to estimate. Try a workload or a command that does what the rules watch for.",
            made.launches,
            format::label(&report.workload),
            report.operation,
            format::label(&report.treatment),
        );
    }
    let usual = || report.days.iter().find(|day| day.rate == USUAL_RATE);
    let asked = report.days.first().filter(|day| day.multiple == 1.0 && !day.is_full_speed);
    let day = if report.days.iter().any(|day| day.multiple != 1.0) { asked } else { usual() };
    let mut text = match day {
        Some(day) => format!(
            "At {} {}s per second, `{}` writes {} a day{} for `{}`: {} records and {} bytes each.",
            format::per_op(day.rate),
            report.operation,
            format::label(&report.treatment),
            format::bytes(day.log_bytes),
            gzipped(day).map(|size| format!(" ({size} gzipped)")).unwrap_or_default(),
            format::label(&report.workload),
            format::per_op(made.records),
            format::per_op(made.log_bytes),
        ),
        None => String::new(),
    };
    if let Some(Backlog { burst, burst_records, enough, .. }) = &report.backlog {
        let burst = format!(
            "a burst of {} ({} records)",
            format::plural(*burst as usize, report.operation),
            format::integer(*burst_records as u64)
        );
        text += &match enough {
            Some(enough) => format!(
                " A backlog limit of {} suffices for {burst}.",
                format::integer(enough.limit.into())
            ),
            None => format!(" No backlog limit suffices for {burst}: records are lost elsewhere."),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::facts::Facts;
    use weigh_model::result::budget::{
        Common, Compressed, Day, KeptUp, Load, PerOperation, SCHEMA, Tried,
    };

    fn report() -> BudgetReport {
        let compressed = Some(Compressed { log_bytes: 1000, gzip_bytes: 100 });
        let day = |rate| Day::new(rate, 400.0, compressed);
        BudgetReport {
            schema: SCHEMA,
            command: "weigh budget -w getppid".into(),
            treatment: "audit".into(),
            workload: "getppid".into(),
            operation: "operation",
            machine: Facts::default(),
            warnings: vec!["Load: the load average is 1.1 on 2 CPUs.".into()],
            facts: vec!["All of it.".into()],
            per_operation: PerOperation { records: 3.0, log_bytes: 400.0, ..Default::default() },
            compressed,
            days: vec![day(1.0), day(100.0), Day { is_full_speed: true, ..day(5e4) }],
            backlog: Some(Backlog {
                burst: 4000,
                burst_records: 12_000.0,
                enough: Some(Tried { limit: 320, lost: vec![0, 0, 0] }),
                half: Some(Tried { limit: 160, lost: vec![77] }),
                common: vec![Common { limit: 64, waited_s: 0.2, lost: 0, lost_without_wait: 900 }],
            }),
            backlog_bytes_per_record: Some(2304.0),
            loads: vec![Load {
                multiple: 2.0,
                rate: 10_000.0,
                asked: 30_000.0,
                achieved: 15_000.0,
                elapsed_s: 2.0,
                waited_s: 1.0,
                lost: 0,
                sink_cpu: Some(0.5),
                kauditd_cpu: Some(0.25),
                tries: 3,
                kept: 0,
                kept_up: KeptUp::No,
            }],
            disk_full: Vec::new(),
            interrupted: false,
            failure: None,
        }
    }

    #[test]
    fn the_sentence_answers_what_people_ask() {
        let text = render(&report(), 100, false);
        let flat = text.replace('\n', " ");
        assert!(
            flat.starts_with("At 100 operations per second, `audit` writes 3.22 GiB a day"),
            "{text}"
        );
        assert!(flat.contains("(330 MiB gzipped)"), "{text}");
        assert!(
            flat.contains("A backlog limit of 320 suffices for a burst of 4,000 operations"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("\nWarnings\n- Load: the load average is 1.1"), "{text}");
    }

    #[test]
    fn rules_that_matched_nothing_make_no_day_of_log() {
        let mut report = report();
        report.per_operation = PerOperation { launches: 5, ..Default::default() };
        (report.backlog, report.loads) = (None, Vec::new());
        let text = render(&report, 100, false);
        assert!(
            text.starts_with("Nothing matched: in 5 launches of `getppid`, no operation"),
            "{text}"
        );
        assert!(!text.contains("Log per day") && !text.contains("0 B"), "{text}");
    }

    #[test]
    fn whether_a_load_was_kept_up_with_is_said_or_that_it_is_not_decided() {
        let mut report = report();
        assert!(render(&report, 100, false).contains(" no "));
        report.loads[0].kept_up = KeptUp::Undecided;
        assert!(render(&report, 100, false).contains(" not decided "));
    }

    #[test]
    fn parts_that_were_not_measured_are_not_shown() {
        let report =
            BudgetReport { backlog: None, loads: Vec::new(), interrupted: true, ..report() };
        let text = render(&report, 80, false);
        assert!(text.starts_with("Interrupted") && !text.contains("burst"), "{text}");
    }
}
