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
        let found = |found: &FurtherFound| {
            let time = |ns: Option<f64>| ns.map(format::time_ns).unwrap_or_default();
            let share = |pct: Option<f64>| pct.map(|pct| format!("{pct:.2} %")).unwrap_or_default();
            vec![
                found.rate.map(|rate| format::rate(rate, &further.unit)).unwrap_or_default(),
                time(found.p50_ns),
                time(found.p99_ns),
                time(found.p99_9_ns),
                share(found.lost_pct),
                share(found.reordered_pct),
            ]
        };
        let name = vec![size(&class.name, class.bytes)];
        [name, found(&class.alone), found(&class.beside)].concat()
    };
    let mut title = further.kind.clone();
    title[..1].make_ascii_uppercase();
    let table = Table::new(columns, further.classes.iter().map(row).collect());
    (format!("{title}, {}, alone and under load", further.unit), table)
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
    let row = |class: &NetClass| {
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
            let mean = Means::of(&seconds).map(|means| means.geometric);
            mean.map(|seconds| format!("{seconds:.2}")).unwrap_or_default()
        };
        let own = [false, true].map(|is_beside| of(is_beside, "cpu_per_gb"));
        let peer = [false, true].map(|is_beside| of(is_beside, "peer_cpu_per_gb"));
        let [own_alone, own_beside] = own;
        let [peer_alone, peer_beside] = peer;
        vec![size(&class.name, class.bytes), own_alone, peer_alone, own_beside, peer_beside]
    };
    Table::new(columns, net.classes.iter().map(row).collect())
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
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(columns, [SIZE, "alone", "p50", "p99"]);
    }
}
