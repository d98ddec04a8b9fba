//! The table that re-aim prints of a multi-user run: a line for each number of users.

use super::super::table::{Align, Table};
use super::{Sheet, lines};
use crate::result::load::{LoadAnswers, LoadPoint};

/// re-aim's own words.
const COLUMNS: [&str; 9] = [
    "Num Forked",
    "Parent Time",
    "Child SysTime",
    "Child UTime",
    "Jobs per Minute",
    "Jobs/min/Child",
    "Std_dev Time",
    "Std_dev Percent",
    "JTI",
];

pub fn render(sheet: &Sheet) -> Result<String, String> {
    if sheet.loads.is_empty() {
        return Err("it has no mix with several numbers of users: `weigh load` measures one".into());
    }
    Ok(sheet.loads.iter().map(of_mix).collect::<Vec<_>>().join("\n"))
}

fn of_mix(answers: &LoadAnswers) -> String {
    let columns = COLUMNS.map(|column| (column, Align::Right)).to_vec();
    let table = Table::new(columns, answers.points.iter().map(cells).collect());
    let highest = answers.points.iter().map(|point| point.jobs_per_min).fold(0.0, f64::max);
    format!("{}\n{}Max Jobs per Minute {highest:.2}\n", answers.mix, lines(&table))
}

/// Times in seconds, of one launch: its median, and the sum over all users.
fn cells(point: &LoadPoint) -> Vec<String> {
    let number = |value: f64| format!("{value:.2}");
    let or_not = |value: Option<f64>| value.map_or("n/a".into(), number);
    let deviation_pct = point.deviation_s.map(|deviation| 100.0 * deviation / point.elapsed_s);
    vec![
        point.users.to_string(),
        number(point.elapsed_s),
        or_not(point.system_s),
        or_not(point.user_s),
        number(point.jobs_per_min),
        number(point.jobs_per_min / point.users as f64),
        or_not(point.deviation_s),
        or_not(deviation_pct),
        point.job_timing_index.map_or("n/a".into(), |index| format!("{}", index.trunc())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_re_aim_prints() {
        let point = LoadPoint {
            users: 4,
            jobs_per_min: 2400.0,
            spread_pct: None,
            samples: 1,
            elapsed_s: 10.0,
            user_s: Some(15.5),
            system_s: Some(3.25),
            deviation_s: Some(0.5),
            waiting_pct: None,
            cpu_pct: None,
            job_p99_ns: None,
            job_p90_ns: None,
            job_timing_index: Some(95.9),
        };
        let answers = LoadAnswers::new("load:x".into(), vec![point], None);
        let text = of_mix(&answers);
        let words: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(
            words,
            ["4", "10.00", "3.25", "15.50", "2400.00", "600.00", "0.50", "5.00", "95"]
        );
        assert!(text.ends_with("Max Jobs per Minute 2400.00\n"), "{text}");
    }
}
