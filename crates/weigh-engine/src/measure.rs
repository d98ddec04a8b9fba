//! Measuring an experiment that was begun: its sets, and within each the pairs or passes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::classic::{classic_ms, classic_passes};
use super::detail::{self, DetailProgress, run_detail};
use super::effects;
use super::engine::run_set;
use super::host::cell_sizes::SizesOfGrids;
use super::host::cells::NetBench;
use super::host::{Host, MeasureConfig};
use super::length::{LONG_START_MS, sets_in_late, start_ms};
use super::order::Coins;
use super::plan::ramp::RampPlanner;
use super::plan::run::RunPlanner;
use super::plan::{self, MixPoint, RunStart, RunWork, drive};
use super::platform::{Platform, SampleError, Stop, settled};
use super::prior_sessions::PriorSessions;
use super::provenance::Provenance;
use super::request::{Common, Comparison, Interleave, Passes, Plan, ProgressSink, Request, Run};
use super::row::{RowKey, RowState};
use super::summarise::summarise;
use super::too_little::{PaceWatch, time_of_many, too_little_time};
use super::work::{LoadRole, Work};
use paired::Verdict;
use paired::design::Design;
use paired::judge::{MIN_PAIRS, least_pairs};
use weigh_model::format;
use weigh_model::ids::{ArmId, ExperimentId, RowId, SetId, WorkId};
use weigh_model::record::{ChosenPeak, planned_rows};
use weigh_model::result::summary::Row;
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;
use weigh_model::workload::metric::Metric;
use weigh_net::site::NetSite;
use weigh_station::Station;
use weigh_station::arms::{Arms, Serving};
use weigh_station::remote_client::ClientLabel;
use weigh_store::Store;
use weigh_treatment::boot::are_boots;
use weigh_treatment::{ApplyContext, Named};
use weigh_verdict::family::{self, ClaimWeights};
use weigh_verdict::ramp::RampPlan;
use weigh_verdict::schedule::Schedule;

/// An experiment that was begun.
pub struct Session<'a> {
    pub request: &'a Request,
    pub store: &'a Store,
    pub id: &'a ExperimentId,
    pub works: &'a [Work],
    /// Per work: s₀ of its rows.
    pub start_scales: &'a [weigh_model::result::scheme::StartScales],
    /// n*: see [`Design::planned_pairs`].
    pub planned_pairs: Option<f64>,
    pub interrupted: &'a Arc<AtomicBool>,
    pub started: Instant,
    pub earlier: &'a PriorSessions,
    /// With the digests of all that was read from files.
    pub origin: &'a Provenance,
    /// Chosen peaks of mixes; empty until they were sought.
    pub peaks: Vec<ChosenPeak>,
    /// How the pairs of a row are taken, as far as earlier ones tell.
    pub schedules: BTreeMap<RowId, Schedule>,
    /// n* of rows, where it was known after the pilot alone.
    pub plans: BTreeMap<RowId, f64>,
    /// Time that a pair of a load point took in the search.
    pub pair_costs: BTreeMap<RowId, Duration>,
}

impl Session<'_> {
    /// All sets, one after the other, each with its own share of the budget.
    ///
    /// # Errors
    /// Why it ended early. What was applied and not taken back is the guard's to undo.
    pub fn measure(
        &mut self,
        treatments: Vec<Named>,
        station: &mut Station,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let sets = self.earlier.sets.clone();
        let (mut treatments, mut sizes) = (Some(treatments), SizesOfGrids::default());
        let mut units = self.earlier.units_of(self.works);
        for set in sets.clone().map(SetId) {
            progress_sink.begins("applying the treatments");
            let treatments = match treatments.take() {
                Some(first) => first,
                None => self.treatments_anew(station).map_err(Stop::Failed)?,
            };
            let metrics = &self.request.metrics();
            let sample_ms = self.lengths_ms(&treatments);
            let mut announce = |sentence: &str| {
                if set.0 == sets.start {
                    progress_sink.announce(sentence);
                }
            };
            let (context, guard) = station.context(self.interrupted);
            let net = self.lay_net(&context)?;
            let surroundings = net.as_ref().map(NetSite::test_setup).unwrap_or_default();
            let collector = net.as_ref().and_then(|net| net.collector.clone());
            let context =
                ApplyContext { seed: self.request.common.seed, surroundings, collector, ..context };
            let began = Instant::now();
            let serving = self.serving()?;
            let takes_time = treatments.iter().any(|named| named.treatment.takes_time().is_some());
            let arms = Arms::raise(context, treatments, &serving, guard, &mut announce)?;
            // What it takes to apply a treatment, as a build, is no time of measuring; that of servers is.
            if takes_time || serving.labels.is_empty() {
                self.started += began.elapsed();
            }
            let site = MeasureConfig {
                seed: self.request.common.seed,
                metrics,
                store: self.store,
                id: self.id,
                works: self.works,
                started: self.started,
                before: self.earlier.elapsed,
                sample_ms,
                timeout: self.request.common.timeout,
                end: self.end(),
                units: units.clone(),
                directory: &self.origin.directory,
                around: self.request.plan.comparison().map(|comparison| &comparison.around),
                has_profiler: self.request.plan.profiler().is_some(),
                on_wrong: self.request.plan.on_wrong(),
                net: net.map(|site| NetBench {
                    site,
                    sizes: std::mem::take(&mut sizes),
                    sweep: None,
                }),
            };
            let mut host = Host::set_up(site, arms)?;
            let result = self.measure_on(&mut host, set, progress_sink);
            let is_over = host.time_left().is_zero();
            let told = host.tell_wrong_answers(progress_sink);
            let result = result.and(told).and(host.clean_up(progress_sink));
            // Another set moves as much.
            sizes = host.take_sizes();
            units.clone_from(&host.units);
            progress_sink.begins("restoring the system");
            let restored = host.take_down(guard, progress_sink);
            result?;
            restored.map_err(Stop::Failed)?;
            if is_over {
                return self.warn_of_skipped(set, progress_sink);
            }
        }
        Ok(())
    }

    /// A set on a host that is set up, until its plan is done or its time is over.
    fn measure_on(
        &mut self,
        host: &mut Host,
        set: SetId,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        // A later set finds what the first has left in the kernel; the reader wants what was.
        let is_first = set == SetId(0) && self.earlier.sessions == 0;
        let stored = if is_first { host.store_facts() } else { Ok(()) };
        self.tell_about_arms(host, is_first, progress_sink)?;
        let stored = stored.and_then(|()| match set.0 == self.earlier.sets.start {
            true => self.tell_differences(host, progress_sink),
            false => Ok(()),
        });
        progress_sink.begins("setting up");
        let set_up = stored.and_then(|()| host.run_setup());
        let unfinished = match set_up {
            Err(Stop::OutOfTime) => "the line of --setup did not finish",
            _ => "no sample finished",
        };
        let result = set_up
            .and_then(|()| host.check_shell())
            .and_then(|()| self.measure_set(host, set, progress_sink));
        match result {
            Err(Stop::OutOfTime) => self.end_in_time(host, unfinished, progress_sink)?,
            other => other?,
        }
        host.measure_shell()
    }

    /// For a further set, of what the first was made of.
    fn treatments_anew(&self, station: &Station) -> Result<Vec<Named>, String> {
        let treatments = self.request.treatments()?;
        self.origin.check_contents(&treatments, &station.place.executable)?;
        Ok(treatments)
    }

    fn serving(&self) -> Result<Serving, Stop> {
        let client = self.request.plan.client().map(ClientLabel::read).transpose();
        Ok(Serving {
            labels: self.works.iter().flat_map(Work::needs).map(str::to_owned).collect(),
            treated: self.request.plan.treated(),
            client: client.map_err(|problem| Stop::Failed(format!("--client: {problem}")))?,
        })
    }

    fn tell_about_arms(
        &self,
        host: &Host,
        is_first: bool,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        if is_first {
            host.tell_warnings(progress_sink)?;
        }
        let is_asked_for = self.request.plan.interleave() == Interleave::WherePossible;
        let warning = host.about_interleaving().filter(|_| is_first && is_asked_for);
        warning.map_or(Ok(()), |warning| self.warn(progress_sink, &warning))
    }

    /// Tells a warning, and keeps it for the report.
    pub(super) fn warn(
        &self,
        progress_sink: &mut dyn ProgressSink,
        warning: &Warning,
    ) -> Result<(), Stop> {
        progress_sink.announce(&warning.to_string());
        Ok(self.store.add_warning(self.id, warning)?)
    }

    /// A treatment that is not quite what it was in an earlier session is told, and kept as a warning.
    fn tell_differences(
        &self,
        host: &Host,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        for difference in host.differences(&self.earlier.facts) {
            let session = self.earlier.sessions + 1;
            self.warn(progress_sink, &difference.in_session(session))?;
        }
        Ok(())
    }

    fn measure_set(
        &mut self,
        host: &mut Host,
        set: SetId,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        if are_boots(&self.request.common.arms) {
            return self.in_this_boot(host, progress_sink);
        }
        let has_failed = |work, arm| self.has_failed(work, arm);
        let servers: BTreeSet<&str> =
            self.works.iter().filter_map(|work| Some(work.server()?.name)).collect();
        if !servers.is_empty() && set.0 == self.earlier.sets.start {
            let is_compared = matches!(self.request.plan, Plan::Compare(_));
            let in_arms = if is_compared { ", in every arm" } else { "" };
            progress_sink.announce(&format!(
                "Starting {} ({}) and trying each workload once{in_arms}.",
                format::plural(servers.len(), "server"),
                servers.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        let broken = host.try_all(has_failed, progress_sink)?;
        // What a server is, is known when it was started.
        if set == SetId(0) && self.earlier.sessions == 0 {
            host.store_facts()?;
        }
        if set == SetId(0) && self.earlier.sessions == 0 {
            host.ask_interpreters(&broken, progress_sink)?;
        }
        for shown in host.shown.drain(..) {
            progress_sink.shows(&shown);
        }
        let works: Vec<WorkId> = (0..self.works.len())
            .map(WorkId)
            .filter(|work| !broken.contains(&(*work, ArmId::BASELINE)))
            .collect();
        self.seek_peaks(host, progress_sink)?;
        let has_failed = |work, arm| self.has_failed(work, arm);
        // What one treatment breaks, another may leave alone.
        let named = (1..self.request.common.arms.len())
            .map(ArmId)
            .flat_map(|arm| works.iter().map(move |&work| (work, arm)))
            .filter(|(work, _)| self.works[*work].role() == LoadRole::Named)
            .filter(|pair| !broken.contains(pair) && !has_failed(pair.0, pair.1));
        let of_peaks = self.peaks.iter().flat_map(|peak| {
            let works = std::iter::once(peak.work).chain(peak.points.iter().copied());
            works.map(|work| (work, peak.treated_arm))
        });
        let of_peaks = of_peaks.filter(|(work, arm)| !has_failed(*work, *arm));
        let units: Vec<RowKey> =
            of_peaks.chain(named).map(|(work, arm)| self.unit(work, arm)).collect();
        let runs = self.request.plan.runs_of_one_command();
        let compares = matches!(self.request.plan, Plan::Compare(_)) && runs.is_none();
        if works.is_empty() || (compares && units.is_empty()) {
            return Err(self.without_result(broken.contains(&(WorkId(0), ArmId::BASELINE))));
        }
        if let Some(runs) = runs {
            return self.run_one_command(host, runs, progress_sink);
        }
        match &self.request.plan {
            Plan::Compare(Comparison { endurance: Some(passes), sample_ms, .. }) => {
                let length_ms = sample_ms.unwrap_or_default();
                self.endure(host, &units, (*passes, length_ms), progress_sink)
            }
            Plan::Compare(comparison) => self.compare(host, comparison, units, set, progress_sink),
            Plan::Run(run) => self.run(host, &works, run, progress_sink),
            Plan::Ramp(load) => self.climb(host, &works, load.ramp, progress_sink),
            Plan::Net(sweeps) => self.sweep(host, &works, sweeps, progress_sink),
        }
    }

    fn compare(
        &mut self,
        host: &mut Host,
        comparison: &Comparison,
        units: Vec<RowKey>,
        set: SetId,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let names: Vec<(String, String, String)> = units
            .iter()
            .map(|unit| {
                let work = &self.works[unit.work];
                (
                    work.name().to_string(),
                    work.unit(),
                    self.request.common.arms[unit.treated_arm].clone(),
                )
            })
            .collect();
        // What an earlier set did not use is left to the later ones.
        let PriorSessions { sets, sessions, elapsed, .. } = self.earlier;
        let (done, planned) = ((set.0 - sets.start) as u32 + 1, sets.len() as u32);
        let deadline = *elapsed + self.request.common.budget * done / planned;
        self.tell_pairs_of_sweeps(host, &units, set, progress_sink)?;
        let budget = self.request.common.budget;
        let is_first = set == SetId(0) && *sessions == 0 && !comparison.is_announced;
        let is_pace_due = is_first && self.tell_length(comparison, units.len(), progress_sink);
        let mut observer = progress_sink.set_begins(set, *elapsed + budget, &names);
        let design = &self.design();
        let seed = self.request.common.seed;
        let coins = |set| Coins::new(seed, set, *sessions);
        let row = |unit: &RowKey| {
            let row = self.row(*unit, design).with_limit(comparison.fail_above);
            row.on(self.schedule(unit, set, host), design)
        };
        let mut rows: Vec<RowState> = units.iter().map(row).collect();
        effects::attach(&mut rows, &self.request.common.arms, design);
        let compared: Vec<RowKey> = units
            .into_iter()
            .filter(|unit| self.works[unit.work].role() != LoadRole::Candidate)
            .collect();
        let has_detail = set == SetId(0)
            && comparison.detail
            && self.request.plan.command().is_none()
            && host.counts_time();
        let share = budget / planned;
        let (works, earlier) = (self.works, self.earlier);
        let had = |unit: &RowKey| match works[unit.work].has_detail() {
            true => earlier.detail(unit),
            false => DetailProgress::ALL,
        };
        let of_samples = |rows: &[RowState]| match has_detail {
            true => deadline.saturating_sub(detail::reserve(rows, had, share)),
            false => deadline,
        };
        let shown = &mut *observer;
        let mut watch = PaceWatch {
            shown,
            budget,
            least_pairs: self.least_pairs(),
            sets: planned,
            end: deadline,
            is_due: is_pace_due,
        };
        let (rows, result) = run_set(rows, design, coins(set), set, &of_samples, host, &mut watch);
        self.schedules.extend(rows.iter().map(|row| (row.unit.id(), row.schedule.clone())));
        let plan = |row: &RowState| Some((row.unit.id(), row.planned()?));
        self.plans.extend(rows.iter().filter_map(plan));
        result.and_then(|()| self.check_results(&rows))?;
        if has_detail {
            let looked =
                run_detail(&rows, had, coins(detail::COINS), deadline, host, &mut *observer);
            match looked {
                Ok(()) | Err(Stop::OutOfTime) => {}
                Err(stop) => return Err(stop),
            }
        }
        drop(observer);
        self.end_set(host, set, (&rows, &compared), progress_sink)
    }

    /// Says how long so many rows take. Returns true if their first pairs may show that it is longer.
    fn tell_length(
        &self,
        comparison: &Comparison,
        rows: usize,
        progress_sink: &mut dyn ProgressSink,
    ) -> bool {
        let budget = self.request.common.budget;
        let rows = (rows, self.least_pairs());
        let too_little = too_little_time(budget, rows, self.planned_pairs);
        let is_told = too_little.is_some();
        let said = too_little.or_else(|| time_of_many(budget, rows, self.planned_pairs));
        said.iter().for_each(|sentence| progress_sink.announce(sentence));
        !is_told && !budget.is_zero() && comparison.design.fixed_pairs.is_none()
    }

    /// Names rows whose pairs are too long for the budget, and profiles all after the last set.
    fn end_set(
        &self,
        host: &mut Host,
        set: SetId,
        (rows, compared): (&[RowState], &[RowKey]),
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let is_last = set.0 + 1 == self.earlier.sets.end;
        let is_named = is_last || host.time_left().is_zero();
        if is_named && rows.iter().any(|row| row.is_too_long) {
            self.end_in_time(host, "no sample finished", progress_sink)?;
        }
        if is_last { self.profile(host, compared, progress_sink) } else { Ok(()) }
    }

    /// The first row whose verdict is not the one that its stored samples give, with both. Several sets are
    /// judged together only when stored.
    fn judged_when_stored(&self, rows: &[RowState]) -> Option<(WorkName, Verdict, Verdict)> {
        let stored = self.store.load(self.id).ok().filter(|stored| stored.header.sets == 1)?;
        let summary = summarise(&stored);
        rows.iter().filter(|row| row.failure.is_none()).find_map(|row| {
            let name = &stored.header.works[row.unit.work].name;
            let arm = &stored.header.arms[row.unit.treated_arm];
            let is_it = |one: &&Row| one.workload == *name && one.treatment == *arm;
            let verdicts = (row.judgement.verdict, summary.results.iter().find(is_it)?.verdict);
            (verdicts.0 != verdicts.1).then(|| (name.clone(), verdicts.0, verdicts.1))
        })
    }

    /// Workloads may fail in their first pair or before, when they are tried: one outcome has one state.
    fn check_results(&self, rows: &[RowState]) -> Result<(), Stop> {
        if rows.iter().all(|row| row.failure.is_some()) {
            return Err(self.without_result(rows.iter().any(|row| row.failed_alone)));
        }
        debug_assert_eq!(self.judged_when_stored(rows), None, "a verdict is the same when stored");
        Ok(())
    }

    /// Ends an experiment in which nothing has a result. `lost_first` is true if the first command failed in
    /// this session; it may have failed in an earlier one.
    fn without_result(&self, lost_first: bool) -> Stop {
        let commands = self.request.plan.contest().map(|contest| contest.lines.len());
        let has_first = !lost_first && !self.earlier.failed_baselines.contains(&WorkId(0));
        Stop::Failed(nothing_to_compare(commands, has_first).to_owned())
    }

    /// Runs a command that is compared with no other.
    fn run_one_command(
        &self,
        host: &mut Host,
        runs: usize,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let Common { arms, budget, .. } = &self.request.common;
        let unit = self.unit(WorkId(0), ArmId::BASELINE);
        // The length is not known, and the rest is estimated from equal ones.
        let command = RunWork { unit, name: arms[0].clone(), length_ms: 1 };
        let start = RunStart { works: vec![command], budget: Some(*budget), now: host.elapsed() };
        let mut plan = RunPlanner::new(start, vec![runs]);
        drive(&mut plan, host, progress_sink)?;
        if plan.has_failed() { Err(self.without_result(true)) } else { Ok(()) }
    }

    /// How the pairs of a row are taken: as its first ones have chosen, in an earlier set or session.
    fn schedule(&self, unit: &RowKey, set: SetId, host: &Host) -> Schedule {
        let known = self.schedules.get(&unit.id()).cloned();
        let schedule = known.unwrap_or_else(|| self.request.schedule(host.can_interleave(unit)));
        if set == SetId(0) { schedule } else { schedule.of_later_set() }
    }

    /// With the pairs of an earlier session, where there are such.
    fn row(&self, unit: RowKey, design: &Design) -> RowState {
        let row = match self.earlier.rows.get(&unit.id()) {
            Some(past) => RowState::resumed(unit, design, past),
            None => {
                let planned = self.plans.get(&unit.id()).copied();
                RowState::new(unit, design)
                    .judging(self.request.metrics(), design)
                    .planning(planned)
            }
        };
        let row = row.with_old_pairs(self.request.takes_old_pairs_of(&self.works[unit.work]));
        match self.works[unit.work].role() {
            LoadRole::Peak => row.first(),
            LoadRole::Candidate => {
                let cost = self.pair_costs.get(&unit.id()).copied();
                row.expecting(Some(cost.unwrap_or_default()))
            }
            LoadRole::Named => row,
        }
    }

    /// Returns true if a work has failed in an arm, since an earlier session. For the baseline,
    /// returns true if the work has failed in every other arm.
    fn has_failed(&self, work: WorkId, arm: ArmId) -> bool {
        let failed = &self.earlier.failed;
        let treated = 1..self.request.common.arms.len();
        failed.contains(&(work, arm))
            || arm.is_baseline()
                && !treated.is_empty()
                && treated.map(ArmId).all(|treated| failed.contains(&(work, treated)))
    }

    /// Per work.
    fn lengths_ms(&self, treatments: &[Named]) -> Vec<Option<u64>> {
        let fixed_ms = self.fixed_ms(treatments);
        let chosen = |work: WorkId| self.earlier.sample_ms.get(work.0).copied().flatten();
        (0..self.works.len()).map(|work| fixed_ms.or(chosen(WorkId(work)))).collect()
    }

    /// Returns the request's design, with all facts known before the first pair. The stored experiment
    /// has the same ([`design`](super::stored_design::design)).
    fn design(&self) -> Design {
        design(self.request, self.works, &self.peaks, self.planned_pairs)
    }

    /// Pairs that a verdict on the rate of a row takes at least, however large its effect.
    pub(super) fn least_pairs(&self) -> usize {
        least_pairs_of(self.request, &self.design())
    }

    /// The length of a workload's samples, unless the first pairs choose it. With a fixed number of pairs
    /// they may not: how far they scatter depends on their signs, and so would the size of the later ones;
    /// but Wilcoxon's test takes every sign for a fair coin, whatever the sizes.
    fn fixed_ms(&self, treatments: &[Named]) -> Option<u64> {
        let start_ms = start_ms(sets_in_late(treatments.iter()));
        let by_design = self.request.plan.design().fixed_pairs.map(|_| start_ms);
        // Of few operations there is no high percentile, and what times each of them has no slices.
        let by_design =
            if self.request.wants_latencies() { Some(LONG_START_MS) } else { by_design };
        self.request.plan.sample_ms().or(by_design)
    }

    pub(super) fn unit(&self, work: WorkId, treated_arm: ArmId) -> RowKey {
        RowKey { work, treated_arm, start_scale: self.start_scales[work] }
    }

    fn run(
        &self,
        host: &mut Host,
        works: &[WorkId],
        run: &Run,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let length_ms = run.sample_ms;
        match &run.passes {
            Passes::Planned { plan, value } => {
                let start = self.run_start(host, works, |_| length_ms);
                let mut planner = plan::begin(plan, value, start).map_err(Stop::Failed)?;
                drive(&mut *planner, host, progress_sink)
            }
            Passes::Classic => {
                works.iter().for_each(|&work| host.set_length(work, classic_ms(&self.works[work])));
                let passes = works.iter().map(|&work| classic_passes(&self.works[work])).collect();
                let start = self.run_start(host, works, classic_ms);
                drive(&mut RunPlanner::new(start, passes), host, progress_sink)
            }
            Passes::Endure(endurance) => {
                let units: Vec<RowKey> =
                    works.iter().map(|&work| self.unit(work, ArmId::BASELINE)).collect();
                self.endure(host, &units, (*endurance, length_ms), progress_sink)
            }
            &Passes::Capacity { p99_ns } => {
                self.seek_capacity(host, works, (p99_ns, length_ms), progress_sink)
            }
        }
    }

    /// Takes a sample, unless the experiment was interrupted; the inner error is why there is none.
    pub(super) fn take<T>(
        &self,
        sample: impl FnOnce() -> Result<T, SampleError>,
    ) -> Result<Result<T, String>, Stop> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Stop::Interrupted),
            false => settled(sample()),
        }
    }

    /// Goes up the load points of one mix, which are `works` in this order.
    fn climb(
        &self,
        host: &mut Host,
        works: &[WorkId],
        plan: RampPlan,
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let points = self.load_points(works, ArmId::BASELINE);
        let mut ramp = RampPlanner::new(points, plan, self.request.common.budget);
        let driven = drive(&mut ramp, host, progress_sink);
        if driven == Err(Stop::OutOfTime) {
            ramp.cut_off().iter().try_for_each(|warning| self.warn(progress_sink, warning))?;
        }
        driven?;
        let best = ramp.best().map(|best| best.unit);
        self.profile(host, best.as_slice(), progress_sink)
    }

    pub(super) fn load_points(&self, works: &[WorkId], treated_arm: ArmId) -> Vec<MixPoint> {
        let point = |&at: &WorkId| {
            let (unit, work) = (self.unit(at, treated_arm), &self.works[at]);
            Some(MixPoint { unit, name: work.name(), users: work.users()?.get() })
        };
        works.iter().filter_map(point).collect()
    }

    fn run_start(
        &self,
        host: &Host,
        works: &[WorkId],
        sample_ms: impl Fn(&Work) -> u64,
    ) -> RunStart {
        let of_run = |&at: &WorkId| {
            let (unit, work) = (self.unit(at, ArmId::BASELINE), &self.works[at]);
            let (name, length_ms) = (work.name().to_string(), work.at_least(sample_ms(work)));
            RunWork { unit, name, length_ms }
        };
        let works = works.iter().map(of_run).collect();
        let budget = Some(self.request.common.budget).filter(|budget| !budget.is_zero());
        RunStart { works, budget, now: host.elapsed() }
    }
}

/// Why an experiment fails in which nothing has a result. The reasons are those of the failures.
fn nothing_to_compare(commands: Option<usize>, has_first: bool) -> &'static str {
    match (commands, has_first) {
        (None, _) => "every workload failed",
        (Some(1), _) => "the command gave no result",
        (Some(_), false) => {
            "the first command gave no result, so there is nothing to compare with it"
        }
        (Some(_), true) => "no other command gave a result to compare with the first",
    }
}

fn design(
    request: &Request,
    works: &[Work],
    peaks: &[ChosenPeak],
    planned_pairs: Option<f64>,
) -> Design {
    let (design, arms) = (request.plan.design(), &request.common.arms);
    let rows = family::weight(
        planned_rows(works.iter().map(|work| work.role() != LoadRole::Named), arms.len(), peaks),
        &request.metrics(),
        design.fixed_pairs.is_some(),
        effects::claims(arms, works.len()),
    );
    Design { planned_pairs, rows, ..design }
}

fn least_pairs_of(request: &Request, design: &Design) -> usize {
    let metrics = request.metrics();
    let further = metrics.iter().filter(|metric| **metric != Metric::Rate);
    let further = further.map(|metric| (metric, true));
    least_pairs(design, ClaimWeights::of(further, design.fixed_pairs.is_some()).rate)
}

/// Pairs that a verdict takes at least before the first one, if not even they are planned.
pub(super) fn fewest_pairs(request: &Request, works: &[Work]) -> usize {
    least_pairs_of(request, &design(request, works, &[], Some(MIN_PAIRS as f64)))
}
