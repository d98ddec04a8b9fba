//! Measuring a ramp: one launch per load point after the other, as `crate::ramp` chooses them.

use std::time::Duration;

use crate::host::Host;
use crate::measure::Session;
use crate::platform::{Platform, SampleSlot, Stop};
use crate::ramp::{Ramp, RampPlan, RampStep};
use crate::request::{ProgressSink, Taken};
use paired::looks;
use weigh_model::format;
use weigh_model::role::SampleRole;

const POINTS_WIDE: &str = "The budget ended before the interval of every load point was narrow enough: give \
                           --budget more time.";

impl Session<'_> {
    /// Goes up the load points of one mix, which are `works` in this order, until the goal is reached, the
    /// machine refuses, or no further point fits the budget.
    ///
    /// # Errors
    /// Where the experiment cannot go on, or the first point cannot be measured.
    pub(crate) fn climb(
        &self,
        host: &mut Host,
        works: &[usize],
        plan: RampPlan,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let (works, users) = self.load_points(works);
        let mut ramp = Ramp::new(users.clone(), plan);
        self.go_up(host, (&works, &users), &mut ramp, progress_sink)?;
        let best = ramp.best().map(|best| self.unit(works[best], 0));
        self.profile(host, best.as_slice(), progress_sink)
    }

    fn go_up(
        &self,
        host: &mut Host,
        (works, users): (&[usize], &[usize]),
        ramp: &mut Ramp,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let mut taken = vec![0; works.len()];
        let mut costs: Vec<Option<Duration>> = vec![None; works.len()];
        loop {
            let step = ramp.next();
            let (RampStep::Explore(point) | RampStep::Fresh(point)) = step else { return Ok(()) };
            let work = works[point];
            let launches = if costs[point].is_none() { ramp.launches_of_new_point() } else { 1 };
            let forecast = forecast_of(users, &costs, point) * launches;
            if let Some(best) = ramp.best().filter(|_| !ramp.has_peak()) {
                // Of what is left, fresh samples at the best point tell more than further points.
                let fresh = forecast_of(users, &costs, best) * looks::FIRST as u32;
                let is_late = host.elapsed() + forecast + fresh > self.request.common.budget;
                if costs[point].is_some() && (is_late || matches!(step, RampStep::Fresh(_))) {
                    let left = self.request.common.budget.saturating_sub(host.elapsed());
                    ramp.begin_rounds(left, |point| forecast_of(users, &costs, point));
                    continue;
                }
            }
            if host.elapsed() + forecast > self.request.common.budget {
                if ramp.is_settled() {
                    return match ramp.wants_all_narrow() {
                        false => Ok(()),
                        true => self.warn(progress_sink, POINTS_WIDE.into()),
                    };
                }
                let is_known = costs[point].is_some();
                let sentence = self.out_of_time(work, is_known, ramp.has_peak());
                self.warn(progress_sink, sentence)?;
                if is_known {
                    return Ok(());
                }
                ramp.pass_over(point);
                continue;
            }
            let (role, number) = match step {
                RampStep::Fresh(_) => (SampleRole::Remeasured, ramp.round()),
                _ => (SampleRole::Compared, taken[point]),
            };
            let slot = SampleSlot { role, ..SampleSlot::alone(self.unit(work, 0), number) };
            let began = host.elapsed();
            match self.take(|| host.sample(&slot))? {
                Ok(readings) => {
                    taken[point] += 1;
                    costs[point] = Some(host.elapsed().saturating_sub(began));
                    progress_sink.took(&Taken::LoadPoint {
                        name: self.works[work].name(),
                        jobs_per_min: readings.rate,
                        is_fresh: role == SampleRole::Remeasured,
                    });
                    ramp.add(step, readings.rate);
                }
                Err(reason) => {
                    ramp.ends_before(point);
                    self.point_failed(host, &slot, &reason, ramp, progress_sink)?;
                }
            }
        }
    }

    /// Records that a point failed. Results with fewer users stand; without any, there is no
    /// result. Samples of the point itself do not stand: it is stored as failed.
    fn point_failed(
        &self,
        host: &mut Host,
        slot: &SampleSlot,
        reason: &str,
        ramp: &Ramp,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let name = self.works[slot.unit.work].name();
        let stands = ramp.best().is_some();
        let has_samples = slot.role == SampleRole::Remeasured || slot.pair > 0;
        if has_samples || !stands {
            host.failed(slot, reason)?;
        }
        match stands {
            true => {
                let sentence = format!("The ramp stopped at {name}, which failed: {reason}");
                self.warn(progress_sink, sentence)
            }
            false => Err(Stop::Failed(format!("{name}: {reason}"))),
        }
    }

    /// Returns the load points among these works, and the users of each.
    pub(crate) fn load_points(&self, works: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let users = |work: &usize| Some((*work, self.works[*work].users()?.get()));
        works.iter().filter_map(users).unzip()
    }

    /// Why nothing is measured that does not fit the budget.
    fn out_of_time(&self, work: usize, is_known: bool, has_peak: bool) -> String {
        let what = match (is_known, has_peak) {
            (false, _) => {
                let budget = format::seconds(self.request.common.budget.as_secs_f64());
                let name = self.works[work].name();
                return format!(
                    "{name} was not measured: the budget ({budget}) is too small. Give --budget more time."
                );
            }
            (true, true) => "the interval at the peak was narrow enough",
            (true, false) => "a peak was chosen",
        };
        format!("The budget ended before {what}: give --budget more time.")
    }
}

/// As long as it took before, or in proportion to the users of the nearest point below.
fn forecast_of(users: &[usize], costs: &[Option<Duration>], point: usize) -> Duration {
    let below = (0..=point).rev().find_map(|below| Some((below, costs[below]?)));
    let users = |point: usize| users[point] as f64;
    below.map_or(Duration::ZERO, |(below, cost)| cost.mul_f64(users(point) / users(below)))
}
