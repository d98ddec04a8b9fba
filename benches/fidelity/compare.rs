//! All counterparts that are there, theirs and ours in turns, as a table.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_workload::executable::Executable;

use crate::duel::{Contest, Outcome, fight};
use crate::options::Options;
use crate::programs::Site;
use crate::rows::{COUNTERPARTS, Counterpart, Suite};
use crate::table::Table;

/// Margin for the difference of two programs of the same work, in per cent.
const MARGIN_PCT: f64 = 3.0;

/// Compares what there is, and names the suites of which there is nothing.
///
/// # Errors
/// A sentence, where nothing could be compared or ours does not run.
pub fn compare(options: &Options) -> Result<(Table, Vec<&'static str>), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let executable = Executable::unpack(scratch.path())?;
    let site = Site::new(options, &executable, scratch.path())?;
    let is_wanted = |one: &&Counterpart| match &options.only {
        Some(part) => one.theirs.contains(part) || one.suite.name().contains(part),
        None => true,
    };
    let found: Vec<(&Counterpart, PathBuf)> = COUNTERPARTS
        .iter()
        .filter(is_wanted)
        .filter_map(|one| Some((one, site.find(one)?)))
        .collect();
    if found.is_empty() {
        return Err("none of the programs is there: --unixbench DIR and --lmbench DIR name built \
                    trees; perf is looked for in the PATH"
            .into());
    }
    let mut contests = Vec::new();
    for (counterpart, program) in &found {
        contests.push(contest(&site, counterpart, program)?);
    }
    let budget = Duration::from_secs_f64(options.seconds * contests.len() as f64);
    let outcomes = fight(&mut contests, MARGIN_PCT, budget, 1);
    let rows = found.iter().zip(&outcomes).map(|((one, _), outcome)| row(one, outcome)).collect();
    let head =
        ["suite", "theirs", "ours", "one operation", "ours / theirs", "95 %", "pairs", "verdict"];
    let table = Table {
        title: "Theirs and ours in turns".into(),
        head: head.map(String::from).to_vec(),
        rows,
    };
    let is_absent = |suite: &Suite| !found.iter().any(|(one, _)| one.suite == *suite);
    Ok((table, Suite::ALL.into_iter().filter(is_absent).map(Suite::name).collect()))
}

fn contest<'a>(
    site: &'a Site,
    counterpart: &'a Counterpart,
    program: &'a Path,
) -> Result<Contest<'a>, String> {
    let ours = counterpart.ours;
    let first = site.ours(ours, None).map_err(|problem| format!("{ours}: {problem}"))?;
    // From now on ours does just as many, and so does theirs if it takes a number.
    let operations = first.operations;
    Ok(Contest {
        name: counterpart.theirs.into(),
        theirs: Box::new(move || site.theirs(counterpart, program, operations)),
        ours: Box::new(move || Ok(site.ours(ours, Some(operations))?.rate())),
    })
}

fn row(counterpart: &Counterpart, outcome: &Outcome) -> Vec<String> {
    let [ratio, interval] = outcome.cells();
    vec![
        counterpart.suite.name().into(),
        format!("`{}`", counterpart.theirs),
        format!("`{}`", counterpart.ours),
        counterpart.operation.into(),
        ratio,
        interval,
        outcome.pairs.to_string(),
        outcome.said(MARGIN_PCT, counterpart.differs),
    ]
}
