//! Several runs together: the peaks of repeated loads, or the change from sample to sample for each length of
//! samples.

use super::outline::{Outline, OutlineTable, kept_and_again};
use super::screen::Room;
use super::table::{Table, columns};
use weigh_model::format;
use weigh_model::result::repeated::{LoadSet, RepeatedReport, SampleChange, SampleLength, SetPeak};

const UNIT: &str = "jobs/min";

pub fn render(report: &RepeatedReport, room: Room, colour: bool) -> String {
    let text = outline(report).text(room, colour);
    format!("{text}\n{}", kept_and_again(&report.id, &report.command))
}

pub fn outline(report: &RepeatedReport) -> Outline {
    let mut tables = Vec::new();
    if !report.sets.is_empty() {
        tables.push(OutlineTable::new("The peak of each set", peaks(report), ""));
    }
    if !report.lengths.is_empty() {
        let table = lengths(report);
        tables.push(OutlineTable::new("Change from sample to sample", table, LENGTHS));
    }
    let sentences = [
        report.failure.as_ref().map(|why| format!("The last run failed: {}", format::label(why))),
        spread(report),
        at_the_end(report),
        unconfirmed(report),
        further(report),
        steadiest(report),
    ];
    let failures = report.failures.iter().map(|one| format!("{}: {}", one.name(), one.reason));
    Outline {
        sentences: sentences.into_iter().flatten().collect(),
        tables,
        lists: vec![("No result", failures.collect())],
    }
}

const LENGTHS: &str = "change: mean difference between a sample of a workload and its next one, over all \
                       workloads. largest: that of the workload that changes most.";

fn peaks(report: &RepeatedReport) -> Table {
    let row = |(set, LoadSet { experiment, peak }): (usize, &LoadSet)| {
        let rate = |rate: f64| format::rate(rate, UNIT);
        let [users, best, interval, note] = match peak {
            Some(SetPeak { users, jobs_per_min, low, high, is_at_the_end }) => [
                users.to_string(),
                rate(*jobs_per_min),
                low.zip(*high)
                    .map(|(low, high)| format!("[{}, {}]", rate(low), rate(high)))
                    .unwrap_or_default(),
                if *is_at_the_end { "the ramp ended here" } else { "" }.to_owned(),
            ],
            None => ["", "", "not confirmed", ""].map(str::to_owned),
        };
        vec![(set + 1).to_string(), format::label(experiment), users, best, interval, note]
    };
    let rows = report.sets.iter().enumerate().map(row);
    Table::new(columns(">set|experiment|>users|>jobs/min|interval|"), rows.collect())
}

fn lengths(report: &RepeatedReport) -> Table {
    let row = |SampleLength { experiment, sample_s, change }: &SampleLength| {
        let pct = |pct: f64| format!("{pct:.2} %");
        let [mean, largest, workload, workloads] = match change {
            Some(SampleChange { mean_pct, largest_pct, workload, workloads }) => {
                [pct(*mean_pct), pct(*largest_pct), format::label(workload), workloads.to_string()]
            }
            None => Default::default(),
        };
        let length = format::seconds(*sample_s);
        vec![length, mean, largest, workload, workloads, format::label(experiment)]
    };
    let titles = ">run time|>change|>largest|workload|>workloads|experiment";
    Table::new(columns(titles), report.lengths.iter().map(row).collect())
}

fn spread(report: &RepeatedReport) -> Option<String> {
    let rates: Vec<f64> = report.peaks().map(|peak| peak.jobs_per_min).collect();
    let low = rates.iter().copied().reduce(f64::min).filter(|_| rates.len() > 1)?;
    let high = rates.iter().copied().reduce(f64::max)?;
    Some(format!(
        "The highest throughput of {} sets was {} to {} jobs/min, {} apart.",
        rates.len(),
        format::rate(low, UNIT),
        format::rate(high, UNIT),
        format::percent((high / low - 1.0) * 100.0).trim_start_matches('+'),
    ))
}

fn at_the_end(report: &RepeatedReport) -> Option<String> {
    let ended = report.peaks().filter(|peak| peak.is_at_the_end).count();
    (ended > 0).then(|| {
        format!(
            "In {}, the ramp ended at the peak or at points that are as good, so the real peak may be \
             higher: use a longer --budget, or larger --users.",
            format::plural(ended, "set")
        )
    })
}

fn unconfirmed(report: &RepeatedReport) -> Option<String> {
    let without = report.sets.len() - report.peaks().count();
    let sets = format::plural(without, "set");
    (without > 0).then(|| format!("No peak was confirmed in {sets}: use a longer --budget."))
}

fn further(report: &RepeatedReport) -> Option<String> {
    let further = report.further?;
    let [low, high] = [further.low, further.high].map(|rate| format::rate(rate, UNIT));
    Some(format!(
        "Judging by these sets, that of a further set would lie within [{low}, {high}] jobs/min, with 95 % \
         confidence."
    ))
}

fn steadiest(report: &RepeatedReport) -> Option<String> {
    let changes =
        report.lengths.iter().filter_map(|one| Some((one.sample_s, one.change.as_ref()?)));
    let (seconds, change) = changes.min_by(|a, b| a.1.mean_pct.total_cmp(&b.1.mean_pct))?;
    let (length, pct) = (format::seconds(seconds), change.mean_pct);
    Some(format!("The change is smallest with samples of {length}: {pct:.2} %."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMATS;
    use weigh_model::result::repeated::FurtherPeak;
    use weigh_model::result::report::Report;

    fn set(experiment: &str, jobs_per_min: Option<f64>) -> LoadSet {
        let peak = jobs_per_min.map(|jobs_per_min| SetPeak {
            users: 4,
            jobs_per_min,
            low: Some(jobs_per_min - 50.0),
            high: Some(jobs_per_min + 50.0),
            is_at_the_end: jobs_per_min > 1050.0,
        });
        LoadSet { experiment: experiment.into(), peak }
    }

    fn of_sets() -> RepeatedReport {
        let sets = vec![set("aaa", Some(1000.0)), set("<b>|", None), set("ccc", Some(1100.0))];
        let further = Some(FurtherPeak { low: 828.0, high: 1330.0 });
        RepeatedReport { id: "k3f9qx".into(), sets, further, ..RepeatedReport::default() }
    }

    fn of_lengths() -> RepeatedReport {
        let length = |sample_s, mean_pct| SampleLength {
            experiment: "aaa".into(),
            sample_s,
            change: Some(SampleChange {
                mean_pct,
                largest_pct: 10.0,
                workload: "pipe,x".into(),
                workloads: 2,
            }),
        };
        let unknown = SampleLength { experiment: "bbb".into(), sample_s: 9.0, change: None };
        let lengths = vec![length(2.0, 6.0), length(8.0, 1.0), unknown];
        RepeatedReport { lengths, ..RepeatedReport::default() }
    }

    fn assert_in_every_format(report: RepeatedReport, expected: &[(&str, &str)]) {
        let report = Report::from(report);
        assert_eq!(expected.len(), FORMATS.len());
        for (format, part) in expected {
            let format = FORMATS.iter().find(|one| one.name == *format).unwrap();
            let text = (format.render)(&report).unwrap();
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(part), "{}: {text}", format.name);
            assert!(!["html", "junit"].contains(&format.name) || !text.contains("<b>"), "{text}");
        }
    }

    #[test]
    fn sets_are_the_same_in_every_format() {
        assert_in_every_format(
            of_sets(),
            &[
                (
                    "text",
                    "The highest throughput of 2 sets was 1,000 to 1,100 jobs/min, 10.0 % apart.",
                ),
                ("markdown", "In 1 set, the ramp ended at the peak"),
                ("html", "that of a further set would lie within [828.0, 1,330]"),
                ("csv", "k3f9qx,ccc,3,4,1100,1050,1150"),
                ("junit", "errors=\"0\" skipped=\"1\""),
                ("json", "\"experiment\": \"ccc\", \"peak\": { \"users\": 4,"),
            ],
        );
    }

    #[test]
    fn lengths_are_the_same_in_every_format() {
        assert_in_every_format(
            of_lengths(),
            &[
                ("text", "2.0 s 6.00 % 10.00 % pipe,x 2 aaa"),
                ("markdown", "The change is smallest with samples of 8.0 s: 1.00 %."),
                ("html", "The change is smallest with samples of 8.0 s: 1.00 %."),
                ("csv", ",aaa,2,6,10,\"pipe,x\",2"),
                ("junit", "1.00 % from sample to sample"),
                ("json", "\"mean_pct\": 6.0"),
            ],
        );
    }
}
