//! Findings under one treatment, as one sentence; [`super::sentence`] joins these sentences.

use super::needed;
use super::schemes;
use paired::Verdict;
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::workload::clock::PATH_LENGTH;

/// Writes the effects of one treatment, the most expensive first.
pub(super) fn found(treatment: &str, rows: &[&Row], s: &Summary) -> String {
    let said = verdicts(treatment, rows, s);
    match rows.iter().any(|row| row.metric == PATH_LENGTH) {
        true => format!("{said} Instructions were counted instead of time."),
        false => said,
    }
}

fn verdicts(treatment: &str, rows: &[&Row], s: &Summary) -> String {
    if let [row] = rows {
        return one(treatment, row, s);
    }
    let name = quoted(treatment);
    let slower = with(rows, Verdict::Slower);
    let faster = with(rows, Verdict::Faster);
    let mut clauses = Vec::new();
    if !slower.is_empty() {
        clauses.push(led(&name, "slows", &slower, rows.len(), s));
        if let Some(most) = largest(&faster) {
            let (count, most) = (are(faster.len()), named(most));
            let most_of_all = most_of_all(&faster);
            clauses.push(format!("{count} faster, {most_of_all}{most}"));
        }
    } else if !faster.is_empty() {
        clauses.push(led(&name, "speeds up", &faster, rows.len(), s));
    } else {
        return no_difference(&format!(" under {name}"), rows, s);
    }
    clauses.extend(undistinguished(rows, s));
    format!("{}.", clauses.join("; "))
}

/// `` `audit` slows 9 of 12 workloads, most of all `syscall` by 85.2 % [84.9, 85.6] ``
fn led(name: &str, verb: &str, rows: &[&Row], of: usize, s: &Summary) -> String {
    let Some(most) = largest(rows) else {
        return String::new();
    };
    let workloads = format::plural(of, "workload");
    let count = match rows.len() {
        2 if of == 2 => "both workloads".to_owned(),
        count if count == of => format!("all {workloads}"),
        count => format!("{count} of {workloads}"),
    };
    let below = format::margin(s.margin_pct);
    let small = match rows.iter().filter(|row| row.within_margin).count() {
        0 => String::new(),
        small if small == rows.len() => format!(" by less than {below}"),
        small => format!(" ({small} of them by less than {below})"),
    };
    format!("{name} {verb} {count}{small}, {}{}", most_of_all(rows), named(most))
}

/// The one workload of an experiment gets its number whatever the verdict.
fn one(treatment: &str, row: &Row, s: &Summary) -> String {
    let (name, workload) = (quoted(treatment), quoted(&row.workload));
    let effect = format!(
        "{} {}{}",
        format::percent(row.effect_pct),
        format::interval(row.low_pct, row.high_pct),
        of_cpu_time(row)
    );
    match row.verdict {
        Verdict::Slower => format!("{name} slows {}.", named(row)),
        Verdict::Faster => format!("{name} speeds up {}.", named(row)),
        Verdict::Equivalent => format!(
            "{workload} is equally fast under {name}, to within {}: {effect}.",
            format::margin(s.margin_pct)
        ),
        Verdict::Inconclusive => format!(
            "No verdict on the effect of {name} on {workload}{}{}.",
            so_far(row),
            needed::of(s, &[row])
        ),
    }
}

/// Says how many of all rows are undecided and what they need; `None` if all are decided.
pub(super) fn undecided(s: &Summary, rows: &[&Row]) -> Option<String> {
    let open = with(rows, Verdict::Inconclusive);
    let of = format::plural(rows.len(), "row");
    (!open.is_empty())
        .then(|| format!("No verdict on {} of {of}{}.", open.len(), needed::of(s, &open)))
}

/// Writes the state of an inconclusive row; without an interval, it gives no number.
pub(super) fn so_far(row: &Row) -> String {
    let pairs = format::plural(row.pairs, "pair");
    match (row.low_pct, row.high_pct) {
        (None, None) => format!(" after {pairs}"),
        (low, high) => {
            let effect = format::percent(row.effect_pct);
            let interval = format::interval(low, high);
            format!(": {effect} {interval}{} after {pairs}", of_cpu_time(row))
        }
    }
}

/// Writes the result of a control. Its arms are identical, so a difference is an error of the
/// machine or of the method.
pub(super) fn control(rows: &[&Row], s: &Summary) -> String {
    let alarms: Vec<&Row> = rows
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Slower | Verdict::Faster))
        .copied()
        .collect();
    let Some(most) = largest(&alarms) else {
        return no_difference("", rows, s);
    };
    let mut clauses = vec![format!(
        "False alarm: both arms are the same, yet {} of {} differ{}, {}{} {} {}",
        alarms.len(),
        format::plural(rows.len(), "workload"),
        if alarms.len() == 1 { "s" } else { "" },
        most_of_all(&alarms),
        quoted(&most.workload),
        format::percent(most.effect_pct),
        format::interval(most.low_pct, most.high_pct)
    )];
    clauses.extend(undistinguished(rows, s));
    format!("{}.", clauses.join("; "))
}

fn no_difference(under: &str, rows: &[&Row], s: &Summary) -> String {
    let equivalent = with(rows, Verdict::Equivalent).len();
    let inconclusive = with(rows, Verdict::Inconclusive);
    let of = format::plural(rows.len(), "workload");
    if equivalent == 0 {
        return format!(
            "No verdict{under}: {} of {of} inconclusive{}.",
            inconclusive.len(),
            needed::of(s, &inconclusive)
        );
    }
    let mut clauses = vec![format!(
        "No difference found{under}: {equivalent} of {of} equivalent within {}",
        format::margin(s.margin_pct)
    )];
    if !inconclusive.is_empty() {
        clauses.push(format!(
            "{} inconclusive{}",
            inconclusive.len(),
            needed::of(s, &inconclusive)
        ));
    }
    format!("{}.", clauses.join("; "))
}

/// The clauses about workloads in which no difference was found.
fn undistinguished(rows: &[&Row], s: &Summary) -> Vec<String> {
    let equivalent = with(rows, Verdict::Equivalent).len();
    let inconclusive = with(rows, Verdict::Inconclusive);
    let mut clauses = Vec::new();
    if equivalent > 0 {
        let margin = format::margin(s.margin_pct);
        clauses.push(format!("{} equivalent within {margin}", are(equivalent)));
    }
    if !inconclusive.is_empty() {
        clauses.push(format!(
            "{} inconclusive{}",
            are(inconclusive.len()),
            needed::of(s, &inconclusive)
        ));
    }
    clauses
}

fn with<'a>(rows: &[&'a Row], verdict: Verdict) -> Vec<&'a Row> {
    let has = |row: &&&'a Row| row.verdict == verdict;
    rows.iter().filter(has).copied().collect()
}

/// The row whose rate changed most; on a log scale, so that halving weighs as much as doubling.
fn largest<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let weight = |row: &Row| (1.0 + row.effect_pct / 100.0).max(1e-9).ln().abs();
    rows.iter().max_by(|a, b| weight(a).total_cmp(&weight(b))).copied()
}

/// `` `syscall` by 85.2 % [84.9, 85.6] ``: the sign is in the verb before it.
fn named(row: &Row) -> String {
    let (pct, interval) = amount(row);
    format!("{} by {pct} % {interval}{}", quoted(&row.workload), of_cpu_time(row))
}

/// Names the measure of an effect that is not one on time: of commands that shared a CPU.
fn of_cpu_time(row: &Row) -> String {
    if schemes::is_of_cpu_time(row) { format!(" ({})", schemes::CPU_TIME) } else { String::new() }
}

/// The effect and its interval without the sign, which is in a word beside them.
pub(super) fn amount(row: &Row) -> (String, String) {
    let slower = row.effect_pct < 0.0;
    let bare = |end: Option<f64>| match end.filter(|pct| pct.is_finite()) {
        None => None,
        Some(pct) if (pct < 0.0) == slower => Some(format::end(pct)),
        Some(pct) => Some(format!("−{}", format::end(pct))),
    };
    let (near, far) = if slower {
        (bare(row.high_pct), bare(row.low_pct))
    } else {
        (bare(row.low_pct), bare(row.high_pct))
    };
    let or_none = |end: Option<String>| end.unwrap_or_else(|| "∞".to_owned());
    let near = near.unwrap_or_else(|| "−∞".to_owned());
    (format::unsigned(row.effect_pct), format!("[{near}, {}]", or_none(far)))
}

fn most_of_all(rows: &[&Row]) -> &'static str {
    if rows.len() == 1 { "" } else { "most of all " }
}

fn are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::scheme::Scheme;
    use weigh_model::result::summary::Summary;

    fn said(s: &Summary, treatment: &str) -> String {
        let rows: Vec<&Row> = s.results.iter().collect();
        found(treatment, &rows, s)
    }

    #[test]
    fn what_counts_instructions_says_so() {
        let mut s = example::audit();
        assert!(!said(&s, "vm:selinux").contains("Instructions"));
        s.results[0].metric = PATH_LENGTH.into();
        assert!(said(&s, "vm:selinux").ends_with(". Instructions were counted instead of time."));
    }

    #[test]
    fn the_effect_on_a_command_that_shared_its_cpu_is_one_on_cpu_time() {
        let mut s = example::versus();
        s.results.truncate(1);
        assert!(!said(&s, "seccomp").contains("CPU time"));
        s.results[0].scheme = Some(Scheme::Interleaved);
        let all = [Verdict::Faster, Verdict::Slower, Verdict::Equivalent, Verdict::Inconclusive];
        for verdict in all {
            s.results[0].verdict = verdict;
            assert!(said(&s, "seccomp").contains("] (CPU time)"), "{}", said(&s, "seccomp"));
        }
    }

    #[test]
    fn the_most_expensive_verdict_leads() {
        assert_eq!(
            said(&example::audit(), "audit"),
            "`audit` slows 9 of 12 workloads (1 of them by less than 1 %), most of all `syscall` by \
             85.2 % [84.8, 85.6]; 2 are equivalent within 1 %; 1 is inconclusive (needs 20 to \
             110 more pairs, 4.2 s to 23 s)."
        );
    }

    #[test]
    fn a_large_effect_without_a_verdict_is_not_called_one() {
        let mut s = example::audit();
        s.results[0].verdict = Verdict::Inconclusive;
        let text = said(&s, "audit");
        assert!(!text.contains("syscall") && text.contains("2 are inconclusive"), "{text}");
        assert!(text.contains("most of all `pipe` by 60.4 %"), "{text}");
    }

    #[test]
    fn faster_rows_are_told_too() {
        let mut s = example::audit();
        s.results.truncate(4);
        s.results[1].verdict = Verdict::Faster;
        (s.results[1].effect_pct, s.results[1].low_pct) = (2.5, Some(2.0));
        s.results[1].high_pct = None;
        let text = said(&s, "x");
        assert!(
            text.contains("; 1 is faster, `dhry2reg` by 2.50 % [2.00, ∞]; 1 is equi"),
            "{text}"
        );
        s.results.drain(2..);
        s.results.remove(0);
        assert_eq!(said(&s, "x"), "`x` speeds up `dhry2reg` by 2.50 % [2.00, ∞].");
    }

    #[test]
    fn one_workload_gets_its_number_whatever_the_verdict() {
        let mut s = example::audit();
        let row = s.results.pop().expect("the last row is inconclusive");
        assert_eq!(
            found("audit", &[&row], &s),
            "No verdict on the effect of `audit` on `hanoi`: −0.35 % [−1.94, +1.27] after 40 pairs \
             (needs 20 to 110 more pairs, 4.2 s to 23 s)."
        );
        let equal = &s.results[1];
        assert_eq!(
            found("audit", &[equal], &Summary { margin_pct: 0.5, ..s.clone() }),
            "`dhry2reg` is equally fast under `audit`, to within 0.5 %: +0.02 % [−0.28, +0.32]."
        );
    }

    #[test]
    fn a_difference_between_identical_arms_is_a_false_alarm() {
        let mut s = example::control();
        let all: Vec<&Row> = s.results.iter().collect();
        assert_eq!(
            control(&all, &s),
            "No difference found: 12 of 12 workloads equivalent within 1 %."
        );
        s.results[11].verdict = Verdict::Slower;
        let all: Vec<&Row> = s.results.iter().collect();
        assert_eq!(
            control(&all, &s),
            "False alarm: both arms are the same, yet 1 of 12 workloads differs, `hanoi` −0.35 % \
             [−1.94, +1.27]; 11 are equivalent within 1 %."
        );
    }

    #[test]
    fn without_any_verdict_nothing_is_claimed() {
        let mut s = example::audit();
        s.results.iter_mut().for_each(|row| row.verdict = Verdict::Inconclusive);
        let text = said(&s, "audit");
        assert_eq!(
            text,
            "No verdict under `audit`: 12 of 12 workloads inconclusive (needs 20 to 110 more pairs, 4.2 s to \
             23 s)."
        );
    }
}
