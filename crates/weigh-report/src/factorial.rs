//! The table of a full factorial design: what each factor does, and what they do together.

use super::table::{Table, columns};
use paired::Verdict;
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::factorial::FactorialEffect;
use weigh_model::result::summary::Summary;
use weigh_model::result::work_name::WorkName;

pub const TITLE: &str = "Effects of the factors";
pub const LEGEND: &str = "one factor: mean effect over all settings of the other factors; A × B: \
                          interaction, the effect of both together beyond the effects of each alone";

/// More workloads have no sentence each: the table has them.
const MOST_SENTENCES: usize = 2;

/// The factors of the design; empty where the arms are none.
pub fn factors(s: &Summary) -> Vec<&str> {
    let mut factors: Vec<&str> = Vec::new();
    for factor in s.effects.iter().filter(|it| !it.is_interaction()).flat_map(|it| &it.factors) {
        if !factors.contains(&factor.as_str()) {
            factors.push(factor);
        }
    }
    factors
}

/// The workloads with effects, each once.
pub fn workloads(s: &Summary) -> Vec<&WorkName> {
    let mut workloads: Vec<&WorkName> = s.effects.iter().map(|effect| &effect.workload).collect();
    workloads.dedup();
    workloads
}

/// True if there are so many arms that a sentence on each would hide the result: the tables have them.
pub fn has_many_arms(s: &Summary) -> bool {
    factors(s).len() > 2
}

/// Sentences on each factor and their interactions: for each of a few workloads, or counted.
pub fn sentences(s: &Summary) -> Vec<String> {
    let workloads = workloads(s);
    if workloads.len() > MOST_SENTENCES {
        return vec![counted(s, workloads.len())];
    }
    let of_workload = |workload: &&WorkName| {
        let effects = s.effects.iter().filter(|effect| effect.workload == **workload);
        let effects: Vec<String> = match has_many_arms(s) {
            true => grouped(effects, s.margin_pct),
            false => effects.map(|effect| said(effect, s.margin_pct)).collect(),
        };
        format!("Effects on {}: {}.", quoted(workload), effects.join("; "))
    };
    workloads.iter().map(of_workload).collect()
}

/// The effects of each verdict, interactions without their figures; those without a verdict are counted.
fn grouped<'a>(effects: impl Iterator<Item = &'a FactorialEffect>, margin_pct: f64) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut open = 0;
    for effect in effects {
        if effect.verdict == Verdict::Inconclusive {
            open += 1;
            continue;
        }
        let verdict = verdict(effect, margin_pct);
        let name = match effect.is_interaction() {
            true => quoted_name(effect),
            false => with_figures(effect),
        };
        match groups.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, names)) => names.push(name),
            None => groups.push((verdict, vec![name])),
        }
    }
    let named =
        |(verdict, names): (String, Vec<String>)| format!("{verdict}: {}", names.join(", "));
    let open = (open > 0).then(|| format!("{open} inconclusive"));
    groups.into_iter().map(named).chain(open).collect()
}

fn said(effect: &FactorialEffect, margin_pct: f64) -> String {
    if effect.verdict == Verdict::Inconclusive {
        return format!("{} inconclusive", quoted_name(effect));
    }
    format!("{} ({})", with_figures(effect), verdict(effect, margin_pct))
}

fn with_figures(effect: &FactorialEffect) -> String {
    let interval = format::interval(effect.low_pct, effect.high_pct);
    format!("{} {} {interval}", quoted_name(effect), format::percent(effect.effect_pct))
}

fn counted(s: &Summary, workloads: usize) -> String {
    let mut names: Vec<&[String]> = Vec::new();
    for effect in &s.effects {
        if !names.contains(&effect.factors.as_slice()) {
            names.push(&effect.factors);
        }
    }
    let of_effect = |factors: &&[String]| {
        let effects = || s.effects.iter().filter(|effect| effect.factors == **factors);
        let differs =
            |it: &&FactorialEffect| matches!(it.verdict, Verdict::Slower | Verdict::Faster);
        let name: Vec<String> = factors.iter().map(quoted).collect();
        let verb = if factors.len() > 1 { "interact in" } else { "changes" };
        format!("{} {verb} {}", name.join(" × "), effects().filter(differs).count())
    };
    let effects: Vec<String> = names.iter().map(of_effect).collect();
    format!("{}: {}.", format::plural(workloads, "workload"), effects.join(", "))
}

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
    let columns = columns("workload|factor|>effect|interval|verdict|>rounds");
    Some(Table::new(columns, cells.collect()))
}

/// A line per workload and effect, for a screen that is too narrow for all columns of the table.
pub fn lines(s: &Summary) -> Vec<String> {
    let line = |effect: &FactorialEffect| {
        let verdict = verdict(effect, s.margin_pct);
        format!("{}: {}: {verdict}", quoted(&effect.workload), with_figures(effect))
    };
    s.effects.iter().map(line).collect()
}

fn quoted_name(effect: &FactorialEffect) -> String {
    let factors: Vec<String> = effect.factors.iter().map(quoted).collect();
    factors.join(" × ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn each_effect_is_said_or_counted() {
        let mut s = example::factorial();
        assert_eq!(
            sentences(&s),
            ["Effects on `getppid`: `seccomp` −20.0 % [−21.0, −19.0] (slower); `nice:5` −25.0 % \
              [−26.0, −24.0] (slower); `seccomp` × `nice:5` 0.00 % [−0.50, +0.50] \
              (no interaction beyond 1 %)."]
        );
        s.effects[1].verdict = Verdict::Inconclusive;
        assert!(sentences(&s)[0].contains("; `nice:5` inconclusive; "), "{:?}", sentences(&s));
        s.effects[1].verdict = Verdict::Slower;
        let of_one = s.effects.clone();
        for name in ["stat", "pipe"] {
            s.effects.extend(of_one.iter().cloned().map(|effect| FactorialEffect {
                workload: name.into(),
                verdict: Verdict::Inconclusive,
                ..effect
            }));
        }
        assert_eq!(
            sentences(&s),
            [
                "3 workloads: `seccomp` changes 1, `nice:5` changes 1, `seccomp` × `nice:5` interact in 0."
            ]
        );
    }

    #[test]
    fn three_factors_are_grouped_by_their_verdicts() {
        let mut s = example::factorial();
        let mut more = s.effects[0].clone();
        more.factors = vec!["audit".into()];
        s.effects.insert(0, more);
        assert_eq!(
            sentences(&s),
            ["Effects on `getppid`: slower: `audit` −20.0 % [−21.0, −19.0], \
              `seccomp` −20.0 % [−21.0, −19.0], `nice:5` −25.0 % [−26.0, −24.0]; \
              no interaction beyond 1 %: `seccomp` × `nice:5`."]
        );
        s.effects[0].verdict = Verdict::Inconclusive;
        assert_eq!(
            sentences(&s),
            ["Effects on `getppid`: slower: `seccomp` −20.0 % [−21.0, −19.0], \
              `nice:5` −25.0 % [−26.0, −24.0]; \
              no interaction beyond 1 %: `seccomp` × `nice:5`; 1 inconclusive."]
        );
    }
}
