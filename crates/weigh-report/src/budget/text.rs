//! The budget in words: first a sentence, then a table for each part.

use super::tables::{days, gzipped, limits, loads, policies};
use crate::outline::{Outline, OutlineTable, kept_and_again};
use crate::screen::Room;
use weigh_model::format;
use weigh_model::result::budget::{Backlog, BudgetReport, DiskFull};
use weigh_model::result::warning::Warning;

/// The rate of the first sentence, where none was asked for.
const USUAL_RATE: f64 = 100.0;

pub fn render(report: &BudgetReport, room: Room, colour: bool) -> String {
    outline(report).text(room, colour) + &kept_and_again(&report.id, &report.command)
}

pub fn outline(report: &BudgetReport) -> Outline {
    let mut tables = Vec::new();
    if report.per_operation.records > 0.0 {
        tables.push(OutlineTable::new("Log per day", days(report), ""));
    }
    if !report.loads.is_empty() {
        let title = "Several times the rate, two seconds each";
        tables.push(OutlineTable::new(title, loads(report), LOADS));
    }
    if let Some(backlog) = &report.backlog {
        let title = format!(
            "A burst of {} ({})",
            format::plural(backlog.burst as usize, &report.operation),
            format::plural(backlog.burst_records as usize, "record")
        );
        let limits = limits(backlog, report.backlog_bytes_per_record);
        tables.push(OutlineTable::new(title, limits, BACKLOG));
    }
    tables.extend(disk_full(&report.disk_full));
    let warnings = report.warnings.iter().map(Warning::to_string).collect();
    let lists = vec![("Warnings", warnings), ("What was changed", report.facts.clone())];
    Outline { sentences: sentences(report), tables, lists }
}

fn disk_full(outcomes: &[DiskFull]) -> Option<OutlineTable> {
    let first = outcomes.first()?;
    let title = format!("A full disk ({} of 8 MiB, auditd's disk_full_action)", first.file_system);
    let legend = format!(
        "opened: audited opens of a file that were made; {} were due within {}. SINGLE, HALT and EXEC were \
         not tried, because they stop the machine or run a program of yours.",
        format::integer(first.due),
        format::seconds(first.due_s)
    );
    let said = outcomes.iter().filter(|outcome| !outcome.messages.is_empty()).map(|outcome| {
        let said = format!("{}: auditd reported: {}", outcome.action, outcome.messages.join("; "));
        format::label(&said)
    });
    let table = OutlineTable::new(title, policies(outcomes), &legend);
    Some(OutlineTable { notes: said.collect(), ..table })
}

fn sentences(report: &BudgetReport) -> Vec<String> {
    let mut sentences = Vec::new();
    if report.interrupted {
        sentences.push("Interrupted: these results are partial.".to_owned());
    }
    if let Some(failure) = &report.failure {
        sentences.push(format!("Failed after the results below: {}", format::label(failure)));
    }
    sentences.push(sentence(report));
    if report.per_operation.lost > 0 {
        sentences.push(format!(
            "The kernel dropped {} during the count, so the true numbers are higher.",
            format::plural(report.per_operation.lost as usize, "record")
        ));
    }
    sentences
}

const LOADS: &str = "due, made: audit records per second. CPU: share of one CPU. not decided: repeated \
                     tries disagreed, or the kernel kept up with a larger load but not with a \
                     smaller one.";
const BACKLOG: &str = "lost: records lost in each burst without waiting (backlog_wait_time 0); the tries \
                       stop at the first burst that loses any. waited: time spent waiting with \
                       this host's backlog_wait_time. memory: kernel memory while that many records \
                       wait.";

/// Writes the main sentence, with the answer that most people want.
fn sentence(report: &BudgetReport) -> String {
    let made = &report.per_operation;
    if made.records <= 0.0 {
        return format!(
            "Nothing matched: in {} of `{}`, no {} produced a record under `{}`. Try a workload or a command \
             that the rules match.",
            match made.launches {
                1 => "one launch".to_owned(),
                several => format!("{several} launches"),
            },
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
            "At {} {}s per second, `{}` writes {} a day{} for `{}`: {} records and {} bytes per {}.",
            format::per_op(day.rate),
            report.operation,
            format::label(&report.treatment),
            format::bytes(day.log_bytes),
            gzipped(day).map(|size| format!(" ({size} gzipped)")).unwrap_or_default(),
            format::label(&report.workload),
            format::per_op(made.records),
            format::per_op(made.log_bytes),
            report.operation,
        ),
        None => String::new(),
    };
    if let Some(Backlog { burst, burst_records, enough, .. }) = &report.backlog {
        let burst = format!(
            "a burst of {} ({})",
            format::plural(*burst as usize, &report.operation),
            format::plural(*burst_records as usize, "record")
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
    use crate::budget::sample::report;
    use weigh_model::result::budget::{KeptUp, PerOperation};

    #[test]
    fn the_sentence_answers_what_people_ask() {
        let text = render(&report(), Room::terminal(100), false);
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
        let text = render(&report, Room::terminal(100), false);
        assert!(
            text.starts_with("Nothing matched: in 5 launches of `getppid`, no operation"),
            "{text}"
        );
        assert!(!text.contains("Log per day") && !text.contains("0 B"), "{text}");
    }

    #[test]
    fn whether_a_load_was_kept_up_with_is_said_or_that_it_is_not_decided() {
        let mut report = report();
        assert!(render(&report, Room::terminal(100), false).contains(" no "));
        report.loads[0].kept_up = KeptUp::Undecided;
        assert!(render(&report, Room::terminal(100), false).contains(" not decided "));
    }

    #[test]
    fn parts_that_were_not_measured_are_not_shown() {
        let report =
            BudgetReport { backlog: None, loads: Vec::new(), interrupted: true, ..report() };
        let text = render(&report, Room::terminal(80), false);
        assert!(text.starts_with("Interrupted") && !text.contains("burst"), "{text}");
    }
}
