//! The table that re-aim prints of a multi-user run: a line for each number of users; of several systems,
//! side by side first.

use std::collections::BTreeSet;

use crate::{Dialect, Sheet, SheetLoad, lines};
use weigh_model::format;
use weigh_model::result::load::LoadPoint;
use weigh_model::result::work_name::WorkName;
use weigh_report::table::{self, Align, Table};

pub static TABLE: Dialect =
    Dialect { name: "reaim", study_of: None, is_of_time: false, render, page: None };

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
    let mut mixes: Vec<(&str, Vec<&SheetLoad>)> = Vec::new();
    for load in &sheet.loads {
        match mixes.iter_mut().find(|(mix, _)| *mix == load.mix) {
            Some((_, of_mix)) => of_mix.push(load),
            None => mixes.push((&load.mix, vec![load])),
        }
    }
    if mixes.is_empty() {
        return alone(sheet);
    }
    let tables = mixes.iter().map(|(mix, loads)| match loads[..] {
        [load] => of_system(load),
        _ => format!("{mix}\n{}\n{}", side_by_side(sheet, mix, loads), of_systems(loads)),
    });
    Ok(tables.collect::<Vec<_>>().join("\n"))
}

/// White's Table 2, of tests that ran alone: times of a sample in seconds. The rate is that of all samples.
fn alone(sheet: &Sheet) -> Result<String, String> {
    let times = sheet.lines.iter().filter_map(|line| Some((line, line.sample_s?)));
    let rows: Vec<Vec<String>> = times
        .map(|(line, times)| {
            let rate = line.rates.first().copied().flatten();
            let mut cells = vec![format::label(&line.name)];
            cells.extend(times.map(|seconds| format!("{seconds:.2}")));
            cells.push(rate.map(|rate| format!("{rate:.2}")).unwrap_or_default());
            cells.push(format::label(&line.unit));
            cells
        })
        .collect();
    if rows.is_empty() {
        return Err("neither a mix with several numbers of users nor tests with their CPU time: measure with \
                    `weigh load`, or `weigh run aim9`"
            .into());
    }
    let titles = "Test_Name|>Parent|>Child Sys|>Child usr|>Operation Rate|";
    Ok(lines(&Table::new(table::columns(titles), rows)))
}

fn columns() -> Vec<(&'static str, Align)> {
    COLUMNS.map(|column| (column, Align::Right)).to_vec()
}

fn of_system(load: &SheetLoad) -> String {
    let table = Table::new(columns(), load.points.iter().map(cells).collect());
    // The point that the report of `weigh load` names.
    let highest = load.best_point().map_or(0.0, |best| best.jobs_per_min);
    format!("{}\n{}Max Jobs per Minute {highest:.2}\n", load.mix, lines(&table))
}

/// White's Table 7: jobs per minute of each system and the difference, over the users that any has.
fn side_by_side(sheet: &Sheet, mix: &str, loads: &[&SheetLoad]) -> String {
    let mut titles = vec![COLUMNS[0].to_owned()];
    for load in loads {
        titles.extend([format!("JPM {}", load.system), "interval".into()]);
    }
    for treatment in &sheet.arms[1..] {
        titles.extend([format!("delta {treatment}"), "interval".into()]);
    }
    let users: BTreeSet<usize> =
        loads.iter().flat_map(|load| &load.points).map(|point| point.users).collect();
    let rows = users.iter().map(|users| {
        let mut cells = vec![users.to_string()];
        for load in loads {
            let point = load.points.iter().find(|point| point.users == *users);
            cells.push(point.map(|point| format!("{:.2}", point.jobs_per_min)).unwrap_or_default());
            let interval = point.and_then(LoadPoint::throughput);
            let bounds = interval.map(|found| format!("[{:.2}, {:.2}]", found.low, found.high));
            cells.push(bounds.unwrap_or_default());
        }
        let name = WorkName::of_users(mix, *users).to_string();
        let line = sheet.lines.iter().find(|line| line.name.to_string() == name);
        for change in line.map(|line| &line.changes[..]).unwrap_or_default() {
            cells.push(change.map(|change| format::percent(change.pct)).unwrap_or_default());
            let bounded = change.filter(|change| change.low_pct.or(change.high_pct).is_some());
            let interval = bounded.map(|change| format::interval(change.low_pct, change.high_pct));
            cells.push(interval.unwrap_or_default());
        }
        cells
    });
    let columns = titles.iter().map(|title| (title.as_str(), Align::Right)).collect();
    lines(&Table::new(columns, rows.collect()))
}

/// White's appendix: the highest throughput of each system, then the load points of one after the other.
fn of_systems(loads: &[&SheetLoad]) -> String {
    let mut text = String::from("Max Jobs per minute\n");
    for load in loads {
        let Some(best) = load.best_point() else { continue };
        let users = format::plural(best.users, "user");
        let is_above = |point: &LoadPoint| point.jobs_per_min > best.jobs_per_min;
        let seldom = match load.points.iter().any(is_above) {
            true => "; the higher rows have too few samples for a peak",
            false => "",
        };
        text += &format!("{} - {:.2} ({users}{seldom})\n", load.system, best.jobs_per_min);
    }
    let rows = loads.iter().flat_map(|load| load.points.iter().map(cells)).collect();
    let table = lines(&Table::new(columns(), rows));
    let mut rows = table.lines();
    text += &format!("\n{}\n", rows.next().unwrap_or_default());
    for load in loads {
        text += &format!("{}\n", load.system);
        for row in rows.by_ref().take(load.points.len()) {
            text += &format!("{row}\n");
        }
    }
    text
}

/// re-aim's `.csv`, of one mix and system after the other.
pub fn render_csv(sheet: &Sheet) -> Result<String, String> {
    if sheet.loads.is_empty() {
        return Err("no mix with several numbers of users: measure one with `weigh load`".into());
    }
    let csv = |load: &SheetLoad| {
        // A label below the titles is that of the rows, as `weigh import` reads it.
        let system = Some(&load.system).filter(|system| !system.is_empty());
        let label = system.map(|system| format!("{system}\n")).unwrap_or_default();
        let lines = load.points.iter().map(csv_line);
        lines.fold(format!("{CSV_HEAD}\n{label}"), |text, line| text + &line + "\n")
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
    fn a_test_alone_has_its_times_in_the_order_of_table_2() {
        let rates = [("add_int", 16.0), ("no_cpu_time", 1.0)];
        let rates = rates.map(|(name, rate)| (name.into(), "kadds/s".into(), rate));
        let mut sheet = Sheet::of_rates("id", "none", rates.into_iter());
        assert!(render(&sheet).unwrap_err().contains("weigh run aim9"));
        sheet.lines[0].sample_s = Some([10.0, 0.25, 9.5]);
        let text = render(&sheet).unwrap();
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["add_int", "10.00", "0.25", "9.50", "16.00", "kadds/s"]);
        assert_eq!(text.lines().count(), 2, "{text}");
    }

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
        let load = SheetLoad { mix: "load:x".into(), points: vec![point], ..SheetLoad::default() };
        let text = of_system(&load);
        let words: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(
            words,
            ["4", "10.00", "3.25", "15.50", "2400.00", "600.00", "0.50", "4.10", "95"]
        );
        assert!(text.ends_with("Max Jobs per Minute 2400.00\n"), "{text}");
    }
}
