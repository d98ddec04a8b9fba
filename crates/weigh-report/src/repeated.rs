//! Results of several runs together: the peaks of repeated loads, and the change from sample to sample for
//! each length of samples (White's Table 6).

use super::screen::Room;
use super::table::{Table, columns};
use super::text::wrap;
use paired::student::one_more;
use weigh_model::format;
use weigh_model::result::run::RunReport;
use weigh_model::result::series::RunSeries;

/// Fewest sets that predict a further one.
const FEWEST_SETS: usize = 3;
const ALPHA: f64 = 0.05;

/// The best point of each set, and where that of a further set would be.
pub fn peaks(reports: &[RunReport], room: Room) -> String {
    let best = |report: &RunReport| {
        let answers = report.loads.first()?;
        answers.best().and_then(|_| answers.best_point()).cloned()
    };
    let found: Vec<_> = reports
        .iter()
        .enumerate()
        .filter_map(|(set, report)| Some((set, &report.id, best(report)?)))
        .collect();
    let rows = found.iter().map(|(set, id, point)| {
        let rate = |rate: f64| format::rate(rate, "jobs/min");
        let interval = point.throughput();
        vec![
            (set + 1).to_string(),
            format::label(id),
            point.users.to_string(),
            rate(point.jobs_per_min),
            interval.map(|it| format!("[{}, {}]", rate(it.low), rate(it.high))).unwrap_or_default(),
        ]
    });
    let table = Table::new(columns(">set|experiment|>users|>jobs/min|interval"), rows.collect());
    let rates: Vec<f64> = found.iter().map(|(_, _, point)| point.jobs_per_min).collect();
    let mut said = spread(&rates).into_iter().collect::<Vec<_>>();
    let without = reports.len() - found.len();
    if without > 0 {
        let sets = format::plural(without, "set");
        said.push(format!("No peak was confirmed in {sets}: use a longer --budget."));
    }
    said.extend(next(&rates));
    text(&table, &said.join(" "), room)
}

fn spread(rates: &[f64]) -> Option<String> {
    let low = rates.iter().copied().reduce(f64::min).filter(|_| rates.len() > 1)?;
    let high = rates.iter().copied().reduce(f64::max)?;
    Some(format!(
        "The highest throughput of {} sets was {} to {} jobs/min, {} apart.",
        rates.len(),
        format::rate(low, "jobs/min"),
        format::rate(high, "jobs/min"),
        format::percent((high / low - 1.0) * 100.0).trim_start_matches('+'),
    ))
}

fn next(rates: &[f64]) -> Option<String> {
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let further = one_more(&logs, ALPHA).filter(|_| rates.len() >= FEWEST_SETS)?;
    let [low, high] = [further.low, further.high].map(|log| format::rate(log.exp(), "jobs/min"));
    Some(format!(
        "Judging by these sets, that of a further set would lie within [{low}, {high}] jobs/min, with 95 % \
         confidence."
    ))
}

/// The lengths of samples, each with how much the samples of its run differ.
pub fn lengths(runs: &[(f64, RunReport)], room: Room) -> String {
    let found: Vec<(f64, &str, Changes)> = runs
        .iter()
        .filter_map(|(seconds, report)| Some((*seconds, &*report.id, Changes::of(&report.series)?)))
        .collect();
    let rows = found.iter().map(|(seconds, id, changes)| {
        let pct = |share: f64| format!("{:.2} %", share * 100.0);
        vec![
            format::seconds(*seconds),
            pct(changes.mean),
            pct(changes.largest),
            format::label(&changes.of),
            changes.workloads.to_string(),
            format::label(id),
        ]
    });
    let titles = ">run time|>change|>largest|workload|>workloads|experiment";
    let table = Table::new(columns(titles), rows.collect());
    let least = found.iter().min_by(|a, b| a.2.mean.total_cmp(&b.2.mean));
    let said = least.map(|(seconds, _, changes)| {
        format!(
            "The change is smallest with samples of {}: {:.2} %. It is the mean difference between a \
             sample of a workload and its next one, over all workloads.",
            format::seconds(*seconds),
            changes.mean * 100.0
        )
    });
    text(&table, &said.unwrap_or_default(), room)
}

fn text(table: &Table, sentence: &str, room: Room) -> String {
    let mut lines = table.to_lines(room.cut);
    if !sentence.is_empty() {
        lines.push(String::new());
        lines.extend(wrap(sentence, room.wrap, 0));
    }
    lines.join("\n") + "\n"
}

/// How much the rates of a run change from one sample of a workload to its next one, as shares.
#[derive(Debug, PartialEq)]
struct Changes {
    /// Mean over the workloads.
    mean: f64,
    /// Mean change of the workload that changes most.
    largest: f64,
    /// Name of that workload.
    of: String,
    workloads: usize,
}

impl Changes {
    /// `None` if no workload has two samples.
    fn of(series: &[RunSeries]) -> Option<Changes> {
        let changes: Vec<(f64, String)> = series
            .iter()
            .filter_map(|one| {
                let pairs = one.samples.windows(2);
                let count = pairs.len();
                let sum: f64 = pairs.map(|pair| (pair[1].rate / pair[0].rate - 1.0).abs()).sum();
                (count > 0).then(|| (sum / count as f64, one.workload.to_string()))
            })
            .collect();
        let (largest, of) = changes.iter().max_by(|a, b| a.0.total_cmp(&b.0)).cloned()?;
        let workloads = changes.len();
        let mean = changes.iter().map(|(change, _)| change).sum::<f64>() / workloads as f64;
        Some(Changes { mean, largest, of, workloads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::ids::ArmId;
    use weigh_model::result::load::{LoadAnswers, LoadPeak, LoadPoint, Throughput};
    use weigh_model::result::series::RunSample;

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn set(id: &str, jobs_per_min: f64) -> RunReport {
        let point = LoadPoint { users: 4, jobs_per_min, ..LoadPoint::default() };
        let mut answers = LoadAnswers::new("load:x".into(), vec![point], &[]);
        let throughput = Throughput { jobs_per_min, low: 1.0, high: 9e9, samples: 8 };
        answers.peak = Some(LoadPeak {
            users: 4,
            as_good: vec![4],
            users_low: 4,
            users_high: 4,
            throughput,
            is_at_the_end: false,
        });
        RunReport { id: id.into(), loads: vec![answers], ..RunReport::default() }
    }

    #[test]
    fn a_set_without_a_confirmed_peak_counts_for_nothing_and_is_named() {
        let mut unconfirmed = set("bbb", 5000.0);
        unconfirmed.loads[0].peak = None;
        let sets = [set("aaa", 1000.0), unconfirmed, set("ccc", 1100.0)];
        let said = words(&peaks(&sets, Room::FILE));
        assert!(said.contains("3 ccc 4 1,100") && !said.contains("bbb"), "{said}");
        assert!(said.contains("of 2 sets was 1,000 to 1,100 jobs/min"), "{said}");
        assert!(said.contains("No peak was confirmed in 1 set: use a longer --budget."), "{said}");
    }

    #[test]
    fn sets_show_their_peaks_and_three_predict_a_further_one() {
        let two = peaks(&[set("aaa", 1000.0), set("bbb", 1100.0)], Room::FILE);
        assert!(words(&two).contains("2 sets was 1,000 to 1,100 jobs/min, 10.0 % apart."), "{two}");
        assert!(!two.contains("further"), "{two}");
        let three = [set("aaa", 1000.0), set("bbb", 1100.0), set("ccc", 1050.0)];
        let three = words(&peaks(&three, Room::FILE));
        assert!(three.contains("3 ccc 4 1,050"), "{three}");
        // The mean of the logarithms ± 4.303 · 0.04766 · √(4/3).
        assert!(three.contains("would lie within [828.0, 1,330] jobs/min"), "{three}");
    }

    #[test]
    fn a_change_is_the_mean_between_neighbours_over_workloads() {
        let series = |name: &str, rates: &[f64]| RunSeries {
            workload: name.into(),
            arm: ArmId::BASELINE,
            unit: "ops/s".into(),
            samples: rates
                .iter()
                .map(|rate| RunSample {
                    started_s: 0.0,
                    operations: 1.0,
                    elapsed_s: 1.0,
                    rate: *rate,
                })
                .collect(),
        };
        let all =
            [series("a", &[100.0, 110.0, 99.0]), series("b", &[50.0, 51.0]), series("c", &[9.0])];
        let found = Changes::of(&all).unwrap();
        assert!(
            (found.mean - 0.06).abs() < 1e-12 && (found.largest - 0.1).abs() < 1e-12,
            "{found:?}"
        );
        assert_eq!((found.of.as_str(), found.workloads), ("a", 2));
        assert_eq!(Changes::of(&all[2..]), None);
        let steady = RunReport { series: vec![series("b", &[50.0, 50.5])], ..RunReport::default() };
        let runs = [(2.0, RunReport { series: all.into(), ..RunReport::default() }), (8.0, steady)];
        let text = words(&lengths(&runs, Room::FILE));
        assert!(text.contains("2.0 s 6.00 % 10.00 % a 2"), "{text}");
        assert!(text.contains("smallest with samples of 8.0 s: 1.00 %"), "{text}");
    }
}
