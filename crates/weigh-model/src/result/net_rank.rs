//! Machines ranked by their BTU, as Table 1 of Maly, Gupta and Mynam (1996) has it, from the JSON
//! documents of their runs: where intervals overlap, there is no order.

use serde::{Deserialize, Serialize};

use crate::format::plural;
use crate::result::warning::{Warning, as_sentences};

/// The version of the JSON document.
pub const SCHEMA: &str = "weighbridge/net-rank/1";

/// Parts of a run's document that ranking reads.
#[derive(Clone, Debug, Deserialize)]
pub struct RunDocument {
    pub id: String,
    pub machine: RunMachine,
    #[serde(default)]
    pub facts: Vec<String>,
    pub net: Option<NetDocument>,
    #[serde(default)]
    pub indices: Vec<IndexDocument>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct RunMachine {
    #[serde(default)]
    pub hostname: String,
    #[serde(default)]
    pub cpu_model: String,
    #[serde(default)]
    pub kernel: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct NetDocument {
    pub grid: String,
    pub hash: String,
    pub sweeps: usize,
    pub btu: Option<ScoreDocument>,
    pub activity_slowdown: Option<ScoreDocument>,
    pub comm_slowdown: Option<ScoreDocument>,
    pub classes: Vec<ClassDocument>,
    #[serde(default)]
    pub lost_packets: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ClassDocument {
    pub name: String,
    pub bytes: u32,
    pub btu: Option<ScoreDocument>,
    pub activity_slowdown: Option<ScoreDocument>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreDocument {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct IndexDocument {
    pub suite: String,
    pub copies: usize,
    pub index: f64,
}

/// A machine that is to be ranked.
pub struct Candidate {
    pub name: String,
    pub run: RunDocument,
    /// Index of our UnixBench-compatible suite, with one copy.
    pub index: Option<f64>,
    pub price: Option<f64>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetRank {
    pub schema: &'static str,
    pub grid: String,
    pub hash: String,
    /// By BTU; those without one come last.
    pub machines: Vec<RankedMachine>,
    #[serde(serialize_with = "as_sentences")]
    pub warnings: Vec<Warning>,
}

impl NetRank {
    /// Tells whether another ranking has the same machines in the same order. Where intervals overlap, a
    /// ranking has no order.
    pub fn beside(&self, other: &NetRank) -> String {
        let (mut both, mut one, mut reversed) = (0, 0, Vec::new());
        for (number, first) in self.machines.iter().enumerate() {
            for second in &self.machines[number + 1..] {
                let here = Some((first, second));
                let there = other.named(&first.name).zip(other.named(&second.name));
                match (here.and_then(ahead), there.and_then(ahead)) {
                    (Some(here), Some(there)) if here == there => both += 1,
                    (Some(_), Some(_)) => {
                        reversed.push(format!("{} and {}", first.name, second.name));
                    }
                    (None, None) => {}
                    _ => one += 1,
                }
            }
        }
        let verdict = match &reversed[..] {
            [] if both == 0 => {
                "Cannot compare the rankings: no two machines have separate intervals on both \
                 testbeds."
                    .to_owned()
            }
            [] => "Both testbeds rank the machines alike.".to_owned(),
            pairs => format!("The testbeds disagree about {}.", pairs.join("; ")),
        };
        let pairs = |number| plural(number, "pair");
        format!(
            "{verdict} Ranked alike: {}; ranked on one testbed only: {}.",
            pairs(both),
            pairs(one)
        )
    }

    fn named(&self, name: &str) -> Option<&RankedMachine> {
        self.machines.iter().find(|machine| machine.name == name)
    }
}

/// Returns true if the first machine is ahead of the second; `None` without an order.
fn ahead((first, second): (&RankedMachine, &RankedMachine)) -> Option<bool> {
    let is_ahead =
        |one: &RankedMachine, two: &RankedMachine| Some(one.worst_rank? < two.best_rank?);
    match (is_ahead(first, second)?, is_ahead(second, first)?) {
        (false, false) => None,
        (is_first, _) => Some(is_first),
    }
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankedMachine {
    pub name: String,
    pub id: String,
    pub cpu_model: String,
    pub kernel: String,
    /// The best rank and the worst that its interval leaves it; `None` without a BTU.
    pub best_rank: Option<usize>,
    pub worst_rank: Option<usize>,
    /// Mb/s.
    pub btu: Option<ScoreDocument>,
    pub sweeps: usize,
    /// In per cent: how much longer activities of the host take beside the network, and the network
    /// beside them.
    pub host_penalty_pct: Option<ScoreDocument>,
    pub network_penalty_pct: Option<ScoreDocument>,
    pub index: Option<f64>,
    pub price: Option<f64>,
    /// Mb/s for a thousand of what the price is in.
    pub btu_per_1000: Option<f64>,
    pub classes: Vec<RankedClass>,
}

/// Figures 2 and 3.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankedClass {
    pub name: String,
    pub bytes: u32,
    pub btu: Option<ScoreDocument>,
    /// How long 32 Mb take, which the paper moves in each cell.
    pub seconds_of_32_mb: Option<f64>,
    pub host_penalty_pct: Option<ScoreDocument>,
}

impl NetRank {
    pub fn of(candidates: Vec<Candidate>) -> Result<NetRank, String> {
        let nets: Vec<&NetDocument> = candidates
            .iter()
            .map(|one| one.run.net.as_ref().ok_or(no_net(&one.name)))
            .collect::<Result<_, _>>()?;
        let first = nets.first().ok_or("no run was given to rank")?;
        let others = candidates.iter().zip(&nets);
        if let Some((other, net)) = others.clone().find(|(_, net)| net.hash != first.hash) {
            return Err(format!(
                "{} used grid {} ({}), but {} used {} ({}): scores of different grids are not comparable",
                candidates[0].name, first.grid, first.hash, other.name, net.grid, net.hash
            ));
        }
        let (grid, hash) = (first.grid.clone(), first.hash.clone());
        let warnings = others.flat_map(|(one, net)| warnings(one, net)).collect();
        let mut machines: Vec<RankedMachine> = candidates.iter().zip(&nets).map(machine).collect();
        let scores: Vec<Option<ScoreDocument>> = machines.iter().map(|one| one.btu).collect();
        for machine in &mut machines {
            let ranks = machine.btu.map(|own| ranks(own, &scores));
            machine.best_rank = ranks.map(|(best, _)| best);
            machine.worst_rank = ranks.map(|(_, worst)| worst);
        }
        let btu = |one: &RankedMachine| one.btu.map_or(f64::NEG_INFINITY, |btu| btu.value);
        machines.sort_by(|a, b| btu(b).total_cmp(&btu(a)));
        Ok(NetRank { schema: SCHEMA, grid, hash, machines, warnings })
    }
}

fn no_net(name: &str) -> String {
    format!("{name} is not a run of `weigh net`")
}

fn warnings(one: &Candidate, net: &NetDocument) -> Vec<Warning> {
    let machine = || one.name.clone();
    let all = [
        (net.btu.is_none(), Warning::BtuIncomplete { machine: machine() }),
        (net.sweeps == 1, Warning::OneSweep { machine: machine() }),
        (net.lost_packets > 0.0, Warning::LinksLostPackets { machine: machine() }),
    ];
    all.into_iter().filter_map(|(is_so, warning)| is_so.then_some(warning)).collect()
}

/// How many are surely better, and how many are not surely worse.
fn ranks(own: ScoreDocument, all: &[Option<ScoreDocument>]) -> (usize, usize) {
    let low = |of: &ScoreDocument| of.low.unwrap_or(f64::NEG_INFINITY);
    let high = |of: &ScoreDocument| of.high.unwrap_or(f64::INFINITY);
    let others = all.iter().flatten();
    let better = others.clone().filter(|other| low(other) > high(&own)).count();
    let worse = others.clone().filter(|other| high(other) < low(&own)).count();
    (better + 1, others.count() - worse)
}

fn machine((one, net): (&Candidate, &&NetDocument)) -> RankedMachine {
    let class = |class: &ClassDocument| RankedClass {
        name: class.name.clone(),
        bytes: class.bytes,
        btu: class.btu,
        seconds_of_32_mb: class.btu.map(|btu| 32.0 / btu.value),
        host_penalty_pct: class.activity_slowdown.map(penalty),
    };
    RankedMachine {
        name: one.name.clone(),
        id: one.run.id.clone(),
        cpu_model: one.run.machine.cpu_model.clone(),
        kernel: one.run.machine.kernel.clone(),
        best_rank: None,
        worst_rank: None,
        btu: net.btu,
        sweeps: net.sweeps,
        host_penalty_pct: net.activity_slowdown.map(penalty),
        network_penalty_pct: net.comm_slowdown.map(penalty),
        index: one.index,
        price: one.price,
        btu_per_1000: one.price.zip(net.btu).map(|(price, btu)| 1000.0 * btu.value / price),
        classes: net.classes.iter().map(class).collect(),
    }
}

fn penalty(slowdown: ScoreDocument) -> ScoreDocument {
    let percent = |times: f64| (times - 1.0) * 100.0;
    let ScoreDocument { value, low, high } = slowdown;
    ScoreDocument { value: percent(value), low: low.map(percent), high: high.map(percent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, hash: &str, btu: Option<(f64, f64, f64)>) -> Candidate {
        let score = |(value, low, high)| ScoreDocument { value, low: Some(low), high: Some(high) };
        let slowdown = Some(score((1.2, 1.1, 1.3)));
        let class = ClassDocument {
            name: "Telnet".into(),
            bytes: 100,
            btu: Some(score((8.0, 7.0, 9.0))),
            activity_slowdown: slowdown,
        };
        let net = NetDocument {
            grid: "quick".into(),
            hash: hash.into(),
            sweeps: 3,
            btu: btu.map(score),
            activity_slowdown: slowdown,
            comm_slowdown: slowdown,
            classes: vec![class],
            lost_packets: 0.0,
        };
        let machine =
            RunMachine { hostname: name.into(), cpu_model: String::new(), kernel: String::new() };
        let run = RunDocument {
            id: "k3f9qx".into(),
            machine,
            facts: Vec::new(),
            net: Some(net),
            indices: Vec::new(),
        };
        Candidate { name: name.into(), run, index: None, price: Some(2000.0) }
    }

    #[test]
    fn machines_whose_intervals_overlap_share_ranks() {
        let ranked = NetRank::of(vec![
            candidate("slow", "a", Some((10.0, 9.0, 11.0))),
            candidate("none", "a", None),
            candidate("fast", "a", Some((30.0, 25.0, 36.0))),
            candidate("as fast", "a", Some((28.0, 24.0, 33.0))),
        ])
        .unwrap();
        let found: Vec<_> = ranked
            .machines
            .iter()
            .map(|one| (one.name.as_str(), one.best_rank, one.worst_rank))
            .collect();
        assert_eq!(
            found,
            [
                ("fast", Some(1), Some(2)),
                ("as fast", Some(1), Some(2)),
                ("slow", Some(3), Some(3)),
                ("none", None, None)
            ]
        );
        assert_eq!(ranked.machines[0].btu_per_1000, Some(15.0));
        assert_eq!(ranked.machines[0].classes[0].seconds_of_32_mb, Some(4.0));
        let penalty = ranked.machines[0].host_penalty_pct.unwrap();
        assert!((penalty.value - 20.0).abs() < 1e-9);
        assert_eq!(ranked.warnings[0], Warning::BtuIncomplete { machine: "none".into() });
    }

    #[test]
    fn two_rankings_agree_or_name_what_they_reverse() {
        let rank = |values: [f64; 3]| {
            let names = ["a", "b", "c"].iter().zip(values);
            let all =
                names.map(|(name, btu)| candidate(name, "x", Some((btu, btu - 1.0, btu + 1.0))));
            NetRank::of(all.collect()).unwrap()
        };
        let first = rank([10.0, 20.0, 30.0]);
        let alike = first.beside(&rank([1.0, 20.0, 20.5]));
        assert_eq!(
            alike,
            "Both testbeds rank the machines alike. Ranked alike: 2 pairs; ranked on one testbed only: 1 \
             pair."
        );
        let other = first.beside(&rank([10.0, 30.0, 20.0]));
        assert!(
            other.starts_with("The testbeds disagree about c and b. Ranked alike: 2"),
            "{other}"
        );
        assert!(first.beside(&rank([5.0, 5.0, 5.0])).starts_with("Cannot compare"), "three ties");
    }

    #[test]
    fn scores_of_other_grids_are_refused() {
        let both = vec![candidate("one", "a", None), candidate("other", "b", None)];
        assert!(NetRank::of(both).unwrap_err().contains("not comparable"));
        let mut no_net = candidate("one", "a", None);
        no_net.run.net = None;
        assert!(NetRank::of(vec![no_net]).unwrap_err().contains("not a run of `weigh net`"));
    }
}
