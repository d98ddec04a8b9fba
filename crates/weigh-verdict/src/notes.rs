//! Sentences for a reader of a row, in addition to its verdict.

use super::drift;
use super::log_ratio::{bound, percent};
use super::metrics;
use paired::Verdict;
use paired::betting::Betting;
use paired::carry_over::{CarryOver, GroupContrast};
use paired::design::Design;
use paired::estimate::modes_disagree;
use paired::judge::Judgement;
use paired::multiplicity::Multiplicity;
use weigh_model::evidence::Evidence;
use weigh_model::format;
use weigh_model::result::metrics::Metrics;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::summary::{Loss, Pair, RowEvidence};

/// A row, judged.
pub struct Judged<'a> {
    pub betting: &'a Betting,
    pub judgement: &'a Judgement,
    pub series: &'a [Pair],
    /// Pairs that a verdict takes at least, however large the effect.
    pub least_pairs: usize,
    pub evidence: &'a RowEvidence,
    /// Quantities that the treatment declares.
    pub quantities: &'a [EvidenceQuantity],
    pub metrics: &'a Metrics,
}

/// All of them, for a row of an experiment of this design; `has_failed` where nothing is concluded.
pub fn of_row(row: &Judged, design: &Design, has_failed: bool) -> Vec<String> {
    let mut notes = on_evidence(row.evidence, row.quantities);
    notes.extend(metrics::note_on_stalls(row.metrics, row.judgement));
    if !has_failed {
        notes.extend(on_multiplicity(row, design));
    }
    notes.extend(row.judgement.withheld.map(|withheld| {
        let verdict = format::verdict(withheld.verdict, false, 0.0);
        format!("verdict {verdict} not yet reported: {}", format::doubt(withheld.because))
    }));
    notes.extend(drift::note(row.series));
    notes.extend(on_modes(row.betting));
    notes.extend(on_cpu_time(row.series));
    let carry_over = row.judgement.carry_over.unwrap_or_else(|| {
        CarryOver::of(row.betting, design.alpha / (2 * design.rows.max(1)) as f64)
    });
    notes.extend(on_carry_over(&carry_over));
    notes
}

/// A reader sees an interval beside zero and no verdict: he is owed the reason.
fn on_multiplicity(row: &Judged, design: &Design) -> Option<String> {
    let interval = row.judgement.interval;
    let leaves_zero_out = interval.low > 0.0 || interval.high < 0.0;
    let method = match design.multiplicity {
        Multiplicity::Holm => "Holm",
        Multiplicity::EBh => "e-BH",
    };
    // Fewer pairs than were fixed are another reason, and so are a doubt and an experiment that failed.
    let waits = design.fixed_pairs.is_some_and(|fixed| row.series.len() < fixed);
    let is_open = row.judgement.verdict == Verdict::Inconclusive
        && row.judgement.withheld.is_none()
        && !waits;
    (is_open && leaves_zero_out && design.rows > 1).then(|| {
        let rows = design.rows;
        let effort = match row.series.len() < row.least_pairs {
            true => format!("That takes at least {}.", format::plural(row.least_pairs, "pair")),
            false => "Fewer rows or more time will decide it.".to_owned(),
        };
        format!(
            "Significant on its own, but not after correcting for {} ({method}). {effort}",
            format::plural(rows, "comparison")
        )
    })
}

/// A sample that changes the next one breaks what the interval rests on.
fn on_carry_over(found: &CarryOver) -> Vec<String> {
    let told = |contrast: Option<GroupContrast>| {
        let GroupContrast { estimate, interval } =
            contrast.filter(GroupContrast::is_significant)?;
        let interval = format::interval(bound(interval.low), bound(interval.high));
        Some(format!("{} {interval}", format::percent(percent(estimate))))
    };
    let order = told(found.order).map(|size| {
        format!(
            "the order matters: the effect in pairs with the baseline first minus the effect in the other \
             pairs is {size}. Either a second launch differs from a first launch, or a sample changes the \
             next sample."
        )
    });
    let previous = told(found.previous).map(|size| {
        format!(
            "carry-over: the effect changes by {size} after a treated sample, so a treated sample changes \
             the next sample"
        )
    });
    order.into_iter().chain(previous).collect()
}

/// Two measures of the spread that differ say that the noise has no one shape.
fn on_modes(row: &Betting) -> Option<String> {
    let [by_mad, by_quartiles] = modes_disagree(row.values())?;
    Some(format!(
        "launches seem to have several modes: the pairs scatter by {} % by their median deviation, but by {} \
         % by their quartiles. The effect is a mixture of the effects of the modes.",
        format::unsigned(100.0 * by_mad),
        format::unsigned(100.0 * by_quartiles)
    ))
}

/// Some samples without it are missing from the row's CPU time.
fn on_cpu_time(series: &[Pair]) -> Option<String> {
    let known = series.iter().filter(|pair| pair.cpu_ns_per_op.is_some()).count();
    (1..series.len()).contains(&known).then(|| {
        format!(
            "CPU time is known for {known} of {}. In the other pairs the kernel reported none, or more than \
             the CPUs can provide, as its clock of CPU time was late.",
            format::plural(series.len(), "pair")
        )
    })
}

fn on_evidence(evidence: &RowEvidence, quantities: &[EvidenceQuantity]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(Loss { noun, count, pct }) = evidence.loss(quantities) {
        let count = format::integer(count);
        notes.push(match pct {
            Some(pct) => format!(
                "cheaper because at least {} % of the {noun} were dropped: {count} were counted as lost",
                format::unsigned(pct)
            ),
            None => {
                format!("cheaper because evidence was dropped: {count} {noun} were counted as lost")
            }
        });
    }
    if let Some(why) = evidence.amounts.text(Evidence::NOT_COUNTED) {
        notes.push(format!("counted incompletely: {why}"));
    }
    if let Some(calls) = evidence.amounts.text(Evidence::DENIED_CALLS) {
        notes.push(format!("the filter denied {calls}"));
    }
    if let Some(why) = evidence.amounts.text(Evidence::DENIED_CALLS_UNKNOWN) {
        notes.push(format!("cannot list the system calls that the filter denied: {why}"));
    }
    if let Some(calls) = evidence.amounts.text(Evidence::HOOK_CALLS) {
        notes.push(format!(
            "calls of SELinux's functions per operation, in separate launches: {calls}"
        ));
    }
    if let Some(why) = evidence.amounts.text(Evidence::HOOK_CALLS_UNKNOWN) {
        notes.push(format!("cannot count the calls of SELinux's functions: {why}"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::carry_over::Turn;
    use paired::judge_rows;
    use weigh_model::example;
    use weigh_model::ids::{PairId, SetId};
    use weigh_model::result::summary::Row;

    /// Sixty pairs, whose second sample is faster by about `second`, and slower by `after_treated` if it or
    /// the first comes after a treated one.
    fn row(second: f64, after_treated: f64) -> Betting {
        let mut row = Betting::new(0.01);
        let mut before = false;
        for number in 0..60_u64 {
            let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let baseline_first = hash & 1 == 0;
            let turn = Turn { baseline_first, after_treated: before };
            let mut rates = [0.0; 2];
            for position in 0..2 {
                let is_treated = (position == 1) == baseline_first;
                let noise = ((hash >> (4 + 8 * position)) % 13) as f64 * 1e-3;
                rates[usize::from(is_treated)] =
                    noise + second * position as f64 - if before { after_treated } else { 0.0 };
                before = is_treated;
            }
            row.push_turn(rates[1] - rates[0], turn).unwrap();
        }
        row
    }

    #[test]
    fn a_row_says_when_the_order_of_its_samples_matters_or_what_came_before() {
        let on_carry_over = |row: Betting| on_carry_over(&CarryOver::of(&row, 0.025));
        assert_eq!(on_carry_over(row(0.0, 0.0)), [""; 0]);
        let order = on_carry_over(row(0.02, 0.0));
        assert!(order.len() == 1 && order[0].starts_with("the order matters"), "{order:?}");
        let previous = on_carry_over(row(0.0, 0.02));
        assert!(previous.len() == 1 && previous[0].starts_with("carry-over"), "{previous:?}");
        assert!(previous[0].contains("+2.") || previous[0].contains("+1."), "{previous:?}");
    }

    #[test]
    fn what_only_many_rows_withhold_is_told_with_the_pairs_that_it_takes() {
        let eight = Betting::from_log_ratios(&[-5.0; 8], 0.01).unwrap();
        let design = Design { rows: 10, ..Design::default() };
        let judgement = judge_rows([&eight], &design).remove(0);
        let experiment = example::audit();
        let Row { series, evidence, metrics, .. } = &experiment.results[4];
        let said = |least_pairs, pairs: usize| {
            let (betting, judgement, series) = (&eight, &judgement, &series[..pairs]);
            let of_row = Judged {
                betting,
                judgement,
                series,
                least_pairs,
                evidence,
                quantities: &[],
                metrics,
            };
            on_multiplicity(&of_row, &design).unwrap()
        };
        let why = "Significant on its own, but not after correcting for 10 comparisons (Holm). ";
        assert_eq!(said(12, 8), format!("{why}That takes at least 12 pairs."));
        assert_eq!(said(8, 8), format!("{why}Fewer rows or more time will decide it."));
    }

    #[test]
    fn dropped_records_are_counted_as_in_the_result() {
        let experiment = example::audit();
        let row = &experiment.results[4];
        let notes = on_evidence(&row.evidence, experiment.quantities(row));
        assert_eq!(
            notes,
            [
                "cheaper because at least 0.43 % of the records were dropped: 16,910 were counted as lost"
            ]
        );
    }

    #[test]
    fn that_cpu_time_is_known_of_some_pairs_alone_is_told() {
        let pair = |known: bool| Pair {
            rates_over_all: [1.0, 1.0],
            cpu_ns_per_op: known.then_some([1.0, 2.0]),
            further: Vec::new(),
            started_s: 0.0,
            lasted_s: 1.0,
            baseline_rate: 1000.0,
            treated_rate: 1000.0,
            baseline_first: true,
            after_treated: false,
            set: SetId(0),
            number: PairId(0),
            is_disturbed: false,
        };
        assert_eq!(on_cpu_time(&[pair(true), pair(true)]), None);
        assert_eq!(on_cpu_time(&[pair(false), pair(false)]), None, "it is not judged");
        let note = on_cpu_time(&[pair(true), pair(false)]).unwrap();
        assert!(note.starts_with("CPU time is known for 1 of 2 pairs"), "{note}");
    }
}
