//! Sentences on the peak of a compared mix: the verdict on its throughput, and whether the arms
//! peak at different numbers of users.

use paired::Verdict;
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::load::or_with;
use weigh_model::result::load_compared::{ComparedLoad, LoadCurve};
use weigh_model::result::summary::{Row, Summary};

/// Sentences for each mix and treatment.
pub fn sentences(s: &Summary) -> Vec<String> {
    let of_load = |load: &ComparedLoad| {
        let row = s.peak_row(load)?;
        Some([verdict(load, row, s.margin_pct), users(load)])
    };
    s.loads.iter().filter_map(of_load).flatten().collect()
}

/// Returns true if these sentences already cover the row completely.
pub fn is_peak(s: &Summary, row: &Row) -> bool {
    s.loads.iter().any(|load| s.peak_row(load).is_some_and(|peak| std::ptr::eq(peak, row)))
}

fn verdict(load: &ComparedLoad, row: &Row, margin_pct: f64) -> String {
    let (mix, treatment) = (quoted(&load.mix), quoted(&load.treatment));
    let interval = format::interval(row.low_pct, row.high_pct);
    let size = format!("{} % {interval}", format::unsigned(row.effect_pct.abs()));
    let jobs = |rate: f64| format::rate(rate, &row.unit);
    let (before, after) = (jobs(row.baseline), jobs(row.treated));
    let rates = format!(
        "{before} jobs/min with {}, {after} with {}",
        format::plural(load.baseline.peak_users, "user"),
        format::plural(load.treated.peak_users, "user")
    );
    match row.verdict {
        Verdict::Slower => format!("{treatment} lowers the peak of {mix} by {size}: {rates}."),
        Verdict::Faster => format!("{treatment} raises the peak of {mix} by {size}: {rates}."),
        Verdict::Equivalent => format!(
            "The peak of {mix} is equally high under {treatment}, to within {}: {rates}.",
            format::margin(margin_pct)
        ),
        Verdict::Inconclusive => format!(
            "No verdict yet on how {treatment} changes the peak of {mix}: {} {interval} after {}; {rates}.",
            format::percent(row.effect_pct),
            format::plural(row.pairs, "pair")
        ),
    }
}

/// Where the peak is in each arm, with the points that cannot be told apart from it. It moved only if no
/// point may be the peak of both arms.
fn users(load: &ComparedLoad) -> String {
    let ComparedLoad { baseline, treated, .. } = load;
    let (from, to) = (place(baseline), place(treated));
    let may_be = |curve: &LoadCurve, users: usize| {
        users == curve.peak_users || curve.peak_as_good.contains(&users)
    };
    let may_be_both = baseline
        .points
        .iter()
        .any(|point| may_be(baseline, point.users) && may_be(treated, point.users));
    let is_one = baseline.peak_users == treated.peak_users;
    let places = match (is_one, may_be_both) {
        (true, _) if from == to => format!("The peak is at {from} in both arms."),
        (true, _) => format!("The peak is at {from} in the baseline, and at {to} treated."),
        (false, false) => format!("The peak moves from {from} to {to}."),
        (false, true) => format!(
            "The peak is at {from} in the baseline, and at {to} treated; whether it moves is not shown."
        ),
    };
    places + &beyond(load)
}

/// The users at which the peak of an arm was measured, and the points that may be the peak as well.
fn place(curve: &LoadCurve) -> String {
    let LoadCurve { points, peak_users, peak_as_good, .. } = curve;
    let users = format::plural(*peak_users, "user");
    match points.len() > 1 && peak_as_good.len() == points.len() {
        true => format!("{users} (not told apart from any other point)"),
        false => users + &or_with(*peak_users, peak_as_good),
    }
}

/// Says that the peaks may be higher with more users than were measured, with a space before it.
fn beyond(ComparedLoad { baseline, treated, .. }: &ComparedLoad) -> String {
    match (end(baseline), end(treated)) {
        (None, None) => String::new(),
        (Some(end), Some(other)) if end == other => {
            format!(" The ramp ended {end} in both arms, so the real peaks may be higher.")
        }
        (Some(end), Some(other)) => format!(
            " The ramp ended {end} in the baseline and {other} treated, so the real peaks may be higher."
        ),
        (Some(end), None) => {
            format!(" The ramp ended {end} in the baseline, so its real peak may be higher.")
        }
        (None, Some(end)) => {
            format!(" The ramp ended {end} treated, so its real peak may be higher.")
        }
    }
}

/// Where the ramp of an arm ended, if its peak may be there. That is often another point than the one at
/// which the peak was measured.
fn end(curve: &LoadCurve) -> Option<String> {
    let most = curve.points.last().filter(|_| curve.is_at_the_end)?.users;
    Some(match most == curve.peak_users {
        true => "at the peak".to_owned(),
        false => format!("at {} (not told apart from the peak)", format::plural(most, "user")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn each_verdict_is_a_sentence_with_its_interval_and_both_peaks() {
        let mut s = example::load();
        let said = |s: &Summary| sentences(s).join(" ");
        let text = said(&s);
        for part in [
            "`audit` lowers the peak of `load:shared` by 38.0 % [−40.0, −36.0]",
            "3,400 jobs/min with 4 users",
            "with 2 users",
            "The peak moves from 4 users to 2 users.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        s.results[0].verdict = Verdict::Inconclusive;
        assert!(
            said(&s).contains("No verdict yet on how `audit` changes the peak of `load:shared`: ")
        );
        s.results[0].verdict = Verdict::Equivalent;
        assert!(said(&s).contains("equally high under `audit`, to within"));
        s.loads[0].treated.peak_users = 4;
        s.loads[0].treated.peak_as_good = vec![4];
        assert!(said(&s).contains("The peak is at 4 users in both arms."));
        assert!(is_peak(&s, &s.results[0]) && !is_peak(&s, &s.results[1]));
    }

    #[test]
    fn a_peak_is_named_with_all_points_that_may_be_it() {
        let mut s = example::load();
        let said = |s: &Summary| sentences(s).join(" ");
        s.loads[0].baseline.peak_as_good = vec![4, 8];
        let wanted = "The peak moves from 4 users (not told apart from 8) to 2 users.";
        assert!(said(&s).contains(wanted), "{}", said(&s));
        // Both may peak at four users.
        s.loads[0].treated.peak_as_good = vec![2, 4];
        let wanted = "The peak is at 4 users (not told apart from 8) in the baseline, and at 2 users (not \
                      told apart from 4) treated; whether it moves is not shown.";
        assert!(said(&s).contains(wanted), "{}", said(&s));
        let treated = &mut s.loads[0].treated;
        (treated.peak_users, treated.peak_as_good) = (4, vec![1, 2, 4, 8]);
        let wanted = "The peak is at 4 users (not told apart from 8) in the baseline, and at 4 users (not \
                      told apart from any other point) treated.";
        assert!(said(&s).contains(wanted), "{}", said(&s));
    }

    #[test]
    fn only_the_point_where_the_ramp_ended_is_said_to_be_its_end() {
        let mut s = example::load();
        let said = |s: &Summary| sentences(s).join(" ");
        assert!(!said(&s).contains("ended"), "{}", said(&s));
        // The eight users are not told apart from the four at which the peak was measured.
        let baseline = &mut s.loads[0].baseline;
        (baseline.peak_as_good, baseline.is_at_the_end) = (vec![4, 8], true);
        let text = said(&s);
        let wanted = "The ramp ended at 8 users (not told apart from the peak) in the baseline, so its \
                      real peak may be higher.";
        assert!(text.ends_with(wanted) && !text.contains("the most"), "{text}");
        let treated = &mut s.loads[0].treated;
        (treated.peak_users, treated.peak_as_good, treated.is_at_the_end) = (8, vec![8], true);
        let wanted = "in the baseline and at the peak treated, so the real peaks may be higher.";
        assert!(said(&s).ends_with(wanted), "{}", said(&s));
        s.loads[0].baseline.peak_users = 8;
        assert!(said(&s).contains("The ramp ended at the peak in both arms"), "{}", said(&s));
    }
}
