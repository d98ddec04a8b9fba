//! The table that re-aim prints of a multi-user run: a line for each number of users.

use crate::dialect::{Dialect, Sheet, lines};
use crate::table::{Align, Table};
use weigh_model::result::load::{LoadAnswers, LoadPoint};

pub static TABLE: Dialect = Dialect { name: "reaim", is_of_time: false, render, page: None };

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

fn render(sheet: &Sheet) -> Result<String, String> {
    if sheet.loads.is_empty() {
        return Err("no mix with several numbers of users: measure one with `weigh load`".into());
    }
    Ok(sheet.loads.iter().map(of_mix).collect::<Vec<_>>().join("\n"))
}

fn of_mix(answers: &LoadAnswers) -> String {
    let columns = COLUMNS.map(|column| (column, Align::Right)).to_vec();
    let table = Table::new(columns, answers.points.iter().map(cells).collect());
    // The point that the report of `weigh load` names.
    let highest = answers.best_point().map_or(0.0, |best| best.jobs_per_min);
    format!("{}\n{}Max Jobs per Minute {highest:.2}\n", answers.mix, lines(&table))
}

/// re-aim's `.csv`, of one mix after the other.
pub fn render_csv(sheet: &Sheet) -> Result<String, String> {
    let Some(_) = sheet.loads.first() else { return render(sheet) };
    let csv = |answers: &LoadAnswers| {
        let lines = answers.points.iter().map(csv_line);
        lines.fold(format!("{CSV_HEAD}\n"), |text, line| text + &line + "\n")
    };
    Ok(sheet.loads.iter().map(csv).collect::<Vec<_>>().join("\n"))
}

/// The longest and the shortest that a user took are last.
const CSV_HEAD: &str =
    "Forks,JPM,JPM_C,JPS_C,parent_tm,childU_tm,childS_tm,std_dev,JTI,max_c,min_c";

fn csv_line(point: &LoadPoint) -> String {
    let number = |value: f64| format!("{value:.2}");
    let or_not = |value: Option<f64>| value.map_or(String::new(), number);
    let of_user = point.jobs_per_min / point.users as f64;
    [
        point.users.to_string(),
        number(point.jobs_per_min),
        number(of_user),
        number(of_user / 60.0),
        number(point.elapsed_s),
        or_not(point.user_s),
        or_not(point.system_s),
        or_not(point.deviation_s),
        point.job_timing_index.map_or(String::new(), |index| format!("{}", index.trunc())),
        number(point.elapsed_s),
        or_not(point.first_finish_s),
    ]
    .join(",")
}

/// Times in seconds, of one launch: its median, and the sum over all users.
fn cells(point: &LoadPoint) -> Vec<String> {
    let number = |value: f64| format!("{value:.2}");
    let or_not = |value: Option<f64>| value.map_or("n/a".into(), number);
    // Over the mean of the users' times, which is what the index is made of.
    let deviation_pct = point.job_timing_index.map(|index| 100.0 - index);
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
            samples: 1,
            elapsed_s: 10.0,
            user_s: Some(15.5),
            system_s: Some(3.25),
            deviation_s: Some(0.5),
            job_timing_index: Some(95.9),
            first_finish_s: Some(8.75),
            ..LoadPoint::default()
        };
        let csv = csv_line(&point);
        assert_eq!(csv, "4,2400.00,600.00,10.00,10.00,15.50,3.25,0.50,95,10.00,8.75");
        let answers = LoadAnswers::new("load:x".into(), vec![point], &[]);
        let text = of_mix(&answers);
        let words: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(
            words,
            ["4", "10.00", "3.25", "15.50", "2400.00", "600.00", "0.50", "4.10", "95"]
        );
        assert!(text.ends_with("Max Jobs per Minute 2400.00\n"), "{text}");
    }
}
