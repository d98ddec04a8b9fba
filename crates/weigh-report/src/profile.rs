//! The system calls of a program as a table, with what counting them did to it.

use super::curve_text::bar;
use super::outline::{Outline, OutlineTable};
use super::page::Page;
use super::screen::Room;
use super::table::{Table, columns};
use weigh_model::format;
use weigh_model::profile::SyscallProfile;
use weigh_model::profile::runs::{CountedTimes, ProfileReport};

/// So many system calls are named in the sentence.
const NAMED: usize = 3;
/// Longer and shorter bars say no more.
const LONGEST_BAR: usize = 30;
const SHORTEST_BAR: usize = 8;
/// Columns of the table before its bar, at most.
const WIDEST_CELLS: usize = 62;

pub fn text(report: &ProfileReport, room: Room, colour: bool) -> String {
    let mut page = Page::new(room, colour);
    page.say(&sentence(&report.profile));
    page.table(CALLS, &calls(&report.profile, page.room.wrap));
    page.table(TIMES, &times(report));
    page.legend(&slowed(report));
    page.list(WARNINGS, warnings(&report.profile));
    page.lines.join("\n") + "\n"
}

const CALLS: &str = "System calls";
const TIMES: &str = "With and without counting";
const WARNINGS: &str = "Warnings";

pub fn outline(report: &ProfileReport) -> Outline {
    let narrow = 0; // a table without bars
    Outline {
        sentences: vec![sentence(&report.profile)],
        tables: vec![
            OutlineTable::new(CALLS, calls(&report.profile, narrow), ""),
            OutlineTable::new(TIMES, times(report), &slowed(report)),
        ],
        lists: vec![(WARNINGS, warnings(&report.profile))],
    }
}

fn warnings(profile: &SyscallProfile) -> Vec<String> {
    let calls = format::integer(profile.other_abi_calls);
    let of_other_abi = format!(
        "Not counted above: system calls by 32-bit or x32 programs ({calls}). `weigh rules` cannot measure \
         rules for them (arch=b32) with this profile."
    );
    (profile.other_abi_calls > 0).then_some(of_other_abi).into_iter().collect()
}

/// Returns the calls by count, the most frequent first.
fn by_count(profile: &SyscallProfile) -> Vec<(&str, u64)> {
    let mut calls: Vec<(&str, u64)> =
        profile.calls.iter().map(|(name, calls)| (name.as_str(), *calls)).collect();
    calls.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    calls
}

fn sentence(profile: &SyscallProfile) -> String {
    let title = format!("`{}`", format::label(&profile.title()).replace('`', "'"));
    let total = profile.total_calls();
    let calls = by_count(profile);
    let named = &calls[..NAMED.min(calls.len())];
    let share = 100.0 * named.iter().map(|(_, calls)| *calls as f64).sum::<f64>() / total as f64;
    let names: Vec<String> =
        named.iter().map(|(name, _)| format!("`{}`", format::label(name))).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    let rate = match (profile.cpu_s(), profile.calls_per_cpu_s()) {
        (Some(cpu_s), Some(rate)) => {
            let rate = format::rate(rate, "");
            format!(" in {} of CPU time, {rate} per CPU second", format::seconds(cpu_s))
        }
        _ => String::new(),
    };
    format!(
        "{title} makes {} system {}{rate}; {} {is} {share:.0} % of them.",
        format::integer(total),
        if total == 1 { "call" } else { "calls" },
        joined(&names)
    )
}

/// `a, b and c`.
fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn calls(profile: &SyscallProfile, width: usize) -> Table {
    let total = profile.total_calls();
    let rate = |calls: u64| match profile.cpu_s().filter(|cpu_s| *cpu_s > 0.0) {
        Some(cpu_s) => format::rate(calls as f64 / cpu_s, ""),
        None => String::new(),
    };
    let share = |calls: u64| 100.0 * calls as f64 / total as f64;
    let room = width.saturating_sub(WIDEST_CELLS).min(LONGEST_BAR);
    let room = if room < SHORTEST_BAR { 0 } else { room };
    let row = |name: &str, calls: u64, bar: String| {
        let share = format!("{:.1} %", share(calls));
        vec![format::label(name), format::integer(calls), rate(calls), share, bar]
    };
    let most = by_count(profile).first().map_or(1, |(_, calls)| *calls) as f64;
    let mut rows: Vec<Vec<String>> = by_count(profile)
        .into_iter()
        .map(|(name, calls)| row(name, calls, bar(calls as f64 / most, room)))
        .collect();
    rows.push(row("all", total, String::new()));
    Table::new(columns("system call|>calls|>per CPU s|>share|"), rows)
}

fn times(report: &ProfileReport) -> Table {
    let row = |what: &str, times: [f64; 3]| {
        let times = times.map(format::seconds);
        std::iter::once(what.to_owned()).chain(times).collect()
    };
    let SyscallProfile { elapsed_s, user_s, system_s, .. } = report.profile;
    let plain = [elapsed_s, user_s, system_s].map(Option::unwrap_or_default);
    let CountedTimes { elapsed_s, user_s, system_s } = report.counted;
    let rows = vec![row("not counted", plain), row("counted", [elapsed_s, user_s, system_s])];
    Table::new(columns("|>elapsed|>user|>system"), rows)
}

/// Writes the effect of counting on the program, and the consequence.
fn slowed(report: &ProfileReport) -> String {
    let plain = report.profile.elapsed_s.unwrap_or_default();
    let times = format::per_op(report.counted.elapsed_s / plain);
    match (report.profile.is_of_period, report.profile.scaled_by) {
        (false, _) if report.counted.elapsed_s <= plain => {
            "The counted run was not slower than the one before it, so the command is too short to show the \
             cost of counting. The profile keeps the times without counting."
                .to_owned()
        }
        (false, _) => format!(
            "With counting, the program took {times} times as long, because each call stops it twice. The \
             profile keeps the times without counting."
        ),
        (true, Some(scale)) => format!(
            "Counting slows a program, so it did less in the same time. All counts were multiplied by {}, \
             the program's user time without counting divided by that with counting.",
            format::per_op(scale)
        ),
        (true, None) => "Counting slows a program, so the counts may be too low. They are not corrected, \
                         because the program spent less than half a second in user mode: use a longer \
                         --for."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use weigh_model::profile::runs::{Counts, Period, ProfileRuns};

    fn measured(calls: &[(u64, u64)], is_same_work: bool) -> ProfileRuns {
        let mut period = Period { elapsed: Duration::from_millis(1500), ..Period::default() };
        period.cpu.user = Duration::from_millis(900);
        period.cpu.system = Duration::from_millis(300);
        let counted = Period { elapsed: Duration::from_millis(6000), ..period };
        let counts = Counts { calls: calls.iter().copied().collect(), ..Counts::default() };
        ProfileRuns { counts, plain: period, counted, is_same_work }
    }

    fn report(measured: &ProfileRuns, command: Vec<String>) -> ProfileReport {
        let (profile, counted) = (measured.profile(command), measured.counted.into());
        ProfileReport { profile, counted, ..ProfileReport::default() }
    }

    #[test]
    fn the_sentence_names_what_is_called_most() {
        let measured = measured(&[(0, 6000), (1, 3000), (3, 900), (2, 100)], true);
        let report = report(&measured, vec!["server".into(), "-x y".into()]);
        let text = text(&report, Room::terminal(100), false);
        let expected = "`server '-x y'` makes 10,000 system calls in 1.2 s of CPU time, 8,333 per CPU \
                        second; `read`,\n`write` and `close` are 99 % of them.\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\nread          6,000      5,000   60.0 %  ██"), "{text}");
        assert!(text.contains("\nall          10,000      8,333  100.0 %\n"), "{text}");
        assert!(text.contains("the program took 4 times as long"), "{text}");
    }

    #[test]
    fn what_was_done_to_the_counts_is_said() {
        let mut less = measured(&[(0, 10)], false);
        less.plain.cpu.user = Duration::from_millis(1800);
        less.counted.cpu.user = Duration::from_millis(600);
        let said = |less: &ProfileRuns| slowed(&report(less, Vec::new()));
        assert!(said(&less).contains("multiplied by 3,"), "{}", said(&less));
        less.counted.cpu.user = Duration::ZERO;
        assert!(said(&less).contains("are not corrected"));
        less.counts.other_abi_calls = 1200;
        assert!(text(&report(&less, Vec::new()), Room::terminal(60), false).contains("(1,200)"));
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let measured = measured(&[(0, u64::MAX / 4), (999, 1), (285, 70)], true);
        let report = report(&measured, vec!["a`\u{1b}[31m".into()]);
        for width in [40, 60, 80, 100, 140] {
            let text = text(&report, Room::terminal(width), false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(!text.contains('\u{1b}') && text.contains("syscall_999"));
        }
    }
}
