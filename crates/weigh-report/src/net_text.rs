//! Result of a grid of network cells, in sentences and tables.

use crate::net_cells_text::{self, MEANS, SIZE, means, rows_of_means, size};
use crate::table::{Align, Table};
use paired::looks;
use weigh_model::format;
use weigh_model::result::btu::ScoreInterval;
use weigh_model::result::net::{NetAnswers, NetClass};
use weigh_model::result::net_limits::{LIMITS_PCT, NetLimits};

const BITS: &str = "Mb/s";

/// The BTU, both penalties, and what they are of.
pub fn sentences(net: &NetAnswers) -> Vec<String> {
    let mut sentences = vec![score(net)];
    sentences.extend(penalties(net));
    if net.sweeps == 1 && net.btu.is_some() {
        sentences
            .push("One sweep gives no interval: use a longer --budget for more sweeps.".into());
    }
    if (2..looks::FIRST).contains(&net.sweeps) && net.btu.is_some() {
        sentences.push(format!(
            "{} cannot show whether sweeps depend on each other, so the interval assumes independent sweeps. \
             From {} sweeps on (`weigh net --continue`), the interval covers both cases.",
            format::plural(net.sweeps, "sweep"),
            looks::FIRST
        ));
    }
    sentences.extend(NetLimits::of(&net.measured).map(limits));
    if net.lost_packets > 0.0 {
        sentences.push(format!(
            "The links lost {} that the grid does not drop: the machine could not keep up.",
            format::plural(net.lost_packets as usize, "packet")
        ));
    }
    sentences
}

fn limits(NetLimits { cells, link, host, peers, none }: NetLimits) -> String {
    let link = match link {
        Some(link) => format!("the link's rate in {link}"),
        None => "no link had a rate".into(),
    };
    let of = format::plural(cells, "transfer");
    format!(
        "Bottleneck of {of} without an activity: {link}; this host's CPU in {host}; its peers' CPU in \
         {peers}; none of these in {none}. (A bottleneck is at least {LIMITS_PCT} % busy.)"
    )
}

fn score(net: &NetAnswers) -> String {
    let of = format!("grid {} ({})", net.grid, net.hash);
    match net.btu {
        Some(btu) => format!(
            "Network throughput under load (BTU): {} {BITS}; {of}, {} of {}.",
            interval(btu, &|value| format::rate(value, BITS)),
            format::plural(net.sweeps, "sweep"),
            format::plural(net.cells, "cell")
        ),
        None if net.missing.is_empty() => {
            format!("No BTU yet: no sweep over all cells is complete; {of}. Use a longer --budget.")
        }
        None => format!(
            "No BTU: {} of {} without a result, such as {}; {of}.",
            net.missing.len(),
            format::plural(net.cells, "cell"),
            net.missing[0]
        ),
    }
}

fn penalties(net: &NetAnswers) -> Option<String> {
    let (host, network) = (net.activity_slowdown?, net.comm_slowdown?);
    let paper = match net.paper_penalty_pct {
        Some(pct) => format!("{} %", format::unsigned(pct)),
        None => "undefined, because an activity was not slowed down".into(),
    };
    Some(format!(
        "Penalty: under network load, activities of the host take {} longer; under their load, the network \
         takes {} longer. (Mean of percentages, as in the paper: {paper}.)",
        interval(host, &percent),
        interval(network, &percent)
    ))
}

fn percent(slowdown: f64) -> String {
    let percent = ((slowdown - 1.0) * 100.0).round();
    format!("{}{} %", if percent < 0.0 { "−" } else { "" }, percent.abs())
}

fn interval(of: ScoreInterval, text: &dyn Fn(f64) -> String) -> String {
    match of.low.zip(of.high) {
        Some((low, high)) => format!("{} [{}, {}]", text(of.value), text(low), text(high)),
        None => text(of.value),
    }
}

/// By class: BTU and penalties; each component under load; each component alone.
pub fn tables(net: &NetAnswers) -> Vec<(String, Table)> {
    let title = |what: &str| format!("{what}, {BITS}");
    let mut tables = vec![
        ("By the size of a write".into(), classes(net)),
        (title("Components under load"), components(net, |class| &class.components)),
        (title("Components alone"), components(net, |class| &class.components_alone)),
    ];
    tables.extend(net_cells_text::tables(net));
    // Nothing but names: of cells that were not measured.
    let is_measured = |row: &Vec<String>| row.iter().skip(1).any(|cell| !cell.is_empty());
    tables.iter_mut().for_each(|(_, table)| table.rows.retain(is_measured));
    tables.retain(|(_, table)| !table.rows.is_empty() && table.columns.len() > 1);
    tables
}

fn classes(net: &NetAnswers) -> Table {
    use Align::{Left, Right};
    let mut columns = vec![(SIZE, Left), ("BTU", Right), ("alone", Right)];
    columns.extend([("penalty of host", Right), ("of network", Right)]);
    columns.extend(net.activities.iter().map(|activity| (activity.as_str(), Right)));
    let row = |class: &NetClass| {
        let btu = class.btu.map(|btu| interval(btu, &|value| format::rate(value, BITS)));
        let penalty = |slowdown: Option<ScoreInterval>| {
            slowdown.map(|found| percent(found.value)).unwrap_or_default()
        };
        let mut cells = vec![
            size(&class.name, class.bytes),
            btu.unwrap_or_default(),
            rate(class.alone),
            penalty(class.activity_slowdown),
            penalty(class.comm_slowdown),
        ];
        cells.extend(class.beside.iter().map(|found| rate(*found)));
        cells
    };
    let mut rows: Vec<Vec<String>> = net.classes.iter().map(row).collect();
    rows.extend(means_of_classes(net));
    Table::new(columns, rows)
}

/// Means over the classes; of penalties, those of the times as long.
fn means_of_classes(net: &NetAnswers) -> Vec<Vec<String>> {
    let value = |of: Option<ScoreInterval>| of.map(|found| found.value);
    let figures = |class: &NetClass| {
        let penalties = [class.activity_slowdown, class.comm_slowdown].map(value);
        let mut all = vec![value(class.btu), class.alone];
        all.extend(penalties);
        all.extend((0..net.activities.len()).map(|at| class.beside.get(at).copied().flatten()));
        all
    };
    let all: Vec<Vec<Option<f64>>> = net.classes.iter().map(figures).collect();
    rows_of_means(
        &all,
        |at, mean| if matches!(at, 2 | 3) { percent(mean) } else { rate(Some(mean)) },
    )
}

fn components(net: &NetAnswers, of: impl Fn(&NetClass) -> &Vec<Option<f64>>) -> Table {
    use Align::{Left, Right};
    let mut columns = vec![(SIZE, Left)];
    columns.extend(net.components.iter().map(|component| (plain(component), Right)));
    columns.extend(MEANS.map(|mean| (mean, Right)));
    let row = |class: &NetClass| {
        let mut cells = vec![size(&class.name, class.bytes)];
        cells.extend(of(class).iter().map(|found| rate(*found)));
        cells.extend(means(of(class)).into_iter().map(rate));
        cells
    };
    Table::new(columns, net.classes.iter().map(row).collect())
}

/// A component of the paper in plain words.
fn plain(component: &str) -> &str {
    match component {
        "SEND" => "send",
        "RECV" => "receive",
        "SEND+DL" => "send, delayed",
        "SEND_RECV" => "send and receive",
        "2RECV+DL" => "receive from 2, delayed",
        "2SEND+DR" => "send to 2, with drops",
        other => other,
    }
}

fn rate(rate: Option<f64>) -> String {
    rate.map(|rate| format::rate(rate, BITS)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net() -> NetAnswers {
        let found = |value: f64| {
            Some(ScoreInterval { value, low: Some(value * 0.9), high: Some(value * 1.1) })
        };
        NetAnswers {
            grid: "quick".into(),
            hash: "0123abcd".into(),
            cells: 135,
            sweeps: 3,
            missing: Vec::new(),
            btu: found(432.0),
            activity_slowdown: found(1.5),
            comm_slowdown: found(2.0),
            paper_penalty_pct: None,
            activities: vec!["activity-cpu".into()],
            components: vec!["SEND".into()],
            classes: vec![NetClass {
                name: "Telnet".into(),
                bytes: 100,
                btu: found(50.0),
                activity_slowdown: found(1.4),
                comm_slowdown: found(2.2),
                components: vec![Some(50.0)],
                components_alone: vec![Some(110.0)],
                beside: vec![Some(50.0)],
                alone: Some(110.0),
                means: None,
            }],
            lost_packets: 0.0,
            further: Vec::new(),
            measured: Vec::new(),
            abnormal: Vec::new(),
        }
    }

    #[test]
    fn the_first_sentence_has_the_btu_its_interval_and_what_it_is_of() {
        let said = sentences(&net());
        for part in ["(BTU): 432.0 [388.8", "grid quick (0123abcd)", "3 sweeps of 135 cells"] {
            assert!(said[0].contains(part), "{part}: {said:?}");
        }
        for part in ["take 50 % [35 %, 65 %] longer", "takes 100 %", "undefined"] {
            assert!(said[1].contains(part), "{part}: {said:?}");
        }
    }

    #[test]
    fn tables_have_plain_names_and_those_without_a_number_are_left_out() {
        let shown = |net: &NetAnswers| -> Vec<String> {
            tables(net).iter().map(|(title, table)| format!("{title}: {table:?}")).collect()
        };
        let all = shown(&net()).join("\n");
        for part in ["\"send\"", "100 B (Telnet)", "size of a write"] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(!all.contains("SEND") && !all.contains("W_test"), "{all}");
        let mut empty = net();
        let class = &mut empty.classes[0];
        (class.components, class.components_alone) = (vec![None], vec![None]);
        let [only] = &shown(&empty)[..] else { panic!("{:?}", shown(&empty)) };
        assert!(only.starts_with("By the size of a write: "), "{only}");
    }

    #[test]
    fn each_table_has_three_means_if_no_value_is_missing() {
        let mut net = net();
        net.components.push("RECV".into());
        let class = &mut net.classes[0];
        class.components_alone = vec![Some(100.0), Some(400.0)];
        class.components = vec![Some(100.0), None];
        let mut second = class.clone();
        second.beside = vec![Some(200.0)];
        second.components = vec![Some(100.0), Some(400.0)];
        net.classes.push(second);
        let shown = |title: &str| {
            let all = tables(&net);
            let (_, table) = all.iter().find(|(found, _)| found.starts_with(title)).unwrap();
            table.clone()
        };
        let ends = |row: &[String]| row[row.len() - 3..].to_vec();
        assert_eq!(ends(&shown("Components alone").rows[0]), ["250.0", "200.0", "160.0"]);
        assert_eq!(ends(&shown("Components under load").rows[0]), ["", "", ""]);
        let classes = shown("By the size");
        let last = |row: &Vec<String>| [row[0].clone(), row[row.len() - 1].clone()];
        let means: Vec<[String; 2]> = classes.rows[2..].iter().map(last).collect();
        let expected =
            [["arithmetic mean", "125.0"], ["geometric mean", "100.0"], ["harmonic mean", "80.00"]];
        assert_eq!(means, expected.map(|row| row.map(str::to_owned)));
    }

    #[test]
    fn what_few_sweeps_cannot_show_is_said() {
        let said = |sweeps: usize| sentences(&NetAnswers { sweeps, ..net() }).join(" ");
        assert!(said(3).contains("3 sweeps cannot show whether sweeps depend on each other"));
        assert!(!said(looks::FIRST).contains("cannot show"));
        assert!(said(1).contains("One sweep gives no interval"));
    }

    #[test]
    fn what_is_faster_beside_the_other_has_a_minus_sign() {
        assert_eq!([0.9, 0.999, 1.5].map(percent), ["−10 %", "0 %", "50 %"]);
    }

    #[test]
    fn a_score_with_a_missing_cell_is_none() {
        let missing = vec!["send/idle, 100 bytes".to_owned()];
        let net = NetAnswers { btu: None, activity_slowdown: None, missing, ..net() };
        let said = sentences(&net);
        assert!(said[0].contains("No BTU: 1 of 135 cells"), "{said:?}");
        assert!(said.iter().all(|sentence| !sentence.contains("Penalty")));
    }
}
