//! Results of a grid of network cells besides its score, as tables.
//! The tables are of requests, streams, datagrams, CPU time, and the cells that did not run as usual.

use crate::table::{Align, Table};
use weigh_model::format;
use weigh_model::result::btu::Means;
use weigh_model::result::net::{NetAnswers, NetClass};
use weigh_model::result::net_cells::{FurtherClass, FurtherFound, NetCell, NetFurther};

const BITS: &str = "Mb/s";
/// More abnormal cells than these are counted only.
const MOST_ABNORMAL: usize = 10;

/// Each with its title.
pub fn tables(net: &NetAnswers) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = net.further.iter().map(of_kind).collect();
    tables.push(("CPU seconds per GB at both ends".into(), processor(net)));
    if !net.abnormal.is_empty() {
        let beyond = net.abnormal.len().saturating_sub(MOST_ABNORMAL);
        let title = match beyond {
            0 => "Abnormal cells".to_owned(),
            _ => format!("Abnormal cells, the worst of {}", net.abnormal.len()),
        };
        tables.push((title, abnormal(net)));
    }
    tables
}

/// Alone first, then under the load of the activities.
fn of_kind(further: &NetFurther) -> (String, Table) {
    use Align::{Left, Right};
    let mut columns = vec![(SIZE, Left)];
    let of = |name| [(name, Right), ("p50", Right), ("p99", Right), ("p99.9", Right)];
    let datagrams = [("lost", Right), ("reordered", Right)];
    columns.extend(of("alone").into_iter().chain(datagrams));
    columns.extend(of("under load").into_iter().chain(datagrams));
    let row = |class: &FurtherClass| {
        let cells = figures(class).into_iter().enumerate();
        let cells = cells.map(|(at, figure)| of_figure(at, figure, &further.unit));
        std::iter::once(size(&class.name, class.bytes)).chain(cells).collect()
    };
    let mut title = further.kind.clone();
    title[..1].make_ascii_uppercase();
    let mut rows: Vec<Vec<String>> = further.classes.iter().map(row).collect();
    rows.extend(means_of_kind(further));
    let table = Table::new(columns, rows);
    (format!("{title}, {}, alone and under load", further.unit), table)
}

/// Figures of a class: alone, and under load.
fn figures(class: &FurtherClass) -> Vec<Option<f64>> {
    let of = |found: &FurtherFound| {
        let times = [found.p50_ns, found.p99_ns, found.p99_9_ns];
        let shares = [found.lost_pct, found.reordered_pct];
        [&[found.rate], &times[..], &shares[..]].concat()
    };
    [of(&class.alone), of(&class.beside)].concat()
}

/// Writes the figure at this place of [`figures`].
fn of_figure(at: usize, figure: Option<f64>, unit: &str) -> String {
    let text = |figure: f64| match at % 6 {
        0 => format::rate(figure, unit),
        1..=3 => format::time_ns(figure),
        _ => format!("{figure:.2} %"),
    };
    figure.map(text).unwrap_or_default()
}

fn means_of_kind(further: &NetFurther) -> Vec<Vec<String>> {
    let all: Vec<Vec<Option<f64>>> = further.classes.iter().map(figures).collect();
    rows_of_means(&all, |at, mean| of_figure(at, Some(mean), &further.unit))
}

pub const MEANS: [&str; 3] = ["arithmetic mean", "geometric mean", "harmonic mean"];

/// Rows of the three means over the classes, whose figures are `all`. A column in which a class has no
/// figure, or none above 0, has no mean. A single class is its own.
pub fn rows_of_means(
    all: &[Vec<Option<f64>>],
    text: impl Fn(usize, f64) -> String,
) -> Vec<Vec<String>> {
    if all.len() < 2 {
        return Vec::new();
    }
    let column = |at: usize| means(&all.iter().map(|class| class[at]).collect::<Vec<_>>());
    let columns: Vec<[Option<f64>; 3]> = (0..all[0].len()).map(column).collect();
    let row = |(which, name): (usize, &str)| {
        let cells = columns.iter().enumerate();
        let cells =
            cells.map(|(at, means)| means[which].map_or(String::new(), |mean| text(at, mean)));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    MEANS.into_iter().enumerate().map(row).collect()
}

/// The arithmetic, the geometric and the harmonic mean, if every value is there and above 0.
pub fn means(values: &[Option<f64>]) -> [Option<f64>; 3] {
    let all: Option<Vec<f64>> =
        values.iter().map(|value| value.filter(|value| *value > 0.0)).collect();
    match all.and_then(|values| Means::of(&values)) {
        Some(Means { arithmetic, geometric, harmonic }) => {
            [arithmetic, geometric, harmonic].map(Some)
        }
        None => [None; 3],
    }
}

fn processor(net: &NetAnswers) -> Table {
    use Align::{Left, Right};
    let columns = vec![
        (SIZE, Left),
        ("alone: this host", Right),
        ("its peers", Right),
        ("under load: this host", Right),
        ("its peers", Right),
    ];
    let figures = |class: &NetClass| {
        let of = |is_beside: bool, reading: &str| {
            let is_its = |cell: &&NetCell| {
                cell.is_of_suite
                    && cell.bytes == class.bytes
                    && cell.activity.is_some() == is_beside
            };
            let cells = net.measured.iter().filter(is_its);
            // A clock may see nothing of a short cell.
            let seconds: Vec<f64> = cells
                .filter_map(|cell| cell.readings.get(reading).copied())
                .filter(|seconds| *seconds > 0.0)
                .collect();
            Means::of(&seconds).map(|means| means.geometric)
        };
        let readings = ["cpu_per_gb", "peer_cpu_per_gb"];
        [false, true]
            .into_iter()
            .flat_map(|is_beside| readings.map(|it| of(is_beside, it)))
            .collect()
    };
    let text = |seconds: f64| format!("{seconds:.2}");
    let all: Vec<Vec<Option<f64>>> = net.classes.iter().map(figures).collect();
    let row = |(class, figures): (&NetClass, &Vec<Option<f64>>)| {
        let cells = figures.iter().map(|seconds| seconds.map(text).unwrap_or_default());
        std::iter::once(size(&class.name, class.bytes)).chain(cells).collect()
    };
    let mut rows: Vec<Vec<String>> = net.classes.iter().zip(&all).map(row).collect();
    rows.extend(rows_of_means(&all, |_, mean| text(mean)));
    Table::new(columns, rows)
}

/// The heading over [`size`].
pub const SIZE: &str = "size of a write";

/// A class of applications by what distinguishes it, with the paper's name for it.
pub fn size(name: &str, bytes: u32) -> String {
    format!("{} ({})", format::bytes(f64::from(bytes)), format::label(name))
}

fn abnormal(net: &NetAnswers) -> Table {
    use Align::{Left, Right};
    let columns = vec![
        ("cell", Left),
        ("bytes", Right),
        ("sweep", Right),
        (BITS, Right),
        ("usual", Right),
        ("retransmitted", Right),
        ("dropped", Right),
        ("why", Left),
    ];
    let rows = net.abnormal.iter().take(MOST_ABNORMAL).map(|one| {
        vec![
            format::label(&one.cell),
            format::integer(u64::from(one.bytes)),
            one.sweep.to_string(),
            format::rate(one.rate, BITS),
            format::rate(one.median, BITS),
            format::integer(one.retransmissions),
            format::integer(one.dropped),
            one.reason(),
        ]
    });
    Table::new(columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_columns_that_it_fills() {
        let found = FurtherFound {
            rate: Some(20_000.0),
            requests: Some(5000),
            p50_ns: Some(40_000.0),
            p99_ns: Some(90_000.0),
            ..FurtherFound::default()
        };
        let class = FurtherClass {
            name: "Telnet".into(),
            bytes: 100,
            alone: found.clone(),
            beside: FurtherFound::default(),
        };
        let further =
            NetFurther { kind: "requests".into(), unit: "requests/s".into(), classes: vec![class] };
        let (title, table) = of_kind(&further);
        assert_eq!(title, "Requests, requests/s, alone and under load");
        assert_eq!(table.rows.len(), 1, "a single class is its own mean");
        let mut two = further.clone();
        let mut second = two.classes[0].clone();
        (second.alone.rate, second.alone.p99_ns) = (Some(80_000.0), None);
        two.classes.push(second);
        let (_, means) = of_kind(&two);
        // The harmonic mean of 20,000 and 80,000; a class without a p99 leaves that column empty.
        assert_eq!(means.rows[4][..2], ["harmonic mean", "32.00k"]);
        assert_eq!(means.rows[2][1..3], ["50.00k", "40.0 µs"]);
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(columns, [SIZE, "alone", "p50", "p99"]);
    }
}
