//! A mix over the number of users, without a treatment and with it, on a terminal: a row per load point, with
//! a bar as long as the throughput of both arms.

use std::collections::BTreeSet;

use super::curve_text::{PlotRow, lines_with_bars};
use super::text::wrap;
use weigh_model::format;
use weigh_model::result::load::LoadPoint;
use weigh_model::result::load_compared::{ComparedLoad, LoadCurve};
use weigh_model::result::summary::Summary;

/// Mark of a load point that may be the peak as well as the one at which the peak was measured.
const MAY_BE: &str = "peak?";

/// The charts of all mixes whose peak was searched for, with an empty line before each.
pub fn lines(s: &Summary, width: usize, colour: bool) -> Vec<String> {
    s.loads.iter().flat_map(|load| of_load(load, &s.baseline, width, colour)).collect()
}

fn of_load(load: &ComparedLoad, baseline: &str, width: usize, colour: bool) -> Vec<String> {
    let ComparedLoad { baseline: without, treated: with, .. } = load;
    let all = || without.points.iter().chain(&with.points);
    let highest = all().map(|point| point.jobs_per_min).fold(0.0, f64::max);
    let pct = load.percent_known();
    let users: BTreeSet<usize> = all().map(|point| point.users).collect();
    let row = |users: usize| {
        let point = |curve: &LoadCurve| curve.points.iter().find(|p| p.users == users).cloned();
        let [before, after] = [point(without), point(with)];
        let jobs = |point: &Option<LoadPoint>| {
            point.as_ref().map(|point| format::rate(point.jobs_per_min, "jobs/min"))
        };
        let job_time = |point: &Option<LoadPoint>| {
            point.as_ref().and_then(|point| point.job_time_ns(pct)).map(format::time_ns)
        };
        let found = [jobs(&before), jobs(&after), job_time(&before), job_time(&after)];
        let mut cells = vec![users.to_string()];
        cells.extend(found.map(Option::unwrap_or_default));
        cells.push(mark(load, users));
        let [share, other] =
            [before, after].map(|point| point.map_or(0.0, |point| point.jobs_per_min / highest));
        (PlotRow { cells, share }, other)
    };
    let rows: Vec<(PlotRow, f64)> = users.into_iter().map(row).collect();
    let within = format!("p{pct} without");
    let columns = ["users", "without", "with", &within, "with", ""];
    let title = format!(
        "{}: jobs/min and p{pct} of a job's time, without and with {}",
        format::label(&load.mix),
        format::label(&load.treatment)
    );
    let title = match baseline {
        "none" => title,
        other => format!("{title}; baseline {}", format::label(other)),
    };
    let mut text = vec![String::new()];
    text.extend(lines_with_bars(&title, &columns, &rows, width, colour));
    let may_be = |curve: &LoadCurve| curve.peak_as_good.iter().any(|at| *at != curve.peak_users);
    let marks = match may_be(without) || may_be(with) {
        true => format!("; {MAY_BE} not told apart from the peak"),
        false => String::new(),
    };
    text.extend(wrap(&format!("█ both arms, ░ only baseline, ▒ only treated{marks}"), width, 2));
    text
}

fn mark(load: &ComparedLoad, users: usize) -> String {
    let is_peak = |curve: &LoadCurve| curve.peak_users == users;
    let may_be = |curve: &LoadCurve| !is_peak(curve) && curve.peak_as_good.contains(&users);
    let is_crossover =
        |curve: &LoadCurve| curve.crossover.is_some_and(|crossover| crossover.users == users);
    let of_arms = |what: &str, is_there: &dyn Fn(&LoadCurve) -> bool| match (
        is_there(&load.baseline),
        is_there(&load.treated),
    ) {
        (true, true) => Some(what.to_owned()),
        (true, false) => Some(format!("{what} without")),
        (false, true) => Some(format!("{what} with")),
        (false, false) => None,
    };
    let marks =
        [of_arms("peak", &is_peak), of_arms(MAY_BE, &may_be), of_arms("crossover", &is_crossover)];
    marks.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn both_arms_are_drawn_and_the_peaks_marked() {
        let lines = lines(&example::load(), 80, false);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let row = |users: &str| {
            lines.iter().find(|line| line.trim_start().starts_with(users)).unwrap().clone()
        };
        assert!(row("2 ").contains("peak with ") && row("4 ").contains("peak without"));
        assert!(row("4 ").contains('█') && row("4 ").contains('░'), "{lines:#?}");
        assert!(row("1 ").contains("12.0 ms"), "{lines:#?}");
        assert!(!lines.concat().contains(MAY_BE), "{lines:#?}");
    }

    #[test]
    fn points_that_may_be_the_peak_are_marked() {
        let mut s = example::load();
        s.loads[0].baseline.peak_as_good = vec![4, 8];
        let lines = lines(&s, 80, false);
        let row = |users: &str| lines.iter().find(|line| line.trim_start().starts_with(users));
        assert!(row("8 ").unwrap().contains("peak? without"), "{lines:#?}");
        assert!(
            lines.last().unwrap().ends_with("peak? not told apart from the peak"),
            "{lines:#?}"
        );
    }
}
