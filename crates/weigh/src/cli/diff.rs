//! `weigh diff`: two stored experiments side by side.

use std::io;

use clap::Args;

use super::{ABOVE_LIMIT, Context, ERROR, output, value};
use weigh_engine::diff::diff;
use weigh_engine::diff_imported;
use weigh_engine::summarise::summarise;
use weigh_model::format::{label, plural};
use weigh_model::ids::ExperimentId;
use weigh_model::record::{ExperimentKind, Stored};
use weigh_model::result::diff::Diff;
use weigh_store::Store;

const EXAMPLES: &str = "\
Examples:
  weigh diff k3f9qx m2abcd    what changed from the first to the second?
  weigh diff k3f m2a --json
  weigh diff latest~1 latest  the last two experiments
  weigh diff k3f m2a --fail-above 5%
                              for CI: exit status 1 if a row got worse by more
  weigh import A.json B.json  compare `weigh compare --json` of two machines
  weigh compare seccomp:compares=500 --base seccomp:compares=50
                              better: measure both in one experiment, in pairs

Exit status: 0 done, 1 a row got worse by more than --fail-above, 2 error. With
--fail-above also 2 if no row got worse, but a row of BEFORE has no answer: it
failed in AFTER or is missing there, or it was not compared or has no interval.";

/// Compare two stored experiments that were measured separately
///
/// Compares rows that have the same workload, treatment and unit: the rate of the baseline, and the effect
/// of the treatment. The intervals cover only the noise within the two experiments. They do not cover
/// other differences between the experiments (boot, heat, other virtual machines).
///
/// Two rows are not compared if they were measured in different ways: for example with another --rate or
/// limit of --capacity, with --for in one of them only, or with interleaved pairs in one of them only. If
/// both have --for, the rows have no interval and no verdict, because each saw only one start of its
/// server.
///
/// For a decision, measure both systems or treatments in one experiment, with `weigh compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// Earlier experiment: its id or the beginning of it, a name, or latest~1
    before: String,
    /// Later experiment: its id or the beginning of it, a name, or latest
    after: String,
    /// Print the result as JSON, as documented in docs/diff.md
    #[arg(long)]
    json: bool,
    /// Exit with status 1 if the whole interval of a row is worse than this, such as 5%; otherwise
    /// with 2 if a row of BEFORE has no answer.
    ///
    /// The limit applies to the effect of the treatment; for `weigh run`, to the rate. Status 0 does not
    /// prove that nothing got worse.
    #[arg(long, value_name = "PERCENT", value_parser = value::percentage)]
    fail_above: Option<f64>,
}

impl DiffArgs {
    pub fn run(self, context: &Context) -> Result<u8, String> {
        let store = context.read_store()?;
        let find = |named: &str| store.find(Some(named)).map_err(|error| error.to_string());
        let ids = [find(&self.before)?, find(&self.after)?];
        refuse_one([&self.before, &self.after], &ids)?;
        let load = |id: &ExperimentId| store.load(id).map_err(|error| error.to_string());
        let (before, after) = (load(&ids[0])?, load(&ids[1])?);
        let diff = of_stored(&store, &before, &after)?;
        if self.json {
            output::print_json(
                &weigh_report::diff::json(&diff).map_err(|error| error.to_string())?,
            )?;
        } else {
            let colour = output::wants_colour(context.color, &io::stdout());
            output::print(&weigh_report::diff::text(&diff, output::room(), colour))?;
        }
        Ok(self.fail_above.map_or(0, |limit| exit_code(&diff, limit * 100.0)))
    }
}

/// Refuses to compare an experiment with itself: nothing can differ, so a gate would always pass.
fn refuse_one(named: [&str; 2], ids: &[ExperimentId; 2]) -> Result<(), String> {
    let [before, after] = ids;
    if before != after {
        return Ok(());
    }
    let both = match named[0] == named[1] {
        true => format!("`{}` was given twice", named[0]),
        false => format!("`{}` and `{}` are both the experiment {before}", named[0], named[1]),
    };
    Err(format!(
        "{both}: name two experiments; `weigh history` lists them, and `weigh diff latest~1 latest` compares \
         the last two"
    ))
}

/// Compares two experiments by their samples, or, if one was imported, by their reports.
fn of_stored(store: &Store, before: &Stored, after: &Stored) -> Result<Diff, String> {
    if [before, after].iter().all(|stored| stored.header.kind != ExperimentKind::Import) {
        return diff(before, after);
    }
    let report = |stored: &Stored| match stored.header.kind {
        ExperimentKind::Compare | ExperimentKind::Versus | ExperimentKind::Calibrate => {
            Ok(summarise(stored))
        }
        ExperimentKind::Import => {
            let imported = store.import(&stored.id).map_err(|error| error.to_string())?;
            imported.ok_or_else(|| format!("the store has no report of the import {}", stored.id))
        }
        kind @ (ExperimentKind::Run
        | ExperimentKind::Rules
        | ExperimentKind::Budget
        | ExperimentKind::Profile
        | ExperimentKind::Atlas
        | ExperimentKind::Repeated) => Err(format!(
            "{} and {} are of different kinds: one is an import, the other of {}",
            before.id,
            after.id,
            kind.commands()
        )),
    };
    diff_imported::diff(&report(before)?, &report(after)?)
}

/// A row that broke may be the worst of all, so it does not pass.
fn exit_code(diff: &Diff, limit_pct: f64) -> u8 {
    let open: Vec<String> = diff.open_rows().map(label).collect();
    if !open.is_empty() {
        output::problem(&format!(
            "--fail-above: whether {} got worse cannot be told: {}",
            plural(open.len(), "row"),
            open.join("; ")
        ));
    }
    match diff.results.iter().any(|row| row.decisive().is_worse_by(limit_pct)) {
        true => ABOVE_LIMIT,
        false if !open.is_empty() => ERROR,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_not_compared_with_itself() {
        let refused = |named: [&str; 2], ids: [&str; 2]| {
            refuse_one(named, &ids.map(|id| id.to_owned().try_into().unwrap()))
        };
        assert_eq!(refused(["k3f", "latest"], ["k3f9qx", "m2abcd"]), Ok(()));
        let twice = refused(["latest", "latest"], ["k3f9qx", "k3f9qx"]).unwrap_err();
        assert!(twice.starts_with("`latest` was given twice: name two experiments"), "{twice}");
        let two_names = refused(["k3f", "latest"], ["k3f9qx", "k3f9qx"]).unwrap_err();
        assert!(
            two_names.starts_with("`k3f` and `latest` are both the experiment k3f9qx:"),
            "{two_names}"
        );
    }
}
