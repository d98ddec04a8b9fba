//! The curves of a mix whose peak was sought, from the stored samples of both arms.

use std::num::NonZero;

use crate::load_answers::{load_point, samples_of};
use weigh_model::ids::{ArmId, WorkId};
use weigh_model::record::{ChosenPeak, Stored};
use weigh_model::result::alike::RampSample;
use weigh_model::result::curve::OnCurve;
use weigh_model::result::load::LoadPoint;
use weigh_model::result::load_compared::{ComparedLoad, LoadCurve};
use weigh_model::result::work_name::USERS;
use weigh_model::samples::{Point, RowSamples};

/// Returns the compared loads of each mix whose peak was chosen, under each treatment.
pub fn compared_loads(stored: &Stored) -> Vec<ComparedLoad> {
    stored.peaks.iter().filter_map(|peak| compared(stored, peak)).collect()
}

/// Where the row of a peak is on the curve of the effects: at the users of both arms, where those agree.
pub fn on_curve(stored: &Stored, work: WorkId, arm: ArmId) -> Option<OnCurve> {
    let of_row = |peak: &&ChosenPeak| (peak.work, peak.treated_arm) == (work, arm);
    let [baseline, treated] = stored.peaks.iter().find(of_row)?.at;
    let series = stored.header.works[work].name.name.clone();
    let x = stored.header.works[baseline].name.users()?.get() as f64;
    (baseline == treated).then(|| OnCurve { series, x, x_unit: USERS.into() })
}

fn compared(stored: &Stored, peak: &ChosenPeak) -> Option<ComparedLoad> {
    Some(ComparedLoad {
        mix: stored.header.works.get(peak.work.0)?.name.name.clone(),
        treatment: stored.header.arms.get(peak.treated_arm.0)?.clone(),
        baseline: curve(stored, peak, false)?,
        treated: curve(stored, peak, true)?,
    })
}

fn curve(stored: &Stored, peak: &ChosenPeak, is_treated: bool) -> Option<LoadCurve> {
    let users = |work: WorkId| stored.header.works.get(work.0)?.name.users().map(NonZero::get);
    let at = peak.at[usize::from(is_treated)];
    let name = |work: WorkId| &stored.header.works[work].name.name;
    let mut works: Vec<WorkId> = stored.header.work_ids().collect();
    works.retain(|work| name(*work) == name(peak.work) && *work != peak.work);
    works.sort_by_key(|work| users(*work));
    let row = |work: WorkId| stored.samples.get(&(work, peak.treated_arm));
    let of_points: Vec<(usize, &RowSamples)> = (works.into_iter())
        .filter_map(|work| {
            // At the peak, the samples count that it was not chosen by.
            let of_peak = row(peak.work).filter(|row| work == at && has(row, is_treated));
            Some((users(work)?, of_peak.or_else(|| row(work))?))
        })
        .collect();
    let points = of_points.iter().filter_map(|(users, row)| point(stored, *users, row, is_treated));
    let samples = of_points.iter().flat_map(|(users, row)| {
        let all = samples_of(*users, row, |_| None).into_iter().zip(&row.points);
        all.filter(|(_, point)| point.is_treated == is_treated).map(|(sample, _)| sample)
    });
    let samples: Vec<RampSample> = samples.collect();
    Some(LoadCurve::new(points.collect(), users(at)?, &samples))
}

fn has(row: &RowSamples, is_treated: bool) -> bool {
    row.points.iter().any(|point| point.is_treated == is_treated)
}

fn point(stored: &Stored, users: usize, row: &RowSamples, is_treated: bool) -> Option<LoadPoint> {
    let totals = if is_treated { &row.treated } else { &row.baseline };
    let counts = |point: &Point| point.is_treated == is_treated;
    load_point(users, row, totals.as_ref(), &counts, &stored.header.machine)
}
