//! Two experiments side by side, as text and as JSON.

use super::paint::{BOLD, FAINT, paint};
use super::screen::Room;
use super::table::{Align, Table};
use super::text::wrap;
use weigh_model::format;
use weigh_model::printable;
use weigh_model::result::diff::{Change, Diff, DiffRow};

/// On a terminal, longer names would not leave room for the numbers.
const LONGEST_NAME: usize = 24;

/// The whole document, indented, with a newline at its end.
pub fn json(diff: &Diff) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(diff)? + "\n")
}

pub fn text(diff: &Diff, room: Room, colour: bool) -> String {
    let width = room.wrap;
    let longest_name = if room.is_file() { usize::MAX } else { LONGEST_NAME };
    let mut lines = wrap(&format!("{} {}", sentence(diff), diff.caveat), width, 0);
    let of_rates = if diff.is_of_runs() { "Rate" } else { "Rate of the baseline" };
    for (title, table) in
        [(of_rates, rates(diff, longest_name)), ("Effect", effects(diff, longest_name))]
    {
        if table.rows.is_empty() {
            continue;
        }
        lines.extend([String::new(), paint(title, BOLD, colour)]);
        for (number, line) in table.to_lines(room.cut).iter().enumerate() {
            let style = if number == 0 { FAINT } else { anstyle::Style::new() };
            lines.push(paint(line, style, colour));
        }
    }
    let mut list = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.extend([String::new(), paint(title, BOLD, colour)]);
            lines.extend(items.iter().flat_map(|item| wrap(&format!("- {item}"), width, 2)));
        }
    };
    let known = |text: &str| if text.is_empty() { "unknown".into() } else { format::label(text) };
    let changes = diff.machine.iter();
    let changes =
        changes.map(|c| format!("{}: {} → {}", c.fact, known(&c.before), known(&c.after)));
    list("Other differences", changes.collect());
    list("In only one experiment", diff.only_in_one.iter().map(format::label).collect());
    list("Not compared", diff.not_compared.iter().map(format::label).collect());
    list("Not judged", diff.not_judged.iter().map(format::label).collect());
    lines.push(String::new());
    for (word, side) in [("before", &diff.before), ("after ", &diff.after)] {
        let command = format::label(&side.command);
        lines.push(paint(
            &format!("{word}: {} of {}: {command}", side.id, printable::line(&side.started)),
            FAINT,
            colour,
        ));
    }
    lines.join("\n") + "\n"
}

fn sentence(diff: &Diff) -> String {
    let rates = diff.results.iter().map(|row| row.rate);
    let effects = diff.results.iter().filter_map(|row| row.effect);
    let judged = [counts(rates), counts(effects)];
    let ids = format!("From {} to {}", diff.before.id, diff.after.id);
    let rate = if diff.is_of_runs() { "rate" } else { "baseline rate" };
    let rates = |(changed, of)| format!("{changed} of {}", format::plural(of, rate));
    let effects = |(changed, of)| format!("{changed} of {}", format::plural(of, "effect"));
    let by_more = "changed by more than the noise";
    match judged {
        [(_, 0), (_, 0)] => format!("{ids}, no verdict on any change: no row has an interval."),
        [(_, 0), changed] => format!("{ids}, {} {by_more}.", effects(changed)),
        [changed, (_, 0)] => format!("{ids}, {} {by_more}.", rates(changed)),
        [of_rates, of_effects] => {
            format!("{ids}, {} {by_more}, and {}.", rates(of_rates), effects(of_effects))
        }
    }
}

/// How many leave out 0, of those that have an interval.
fn counts(changes: impl Iterator<Item = Change>) -> (usize, usize) {
    let judged: Vec<Change> = changes.filter(|change| change.high_pct.is_some()).collect();
    (judged.iter().filter(|change| change.is_beyond_noise).count(), judged.len())
}

/// A column of rates takes the unit; effects are per cent already.
fn rates(diff: &Diff, longest_name: usize) -> Table {
    let shown = |row: &DiffRow, rate: f64| format::rate(rate, &row.unit);
    let cells = |row: &DiffRow| {
        let [before, after] = [row.rate.before, row.rate.after].map(|rate| shown(row, rate));
        let numbers = vec![before, after, format::label(&row.unit)];
        [names(diff, row, longest_name), numbers, change(&row.rate)].concat()
    };
    let unit = [("unit", Align::Left)];
    Table::new(columns(&unit), diff.results.iter().map(cells).collect())
}

/// The effects, without rows for runs.
fn effects(diff: &Diff, longest_name: usize) -> Table {
    let cells = |row: &DiffRow| {
        let effect = row.effect?;
        let shown = [effect.before, effect.after].map(format::percent).to_vec();
        Some([names(diff, row, longest_name), shown, change(&effect)].concat())
    };
    Table::new(columns(&[]), diff.results.iter().filter_map(cells).collect())
}

fn columns(unit: &[(&'static str, Align)]) -> Vec<(&'static str, Align)> {
    let [left, right] = [Align::Left, Align::Right];
    let first = [("workload", left), ("treatment", left), ("before", right), ("after", right)];
    [&first[..], unit, &[("change", right), ("", left), ("interval", left)]].concat()
}

/// The workload and the treatment, which a run does not have.
fn names(diff: &Diff, row: &DiffRow, longest: usize) -> Vec<String> {
    let treatment = if diff.is_of_runs() { String::new() } else { row.treatment.clone() };
    let names = [row.workload.to_string(), treatment];
    names.map(|name| format::shorten(&format::label(&name), longest)).to_vec()
}

/// A change that the noise within the experiments explains is marked. Without an interval nobody knows.
fn change(change: &Change) -> Vec<String> {
    let has_interval = change.low_pct.is_some() || change.high_pct.is_some();
    let mark = if has_interval && !change.is_beyond_noise { "~" } else { "" };
    let interval = match has_interval {
        true => format::interval(change.low_pct, change.high_pct),
        false => format::NONE.to_owned(),
    };
    vec![format::percent(change.change_pct), mark.to_owned(), interval]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::described::machine_changes;
    use weigh_model::facts::Facts;
    use weigh_model::result::diff::{SCHEMA, Side, caveat};

    fn diff() -> Diff {
        let side =
            |id: &str| Side { id: id.into(), started: "then".into(), command: "weigh".into() };
        let change = |before, after, change_pct, is_beyond_noise| Change {
            before,
            after,
            change_pct,
            low_pct: Some(change_pct - 2.0),
            high_pct: Some(change_pct + 2.0),
            is_beyond_noise,
        };
        let row = |effect| DiffRow {
            workload: "getppid".into(),
            treatment: "seccomp".into(),
            unit: "ops/s".into(),
            rate: change(1000.0, 900.0, -10.0, true),
            effect,
        };
        let results = vec![row(None), row(Some(change(-20.0, -19.0, 1.25, false)))];
        let other = Facts { kernel: "6.6".into(), uptime_s: Some(5.0), ..Facts::default() };
        Diff {
            schema: SCHEMA,
            before: side("aaa"),
            after: side("bbb"),
            alpha: 0.05,
            caveat: caveat(&results),
            machine: machine_changes(&Facts::default(), &other),
            results,
            only_in_one: vec!["stat under none (ops/s): aaa".into()],
            not_compared: vec!["pipe under none (ops/s): its pairs were interleaved in aaa".into()],
            not_judged: Vec::new(),
            missing_later: Vec::new(),
        }
    }

    #[test]
    fn the_caveat_is_said_before_any_number_and_tells_the_width() {
        let text = text(&diff(), Room::terminal(100), false);
        let place = |part| text.find(part).unwrap_or_else(|| panic!("`{part}` is missing: {text}"));
        assert!(place("paired:") < place("getppid"));
        assert!(place("2 of 2 baseline rates") < place("±2.00 % in a rate"), "{text}");
        assert!(place("−10.0 %") < place("+1.25 %  ~"), "{text}");
        assert!(place("kernel: unknown → 6.6") < place("stat under none"), "{text}");
        assert!(place("stat under none") < place("pipe under none"), "{text}");
        assert!(!text.contains("uptime") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn two_runs_have_neither_baselines_nor_treatments() {
        let mut diff = diff();
        diff.results.truncate(1);
        diff.caveat = caveat(&diff.results);
        (diff.only_in_one, diff.not_compared) = (Vec::new(), Vec::new());
        diff.caveat = caveat(&diff.results);
        let text = text(&diff, Room::terminal(200), false);
        assert!(text.contains("1 of 1 rate changed by more than the noise."), "{text}");
        assert!(text.contains("\nRate\nworkload  before  after  unit"), "{text}");
        for word in ["baseline", "treatment", "seccomp", "effect"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn only_commands_are_wider_than_the_terminal() {
        for width in [60, 80, 100] {
            let text = text(&diff(), Room::terminal(width), false);
            let wide = text.lines().filter(|line| line.chars().count() > width);
            assert!(wide.clone().all(|line| line.contains(" of then: ")), "{text}");
        }
    }

    #[test]
    fn worse_is_what_fell_beyond_the_noise() {
        let rate = diff().results[0].rate;
        // −10 % is [−12 %, −8 %].
        assert!(rate.is_worse_by(7.9) && !rate.is_worse_by(8.1));
        assert!(!Change { high_pct: None, ..rate }.is_worse_by(1.0));
        assert!(!Change { high_pct: Some(-0.5), ..rate }.is_worse_by(1.0));
    }

    #[test]
    fn what_has_no_interval_is_not_called_the_same() {
        let mut diff = diff();
        diff.results.truncate(1);
        let row = &mut diff.results[0];
        for change in [Some(&mut row.rate), row.effect.as_mut()].into_iter().flatten() {
            (change.low_pct, change.high_pct, change.is_beyond_noise) = (None, None, false);
        }
        diff.not_judged =
            vec!["getppid under seccomp (ops/s): all its passes used one start".into()];
        let text = text(&diff, Room::terminal(200), false);
        assert!(text.contains("no verdict on any change") && text.contains("Not judged"), "{text}");
        assert!(!text.contains("baseline rates changed"), "{text}");
    }
}
