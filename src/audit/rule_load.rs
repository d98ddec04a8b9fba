//! Loading rule files through the machine's own `auditctl`, and finding out which of the kernel's
//! rules each line became: one bad line costs that line, where `auditctl -R` would stop at it.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::auditctl_output::{complaints, refusal};
use super::netlink::Client;
use super::rule::Rule;
use super::rule_owner::assign;
use super::rule_set::{Line, Outcome, RuleSet, Source};
use super::rule_warnings::add_warnings;
use super::rule_words::{blinds_others, foreign_option, is_prepended, is_rule, skip_reason};
use crate::trust::program;

/// Lines given to one `auditctl`: few enough to show progress, enough to make listing cheap.
const BATCH_LINES: usize = 200;

/// What a loading is to look at now and then.
pub struct Watcher<'a> {
    /// Lines done, of how many.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Whether to stop.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl RuleSet {
    /// How many lines there are that are neither blank nor comments.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Loads every rule, in order. What was loaded stays loaded; the caller undoes it, also after an
    /// error. `work` is a private directory for the files that `auditctl -R` is given, so that a line
    /// is split into words by the machine's own rules.
    ///
    /// # Errors
    /// A sentence: `auditctl` cannot be run, the kernel does not list its rules, it was interrupted.
    pub fn load(
        &self,
        auditctl: &Path,
        work: &Path,
        client: &mut Client,
        watcher: &mut Watcher,
    ) -> Result<Vec<Line>, String> {
        let known = client.rules().map_err(cannot_list)?.into_iter().collect();
        let mut loader =
            Loader { auditctl, file: work.join("batch.rules"), client, known, lines: &self.lines };
        let unloaded = |source| unloaded(source, self.spares_others);
        let mut report: Vec<Line> = self.lines.iter().map(unloaded).collect();
        let is_open =
            |line: &Line| !matches!(line.outcome, Outcome::Skipped(_) | Outcome::Refused(_));
        let open: Vec<usize> = (0..report.len()).filter(|index| is_open(&report[*index])).collect();
        let mut done = report.len() - open.len();
        for batch in open.chunks(BATCH_LINES) {
            if (watcher.is_interrupted)() {
                return Err("interrupted while loading the rules".into());
            }
            loader.load(batch, &mut report)?;
            done += batch.len();
            (watcher.progress)(done, report.len());
        }
        name_copies(&mut report);
        add_warnings(&mut report);
        Ok(report)
    }
}

/// A line before it is loaded, or that will not be.
fn unloaded(source: &Source, spares_others: bool) -> Line {
    const BLINDS: &str =
        "this host has rules of its own, which would record less while it is loaded";
    let outcome = if !is_rule(&source.text) {
        Outcome::Skipped(skip_reason(&source.text).into())
    } else if spares_others && blinds_others(&source.text) {
        Outcome::Skipped(BLINDS.into())
    } else if let Some(option) = foreign_option(&source.text) {
        Outcome::Refused(format!("`{option}` has no place in a rule"))
    } else {
        Outcome::Present
    };
    Line {
        file: source.file.clone(),
        number: source.number,
        text: source.text.clone(),
        outcome,
        warnings: Vec::new(),
        rules: Vec::new(),
        is_prepended: is_prepended(&source.text),
    }
}

struct Loader<'a> {
    auditctl: &'a Path,
    file: PathBuf,
    client: &'a mut Client,
    /// What the kernel held when it was last asked.
    known: HashSet<Rule>,
    lines: &'a [Source],
}

impl Loader<'_> {
    /// Loads these lines at once; where it does not become clear which rule is whose, in halves.
    fn load(&mut self, batch: &[usize], report: &mut [Line]) -> Result<(), String> {
        let complaints = self.run_auditctl(batch)?;
        let listed = self.client.rules().map_err(cannot_list)?;
        let new: Vec<Rule> = listed.into_iter().filter(|rule| !self.known.contains(rule)).collect();
        let accepted: Vec<usize> = (0..batch.len())
            .filter(|position| !complaints.contains_key(&(position + 1)))
            .map(|position| batch[position])
            .collect();
        if batch.len() == 1 {
            let index = batch[0];
            report[index].outcome = match complaints.get(&1) {
                None if !new.is_empty() => Outcome::Loaded,
                Some(reason) => refusal(reason),
                None => self.ask_again(index)?,
            };
            self.known.extend(new.iter().cloned());
            report[index].rules = new;
        } else if let Some(owners) = assign(&new, &accepted, report) {
            for (position, index) in batch.iter().enumerate() {
                if let Some(reason) = complaints.get(&(position + 1)) {
                    report[*index].outcome = refusal(reason);
                }
            }
            self.known.extend(new.iter().cloned());
            for (rule, index) in new.into_iter().zip(owners) {
                report[index].outcome = Outcome::Loaded;
                report[index].rules.push(rule);
            }
        } else {
            for rule in &new {
                self.client.delete_rule(rule).map_err(|e| format!("cannot unload a rule: {e}"))?;
            }
            let (first, second) = batch.split_at(batch.len() / 2);
            self.load(first, report)?;
            self.load(second, report)?;
        }
        Ok(())
    }

    /// Gives the lines to one `auditctl`; its complaints by line, counted from 1.
    fn run_auditctl(&self, batch: &[usize]) -> Result<BTreeMap<usize, String>, String> {
        // On the first line, so that it counts as none.
        let mut text = String::from("-c\n");
        for index in batch {
            text.push_str(&self.lines[*index].text);
            text.push('\n');
        }
        write_private(&self.file, &text)
            .map_err(|error| format!("cannot write {}: {error}", self.file.display()))?;
        let output = self.run(Command::new(self.auditctl).arg("-R").arg(&self.file))?;
        Ok(complaints(&output.stderr))
    }

    /// A line that `auditctl` took from a file without loading it: its reason may have gone to
    /// syslog. To arguments, it gives it here.
    fn ask_again(&self, index: usize) -> Result<Outcome, String> {
        let words = self.lines[index].text.split_whitespace();
        let output = self.run(Command::new(self.auditctl).args(words))?;
        let said = [&output.stderr[..], &output.stdout[..]].concat();
        let said = String::from_utf8_lossy(&said);
        let reason = said.lines().map(str::trim).find(|line| !line.is_empty());
        Ok(refusal(
            reason.unwrap_or("the kernel lists no new rule after it, and auditctl gave no reason"),
        ))
    }

    fn run(&self, command: &mut Command) -> Result<Output, String> {
        // One that outlived us would go on loading rules behind the back of who takes them away.
        // SAFETY: one system call between fork and exec, and no allocation.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        command
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run {}: {error}", self.auditctl.display()))
    }
}

fn cannot_list(error: io::Error) -> String {
    format!("the kernel does not list its audit rules: {error}")
}

/// `auditctl` reads no file that others may write.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}

/// A rule that a line before has loaded was not on this host before.
fn name_copies(report: &mut [Line]) {
    let mut first: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for index in 0..report.len() {
        let words: Vec<String> = report[index].text.split_whitespace().map(str::to_owned).collect();
        match report[index].outcome {
            Outcome::Loaded => {
                first.entry(words).or_insert(index);
            }
            Outcome::Present => {
                if let Some(other) = first.get(&words).map(|other| &report[*other]) {
                    let place = if other.file == report[index].file {
                        format!("line {}", other.number)
                    } else {
                        format!("{}:{}", other.file.display(), other.number)
                    };
                    report[index].outcome = Outcome::Refused(format!("the same as {place}"));
                }
            }
            _ => {}
        }
    }
}

/// Where `auditctl` is, or a sentence that says how to get it.
///
/// # Errors
/// It is not installed, or another user can change it.
pub fn find_auditctl() -> Result<PathBuf, String> {
    program::find("auditctl")?.ok_or_else(|| {
        "rule files are loaded by `auditctl`, which is not installed: \
         install the package `auditd` (Debian, Ubuntu) or `audit` (Fedora)"
            .into()
    })
}
