//! Experiments for the tests of reports: `weigh compare audit -w unixbench`, and odd ones.

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::ids::{ArmId, PairId, SetId, WorkId};
use crate::record::{ExperimentKind, Header, Measured, Stored, StoredWork};
use crate::result::alike;
use crate::result::cost::AddedCost;
use crate::result::dose::{DoseCost, DoseCurve, DosePoint, DoseUnit};
use crate::result::factorial::FactorialEffect;
use crate::result::imported::{Better, Figure, File, Imported};
use crate::result::load::LoadPoint;
use crate::result::load_compared::{ComparedLoad, LoadCurve};
use crate::result::metrics::{Contrast, Latency, Metrics, Resources, Used};
use crate::result::quantity::{Amounts, of_before};
use crate::result::reading::Reading;
use crate::result::run;
use crate::result::run::{RunReport, RunRow};
use crate::result::scheme::Scheme;
use crate::result::series::{RunSample, RunSeries};
use crate::result::summary::{
    AppliedTreatment, Failure, Future, Pair, Row, RowEvidence, SCHEMA, SetEffect, State, Summary,
};
use crate::result::versus::{CommandTimes, Ranked, Versus, WORK};
use crate::result::warning::Warning;
use crate::result::work_name::WorkName;
use crate::role::SampleRole;
use crate::samples::Point;
use crate::workload::metric::{Direction, Metric};
use crate::workload::sample::Sample;
use paired::Verdict;
use paired::judge::MIN_PAIRS;

/// Every system call audited, on a machine like those that people have.
pub fn audit() -> Summary {
    Summary {
        schema: SCHEMA.to_owned(),
        id: "k3f9".to_owned(),
        started: "2026-11-21T20:15:04Z".to_owned(),
        state: State::Complete,
        command: "weigh compare audit -w unixbench --seed 20261121".to_owned(),
        seed: 20_261_121,
        sessions: 1,
        samples: 640,
        elapsed_s: 143.2,
        budget_s: 300.0,
        alpha: 0.05,
        multiplicity: "holm".into(),
        margin_pct: 1.0,
        machine: machine(),
        baseline: "none".to_owned(),
        baseline_state: Some("clean".to_owned()),
        treatments: vec![AppliedTreatment {
            label: "audit".to_owned(),
            differences: Vec::new(),
            facts: vec![
                "Every system call is audited.".to_owned(),
                "Records are read by weigh itself; no auditd runs.".to_owned(),
            ],
            quantities: of_before(),
        }],
        results: rows(),
        failures: vec![Failure {
            workload: "fsdisk".into(),
            arm: "audit".to_owned(),
            reason: "It took longer than 30 s and was stopped.".to_owned(),
        }],
        warnings: [
            "Other programs used 7 % of the CPU while this was measured.",
            "This is a virtual machine: 0.4 % of the CPU time was stolen.",
        ]
        .map(|sentence| Warning::Sentence(sentence.into()))
        .to_vec(),
        ..Summary::default()
    }
}

/// Two factors that act independently, on one workload.
pub fn factorial() -> Summary {
    let mut s = audit();
    s.failures.clear();
    s.treatments.clear();
    s.results.truncate(3);
    let arms = [("seccomp", -20.0), ("nice:5", -25.0), ("seccomp+nice:5", -40.0)];
    for (row, (treatment, pct)) in s.results.iter_mut().zip(arms) {
        (row.workload, row.treatment) = ("getppid".into(), treatment.to_owned());
        (row.effect_pct, row.low_pct, row.high_pct) = (pct, Some(pct - 1.0), Some(pct + 1.0));
        row.verdict = Verdict::Slower;
    }
    let effect = |factors: &[&str], effect_pct: f64, half_width: f64, verdict| FactorialEffect {
        workload: "getppid".into(),
        factors: factors.iter().map(|factor| (*factor).to_owned()).collect(),
        effect_pct,
        low_pct: Some(effect_pct - half_width),
        high_pct: Some(effect_pct + half_width),
        verdict,
        withheld: None,
        rounds: 20,
    };
    s.effects = vec![
        effect(&["seccomp"], -20.0, 1.0, Verdict::Slower),
        effect(&["nice:5"], -25.0, 1.0, Verdict::Slower),
        effect(&["seccomp", "nice:5"], 0.0, 0.5, Verdict::Equivalent),
    ];
    s
}

/// Three arms that differ in one number, and the line through them.
pub fn doses() -> Summary {
    let mut s = audit();
    s.failures.clear();
    s.results.truncate(3);
    let cost = |added: f64, half_width: f64| DoseCost {
        added,
        low: added - half_width,
        high: added + half_width,
    };
    let mut points = Vec::new();
    for (row, dose) in s.results.iter_mut().zip([1.0, 4.0, 16.0]) {
        (row.workload, row.treatment) = ("getppid".into(), format!("landlock:layers={dose}"));
        points.push(DosePoint { dose, pairs: 20, cost: cost(50.0 + 3.1 * dose, 5.0) });
    }
    s.doses = vec![DoseCurve {
        workload: "getppid".into(),
        treatment: "landlock:layers=N".into(),
        parameter: "layers".into(),
        unit: DoseUnit::Nanoseconds,
        baseline: 200.0,
        per_unit: cost(3.1, 0.2),
        at_zero: cost(50.0, 5.0),
        points,
        bend: None,
    }];
    s
}

/// A mix whose peak is lower and at fewer users under the treatment.
pub fn load() -> Summary {
    let mut s = audit();
    s.results.truncate(2);
    s.failures.clear();
    let row = &mut s.results[0];
    row.workload = "load:shared".into();
    row.unit = "jobs/min".to_owned();
    (row.effect_pct, row.low_pct, row.high_pct) = (-38.0, Some(-40.0), Some(-36.0));
    (row.baseline, row.treated) = (3400.0, 2108.0);
    let point = |(users, jobs_per_min)| LoadPoint {
        users,
        jobs_per_min,
        job_p99_ns: Some(12e6 * users as f64),
        spread_pct: Some(3.0),
        samples: 3,
        ..LoadPoint::default()
    };
    let curve = |rates: [f64; 4], peak| {
        let points: Vec<(usize, f64)> = [1, 2, 4, 8].into_iter().zip(rates).collect();
        let samples = alike::rounds(&points, 8);
        LoadCurve::new(points.into_iter().map(point).collect(), peak, &samples)
    };
    s.loads = vec![ComparedLoad {
        mix: "load:shared".to_owned(),
        treatment: "audit".to_owned(),
        baseline: curve([1800.0, 3200.0, 3400.0, 3000.0], 4),
        treated: curve([1200.0, 2108.0, 1900.0, 1500.0], 2),
    }];
    s
}

/// Three commands, the second a little faster than the first.
pub fn versus() -> Summary {
    let mut s = audit();
    s.baseline = "old --x".to_owned();
    s.command = "weigh versus 'old --x' 'new --x' 'new --y' --seed 20261121".to_owned();
    s.baseline_state = None;
    s.failures.clear();
    s.warnings.clear();
    s.results.truncate(2);
    let found = [
        ("new --x", 3.1, [2.8, 3.5], Verdict::Faster),
        ("new --y", -50.0, [-50.2, -49.8], Verdict::Slower),
    ];
    for (row, (label, effect_pct, [low, high], verdict)) in s.results.iter_mut().zip(found) {
        row.workload = WORK.into();
        row.treatment = label.to_owned();
        (row.unit, row.baseline) = ("runs/s".to_owned(), 10.0);
        (row.effect_pct, row.low_pct, row.high_pct) = (effect_pct, Some(low), Some(high));
        row.treated = 10.0 * (1.0 + effect_pct / 100.0);
        row.cost = AddedCost::of(&row.workload, "runs/s", 10.0, effect_pct);
        row.verdict = verdict;
        row.evidence = RowEvidence::default();
        row.notes.clear();
    }
    let treatment = |label: &str| AppliedTreatment {
        label: label.to_owned(),
        facts: vec![format!("The command is `{label}`, executed by `/bin/sh -c`.")],
        differences: Vec::new(),
        quantities: Vec::new(),
    };
    s.treatments = ["new --x", "new --y"].map(treatment).to_vec();
    s.versus = Some(Versus {
        shell: Some("/bin/sh -c".to_owned()),
        shell_start_ms: Some(0.62),
        runs: None,
        commands: [("old --x", 1.0), ("new --x", 0.97), ("new --y", 2.0)].map(timed).to_vec(),
        ranking: vec![
            ranked("new --x", [0.970, 0.966, 0.973], Some(Verdict::Faster)),
            ranked("old --x", [1.0; 3], None),
            ranked("new --y", [2.0, 1.992, 2.008], Some(Verdict::Slower)),
        ],
    });
    s
}

/// Eight runs of about a tenth of a second, times `factor`.
fn timed((command, factor): (&str, f64)) -> CommandTimes {
    let times_s = [100.0, 99.0, 101.0, 100.5, 98.5, 103.0, 99.5, 100.0];
    CommandTimes {
        command: command.to_owned(),
        parameters: BTreeMap::from([("opt".to_owned(), command[4..].to_owned())]),
        times_s: times_s.map(|ms| factor * ms / 1e3).to_vec(),
        user_s: Some(0.08 * factor),
        system_s: Some(0.0125 * factor),
        exit_codes: vec![0; 8],
        peak_memory_bytes: vec![4 << 20; 8],
    }
}

/// One command, without another to compare it with.
pub fn one_command() -> Summary {
    let mut s = versus();
    s.command = "weigh versus 'old --x' --runs 8 --seed 20261121".to_owned();
    s.results.clear();
    s.treatments.clear();
    s.baseline_facts = vec!["The command is `old --x`, executed by `/bin/sh -c`.".to_owned()];
    if let Some(versus) = &mut s.versus {
        versus.commands.truncate(1);
        versus.ranking.clear();
    }
    s
}

fn ranked(command: &str, [times, low, high]: [f64; 3], verdict: Option<Verdict>) -> Ranked {
    Ranked {
        command: command.to_owned(),
        run_ms: Some(100.0 * times),
        times,
        times_low: verdict.map(|_| low),
        times_high: verdict.map(|_| high),
        verdict,
    }
}

pub fn machine() -> Facts {
    Facts {
        hostname: "bench1".to_owned(),
        kernel: "6.1.0-18-amd64".to_owned(),
        architecture: "x86_64".to_owned(),
        cpu_model: "AMD EPYC 7B13".to_owned(),
        cpus_online: 2,
        memory_bytes: 8_323_788_800,
        hypervisor: Some("kvm".to_owned()),
        distribution: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        governor: Some("performance".to_owned()),
        smt: Some("off".to_owned()),
        lsm: vec!["lockdown".to_owned(), "capability".to_owned(), "apparmor".to_owned()],
        uptime_s: Some(93_600.0),
        ..Facts::default()
    }
}

/// An experiment measured in two sets; the sets of the second row disagree.
pub fn two_sets() -> Summary {
    let set = |effect_pct: f64, half: f64| SetEffect {
        effect_pct,
        low_pct: Some(effect_pct - half),
        high_pct: Some(effect_pct + half),
        pairs: 20,
    };
    let mut s = audit();
    let [first, second] = [0, 1].map(|i| s.results.remove(i * 3));
    s.results = vec![first, second];
    s.results[0].sets = vec![set(-85.2194, 0.5), set(-84.7967, 0.5)];
    s.results[1].sets = vec![set(4.0, 1.0), set(-7.6923, 1.0)];
    s
}

/// A control experiment: identical arms, and no workload differs.
pub fn control() -> Summary {
    let mut s = audit();
    s.treatments[0].label = "none".to_owned();
    s.failures.clear();
    for row in &mut s.results {
        row.treatment = "none".to_owned();
        row.verdict = Verdict::Equivalent;
        row.pairs_needed = None;
        (row.pairs_needed_low, row.pairs_needed_high) = (None, None);
        row.futures = Vec::new();
        row.seconds_needed = None;
        row.evidence = RowEvidence::default();
        row.notes.clear();
    }
    s
}

/// A table of a paper: one number for each side, without runs.
pub fn imported() -> Summary {
    let mut s = audit();
    s.command = "weigh import table.csv".to_owned();
    s.machine = Facts::default();
    (s.baseline, s.baseline_state) = ("off".to_owned(), None);
    s.treatments[0].label = "on".to_owned();
    s.treatments[0].facts.clear();
    s.failures.clear();
    s.warnings.clear();
    s.results.truncate(1);
    let row = &mut s.results[0];
    (row.treatment, row.evidence) = ("on".to_owned(), RowEvidence::default());
    (row.baseline, row.treated, row.effect_pct) = (100.0, 90.0, -10.0);
    (row.low_pct, row.high_pct, row.verdict) = (None, None, Verdict::Inconclusive);
    (row.pairs, row.metrics, row.cost) = (0, Metrics::default(), AddedCost::default());
    row.series.clear();
    let figure = |value| Figure {
        test: row.workload.name.clone(),
        value,
        unit: row.unit.clone(),
        better: Better::More,
        copies: None,
        users: None,
        runs: Vec::new(),
        baseline: None,
        interval: None,
    };
    let file = |arm: &str, value| File {
        file: "table.csv".to_owned(),
        format: "table".to_owned(),
        arm: arm.to_owned(),
        set: 1,
        figures: vec![figure(value)],
        loads: Vec::new(),
    };
    let files = vec![file("off", 100.0), file("on", 90.0)];
    s.imported = Some(Imported { files, cannot: Vec::new(), original: None });
    s
}

/// `weigh run getppid`: one machine alone.
pub fn run() -> RunReport {
    let sample = |pass: u32| RunSample {
        started_s: 0.3 * f64::from(pass),
        operations: 840_000.0,
        elapsed_s: 0.07,
        rate: 12e6,
    };
    let (workload, unit): (WorkName, _) = ("getppid".into(), "ops/s".to_owned());
    let row = RunRow {
        workload: workload.clone(),
        unit: unit.clone(),
        rate: 12e6,
        spread_pct: 0.5,
        lowest: 11.9e6,
        highest: 12.1e6,
        samples: 3,
        ..RunRow::default()
    };
    RunReport {
        schema: run::SCHEMA,
        id: "r7n2".to_owned(),
        started: "2026-11-21T20:15:04Z".to_owned(),
        state: State::Complete,
        command: "weigh run getppid --samples 3".to_owned(),
        machine: machine(),
        facts: vec!["Files are on ext4 of 512 MiB, new for every sample.".to_owned()],
        results: vec![row],
        warnings: vec![Warning::Sentence(
            "Load: the load average is 1.5 on 2 CPUs. Samples vary more.".into(),
        )],
        series: vec![RunSeries {
            workload,
            unit,
            arm: ArmId::BASELINE,
            samples: (1..=3).map(sample).collect(),
        }],
        ..RunReport::default()
    }
}

/// Nothing in it is as a report would like it.
pub fn hostile() -> Summary {
    let mut s = audit();
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -99.9, 400.0, -100.0, 0.0];
    s.id = "<script>alert(1)</script>".to_owned();
    s.command = "weigh compare -- 'a\"b' | <b>\u{1b}[31m".to_owned();
    s.results = (0..300)
        .map(|i| {
            let number = |offset: usize| numbers[(i + offset) % numbers.len()];
            let mut row =
                row(&format!("a|b,\"{i}\"\n<i>`\u{1b}"), "ops/s", number(0), number(1), 0);
            row.low_pct = (i % 3 > 0).then(|| number(2));
            row.high_pct = (i % 3 > 1).then(|| number(3));
            row.evidence.treated_s = Some(0.0);
            let amounts = &mut row.evidence.amounts;
            amounts.set("backlog_wait_s", number(4));
            amounts.set("backlog_wait_ns_per_op", number(4));
            amounts.set("log_bytes", u64::MAX);
            amounts.set("lost", u64::MAX);
            amounts.set("lost_pct", number(4));
            row.series = vec![pair(number(5), number(0), number(1), 0); i % 4];
            row
        })
        .collect();
    s
}

fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("syscall", "ops/s", 469_012.0, -85.21, 8),
        row("dhry2reg", "ops/s", 35_433_786.0, 0.02, 34),
        row("whetstone", "MWIPS", 5140.3, -0.04, 30),
        row("execl", "ops/s", 3210.4, -15.06, 24),
        row("pipe", "ops/s", 922_517.0, -60.4, 8),
        row("context1", "ops/s", 85_950.0, -38.7, 12),
        row("spawn", "ops/s", 5881.2, -9.39, 28),
        row("fstime", "KBps", 1_412_330.0, -7.31, 30),
        row("fsbuffer", "KBps", 401_870.0, -22.9, 14),
        row("shell1", "lpm", 8020.5, -3.68, 36),
        row("shell8", "lpm", 1187.3, -0.62, 40),
        row("hanoi", "ops/s", 3_109_220.0, -0.35, 40),
    ];
    for row in &mut rows {
        let width = if row.effect_pct < -30.0 { 0.4 } else { 0.3 };
        row.low_pct = Some(row.effect_pct - width);
        row.high_pct = Some(row.effect_pct + width);
    }
    for quiet in [1, 2, 11] {
        rows[quiet].verdict = Verdict::Equivalent;
        let evidence = &mut rows[quiet].evidence;
        evidence.syscalls_per_op = Some(0.0);
        for name in
            ["records_per_op", "log_bytes_per_op", "backlog_wait_s", "backlog_wait_ns_per_op"]
        {
            evidence.amounts.set(name, 0.0);
        }
        evidence.amounts.set("records", 0);
        evidence.amounts.set("log_bytes", 0);
    }
    rows[10].within_margin = true;
    rows[11].verdict = Verdict::Inconclusive;
    (rows[11].low_pct, rows[11].high_pct) = (Some(-1.94), Some(1.27));
    rows[11].pairs_needed = Some(40);
    (rows[11].pairs_needed_low, rows[11].pairs_needed_high) = (Some(20), Some(110));
    let future = |pairs: f64| Future { seconds: 0.21 * pairs, is_at_least: false };
    rows[11].futures =
        [20.0, 25.0, 30.0, 36.0, 40.0, 45.0, 60.0, 80.0, 110.0, 200.0].map(future).to_vec();
    rows[11].seconds_needed = Some(8.4);
    rows[11].cost_at_most_pct = Some(1.79);
    rows[4].evidence.amounts.set("lost", 16_910);
    rows[4].evidence.amounts.set("lost_pct", 0.43);
    rows[4].notes = vec!["Cheaper because at least 0.43 % of the records were dropped.".to_owned()];
    rows
}

fn row(workload: &str, unit: &str, baseline: f64, effect_pct: f64, pairs: usize) -> Row {
    let treated = baseline * (1.0 + effect_pct / 100.0);
    let measured = (0..pairs).map(|i| pair(1.3 + 3.4 * i as f64, baseline, treated, i));
    Row {
        workload: workload.into(),
        treatment: "audit".to_owned(),
        metric: "rate".to_owned(),
        unit: unit.to_owned(),
        baseline,
        treated,
        treated_median: Some(treated),
        cost: AddedCost::of(&workload.into(), unit, baseline, effect_pct),
        effect_pct,
        verdict: if effect_pct < 0.0 { Verdict::Slower } else { Verdict::Faster },
        precise: true,
        pairs,
        least_pairs: MIN_PAIRS,
        evidence: evidence(treated, unit),
        metrics: metrics(baseline, treated),
        series: measured.collect(),
        ..Row::default()
    }
}

/// Latencies as of a machine whose operations take as long as its rate says, with a tail.
fn metrics(baseline: f64, treated: f64) -> Metrics {
    let of = |baseline: f64, treated: f64| {
        let effect_pct = (treated / baseline - 1.0) * 100.0;
        let [low_pct, high_pct] = [-0.4, 0.4].map(|half| Some(effect_pct + half));
        Some(Contrast { baseline, treated, effect_pct: Some(effect_pct), low_pct, high_pct })
    };
    let [base_ns, treated_ns] = [baseline, treated].map(|rate| 1e9 / rate);
    let used = |ns: f64| Used {
        user_ns_per_op: Some(0.2 * ns),
        system_ns_per_op: Some(0.7 * ns),
        voluntary_switches_per_op: Some(0.0),
        involuntary_switches_per_op: Some(ns / 4e6),
        minor_faults_per_op: Some(ns / 1e6),
        major_faults_per_op: Some(0.0),
        driver_cpu_pct: None,
    };
    Metrics {
        mean_effect_pct: Some((treated / baseline - 1.0) * 100.0 - 0.2),
        mean_low_pct: Some((treated / baseline - 1.0) * 100.0 - 0.9),
        mean_high_pct: Some((treated / baseline - 1.0) * 100.0 + 0.5),
        resources: Some(Resources { baseline: used(base_ns), treated: used(treated_ns) }),
        latency: Some(Latency {
            of: "operation".to_owned(),
            clock_ns: Some(21.0),
            baseline_count: 48_122,
            treated_count: 20_874,
            p50_ns: of(0.96 * base_ns, 0.96 * treated_ns),
            p99_ns: of(1.3 * base_ns, 1.5 * treated_ns),
            // Where operations are long, there are too few.
            p99_9_ns: of(2.0 * base_ns, 9.0 * treated_ns).filter(|_| base_ns < 1e5),
        }),
        counters: None,
    }
}

/// Three records for each operation, while the treated samples ran for 3.54 s.
fn evidence(treated: f64, unit: &str) -> RowEvidence {
    let per_second = match unit {
        "lpm" => treated / 60.0,
        "KBps" => treated / 64.0,
        _ => treated,
    };
    let mut amounts = Amounts::default();
    amounts.set("records_per_op", 3.0);
    amounts.set("log_bytes_per_op", 500.0);
    amounts.set("lost", 0);
    amounts.set("backlog_wait_s", (per_second * 2e-5).min(2.44));
    amounts.set("backlog_wait_ns_per_op", 11_840.0);
    amounts.set("records", (per_second * 3.0 * 3.54) as u64);
    amounts.set("log_bytes", (per_second * 500.0 * 3.54) as u64);
    RowEvidence { syscalls_per_op: Some(5.0), treated_s: Some(3.54), amounts }
}

/// Two samples with the noise that real ones have: drift, jitter, now and then a stall.
fn pair(started_s: f64, baseline: f64, treated: f64, i: usize) -> Pair {
    let jitter = |salt: u64| {
        // The finaliser of splitmix64: noise that is the same on every run.
        let mut mixed = (started_s.to_bits() ^ treated.to_bits() ^ i as u64)
            .wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % 1000) as f64 / 1000.0 - 0.5
    };
    let drift = 1.0 + 0.015 * (i as f64 / 9.0).sin() - 0.0006 * i as f64;
    let stall = if i % 17 == 11 { 0.985 } else { 1.0 };
    Pair {
        rates_over_all: [1.0, 1.0],
        cpu_ns_per_op: None,
        further: Vec::new(),
        lasted_s: 0.2,
        started_s,
        baseline_rate: baseline * drift * (1.0 + 0.006 * jitter(1)),
        treated_rate: treated * drift * stall * (1.0 + 0.008 * jitter(2)),
        baseline_first: jitter(3) > 0.0,
        after_treated: false,
        set: SetId(0),
        number: PairId(i),
        is_disturbed: false,
    }
}

/// A reading of 40 pairs: 3 % more of what less is better of.
pub fn reading(metric: Metric, verdict: Verdict) -> Reading {
    Reading {
        metric,
        unit: "ns/op".into(),
        better: Direction::Lower,
        baseline: 100.0,
        treated: 103.0,
        effect_pct: 3.0,
        low_pct: Some(2.0),
        high_pct: Some(4.0),
        verdict,
        withheld: None,
        within_margin: false,
        precise: false,
        pairs: 40,
    }
}

/// A stored run of these works, without samples and origin.
pub fn stored(works: impl IntoIterator<Item = StoredWork>) -> Stored {
    let header = Header {
        metrics: Metric::judged(None, &[]),
        kind: ExperimentKind::Run,
        command: "weigh run".into(),
        seed: 1,
        budget_s: 60.0,
        alpha: 0.05,
        margin: 0.01,
        sets: 1,
        arms: vec!["none".into()],
        works: works.into_iter().collect(),
        ..Header::default()
    };
    Stored {
        id: "k3f9qx".to_owned().try_into().unwrap(),
        header,
        started: "2026-11-26T00:00:00Z".into(),
        elapsed_s: 60.0,
        state: State::Complete,
        sessions: 1,
        failure: None,
        baseline_state: None,
        fail_above: None,
        warnings: Vec::new(),
        peaks: Vec::new(),
        plans: Vec::new(),
        profiles: Vec::new(),
        facts: vec![Vec::new()],
        quantities: vec![Vec::new()],
        samples: BTreeMap::new(),
        startups: Vec::new(),
        details: Vec::new(),
        failures: Vec::new(),
    }
}

/// Load points of a mix with these users.
pub fn load_points<const N: usize>(users: [usize; N]) -> [StoredWork; N] {
    users.map(|users| StoredWork {
        name: WorkName::of_users("load:x", users),
        ..work("", "jobs/min")
    })
}

pub fn work(name: &str, unit: &str) -> StoredWork {
    StoredWork {
        name: name.into(),
        unit: unit.into(),
        syscalls_per_op: None,
        sample_ms: None,
        start_scale: 0.01.into(),
        on_curve: None,
    }
}

/// A sample of this rate, the first of which is of pair 0.
pub fn point(pair: usize, rate: f64) -> Point {
    Point {
        is_treated: false,
        is_first: true,
        role: SampleRole::Compared,
        scheme: Scheme::Sequential,
        after_treated: false,
        set: SetId(0),
        pair: PairId(pair),
        started_s: pair as f64,
        operations: rate,
        elapsed_s: 1.0,
        rate,
        cpu_ns_per_op: None,
        waiting_share: None,
        waiting_share_before: None,
        stolen_share: None,
        was_throttled: false,
        exit_code: 0,
        rate_over_all: 1.0,
        outside: None,
    }
}

/// A sample of the first row's pairs, which takes no time and has no evidence.
pub fn measured(arm: usize, pair: usize, position: usize, sample: Sample) -> Measured {
    Measured {
        work: WorkId(0),
        arm: ArmId(arm),
        treated_arm: ArmId(1),
        role: SampleRole::Compared,
        scheme: Scheme::Sequential,
        set: SetId(0),
        pair: PairId(pair),
        position,
        started_s: 0.0,
        padding_bytes: 0,
        cpu: None,
        sample,
        evidence: Evidence::default(),
        disturbance: None,
    }
}
