//! Results of metrics other than the rate. Each metric has a table. The sentence includes the
//! metrics that were asked for, and CPU time if the rate is left open.

use super::table::{Align, Table};
use super::versus;
use paired::Verdict;
use paired::judge::MIN_PAIRS;
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::reading::Reading;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::result::versus::WORK;
use weigh_model::workload::metric::{Direction, Metric};
use weigh_model::workload::sample::SampleMetric;

/// So many workloads are named for each verdict.
const MOST_NAMED: usize = 6;

/// A row, and what its pairs say of one metric.
type OfMetric<'a> = (&'a Row, &'a Reading);

pub struct MetricTable {
    pub title: String,
    pub legend: &'static str,
    pub table: Table,
}

/// One per metric that any row has, each with a line per row that has it.
pub fn tables(s: &Summary) -> Vec<MetricTable> {
    metrics(s).into_iter().map(|metric| table(s, metric)).collect()
}

/// Returns a sentence per metric with a verdict, and one about the requested metrics without any.
pub fn sentences(s: &Summary) -> Vec<String> {
    let metrics = metrics(s);
    let decided = metrics.iter().filter_map(|metric| sentence(s, metric));
    decided.chain(no_verdict(s, &metrics)).collect()
}

/// In the order in which they are judged.
fn metrics(s: &Summary) -> Vec<&Metric> {
    let mut metrics = Vec::new();
    for reading in s.results.iter().flat_map(|row| &row.readings) {
        if !metrics.contains(&&reading.metric) {
            metrics.push(&reading.metric);
        }
    }
    metrics
}

fn with_metric<'a>(s: &'a Summary, metric: &'a Metric) -> impl Iterator<Item = OfMetric<'a>> {
    let of_row = move |row: &'a Row| row.readings.iter().find(|one| one.metric == *metric);
    s.results.iter().filter_map(move |row| Some((row, of_row(row)?)))
}

fn title(metric: &Metric) -> String {
    match metric {
        Metric::Rate => "Rate".into(),
        Metric::OverallRate => "Rate over all time".into(),
        Metric::CpuTime => "CPU time per operation".into(),
        Metric::Latency(percentile) => {
            percentile.name().replace("latency_p", "Latency per operation, p")
        }
        Metric::Named(name) => SampleMetric::find(name)
            .map_or_else(|| format::label(name), |known| known.title.to_owned()),
    }
}

fn legend(metric: &Metric) -> &'static str {
    match metric {
        Metric::Rate => "operations per second",
        Metric::OverallRate => {
            "mean rate including stalls; the results above are medians of interleaved slices"
        }
        Metric::CpuTime => "user + system time; time spent waiting is excluded",
        Metric::Latency(_) => "per sample; timing each operation adds some time to it",
        Metric::Named(name) => {
            SampleMetric::find(name).map_or("as the program reports it", |known| known.legend)
        }
    }
}

fn table(s: &Summary, metric: &Metric) -> MetricTable {
    let rows: Vec<OfMetric> = with_metric(s, metric).collect();
    let several = super::has_several_treatments(s);
    let cells = rows.iter().map(|(row, reading)| {
        let treatment = if several { format::label(&row.treatment) } else { String::new() };
        vec![
            format::label(&row.workload),
            treatment,
            amounts(reading),
            format::percent(reading.effect_pct),
            format::interval(reading.low_pct, reading.high_pct),
            verdict(reading, s.margin_pct),
            format::integer(reading.pairs as u64),
        ]
    });
    let columns = vec![
        (versus::heading(s), Align::Left),
        ("treatment", Align::Left),
        ("baseline → treated", Align::Right),
        ("change", Align::Right),
        ("interval", Align::Left),
        ("verdict", Align::Left),
        ("pairs", Align::Right),
    ];
    let table = Table::new(columns, cells.collect());
    MetricTable { title: title(metric), legend: legend(metric), table }
}

/// `0.68 → 27.3 µs`.
fn amounts(reading: &Reading) -> String {
    let Reading { baseline, treated, ref unit, .. } = *reading;
    match unit.as_str() {
        "ns" | "ns/op" => format::change_ns(baseline, treated),
        "B" | "B/op" => format!("{} → {}", format::bytes(baseline), format::bytes(treated)),
        _ => {
            let [from, to] = [baseline, treated].map(|value| format::rate(value, unit));
            format!("{from} → {to} {}", format::label(unit))
        }
    }
}

/// The verdicts on a metric that was asked for; of CPU time those of workloads whose rate is left open, and
/// of the rate over all time also those that are others than by slices.
fn sentence(s: &Summary, metric: &Metric) -> Option<String> {
    let is_asked_for = !metric.is_implicit();
    let is_shown = |(row, reading): &OfMetric| {
        let is_open = row.verdict == Verdict::Inconclusive;
        let is_other = *metric == Metric::OverallRate && reading.verdict != row.verdict;
        reading.verdict != Verdict::Inconclusive && (is_asked_for || is_open || is_other)
    };
    let decided: Vec<OfMetric> = with_metric(s, metric).filter(is_shown).collect();
    let equal = format!("equal within {}", format::margin(s.margin_pct));
    let changes = [(Some(true), "higher"), (Some(false), "lower"), (None, &*equal)];
    let clauses: Vec<String> = (changes.into_iter())
        .filter_map(|(wanted, word)| {
            let names = named(&decided, |reading| change(reading) == wanted)?;
            Some(format!("{word} for {names}"))
        })
        .collect();
    let what = match metric {
        Metric::CpuTime => "CPU time per operation, without waiting".into(),
        Metric::OverallRate => "Rate over all time, including stalls".into(),
        Metric::Named(name) if SampleMetric::find(name).is_none() => quoted(name),
        known => title(known),
    };
    (!clauses.is_empty()).then(|| format!("{what}: {}.", clauses.join("; ")))
}

/// Names the requested metrics on which no row has a verdict, and how many pairs they have if these are few.
fn no_verdict(s: &Summary, metrics: &[&Metric]) -> Option<String> {
    let is_open = |metric: &&&Metric| {
        let mut verdicts = with_metric(s, metric).map(|(_, reading)| reading.verdict);
        !metric.is_implicit() && verdicts.all(|verdict| verdict == Verdict::Inconclusive)
    };
    let open: Vec<&&Metric> = metrics.iter().filter(is_open).collect();
    let pairs = open.iter().flat_map(|metric| with_metric(s, metric)).map(|(_, one)| one.pairs);
    let pairs = pairs.max()?;
    let few = match pairs < MIN_PAIRS {
        true => format!(" ({pairs} of at least {MIN_PAIRS} pairs)"),
        false => String::new(),
    };
    let named: Vec<String> = open.iter().take(MOST_NAMED).map(|metric| name(metric)).collect();
    let more = match open.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("No verdict on {}{more}{few}.", named.join(", ")))
}

fn name(metric: &Metric) -> String {
    match metric {
        Metric::CpuTime => "CPU time".into(),
        Metric::Named(name) if SampleMetric::find(name).is_some() => title(metric).to_lowercase(),
        Metric::Latency(_) | Metric::Named(_) => quoted(metric.name()),
        known => title(known).to_lowercase(),
    }
}

/// Returns true for an increase, false for a decrease; `None` without a shown change.
fn change(reading: &Reading) -> Option<bool> {
    match reading.verdict {
        Verdict::Slower => Some(reading.better == Direction::Lower),
        Verdict::Faster => Some(reading.better == Direction::Higher),
        Verdict::Equivalent | Verdict::Inconclusive => None,
    }
}

/// The rows whose reading is wanted: `a` and `b` under `audit`; `None` without any.
fn named(decided: &[OfMetric], is_wanted: impl Fn(&Reading) -> bool) -> Option<String> {
    let wanted: Vec<&Row> =
        decided.iter().filter(|(_, one)| is_wanted(one)).map(|(row, _)| *row).collect();
    let treatment = &wanted.first()?.treatment;
    let is_one = treatment != WORK && wanted.iter().all(|row| row.treatment == *treatment);
    let name = |row: &&Row| match is_one {
        true => quoted(&row.workload),
        false => versus::row_name(&row.workload, &row.treatment),
    };
    let mut names: Vec<String> = wanted.iter().take(MOST_NAMED).map(name).collect();
    let last = match wanted.len() - names.len() {
        0 => names.pop()?,
        more => format!("{more} more"),
    };
    let names = if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) };
    Some(if is_one { format!("{names} under {}", quoted(treatment)) } else { names })
}

/// In words of an amount.
fn verdict(reading: &Reading, margin_pct: f64) -> String {
    let within = format::margin(margin_pct);
    if reading.verdict == Verdict::Inconclusive {
        return "inconclusive".into();
    }
    let word = match (change(reading), &reading.metric) {
        (None, _) => return format!("equal within {within}"),
        (Some(true), Metric::OverallRate) => "faster",
        (Some(false), Metric::OverallRate) => "slower",
        (Some(true), _) => "more",
        (Some(false), _) => "less",
    };
    if reading.within_margin { format!("{word}, <{within}") } else { word.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn what_the_rate_leaves_open_is_named_with_what_cpu_time_says() {
        let mut s = example::audit();
        assert!(sentences(&s).is_empty() && tables(&s).is_empty());
        let verdicts = [Verdict::Slower, Verdict::Equivalent, Verdict::Inconclusive];
        for (row, verdict) in s.results.iter_mut().zip(verdicts) {
            row.verdict = Verdict::Inconclusive;
            row.readings = vec![example::reading(Metric::CpuTime, verdict)];
        }
        let names: Vec<String> = s.results.iter().map(|row| quoted(&row.workload)).collect();
        assert_eq!(
            sentences(&s)[0],
            format!(
                "CPU time per operation, without waiting: higher for {} under `audit`; equal within 1 % for \
                 {} under `audit`.",
                names[0], names[1]
            )
        );
        let table = &tables(&s)[0].table;
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[0][1..].join(" "), "100 → 103 ns +3.00 % [+2.00, +4.00] more 40");
        s.results[0].verdict = Verdict::Slower;
        assert!(!sentences(&s)[0].contains("higher"), "its rate says so");
    }

    #[test]
    fn of_what_was_asked_for_all_verdicts_are_told_in_words_of_its_amount() {
        let mut s = example::audit();
        let jobs = |verdict| Reading {
            unit: "jobs/min".into(),
            better: Direction::Higher,
            ..example::reading(Metric::Named("jobs".into()), verdict)
        };
        for (row, verdict) in s.results.iter_mut().zip([Verdict::Slower, Verdict::Faster]) {
            row.readings = vec![jobs(verdict)];
        }
        let names: Vec<String> = s.results.iter().map(|row| quoted(&row.workload)).collect();
        let said = |one: &str, other: &str| {
            format!("`jobs`: higher for {} {one}; lower for {} {other}.", names[1], names[0])
        };
        assert_eq!(sentences(&s), [said("under `audit`", "under `audit`")]);
        s.results[0].treatment = "seccomp".into();
        assert_eq!(sentences(&s), [said("under `audit`", "under `seccomp`")]);
        s.results[0].treatment = "audit".into();
        let [MetricTable { title, table, .. }] = &tables(&s)[..] else { panic!("one metric") };
        assert_eq!(
            (title.as_str(), table.rows[0][1..].join(" ").as_str()),
            ("jobs", "100.0 → 103.0 jobs/min +3.00 % [+2.00, +4.00] less 40")
        );
        for row in &mut s.results {
            row.readings.iter_mut().for_each(|one| one.verdict = Verdict::Inconclusive);
        }
        assert_eq!(sentences(&s), ["No verdict on `jobs`."]);
        for row in &mut s.results {
            row.readings.iter_mut().for_each(|one| one.pairs = 2);
        }
        assert_eq!(sentences(&s), ["No verdict on `jobs` (2 of at least 8 pairs)."]);
    }
}
