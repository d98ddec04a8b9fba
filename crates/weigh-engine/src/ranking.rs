//! Commands against each other, the fastest first.

use super::command_times::command_times;
use super::provenance::Provenance;
use weigh_model::record::{ExperimentKind, Startup, Stored};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::Row;
use weigh_model::result::versus::{CommandTimes, Ranked, SHELL_START_NS, Versus};
use weigh_model::shell::command_line;
use weigh_model::workload::metric::WHOLE_RUNS;

/// Returns further results of commands compared with each other, as `origin` requested them.
pub fn versus(stored: &Stored, origin: Option<&Provenance>, results: &[Row]) -> Option<Versus> {
    if stored.header.kind != ExperimentKind::Versus {
        return None;
    }
    let contest = origin.and_then(|origin| origin.request.plan.contest());
    let shell = contest.map(|contest| &contest.shell).filter(|words| !words.is_empty());
    let commands = command_times(stored, contest);
    let start_ns = |startup: &Startup| startup.evidence.amounts.number(SHELL_START_NS);
    Some(Versus {
        shell: shell.map(|words| command_line(words.iter().map(String::as_str))),
        shell_start_ms: stored.startups.iter().find_map(start_ns).map(|ns| ns / 1e6),
        runs: stored.header.fixed_pairs,
        ranking: rank(&stored.header.arms[0], results, &commands),
        commands,
    })
}

/// The commands of these rows, and the one that they were held against.
fn rank(baseline: &str, rows: &[Row], commands: &[CommandTimes]) -> Vec<Ranked> {
    let Some(first) = rows.first() else { return Vec::new() };
    let is_interleaved = |row: &Row| row.scheme == Some(Scheme::Interleaved);
    // The rate of an interleaved row is one of CPU time.
    let run_ms = |command: &str, row: &Row, rate: f64| match is_interleaved(row) {
        true => {
            let times = commands.iter().find(|times| times.command == command)?;
            Some(1e3 * times.median_s())
        }
        false => (first.unit == WHOLE_RUNS).then(|| 1e3 / rate).filter(|ms| ms.is_finite()),
    };
    let times = |pct: f64| Some(1.0 / (1.0 + pct / 100.0)).filter(|times| times.is_finite());
    let of_baseline = Ranked {
        command: baseline.to_owned(),
        run_ms: run_ms(baseline, first, first.baseline),
        times: 1.0,
        times_low: None,
        times_high: None,
        verdict: None,
    };
    let of_row = |row: &Row| {
        Some(Ranked {
            command: row.treatment.clone(),
            run_ms: run_ms(&row.treatment, row, row.treated),
            times: times(row.effect_pct)?,
            times_low: row.high_pct.and_then(times),
            times_high: row.low_pct.and_then(times),
            verdict: Some(row.verdict),
        })
    };
    let mut ranking = vec![of_baseline];
    // An estimate that nothing bounds is that of too few pairs.
    let is_bounded = |row: &&Row| row.low_pct.is_some() || row.high_pct.is_some();
    ranking.extend(rows.iter().filter(is_bounded).filter_map(of_row));
    ranking.sort_by(|one, other| one.times.total_cmp(&other.times));
    ranking
}
