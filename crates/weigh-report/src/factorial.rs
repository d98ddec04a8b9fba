//! The table of a full factorial design: what each factor does, and what they do together.

use super::table::{Align, Table};
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::factorial::FactorialEffect;
use weigh_model::result::summary::Summary;

pub const TITLE: &str = "Effects of the factors";
pub const LEGEND: &str = "one factor: mean effect over all settings of the other factors; A × B: \
                          interaction, the effect of both together beyond the effects of each alone";

/// A row per workload and effect; `None` where the arms are no full factorial design.
pub fn table(s: &Summary) -> Option<Table> {
    if s.effects.is_empty() {
        return None;
    }
    let cells = s.effects.iter().map(|effect| {
        vec![
            format::label(&effect.workload),
            name(effect),
            format::percent(effect.effect_pct),
            format::interval(effect.low_pct, effect.high_pct),
            verdict(effect, s.margin_pct),
            format::integer(effect.rounds as u64),
        ]
    });
    let columns = vec![
        ("workload", Align::Left),
        ("factor", Align::Left),
        ("effect", Align::Right),
        ("interval", Align::Left),
        ("verdict", Align::Left),
        ("rounds", Align::Right),
    ];
    Some(Table::new(columns, cells.collect()))
}

fn name(effect: &FactorialEffect) -> String {
    let factors: Vec<String> = effect.factors.iter().map(format::label).collect();
    factors.join(" × ")
}

fn verdict(effect: &FactorialEffect, margin_pct: f64) -> String {
    let margin = format::margin(margin_pct);
    match (effect.is_interaction(), effect.verdict) {
        (true, Verdict::Slower) => "slower together".into(),
        (true, Verdict::Faster) => "faster together".into(),
        (true, Verdict::Equivalent) => format!("no interaction beyond {margin}"),
        (false, Verdict::Slower) => "slower".into(),
        (false, Verdict::Faster) => "faster".into(),
        (false, Verdict::Equivalent) => format!("equivalent {margin}"),
        (_, Verdict::Inconclusive) => "inconclusive".into(),
    }
}
