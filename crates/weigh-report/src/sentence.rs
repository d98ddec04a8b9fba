//! The first thing a person reads: what was found, in one to three sentences.
//!
//! Names are set in backticks; each format shows them in its own way. The sentence says only what
//! the verdicts say: a large effect without a verdict is not mentioned as one.

use super::by_treatment;
use super::command_times;
use super::findings::{control, found, undecided};
use super::gate;
use super::imported;
use super::peak_text;
use super::readings;
use super::schemes;
use super::stalls::not_excluded;
use super::versus;
use super::{doses, factorial};
use paired::{Doubt, Verdict};
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::{AppliedTreatment, Loss, NOTHING, Row, State, Summary};
use weigh_model::result::warning::Warning;
use weigh_model::workload::metric::WHOLE_RUNS;

pub fn sentence(s: &Summary) -> String {
    sentences(s).join(" ")
}

/// Returns the result in sentences, for a format that sets the first sentence apart.
pub fn sentences(s: &Summary) -> Vec<String> {
    let s = &*versus::laid_out(s);
    let mut sentences = Vec::new();
    if let Some(from) = &s.imported {
        if from.is_figures() {
            return imported::sentences(s, from);
        }
        sentences.push(imported::head(from));
        sentences.extend(imported::cannot(from));
    }
    let has_times = s.is_of_one_command() && !command_times::commands(s).is_empty();
    match s.state {
        State::Failed => {
            sentences.push(failed(s));
            return sentences;
        }
        State::Complete => {}
        State::Interrupted if s.results.is_empty() && !has_times => {
            sentences.push("Interrupted before anything was measured.".to_owned());
        }
        State::Interrupted => sentences.push(format!(
            "Interrupted after {} of {}: these results are partial.",
            format::seconds(s.elapsed_s),
            format::seconds(s.budget_s)
        )),
        State::Running => sentences.push(format!(
            "Still measuring, {} of at most {}.",
            format::seconds(s.elapsed_s),
            format::seconds(s.budget_s)
        )),
    }
    let has_own_rate = s.is_of_one_command() && s.failures.is_empty() && s.state == State::Complete;
    if s.results.is_empty() && !has_times && !has_own_rate && s.state != State::Interrupted {
        sentences.push("No verdict: nothing was measured.".to_owned());
    }
    sentences.extend(factorial::sentences(s));
    sentences.extend(doses::sentences(s));
    sentences.extend(peak_text::sentences(s));
    match &s.versus {
        Some(versus) => sentences.extend(versus::sentences(s, versus)),
        None if factorial::has_many_arms(s) => {
            sentences.extend(undecided(s, &s.results.iter().collect::<Vec<_>>()));
        }
        None if s.warnings.contains(&Warning::OneStartPerArm) => {
            sentences.extend(s.results.iter().map(over_one_start));
        }
        None => {
            sentences.extend(by_treatment(s).into_iter().filter_map(|(treatment, mut rows)| {
                if treatment == s.baseline {
                    return Some(control(&rows, s));
                }
                rows.retain(|row| !peak_text::is_peak(s, row));
                (!rows.is_empty()).then(|| found(treatment, &rows, s))
            }))
        }
    }
    // Arms of several factors are the design; the effects tell the factors apart.
    let several = s.treatments.iter().filter(|_| s.effects.is_empty());
    sentences.extend(several.filter_map(|applied| several_at_once(s, applied)));
    sentences.extend(baseline(s));
    sentences.extend(readings::sentences(s));
    sentences.extend(schemes::sentence(s));
    sentences.extend(still_wide(s));
    if s.sessions > 1 {
        sentences.push(format!("Measured in {} sessions.", format::integer(s.sessions as u64)));
    }
    sentences.extend(withheld(s));
    sentences.extend(not_excluded(s));
    sentences.extend(dropped_evidence(s));
    sentences.extend(without_result(s));
    sentences.extend(gate::sentence(s));
    sentences
}

/// States a row of passes over one start of each arm, which has no verdict.
fn over_one_start(row: &Row) -> String {
    let found = row.preliminary.map_or(String::new(), |few| {
        let range = format::range(few.low_pct, few.high_pct);
        format!(", {} (single pairs: {range})", format::preliminary(few.effect_pct))
    });
    format!(
        "{} under {}: {} of passes over one start of each arm{found}, no verdict.",
        quoted(&row.workload),
        quoted(&row.treatment),
        format::plural(row.pairs, "pair")
    )
}

/// Names the baseline if it is a treatment.
fn baseline(s: &Summary) -> Option<String> {
    let is_named = s.baseline != NOTHING
        && !s.results.is_empty()
        && s.versus.is_none()
        && s.imported.is_none();
    is_named.then(|| format!("Compared with {}.", quoted(&s.baseline)))
}

/// An effect of several changes is none of either.
fn several_at_once(s: &Summary, applied: &AppliedTreatment) -> Option<String> {
    let count = match applied.differences.len() {
        0 | 1 => return None,
        2 => "both".to_owned(),
        more => format!("all {more}"),
    };
    let differences: Vec<String> = applied.differences.iter().map(format::label).collect();
    Some(format!(
        "{} differs from {} in {} ways ({}): the effect shown is of {count} together.",
        quoted(&applied.label),
        quoted(&s.baseline),
        differences.len(),
        differences.join(", ")
    ))
}

fn failed(s: &Summary) -> String {
    let reason = s.failure.as_deref().unwrap_or("no reason was recorded");
    let reason = format::label(reason.trim_end_matches(['.', ' ']));
    format!("The experiment failed: {reason}. No verdict.")
}

/// Writes how many intervals are still wider than the target, if every row has its verdict. The
/// budget or the requested pairs ended first.
fn still_wide(s: &Summary) -> Option<String> {
    let is_decided = s.results.iter().all(|row| row.verdict != Verdict::Inconclusive);
    let wide = s.results.iter().filter(|row| !row.precise).count();
    let ended = s.state == State::Complete && s.imported.is_none() && is_decided && wide > 0;
    let rows = format::plural(wide, "row");
    let [intervals, are, them] = match wide {
        1 => ["interval", "is", "it"],
        _ => ["intervals", "are", "them"],
    };
    ended.then(|| {
        format!(
            "The {intervals} of {rows} {are} still wider than the target; `--continue {}` narrows {them}.",
            s.id
        )
    })
}

/// An interval beside zero or within the margin, and no verdict: the reason.
fn withheld(s: &Summary) -> Option<String> {
    let withheld = s.results.iter().filter_map(|row| row.withheld.map(|withheld| (row, withheld)));
    let all: Vec<_> = withheld.collect();
    let (row, first) = all.first()?;
    let verdict = format::verdict(first.verdict, false, s.margin_pct);
    let others = match all.len() - 1 {
        0 => String::new(),
        others => {
            let more = format::plural(others, "more verdict");
            format!(" ({more} not reported, see the notes)")
        }
    };
    let name = versus::row_name(&row.workload, &row.treatment);
    let reason = format::doubt(first.because);
    Some(format!(
        "{name} is not reported as {verdict}: {reason}{others}.{}",
        remedy(row, first.because)
    ))
}

/// Says what to type where more pairs do not remove the doubt; begins with a space.
fn remedy(row: &Row, because: Doubt) -> &'static str {
    if !matches!(because, Doubt::CarryOver | Doubt::OrderMatters) {
        return "";
    }
    match (row.unit.as_str(), row.scheme) {
        (WHOLE_RUNS, Some(Scheme::Interleaved)) => {
            " More pairs do not change that: measure again with --interleave=off."
        }
        (WHOLE_RUNS, _) => {
            " More pairs do not change that: measure again with --prepare LINE, where LINE restores the same \
             state before each run."
        }
        _ => {
            " More pairs do not change that: measure again with longer samples, such as --sample 1s."
        }
    }
}

/// A cost that is low because records were thrown away is not a low cost.
fn dropped_evidence(s: &Summary) -> Option<String> {
    let dropped: Vec<(&Row, Loss)> = s
        .results
        .iter()
        .filter_map(|row| Some((row, row.evidence.loss(s.quantities(row))?)))
        .collect();
    let share = |loss: &Loss| loss.pct.unwrap_or(0.0);
    let (worst, loss) = dropped
        .iter()
        .max_by(|(_, a), (_, b)| share(a).total_cmp(&share(b)).then(a.count.cmp(&b.count)))?;
    let lost = dropped.iter().map(|(_, loss)| loss.count).fold(0, u64::saturating_add);
    let noun = loss.noun;
    let others = match dropped.len() - 1 {
        0 => String::new(),
        others => format!(" and {} more", format::integer(others as u64)),
    };
    let name = quoted(&worst.workload);
    let what = match loss.pct.map(format::unsigned) {
        Some(pct) if others.is_empty() => format!("at least {pct} % of the {noun} were dropped"),
        Some(pct) => format!("{noun} were dropped (at least {pct} % for {name})"),
        None => "evidence was dropped".into(),
    };
    Some(format!(
        "{name}{others} came out cheaper because {what}: {} were counted as lost.",
        format::integer(lost)
    ))
}

fn without_result(s: &Summary) -> Option<String> {
    let mut names: Vec<String> = s.failures.iter().map(|f| quoted(&f.name())).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("{name} gave no result.")),
        _ => Some(format!("{} {}s gave no result.", names.len(), versus::heading(s))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paired::Withheld;
    use weigh_model::example;
    use weigh_model::result::preliminary::Preliminary;

    #[test]
    fn passes_over_one_start_are_told_without_a_verdict() {
        let mut s = example::audit();
        s.results.truncate(1);
        s.warnings.push(Warning::OneStartPerArm);
        let row = &mut s.results[0];
        (row.low_pct, row.high_pct, row.verdict, row.pairs) =
            (None, None, Verdict::Inconclusive, 3);
        row.preliminary = Some(Preliminary { effect_pct: -9.0, low_pct: -14.0, high_pct: -5.0 });
        let said = sentence(&s);
        let wanted = "3 pairs of passes over one start of each arm, ~−9.00 % (single pairs: −14.0 to \
                      −5.00), no verdict.";
        assert!(said.contains(wanted) && !said.contains("--budget"), "{said}");
    }

    #[test]
    fn dropped_evidence_and_missing_results_are_said() {
        let said = sentences(&example::audit());
        assert_eq!(said.len(), 3);
        assert_eq!(
            said[1],
            "`pipe` came out cheaper because at least 0.43 % of the records were dropped: 16,910 \
             were counted as lost."
        );
        let mut several = example::audit();
        several.results[0].evidence.amounts.set("lost", 20_000);
        assert_eq!(
            sentences(&several)[1],
            "`pipe` and 1 more came out cheaper because records were dropped (at least 0.43 % for `pipe`): \
             36,910 were counted as lost."
        );
        several.results[4].evidence.amounts.remove("lost_pct");
        assert!(sentences(&several)[1].contains("because evidence was dropped: 36,910"));
        assert_eq!(said[2], "`fsdisk` gave no result.");
    }

    #[test]
    fn a_failed_experiment_has_no_verdict() {
        let mut s = example::audit();
        s.state = State::Failed;
        s.failure = Some("A canary's record did not arrive.".to_owned());
        assert_eq!(
            sentence(&s),
            "The experiment failed: A canary's record did not arrive. No verdict."
        );
    }

    #[test]
    fn an_interrupted_one_says_so_first() {
        let mut s = example::audit();
        s.state = State::Interrupted;
        assert!(sentence(&s).starts_with(
            "Interrupted after 2 min 23 s of 5 min 00 s: these results are partial. `audit`"
        ));
    }

    #[test]
    fn what_was_measured_after_the_last_verdict_is_said() {
        let mut s = example::control();
        assert!(!sentence(&s).contains("wider than"));
        s.results[0].precise = false;
        assert!(
            sentence(&s)
                .contains("The interval of 1 row is still wider than the target; `--continue"),
            "{}",
            sentence(&s)
        );
        s.results[1].verdict = Verdict::Inconclusive;
        assert!(!sentence(&s).contains("wider than"));
    }

    #[test]
    fn a_verdict_that_is_not_reported_has_its_row_and_its_reason() {
        let mut s = example::audit();
        let row = &mut s.results[1];
        row.verdict = Verdict::Inconclusive;
        row.withheld = Some(Withheld { verdict: Verdict::Equivalent, because: Doubt::FewPairs });
        let wanted = " `dhry2reg` under `audit` is not reported as equivalent: this verdict takes at least \
                      24 interleaved pairs. ";
        assert!(sentence(&s).contains(wanted), "{}", sentence(&s));
        let mut s = example::versus();
        s.results[0].withheld =
            Some(Withheld { verdict: Verdict::Faster, because: Doubt::CarryOver });
        assert!(sentence(&s).contains(" `new --x` is not reported as faster: a treated sample"));
        let remedy = |s: &Summary, typed| {
            let said = sentence(s);
            assert!(said.contains(" More pairs do not change that: measure again with "), "{said}");
            assert!(said.contains(typed), "{said}");
        };
        s.results[0].scheme = Some(Scheme::Sequential);
        remedy(&s, "--prepare LINE");
        s.results[0].scheme = Some(Scheme::Interleaved);
        remedy(&s, "--interleave=off");
        let mut s = example::audit();
        let because = Doubt::OrderMatters;
        s.results[1].withheld = Some(Withheld { verdict: Verdict::Equivalent, because });
        remedy(&s, "--sample 1s");
    }

    #[test]
    fn it_is_said_that_an_experiment_was_gone_on_with() {
        let mut s = example::audit();
        assert!(!sentence(&s).contains("session"));
        s.sessions = 3;
        assert!(sentence(&s).contains(" Measured in 3 sessions."), "{}", sentence(&s));
    }

    /// Seven arms of three factors would have seven sentences before the tables.
    #[test]
    fn arms_of_three_factors_have_one_sentence_together() {
        let mut s = example::factorial();
        let mut more = s.effects[0].clone();
        more.factors = vec!["audit".into()];
        s.effects.push(more);
        assert!(!sentence(&s).contains("slows"), "{}", sentence(&s));
        s.results[0].verdict = Verdict::Inconclusive;
        assert!(sentence(&s).contains(" No verdict on 1 of 3 rows"), "{}", sentence(&s));
        assert!(!sentence(&s).contains("effect of `seccomp`"), "{}", sentence(&s));
    }

    #[test]
    fn each_treatment_has_its_own_sentence() {
        let mut s = example::audit();
        s.failures.clear();
        for row in &mut s.results[6..] {
            row.treatment = "none".to_owned();
        }
        let said = sentences(&s);
        assert!(said[0].starts_with("`audit` slows 4 of 6"), "{said:?}");
        assert!(said[1].starts_with("False alarm:"), "{said:?}");
    }

    #[test]
    fn what_differs_in_several_things_is_said_to() {
        let mut s = example::audit();
        assert!(!sentence(&s).contains("differs from"));
        s.treatments[0].differences = vec!["with `audit`".into(), "without `cpus:0`".into()];
        let said = sentence(&s);
        let wanted = "`audit` differs from `none` in 2 ways (with `audit`, without `cpus:0`): the effect \
                      shown is of both together.";
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn a_baseline_that_is_not_nothing_is_named() {
        let mut s = example::audit();
        assert!(!sentence(&s).contains("Compared with"));
        s.baseline = "cgroup:pids".into();
        assert!(sentence(&s).contains("Compared with `cgroup:pids`."), "{}", sentence(&s));
    }

    #[test]
    fn a_name_cannot_end_its_quotation() {
        assert_eq!(quoted("a`b\n"), "`a'b\u{fffd}`");
    }
}
