//! `weigh show --price`: the results of one machine for its price.

use weigh_model::format;
use weigh_model::result::report::Report;
use weigh_model::result::run::RunReport;

/// Parses a price: a positive number of any currency.
pub fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price > 0.0 => Ok(price),
        _ => Err("takes a number above 0, such as 2900".into()),
    }
}

/// Returns a table with each rate, the price of one unit of it, and what a thousand of the currency buy.
///
/// # Errors
/// If the report is not about one machine alone.
pub fn table(report: &Report, price: f64) -> Result<String, String> {
    let Report::Run(run) = report else {
        return Err(
            "--price: only results of `weigh run` and `weigh load` are of one machine".into()
        );
    };
    let lines = lines(run);
    if lines.is_empty() {
        return Err("--price: there is no result (`weigh net rank --price` is for networks)".into());
    }
    let width = lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or_default();
    let mut text = format!("Price and performance: the machine costs {}\n\n", number(price));
    let head = ["rate", "unit", "price of 1", "for 1,000"];
    text += &format!(
        "{:<width$}  {:>10}  {:<10}  {:>12}  {:>12}\n",
        "workload", head[0], head[1], head[2], head[3]
    );
    for (name, rate, unit) in lines {
        let [of_one, for_1000] = [price / rate, 1000.0 * rate / price].map(number);
        let rate = format::rate(rate, &unit);
        text += &format!("{name:<width$}  {rate:>10}  {unit:<10}  {of_one:>12}  {for_1000:>12}\n");
    }
    Ok(text)
}

/// Names with their rates and units; a load has the jobs of its best number of users.
fn lines(run: &RunReport) -> Vec<(String, f64, String)> {
    if run.net.is_some() {
        return Vec::new();
    }
    if run.loads.is_empty() {
        let rows = run.results.iter().filter(|row| row.rate > 0.0);
        return rows.map(|row| (row.workload.to_string(), row.rate, row.unit.clone())).collect();
    }
    let best = run.loads.iter().filter_map(|load| Some((load, load.best_point()?)));
    best.filter(|(_, point)| point.jobs_per_min > 0.0)
        .map(|(load, point)| {
            let name = format!("{}, users: {}", load.mix, point.users);
            (name, point.jobs_per_min, "jobs/min".to_owned())
        })
        .collect()
}

/// Four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format::integer(value.round() as u64),
        0.001.. => {
            let digits = 3 - value.abs().log10().floor() as i32;
            format!("{value:.*}", digits.max(0) as usize)
        }
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::load::{LoadAnswers, LoadPoint};
    use weigh_model::result::run::RunRow;

    #[test]
    fn a_price_is_divided_by_each_rate() {
        let row = RunRow {
            workload: "pipe".into(),
            unit: "ops/s".into(),
            rate: 500.0,
            ..RunRow::default()
        };
        let run = RunReport { results: vec![row], ..RunReport::default() };
        let text = table(&Report::Run(Box::new(run)), 2000.0).unwrap();
        let words: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(words, ["pipe", "500.0", "ops/s", "4.000", "250.0"]);
    }

    #[test]
    fn a_load_has_the_price_of_a_job_per_minute_at_its_best_point() {
        let point = |users, jobs_per_min| LoadPoint { users, jobs_per_min, ..LoadPoint::default() };
        let points = vec![point(1, 100.0), point(4, 400.0), point(8, 300.0)];
        let load = LoadAnswers {
            name: "load:short".into(),
            mix: "short".into(),
            quota_cpus: None,
            points,
            peak: None,
            no_peak: None,
            quick_crossover_users: None,
            crossover_users: None,
            crossover_above: None,
            classic_crossover_users: None,
            knee: None,
            no_knee: None,
            saturated: Vec::new(),
        };
        let run = RunReport { loads: vec![load], ..RunReport::default() };
        let text = table(&Report::Run(Box::new(run)), 2000.0).unwrap();
        assert!(text.contains("short, users: 4") && text.contains("5.000"), "{text}");
    }

    #[test]
    fn a_price_is_a_number_above_0() {
        assert!(["0", "-1", "nan", "inf", "x"].iter().all(|text| amount(text).is_err()));
        assert_eq!(amount("2900"), Ok(2900.0));
        assert_eq!(
            [0.0001234, 0.5, 12.345, 123456.0].map(number),
            ["1.234e-4", "0.5000", "12.35", "123,456"]
        );
    }
}
