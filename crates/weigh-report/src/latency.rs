//! Tables of an operation's time: a short one for a terminal, and two with all details.

use super::table::{Align, Table};
use weigh_model::format;
use weigh_model::result::metrics::{Contrast, Latency, Metrics, Used};
use weigh_model::result::summary::{Row, Summary};

/// Legend of the star in [`table`].
pub const LEGEND: &str =
    "baseline → treated; * significant at 95 %, each alone; ? too few launches to judge";

/// The table of a terminal, the last column being the first to go; `None` where there are no latencies.
pub fn table(s: &Summary) -> Option<Table> {
    let cells = |metrics: &Metrics| {
        let starred = |contrast: &Contrast| {
            let is_sure =
                contrast.low_pct > Some(0.0) || contrast.high_pct.is_some_and(|h| h < 0.0);
            let mark = match (contrast.low_pct, contrast.high_pct) {
                (None, None) if !is_of_runs(metrics) => '?',
                _ if is_sure => '*',
                _ => ' ',
            };
            format!("{}{mark}", change_ns(contrast))
        };
        let mut cells = Vec::from(quantiles(metrics).map(|c| c.map(starred).unwrap_or_default()));
        cells.push(used(metrics, Used::cpu_ns, format::change_ns));
        cells
    };
    let columns =
        [("p50 ", Align::Right), ("p99 ", Align::Right), ("p99.9 ", Align::Right), CPU_TIME];
    of_rows(s, has_quantiles, &columns, cells)
}

const CPU_TIME: (&str, Align) = ("CPU/op", Align::Right);

/// The quantiles with what the pairs say of them.
pub fn quantiles_table(s: &Summary) -> Option<Table> {
    let cells = |metrics: &Metrics| {
        let both = |contrast: Option<&Contrast>| {
            let changed = contrast.map(|contrast| effect(contrast, is_of_runs(metrics)));
            [contrast.map(change_ns).unwrap_or_default(), changed.unwrap_or_default()]
        };
        quantiles(metrics).into_iter().flat_map(both).collect()
    };
    let columns = ["p50", "p99", "p99.9"]
        .map(|title| [(title, Align::Right), ("changed by, %", Align::Left)]);
    of_rows(s, has_quantiles, columns.as_flattened(), cells)
}

/// Builds the table of an operation's resources, with the counts of the PMU.
pub fn resources_table(s: &Summary) -> Option<Table> {
    let cells = |metrics: &Metrics| {
        let counters = metrics.counters.as_ref();
        let counted = |contrast: Option<&Contrast>| {
            contrast.map(|c| change_count(c.baseline, c.treated)).unwrap_or_default()
        };
        vec![
            used(metrics, Used::cpu_ns, format::change_ns),
            used(metrics, |used| used.user_ns_per_op, format::change_ns),
            used(metrics, |used| used.system_ns_per_op, format::change_ns),
            used(metrics, Used::switches, change_count),
            used(metrics, Used::faults, change_count),
            counted(counters.and_then(|counters| counters.kernel_instructions_per_op.as_ref())),
            counted(counters.and_then(|counters| counters.cycles_per_op.as_ref())),
        ]
    };
    let columns = [
        CPU_TIME,
        ("user", Align::Right),
        ("system", Align::Right),
        ("switches/op", Align::Right),
        ("faults/op", Align::Right),
        ("kernel instructions/op", Align::Right),
        ("cycles/op", Align::Right),
    ];
    of_rows(s, |metrics| metrics.resources.is_some(), &columns, cells)
}

pub const DRIVERS: &str = "CPU time of the load driver";
pub const OF_DRIVERS: &str =
    "Driver's share of the CPU time of users and driver, baseline → treated";

pub fn drivers_table(s: &Summary) -> Option<Table> {
    let percent = |from: f64, to: f64| format!("{from:.1} → {to:.1} %");
    let share = |metrics: &Metrics| used(metrics, |used| used.driver_cpu_pct, percent);
    let has_driver = |metrics: &Metrics| {
        metrics.resources.as_ref().is_some_and(|both| both.baseline.driver_cpu_pct.is_some())
    };
    of_rows(s, has_driver, &[("driver", Align::Right)], |metrics| vec![share(metrics)])
}

/// The rows of which there is something to show; `None` where there is none.
fn of_rows(
    s: &Summary,
    is_shown: fn(&Metrics) -> bool,
    columns: &[(&str, Align)],
    cells: impl Fn(&Metrics) -> Vec<String>,
) -> Option<Table> {
    let rows: Vec<&Row> = s.results.iter().filter(|row| is_shown(&row.metrics)).collect();
    let several = super::has_several_treatments(s);
    let all = rows.iter().map(|row| {
        let treatment = if several { format::label(&row.treatment) } else { String::new() };
        [vec![format::label(&row.workload), treatment], cells(&row.metrics)].concat()
    });
    let columns = [&[("workload", Align::Left), ("treatment", Align::Left)], columns].concat();
    (!rows.is_empty()).then(|| Table::new(columns, all.collect()))
}

fn has_quantiles(metrics: &Metrics) -> bool {
    quantiles(metrics)[0].is_some()
}

/// Returns true if the metrics are of runs. Runs have no pairs of launches, and so no intervals.
fn is_of_runs(metrics: &Metrics) -> bool {
    metrics.latency.as_ref().is_some_and(|latency| latency.of == "run")
}

fn change_ns(contrast: &Contrast) -> String {
    format::change_ns(contrast.baseline, contrast.treated)
}

fn quantiles(metrics: &Metrics) -> [Option<&Contrast>; 3] {
    let of = |quantile: fn(&Latency) -> &Option<Contrast>| {
        metrics.latency.as_ref().and_then(|latency| quantile(latency).as_ref())
    };
    [of(|latency| &latency.p50_ns), of(|latency| &latency.p99_ns), of(|latency| &latency.p99_9_ns)]
}

/// The interval alone: it says more than the estimate, and both would be too wide.
fn effect(contrast: &Contrast, is_of_runs: bool) -> String {
    match (contrast.low_pct, contrast.high_pct) {
        (None, None) if is_of_runs => String::new(),
        (None, None) => {
            let few = "too few";
            contrast.effect_pct.map_or(few.into(), |pct| format!("{}, {few}", format::signed(pct)))
        }
        (low, high) => format::interval(low, high),
    }
}

fn used(
    metrics: &Metrics,
    number: fn(&Used) -> Option<f64>,
    change: fn(f64, f64) -> String,
) -> String {
    let both = metrics
        .resources
        .as_ref()
        .and_then(|resources| Some((number(&resources.baseline)?, number(&resources.treated)?)));
    both.map(|(baseline, treated)| change(baseline, treated)).unwrap_or_default()
}

/// With a prefix where all digits would make the column wider than a page.
fn change_count(baseline: f64, treated: f64) -> String {
    const LARGE: f64 = 1e5;
    match baseline.max(treated) >= LARGE {
        true => format!("{} → {}", format::rate(baseline, ""), format::rate(treated, "")),
        false => format!("{} → {}", format::rare(baseline), format::rare(treated)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn a_line_per_workload_that_fits_the_terminal() {
        let table = table(&example::audit()).expect("the fixture has latencies");
        assert_eq!(table.columns.len(), 5);
        for (width, columns) in [(100, 5), (80, 4)] {
            let lines = table.to_lines(width);
            assert_eq!(lines.len(), 13);
            assert!(lines.iter().all(|line| line.chars().count() <= width));
            let kept = table.columns[..columns].iter();
            assert!(kept.into_iter().all(|(title, _)| lines[0].contains(title.as_str())));
        }
    }

    /// In a factorial design the time may suffice for the details of one arm.
    #[test]
    fn the_treatment_is_shown_even_if_one_alone_has_details() {
        let mut s = example::audit();
        s.results[1].treatment = "seccomp".into();
        s.results.iter_mut().skip(2).for_each(|row| row.metrics = Metrics::default());
        s.results[0].metrics = Metrics::default();
        let table = table(&s).unwrap();
        assert_eq!(table.columns[1].0, "treatment");
        assert_eq!(table.rows[0][..2], ["dhry2reg", "seccomp"]);
    }

    #[test]
    fn a_star_marks_what_the_pairs_say_changed() {
        let mut s = example::audit();
        s.results[0].metrics.latency.as_mut().unwrap().p99_ns.as_mut().unwrap().low_pct =
            Some(-0.1);
        s.results[1].metrics.latency.as_mut().unwrap().p50_ns.as_mut().unwrap().low_pct = None;
        let rows = table(&s).unwrap().rows;
        assert_eq!(rows[0][1..3], ["2.05 → 13.8 µs*", "2.77 → 21.6 µs "]);
        assert_eq!(rows[1][1], "27.1 → 27.1 ns ");
    }

    #[test]
    fn where_the_launches_are_too_few_for_an_interval_that_is_said() {
        let mut s = example::audit();
        let p50 = s.results[0].metrics.latency.as_mut().unwrap().p50_ns.as_mut().unwrap();
        (p50.low_pct, p50.high_pct) = (None, None);
        let cell = table(&s).unwrap().rows[0][1].clone();
        assert!(cell.ends_with('?') && LEGEND.contains("? too few"), "{cell}");
        assert!(quantiles_table(&s).unwrap().rows[0][2].ends_with("too few"));
    }

    #[test]
    fn without_latencies_there_is_no_table_of_them() {
        let mut s = example::audit();
        for row in &mut s.results {
            row.metrics.latency = None;
        }
        assert!(table(&s).is_none() && quantiles_table(&s).is_none());
        let titles: Vec<String> =
            resources_table(&s).unwrap().columns.into_iter().map(|(title, _)| title).collect();
        assert_eq!(titles, ["workload", "CPU/op", "user", "system", "switches/op", "faults/op"]);
        assert!(drivers_table(&s).is_none());
        for both in s.results[0].metrics.resources.iter_mut() {
            (both.baseline.driver_cpu_pct, both.treated.driver_cpu_pct) = (Some(0.42), Some(1.0));
        }
        assert_eq!(drivers_table(&s).unwrap().rows, [["syscall", "0.4 → 1.0 %"]]);
        s.results.clear();
        assert!(resources_table(&s).is_none());
    }
}
