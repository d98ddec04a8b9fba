//! Result of a CI job's gate, in a sentence.

use super::bounds;
use super::versus::{is_row, row_name};
use paired::Doubt;
use paired::judge::{MIN_PAIRS, pairs_until};
use weigh_model::format;
use weigh_model::result::gate::{Gate, NamedRow};
use weigh_model::result::scheme::{LEAST_INTERLEAVED, Scheme};
use weigh_model::result::summary::{Row, Summary};

/// The result in a sentence; `None` where there was no limit.
pub fn sentence(s: &Summary) -> Option<String> {
    let gate = s.gate.as_ref()?;
    let (limit, confidence) = (format::margin(gate.fail_above_pct), format::confidence(s.alpha));
    if gate.passed {
        return Some(format!("PASS: every row costs less than {limit} ({confidence} confidence)."));
    }
    let names = || gate.above.iter().map(name).collect::<Vec<_>>().join(", ");
    Some(match &gate.above[..] {
        [] if gate.open.is_empty() => {
            format!(
                "UNDECIDED: a row has no result, so not every row is shown to cost less than {limit}."
            )
        }
        [] => undecided(s, gate, &limit),
        [one] => {
            format!("FAIL: {} costs more than {limit} ({confidence} confidence).", name(one))
        }
        _ => format!(
            "FAIL: these rows cost more than {limit} ({confidence} confidence): {}.",
            names()
        ),
    })
}

fn name(row: &NamedRow) -> String {
    row_name(&row.workload, &row.treatment)
}

/// Names the rows of which neither is shown, each with the reason; and says what to type.
fn undecided(s: &Summary, gate: &Gate, limit: &str) -> String {
    let rows: Vec<(&NamedRow, Option<&Row>)> = (gate.open.iter())
        .map(|open| {
            (open, s.results.iter().find(|row| is_row(row, &open.workload, &open.treatment)))
        })
        .collect();
    let named = |(open, row): &(&NamedRow, Option<&Row>)| match row {
        Some(row) => format!("{} ({})", name(open), why(row)),
        None => name(open),
    };
    let named: Vec<String> = rows.iter().map(named).collect();
    let seconds: Option<f64> =
        rows.iter().map(|(_, row)| seconds_left((*row)?, gate.fail_above_pct)).sum();
    let more = match seconds {
        Some(seconds) => format!(
            "Use --continue {} --budget {}: it probably takes {} more.",
            s.id,
            format::budget(seconds),
            format::seconds(seconds)
        ),
        None if s.id.is_empty() => "Use a longer --budget.".to_owned(),
        None => format!("Use a longer --budget, or --continue {}.", s.id),
    };
    format!("UNDECIDED: not shown to cost less than {limit}: {}. {more}", named.join(", "))
}

/// Why a row has no upper limit of its cost, or only a high one.
fn why(row: &Row) -> String {
    if lacking(row) > 0 {
        let (least, kind) = least_pairs(row);
        return format!("{} of at least {least} {kind}pairs", row.pairs);
    }
    if let Some(doubt) = doubt(row) {
        return format::doubt(doubt);
    }
    let effect = format::percent(row.effect_pct);
    let interval = format::interval(row.low_pct, row.high_pct);
    match row.cost_at_most_pct {
        Some(_) => format!("it costs at most {}: {effect} {interval}", bounds::of(row)),
        None => format!("its cost has no upper limit yet: {effect} {interval}"),
    }
}

/// How many pairs a limit of the cost takes, and their kind.
fn least_pairs(row: &Row) -> (usize, &'static str) {
    match row.scheme {
        Some(Scheme::Interleaved) => (LEAST_INTERLEAVED, "interleaved "),
        _ => (MIN_PAIRS, ""),
    }
}

fn lacking(row: &Row) -> usize {
    least_pairs(row).0.saturating_sub(row.pairs)
}

/// The doubt that keeps a row from any limit. The others are about pairs and claims, which the limit
/// considers.
fn doubt(row: &Row) -> Option<Doubt> {
    let because = row.withheld?.because;
    let is_considered = matches!(because, Doubt::FewPairs | Doubt::OverallRate | Doubt::CpuTime);
    (!is_considered).then_some(because)
}

/// How long it probably takes until a row is shown to cost less than the limit; `None` where that is not
/// known, as where its estimate is above the limit.
fn seconds_left(row: &Row, limit_pct: f64) -> Option<f64> {
    let pairs = match (lacking(row), doubt(row)) {
        (0, Some(_)) => return None,
        (0, None) => {
            let cost_pct = -row.effect_pct;
            let half_width = row.cost_at_most_pct? - cost_pct;
            pairs_until(row.pairs, half_width, limit_pct - cost_pct)?
        }
        (lacking, _) => lacking,
    };
    let pair_s = row.series.iter().map(|pair| pair.lasted_s).sum::<f64>() / row.series.len() as f64;
    Some(pair_s * pairs as f64).filter(|seconds| seconds.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::{Verdict, Withheld};
    use weigh_model::example;

    /// An experiment whose gate is undecided on the only row, with pairs of 2 s.
    fn open(change: impl Fn(&mut Row)) -> Summary {
        let mut s = example::audit();
        s.results = vec![s.results.remove(11)];
        let row = &mut s.results[0];
        row.series.iter_mut().for_each(|pair| pair.lasted_s = 2.0);
        change(row);
        let open = vec![NamedRow { workload: row.workload.clone(), treatment: "audit".into() }];
        let (fail_above_pct, passed, above) = (1.0, false, Vec::new());
        s.gate = Some(Gate { fail_above_pct, passed, above, open });
        s
    }

    fn assert_says(s: &Summary, why: &str, what_to_do: &str) {
        let head = "UNDECIDED: not shown to cost less than 1 %: `hanoi` under `audit`";
        assert_eq!(sentence(s).unwrap(), format!("{head} ({why}). {what_to_do}"));
    }

    #[test]
    fn an_undecided_gate_gives_the_reason_and_the_time() {
        let few = open(|row| {
            (row.scheme, row.pairs) = (Some(Scheme::Interleaved), 18);
            let (verdict, because) = (Verdict::Equivalent, Doubt::FewPairs);
            row.withheld = Some(Withheld { verdict, because });
        });
        let more = "Use --continue k3f9 --budget 20s: it probably takes 12 s more.";
        assert_says(&few, "18 of at least 24 interleaved pairs", more);
        let sequential = open(|row| row.pairs = 5);
        let more = "Use --continue k3f9 --budget 10s: it probably takes 6.0 s more.";
        assert_says(&sequential, "5 of at least 8 pairs", more);
        // The bound is 1.44 points from the estimate, and may be 0.65: it takes 4.9 times the pairs.
        let wide = open(|_| {});
        let more = "Use --continue k3f9 --budget 7m: it probably takes 5 min 14 s more.";
        assert_says(&wide, "it costs at most 1.79 %: −0.35 % [−1.94, +1.27]", more);
    }

    #[test]
    fn where_the_time_is_unknown_a_longer_budget_is_named() {
        let more = "Use a longer --budget, or --continue k3f9.";
        let doubtful = open(|row| {
            let (verdict, because) = (Verdict::Equivalent, Doubt::CarryOver);
            row.withheld = Some(Withheld { verdict, because });
        });
        assert_says(&doubtful, "a treated sample changes the next sample", more);
        let above = open(|row| row.effect_pct = -1.2);
        assert_says(&above, "it costs at most 1.79 %: −1.20 % [−1.94, +1.27]", more);
        let unbounded = open(|row| row.cost_at_most_pct = None);
        let why = "its cost has no upper limit yet: −0.35 % [−1.94, +1.27]";
        assert_says(&unbounded, why, more);
    }

    #[test]
    fn commands_are_named_by_themselves() {
        let mut s = example::versus();
        s.results[0].cost_at_most_pct = Some(4.0);
        let open = vec![NamedRow { workload: "command".into(), treatment: "new --x".into() }];
        let (fail_above_pct, passed, above) = (1.0, false, Vec::new());
        s.gate = Some(Gate { fail_above_pct, passed, above, open });
        for s in [&s, &*super::super::versus::laid_out(&s)] {
            let said = sentence(s).unwrap();
            assert!(
                said.contains("than 1 %: `new --x` (it costs at most 4.00 %: +3.10 %"),
                "{said}"
            );
        }
    }
}
