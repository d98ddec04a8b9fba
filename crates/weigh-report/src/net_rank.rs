//! Machines ranked by their BTU: Table 1 and Figures 2 and 3 of the paper of 1996, on a terminal and as
//! a page.

use minijinja::{Value, context};

use super::html::{fill, parts, table};
use super::screen::Room;
use super::table::{Align, Table, columns};
use super::text::wrap;
use weigh_model::format;
use weigh_model::result::net_rank::{NetRank, RankedClass, RankedMachine, ScoreDocument};
use weigh_model::result::warning::Warning;

const BITS: &str = "Mb/s";
/// As high as an item of the lists beside the bars: see the style sheet.
const ROW_HEIGHT: usize = 26;
const LONGEST_NAME: usize = 60;

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
    let values = context! {
        id => format::label(&rank.hash),
        plain => "Bits to the user: machines ranked",
        sentences => sentences(rank).map(|said| parts(&format::label(&said))).collect::<Vec<_>>(),
        tables => titled.collect::<Vec<Value>>(),
        figures => figures(rank),
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
        ("Machines".into(), processors(rank)),
    ]
}

fn final_ranking(rank: &NetRank) -> Table {
    let columns = columns(
        "rank|machine|>BTU, Mb/s|>penalty of host, %|>of network, %|>index|>price|>Mb/s per 1000",
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
        ]
    };
    Table::new(columns, rank.machines.iter().map(row).collect())
}

fn processors(rank: &NetRank) -> Table {
    let row =
        |one: &RankedMachine| [&one.name, &one.cpu_model, &one.kernel].map(format::label).to_vec();
    Table::new(columns("machine|processor|kernel"), rank.machines.iter().map(row).collect())
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

/// Figures 2 and 3: groups of bars, one group per class and one bar per machine.
fn figures(rank: &NetRank) -> Vec<Value> {
    let seconds = |class: &RankedClass| {
        class.seconds_of_32_mb.map(|time| format!("32 Mb in {}", format::seconds(time)))
    };
    let bits_title = "Figure 2: bits to the user by class";
    let bits = Bars { class: "before", of: &|class| class.btu, value: &bits, remark: &seconds };
    let penalties = Bars {
        class: "cost",
        of: &|class| class.host_penalty_pct,
        value: &|class| format!("{}\u{a0}%", penalty(class)),
        remark: &|_| None,
    };
    vec![
        figure(rank, (bits_title, "in Mb/s; beside each, the seconds of 32 Mb."), &bits),
        figure(rank, ("Figure 3: penalty of the host by class", "in per cent."), &penalties),
    ]
}

/// Values that a figure draws for a class of a machine.
struct Bars<'a> {
    class: &'a str,
    of: &'a dyn Fn(&RankedClass) -> Option<ScoreDocument>,
    value: &'a dyn Fn(&RankedClass) -> String,
    remark: &'a dyn Fn(&RankedClass) -> Option<String>,
}

fn figure(rank: &NetRank, (title, note): (&str, &str), bars: &Bars) -> Value {
    let machines = &rank.machines;
    let classes = machines.iter().map(|one| one.classes.len()).max().unwrap_or(0);
    let drawn = (0..classes).flat_map(|at| {
        let of_class = machines.iter().filter_map(move |one| Some((one, one.classes.get(at)?)));
        of_class.filter_map(|(one, class)| Some((one, class, (bars.of)(class)?.value)))
    });
    let drawn: Vec<(&RankedMachine, &RankedClass, f64)> = drawn.collect();
    let largest = drawn.iter().map(|(.., value)| *value).fold(0.0, f64::max);
    let row = |(row, (one, class, value)): (usize, &(&RankedMachine, &RankedClass, f64))| {
        // A negative penalty has no bar, but its value.
        let width = if *value > 0.0 { 100.0 * value / largest } else { 0.0 };
        let part = context! {
            class => bars.class, x => "0.00%", width => format!("{width:.2}%"),
        };
        let name = format!("{}: {}", format::label(&class.name), format::label(&one.name));
        context! {
            y => ROW_HEIGHT * row + ROW_HEIGHT / 2,
            name => format::shorten(&name, LONGEST_NAME),
            whole => name,
            parts => vec![part],
            value => (bars.value)(class),
            remark => (bars.remark)(class).unwrap_or_default(),
        }
    };
    context! {
        title => title,
        note => note,
        keys => Vec::<Value>::new(),
        height => ROW_HEIGHT * drawn.len(),
        rows => drawn.iter().enumerate().map(row).collect::<Vec<Value>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weigh_model::result::net_rank::Candidate;

    fn candidate(name: &str, btu: f64, slowdown: f64) -> Candidate {
        let score = |value: f64| json!({"value": value, "low": value, "high": value});
        let class = |name: &str, bytes: u32, btu: f64| {
            json!({
                "name": name, "bytes": bytes, "btu": score(btu), "activity_slowdown": score(slowdown)
            })
        };
        let net = json!({
            "grid": "quick", "hash": "0123", "sweeps": 8, "btu": score(btu),
            "activity_slowdown": score(slowdown), "comm_slowdown": score(2.0),
            "classes": [class("Telnet", 100, btu / 4.0), class("FTP", 1024, btu)],
        });
        let run = json!({"id": name, "machine": {"cpu_model": "Sparc 10"}, "net": net});
        let run = serde_json::from_value(run).unwrap();
        Candidate { name: name.into(), run, index: None, price: Some(2900.0) }
    }

    #[test]
    fn the_figures_have_a_bar_per_machine_in_each_class() {
        let both = vec![candidate("fast", 400.0, 1.5), candidate("slow", 200.0, 0.9)];
        let rank = NetRank::of(both).unwrap();
        let page = html(&rank).unwrap();
        assert_eq!(page.matches("<rect").count(), 8, "two figures of two classes and two machines");
        let widths: Vec<&str> = page
            .split("<rect")
            .skip(1)
            .filter_map(|bar| bar.split("width=\"").nth(1)?.split('"').next())
            .collect();
        let expected =
            ["25.00%", "12.50%", "100.00%", "50.00%", "100.00%", "0.00%", "100.00%", "0.00%"];
        assert_eq!(widths, expected);
        for part in ["Telnet: fast", "FTP: slow", "32 Mb in", "−10"] {
            assert!(page.contains(part), "no {part}");
        }
    }

    #[test]
    fn the_processor_is_shown_on_a_narrow_terminal_too() {
        let rank = NetRank::of(vec![candidate("fast", 400.0, 1.5)]).unwrap();
        let text = text(&rank, Room { cut: 100, wrap: 100 });
        assert!(text.contains("Sparc 10"), "{text}");
    }
}
