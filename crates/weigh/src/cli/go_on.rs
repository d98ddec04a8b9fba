//! `weigh compare --continue`: another session of a stored experiment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Context;
use super::ask::answer;
use super::audience::Terminal;
use crate::experiment::around::Around;
use crate::experiment::origin::Origin;
use crate::experiment::request::Request;
use crate::experiment::session::{Done, More, go_on};
use crate::format::label;
use crate::shell::command_line;
use crate::store::Store;
use trust::owner;

/// Goes on with the experiment that `id` names, with what `more` gives it.
///
/// # Errors
/// A sentence, where there is none such, or it cannot be continued here.
pub fn run(
    id: &str,
    more: impl Fn(&Request) -> More,
    store: &Store,
    context: &Context,
    interrupted: &Arc<AtomicBool>,
) -> Result<Done, String> {
    let id = store.find(Some(id)).map_err(|error| error.to_string())?;
    if store.import(&id).map_err(|error| error.to_string())?.is_some() {
        return Err(format!("cannot continue {id}: it was imported, not measured here"));
    }
    let stored = store.load(&id).map_err(|error| error.to_string())?;
    let said = |problem: String| format!("cannot continue {id}: {problem}");
    let origin = Origin::of(&stored).map_err(said)?;
    agree_if_foreign(&context.database()?, &what_it_runs(&origin)).map_err(said)?;
    let (margin_pct, sets) = (stored.header.margin * 100.0, stored.header.sets);
    let mut audience = Terminal::of_pairs(context.color, margin_pct, sets);
    go_on(&stored, more(&origin.request), store, &mut audience, interrupted).map_err(said)
}

/// What a stored experiment would run, and where; and its treatments, which may read files.
fn what_it_runs(origin: &Origin) -> Vec<String> {
    let Around { setup, prepare, prepare_arms, cleanup, profiler, .. } = &origin.request.around;
    let shell = |line: &String| command_line(["sh", "-c", line]);
    let command = origin.request.command.iter();
    let command = command.map(|words| command_line(words.iter().map(String::as_str)));
    let before = setup.iter().chain(prepare).chain(prepare_arms).map(shell);
    let argvs =
        origin.request.contest.iter().flat_map(|contest| contest.argvs().unwrap_or_default());
    let contenders = argvs.map(|words| command_line(words.iter().map(String::as_str)));
    let commands = command.chain(contenders);
    let after = cleanup.iter().chain(profiler).map(shell);
    let mut lines: Vec<String> = before.chain(commands).chain(after).collect();
    if !lines.is_empty() {
        lines.insert(0, command_line(["cd", &origin.directory.display().to_string()]));
    }
    let jobs = origin.request.mixes.iter().flat_map(|file| file.mix.commands.values());
    lines.extend(jobs.map(|command| format!("as a job: {}", command.run)));
    let names_more = |label: &&String| label.contains(['=', '/']);
    let treatments = origin.request.arms.iter().filter(|_| origin.request.contest.is_none());
    lines.extend(treatments.filter(names_more).map(|label| format!("the treatment {label}")));
    let fixtures = origin.request.fixtures.iter().filter(names_more);
    lines.extend(fixtures.map(|label| format!("the fixture {label}")));
    lines.extend(origin.request.client.iter().map(|client| format!("a client at {client}")));
    let directories = &origin.request.job_sizes.disk_directories;
    lines.extend(directories.iter().map(|directory| format!("files in {}", directory.display())));
    lines
}

/// Root runs what another user's database says: so who runs it has seen it.
///
/// # Errors
/// A sentence, where it cannot be shown, nobody can be asked, or the answer is not yes.
fn agree_if_foreign(database: &Path, lines: &[String]) -> Result<(), String> {
    if lines.is_empty() || owner::of(database).is_none() {
        return Ok(());
    }
    let database = database.display();
    if lines.iter().any(|line| label(line) != *line) {
        return Err(format!(
            "what it does holds control characters, so it cannot be shown as it is, and {database} belongs \
             to another user: begin a new experiment"
        ));
    }
    let shown = lines.join("\n  ");
    match answer(&format!(
        "{database} belongs to another user. It does this, as root:\n  {shown}\nGo on? [y/N] "
    )) {
        Some(true) => Ok(()),
        Some(false) => Err("you did not agree".into()),
        None => Err(format!(
            "{database} belongs to another user, so root does what it says only after you have \
             seen that; there is \
             no terminal to ask on. It is\n  {shown}\nContinue as that user, or begin a new \
             experiment"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::chown;

    use clap::{Arg, CommandFactory, Id};

    use super::*;

    /// What another session may have otherwise; all else is as it was.
    const OF_ANOTHER_SESSION: &str = "go_on budget fail_above inconclusive_ok name tags yes precision json \
                                      csv html markdown junit github_summary dialect text verbose \
                                      anonymise database color help passive token_file";
    /// They require a command, which is refused.
    const OF_A_COMMAND: &str = "prepare setup cleanup warmup";

    #[test]
    fn an_option_of_a_later_session_is_used_or_refused() {
        for name in ["compare", "versus", "net"] {
            let mut all = crate::cli::Cli::command();
            all.build();
            let command = all.find_subcommand(name).unwrap();
            let find = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
            let go_on = find("go_on").unwrap();
            let excludes = |one: &Arg, other: &Arg| {
                command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
            };
            let is_refused = |arg: &Arg| excludes(go_on, arg) || excludes(arg, go_on);
            let others = OF_ANOTHER_SESSION.split(' ').chain(OF_A_COMMAND.split(' '));
            let others: Vec<&str> = others.collect();
            let is_known = |arg: &&Arg| is_refused(arg) || others.contains(&arg.get_id().as_str());
            let ignored: Vec<&Id> =
                command.get_arguments().filter(|arg| !is_known(arg)).map(Arg::get_id).collect();
            assert!(ignored.is_empty(), "{name} --continue ignores {ignored:?}");
        }
    }

    #[test]
    fn root_is_shown_what_another_users_database_would_run() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("weigh.db");
        fs::write(&database, "").unwrap();
        let lines = ["cd /home/alice".to_owned(), "make -j2".to_owned()];
        assert_eq!(agree_if_foreign(&database, &lines), Ok(()));
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        chown(&database, Some(65534), None).unwrap();
        assert_eq!(agree_if_foreign(&database, &[]), Ok(()), "it runs workloads of ours only");
        let refused = agree_if_foreign(&database, &["a\u{1b}[2K".to_owned()]).unwrap_err();
        assert!(refused.contains("control characters"), "{refused}");
    }
}
