//! Machines ranked by their BTU: Table 1 and Figures 2 and 3 of the paper of 1996, on a terminal and as
//! a page.

use minijinja::{Value, context};

use super::html::{chart, fill, parts, table};
use super::screen::Room;
use super::table::{Align, Table, columns};
use super::text::wrap;
use weigh_model::format;
use weigh_model::result::curve::{Chart, Curve, CurvePoint, Quantity};
use weigh_model::result::net_rank::{NetRank, RankedClass, RankedMachine, ScoreDocument};
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::{BYTES, WorkName};

const BITS: &str = "Mb/s";

/// Table 1, then the numbers of the figures.
pub fn text(rank: &NetRank, room: Room) -> String {
    let mut text = String::new();
    for (title, of_it) in tables(rank) {
        text += &format!("{title}\n{}\n\n", of_it.to_lines(room.cut).join("\n"));
    }
    for sentence in sentences(rank) {
        text += &(wrap(&format::label(&sentence), room.wrap, 0).join("\n") + "\n");
    }
    text
}

pub fn html(rank: &NetRank) -> Result<String, String> {
    let titled = tables(rank).into_iter().map(|(title, of_it)| {
        context! { title => format::label(&title), table => table(&of_it) }
    });
    let charts: Vec<Value> =
        charts(rank).iter().flat_map(|of_it| chart::figures(of_it, None)).collect();
    let values = context! {
        id => format::label(&rank.hash),
        plain => "Bits to the user: machines ranked",
        sentences => sentences(rank).map(|said| parts(&format::label(&said))).collect::<Vec<_>>(),
        tables => titled.collect::<Vec<Value>>(),
        charts => charts,
    };
    fill("net_rank.html", values)
        .map_err(|error| format!("the HTML page could not be written: {error}"))
}

fn sentences(rank: &NetRank) -> impl Iterator<Item = String> {
    let note = format!(
        "Grid {} ({}). Machines whose intervals overlap share ranks: 1-2 is the first or the second.",
        rank.grid, rank.hash
    );
    rank.warnings.iter().map(Warning::to_string).chain([note])
}

fn tables(rank: &NetRank) -> Vec<(String, Table)> {
    vec![
        ("Final BTU ranking".into(), final_ranking(rank)),
        (format!("Bits to the user by class, {BITS}"), by_class(rank, &bits)),
        ("Time for 32 Mb by class".into(), by_class(rank, &seconds)),
        ("Penalty of the host by class, %".into(), by_class(rank, &penalty)),
    ]
}

fn final_ranking(rank: &NetRank) -> Table {
    let columns = columns(
        "rank|machine|>BTU, Mb/s|>penalty of host, %|>of network, %|>index|>price|\
         >Mb/s per 1000|processor",
    );
    let row = |one: &RankedMachine| {
        vec![
            ranks(one),
            format::label(&one.name),
            score(one.btu, &|value| format::rate(value, BITS)),
            score(one.host_penalty_pct, &percent),
            score(one.network_penalty_pct, &percent),
            one.index.map(|index| format!("{index:.1}")).unwrap_or_default(),
            one.price.map(format::per_op).unwrap_or_default(),
            one.btu_per_1000.map(|bits| format::rate(bits, BITS)).unwrap_or_default(),
            format::label(&one.cpu_model),
        ]
    };
    Table::new(columns, rank.machines.iter().map(row).collect())
}

fn ranks(one: &RankedMachine) -> String {
    match one.best_rank.zip(one.worst_rank) {
        Some((best, worst)) if best == worst => best.to_string(),
        Some((best, worst)) => format!("{best}-{worst}"),
        None => "not ranked".into(),
    }
}

fn by_class(rank: &NetRank, cell: &dyn Fn(&RankedClass) -> String) -> Table {
    let mut columns = vec![("machine".to_owned(), Align::Left)];
    let classes = rank.machines.first().map(|one| one.classes.as_slice()).unwrap_or_default();
    columns.extend(classes.iter().map(|class| (format::label(&class.name), Align::Right)));
    let row = |one: &RankedMachine| {
        let name = std::iter::once(format::label(&one.name));
        name.chain(one.classes.iter().map(cell)).collect()
    };
    let columns = columns.iter().map(|(name, align)| (name.as_str(), *align)).collect();
    Table::new(columns, rank.machines.iter().map(row).collect())
}

fn bits(class: &RankedClass) -> String {
    score(class.btu, &|value| format::rate(value, BITS))
}

fn seconds(class: &RankedClass) -> String {
    class.seconds_of_32_mb.map(format::seconds).unwrap_or_default()
}

fn penalty(class: &RankedClass) -> String {
    score(class.host_penalty_pct, &percent)
}

fn percent(value: f64) -> String {
    let value = value.round();
    format!("{}{}", if value < 0.0 { "−" } else { "" }, value.abs())
}

fn score(of: Option<ScoreDocument>, text: &dyn Fn(f64) -> String) -> String {
    let Some(ScoreDocument { value, low, high }) = of else { return String::new() };
    match low.zip(high) {
        Some((low, high)) => format!("{} [{}, {}]", text(value), text(low), text(high)),
        None => text(value),
    }
}

fn charts(rank: &NetRank) -> Vec<Chart> {
    let chart = |title: &str, quantity, of: &dyn Fn(&RankedClass) -> Option<ScoreDocument>| {
        let curve = |one: &RankedMachine| Curve {
            series: format!("{title}, {}", one.name),
            points: one.classes.iter().filter_map(|class| point(class, of(class)?)).collect(),
        };
        let curves: Vec<Curve> = rank.machines.iter().map(curve).collect();
        let curves = curves.into_iter().filter(|curve| curve.points.len() > 1).collect();
        Chart { quantity, x_unit: BYTES.into(), curves, marks: Vec::new() }
    };
    let charts = [
        chart("bits to the user", Quantity::Rate(BITS.into()), &|class| class.btu),
        chart("penalty of the host", Quantity::Slowdown, &|class| class.host_penalty_pct),
    ];
    charts.into_iter().filter(|chart| !chart.curves.is_empty()).collect()
}

fn point(class: &RankedClass, score: ScoreDocument) -> Option<CurvePoint> {
    let ScoreDocument { value, low, high } = score;
    let workload = WorkName::of_bytes(&class.name, class.bytes);
    Some(CurvePoint { workload, x: f64::from(class.bytes), y: value, low, high })
}
