//! Loading rule files through the machine's own `auditctl`, and finding out which of the kernel's
//! rules each line became: one bad line costs that line, where `auditctl -R` would stop at it.
//!
//! It is given the words of one rule as its arguments. Of a file it would make lines and words of its own,
//! and carry out options that were none to us.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::foreign_line::{described, placeholder};
use super::netlink::Client;
use super::rule::Rule;
use super::rule_owner::assign;
use super::rule_set::{LineOutcome, RuleLine, RuleSet, RuleSource};
use super::rule_warnings::add_warnings;
use super::rule_words::{RuleWords, is_rule, skip_reason};
use trust::program;
use trust::start::{self, Inherited};

/// Lines loaded before the kernel is asked what it has now: listing is not cheap.
const BATCH_LINES: usize = 200;

/// Warning for a line that is confined.
pub const CONFINED: &str = "this host is already audited, and the rule would suppress records of other \
    processes; so it was loaded for the measured processes only";
const BLINDS: &str = "this host is already audited, the rule would suppress records of other processes, \
    and its list cannot be limited to a login uid; so the result does not cover the whole file";

/// Callbacks that a loading calls now and then.
pub struct Watcher<'a> {
    /// Lines done, of how many.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Returns true if the loading should stop.
    pub is_interrupted: &'a dyn Fn() -> bool,
    /// Runs an `auditctl` to its end. One that outlives who started it would go on loading rules behind the
    /// back of who takes them away.
    pub run: &'a dyn Fn(Command) -> io::Result<Output>,
}

impl RuleSet {
    /// Loads every rule, in order. What was loaded stays loaded; the caller undoes it, also after an
    /// error.
    ///
    /// # Errors
    /// A sentence: `auditctl` cannot be run, the kernel does not list its rules, it was interrupted.
    pub fn load(
        &self,
        auditctl: &Path,
        client: &mut Client,
        watcher: &mut Watcher,
    ) -> Result<Vec<RuleLine>, String> {
        let known = client.rules().map_err(cannot_list)?.into_iter().collect();
        let (mut report, words): (Vec<RuleLine>, Vec<Option<RuleWords>>) =
            self.lines.iter().map(|source| unloaded(source, self.confine_to)).unzip();
        let open: Vec<(usize, &RuleWords)> = words
            .iter()
            .enumerate()
            .filter_map(|(index, words)| Some((index, words.as_ref()?)))
            .collect();
        let mut loader = Loader { auditctl, client, known };
        let mut done = report.len() - open.len();
        for batch in open.chunks(BATCH_LINES) {
            loader.load(batch, &mut report, watcher)?;
            done += batch.len();
            (watcher.progress)(done, report.len());
        }
        name_copies(&mut report, &open);
        for (index, rule) in loader.rules_present_by_us(&report, &open, watcher)? {
            name_copy_of_rule(&mut report, index, &rule);
        }
        add_warnings(&mut report);
        Ok(report)
    }
}

/// A line before it is loaded, and the words to load it by; none where it will not be.
fn unloaded(source: &RuleSource, confine_to: Option<u32>) -> (RuleLine, Option<RuleWords>) {
    let mut line = RuleLine {
        file: source.file.clone(),
        number: source.number,
        text: source.text.clone(),
        outcome: LineOutcome::Present,
        warnings: Vec::new(),
        rules: Vec::new(),
        is_prepended: false,
        is_confined: false,
    };
    if let Some(template) = placeholder(&source.text) {
        line.outcome = LineOutcome::Refused(template.into());
        return (line, None);
    }
    if !is_rule(&source.text) {
        line.outcome = match skip_reason(&source.text) {
            Some(reason) => LineOutcome::Skipped(reason.into()),
            None => LineOutcome::Refused(described(&source.text).into()),
        };
        return (line, None);
    }
    let words = match RuleWords::parse(&source.text) {
        Ok(words) => words,
        Err(problem) => {
            line.outcome = LineOutcome::Refused(problem);
            return (line, None);
        }
    };
    line.is_prepended = words.is_prepended();
    line.warnings.extend(words.with_a_tab().map(|(option, value)| about_a_tab(option, value)));
    let Some(loginuid) = confine_to.filter(|_| words.blinds_others()) else {
        return (line, Some(words));
    };
    let confined = words.confined(loginuid);
    match confined {
        Some(_) => {
            line.is_confined = true;
            line.warnings.push(CONFINED.into());
        }
        None => line.outcome = LineOutcome::Skipped(BLINDS.into()),
    }
    (line, confined)
}

fn about_a_tab(option: &str, value: &str) -> String {
    let value = value.replace('\t', "\\t");
    format!(
        "`auditctl` splits words at spaces only, so the value of `{option}` contains a tab: `{value}`. \
         Replace the tab with a space"
    )
}

struct Loader<'a> {
    auditctl: &'a Path,
    client: &'a mut Client,
    /// Rules that the kernel held when it was last asked.
    known: HashSet<Rule>,
}

impl Loader<'_> {
    /// Loads these lines; where it does not become clear which rule is whose, again in halves.
    fn load(
        &mut self,
        batch: &[(usize, &RuleWords)],
        report: &mut [RuleLine],
        watcher: &Watcher,
    ) -> Result<(), String> {
        let mut accepted = Vec::new();
        for (index, words) in batch {
            if (watcher.is_interrupted)() {
                return Err("interrupted while loading the rules".into());
            }
            match self.run_auditctl(words, watcher)? {
                Ok(()) => accepted.push((*index, *words)),
                Err(reason) => report[*index].outcome = refusal(&reason),
            }
        }
        let listed = self.client.rules().map_err(cannot_list)?;
        let new: Vec<Rule> = listed.into_iter().filter(|rule| !self.known.contains(rule)).collect();
        if let Some(owners) = assign(&new, &accepted) {
            self.known.extend(new.iter().cloned());
            for (rule, index) in new.into_iter().zip(owners) {
                report[index].outcome = LineOutcome::Loaded;
                report[index].rules.push(rule);
            }
        } else if let [(index, _)] = batch {
            // Where it was refused, what came is another's.
            if !accepted.is_empty() {
                report[*index].outcome = match new.is_empty() {
                    true => {
                        refusal("the kernel did not add this rule, and auditctl gave no reason")
                    }
                    false => LineOutcome::Loaded,
                };
                report[*index].rules.clone_from(&new);
            }
            self.known.extend(new);
        } else {
            for rule in &new {
                self.client.delete_rule(rule).map_err(cannot_unload)?;
            }
            let (first, second) = batch.split_at(batch.len() / 2);
            self.load(first, report, watcher)?;
            self.load(second, report, watcher)?;
        }
        Ok(())
    }

    /// Finds the rules of lines that the kernel had already, but the host had not. Such a line is
    /// another spelling of a line that we loaded. The kernel does not report which rule it has, so
    /// each line is tried while our rules are unloaded.
    fn rules_present_by_us(
        &mut self,
        report: &[RuleLine],
        open: &[(usize, &RuleWords)],
        watcher: &Watcher,
    ) -> Result<Vec<(usize, Rule)>, String> {
        let is = |index: usize, outcome| report[index].outcome == outcome;
        let loaded: HashSet<_> = open
            .iter()
            .filter(|(index, _)| is(*index, LineOutcome::Loaded))
            .map(|(_, words)| (words.list, words.action))
            .collect();
        let doubtful: Vec<(usize, &RuleWords)> = open
            .iter()
            .filter(|(index, _)| is(*index, LineOutcome::Present))
            .filter(|(_, words)| loaded.contains(&(words.list, words.action)))
            .copied()
            .collect();
        if doubtful.is_empty() {
            return Ok(Vec::new());
        }
        let ours: Vec<(&Rule, bool)> = report
            .iter()
            .flat_map(|line| line.rules.iter().map(|rule| (rule, line.is_prepended)))
            .collect();
        for (rule, _) in ours.iter().rev() {
            self.client.delete_rule(rule).map_err(cannot_unload)?;
        }
        let found = self.load_each_alone(&doubtful, watcher)?;
        for (rule, is_prepended) in ours {
            let rule = if is_prepended { rule.prepended() } else { rule.clone() };
            self.client.add_rule(&rule).map_err(|e| format!("cannot load a rule again: {e}"))?;
        }
        Ok(found)
    }

    /// The rules that these lines become where they do become one; none stays loaded.
    fn load_each_alone(
        &mut self,
        lines: &[(usize, &RuleWords)],
        watcher: &Watcher,
    ) -> Result<Vec<(usize, Rule)>, String> {
        let before: HashSet<Rule> = self.client.rules().map_err(cannot_list)?.into_iter().collect();
        let mut found = Vec::new();
        for (index, words) in lines {
            if (watcher.is_interrupted)() {
                return Err("interrupted while loading the rules".into());
            }
            if self.run_auditctl(words, watcher)?.is_err() {
                continue;
            }
            let listed = self.client.rules().map_err(cannot_list)?;
            for rule in listed.into_iter().filter(|rule| !before.contains(rule)) {
                self.client.delete_rule(&rule).map_err(cannot_unload)?;
                found.push((*index, rule));
            }
        }
        Ok(found)
    }

    /// Has `auditctl` load one rule; in the inner result, why it did not.
    fn run_auditctl(
        &self,
        words: &RuleWords,
        watcher: &Watcher,
    ) -> Result<Result<(), String>, String> {
        let mut command = start::command(self.auditctl, Inherited::Fixed);
        command.args(words.arguments()).env("LC_ALL", "C");
        let output = (watcher.run)(command)
            .map_err(|error| format!("cannot run {}: {error}", self.auditctl.display()))?;
        if output.status.success() {
            return Ok(Ok(()));
        }
        let said = [&output.stderr[..], &output.stdout[..]].concat();
        let said = String::from_utf8_lossy(&said);
        let mut said = said.lines().map(str::trim);
        let reason = said.find(|line| !line.is_empty() && !line.starts_with("WARNING"));
        Ok(Err(reason.unwrap_or("auditctl gave no reason").to_owned()))
    }
}

/// Converts a complaint of `auditctl` to an outcome.
fn refusal(reason: &str) -> LineOutcome {
    // How auditctl words EEXIST and ENOENT of AUDIT_ADD_RULE.
    if reason.contains("Rule exists") {
        return LineOutcome::Present;
    }
    if reason.starts_with("Error sending add rule") && reason.contains("No such file or directory")
    {
        return LineOutcome::Refused("a file or directory in it does not exist".into());
    }
    LineOutcome::Refused(reason.to_owned())
}

fn cannot_list(error: io::Error) -> String {
    format!("the kernel does not list its audit rules: {error}")
}

fn cannot_unload(error: io::Error) -> String {
    format!("cannot unload a rule: {error}")
}

/// A rule that a line before has loaded was not on this host before.
fn name_copies(report: &mut [RuleLine], open: &[(usize, &RuleWords)]) {
    let mut first: HashMap<&RuleWords, usize> = HashMap::new();
    for (index, words) in open {
        match report[*index].outcome {
            LineOutcome::Loaded => {
                first.entry(words).or_insert(*index);
            }
            LineOutcome::Present => {
                if let Some(other) = first.get(words) {
                    report[*index].outcome = same_as(&report[*other], &report[*index]);
                }
            }
            _ => {}
        }
    }
}

/// Names the earlier line of a copy with a different spelling. The copy became this rule when it
/// was loaded alone.
fn name_copy_of_rule(report: &mut [RuleLine], index: usize, rule: &Rule) {
    if let Some(other) = report.iter().find(|line| line.rules.contains(rule)) {
        report[index].outcome = same_as(other, &report[index]);
    }
}

fn same_as(other: &RuleLine, line: &RuleLine) -> LineOutcome {
    let place = if other.file == line.file {
        format!("line {}", other.number)
    } else {
        format!("{}:{}", other.file.display(), other.number)
    };
    LineOutcome::Refused(format!("the same as {place}"))
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;
    use crate::netlink::tests::{MadeUpKernel, answer, client};

    fn source(number: usize, text: &str) -> RuleSource {
        RuleSource { file: "a.rules".into(), number, text: text.into() }
    }

    fn rule_set(lines: &[&str]) -> RuleSet {
        let lines = (1..).zip(lines).map(|(number, text)| source(number, text)).collect();
        RuleSet { lines, ..RuleSet::default() }
    }

    /// An `auditctl` that knows no condition but a login uid, and adds nothing for that of root.
    fn auditctl(kernel: &MadeUpKernel, command: &Command) -> Output {
        let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let loginuid = words.iter().find_map(|word| word.strip_prefix("auid="));
        let said = match loginuid.map(|loginuid| Rule::always_exit(loginuid.parse().unwrap(), "k"))
        {
            None => "Unknown field",
            Some(rule) if rule.loginuid() == Some(0) => "",
            Some(rule) => {
                let rule = if words[0] == "-A" { rule.prepended() } else { rule };
                match kernel.add(&rule) {
                    0 => "",
                    _ => "Error sending add rule data request (Rule exists)",
                }
            }
        };
        Output {
            status: ExitStatus::from_raw(i32::from(!said.is_empty()) << 8),
            stdout: Vec::new(),
            stderr: format!("WARNING - 32/64 bit syscall mismatch\n\n{said}\n").into_bytes(),
        }
    }

    #[test]
    fn each_line_has_its_outcome_and_the_rules_that_the_kernel_made_of_it() {
        let kernel = MadeUpKernel::default();
        let [seven, eight, nine] = [7, 8, 9].map(|loginuid| Rule::always_exit(loginuid, "k"));
        kernel.add(&nine);
        let set = rule_set(&[
            "-a always,exit -S all -F auid=7 -k k",
            "-a always,exit -F auid=7 -S all -k k",
            "-a always,exit -S all -F auid=7 -k k",
            "-a always,exit -S all -F auid=9 -k k",
            "-a always,exit -F rubbish=1",
            "-D",
            "-w /etc -D",
            "-A always,exit -S all -F auid=8 -k k",
            "-a always,exit -S all -F auid=0 -k k",
        ]);
        let mut done = Vec::new();
        let mut watcher = Watcher {
            progress: &mut |lines, of| done.push((lines, of)),
            is_interrupted: &|| false,
            run: &|command| Ok(auditctl(&kernel, &command)),
        };
        let report = set.load(Path::new("auditctl"), &mut kernel.client(), &mut watcher).unwrap();
        let refused = |why: &str| LineOutcome::Refused(why.into());
        let outcomes: Vec<LineOutcome> = report.iter().map(|line| line.outcome.clone()).collect();
        assert_eq!(
            outcomes,
            [
                LineOutcome::Loaded,
                refused("the same as line 1"),
                refused("the same as line 1"),
                LineOutcome::Present,
                refused("Unknown field"),
                LineOutcome::Skipped("it would delete the rules of this host".into()),
                refused("`-D` is not valid in a rule"),
                LineOutcome::Loaded,
                refused("the kernel did not add this rule, and auditctl gave no reason"),
            ]
        );
        assert_eq!(report[0].rules, std::slice::from_ref(&seven));
        assert_eq!(report[7].rules, std::slice::from_ref(&eight));
        assert_eq!([report[0].is_prepended, report[7].is_prepended], [false, true]);
        assert_eq!(kernel.rules(), [eight, nine, seven]);
        assert_eq!(done, [(9, 9)]);
    }

    #[test]
    fn loading_stops_where_it_is_interrupted_or_auditctl_cannot_be_run() {
        let kernel = MadeUpKernel::default();
        let set = rule_set(&["-a always,exit -S all -F auid=7 -k k"]);
        let load = |is_interrupted: &dyn Fn() -> bool| {
            let run: &dyn Fn(Command) -> io::Result<Output> =
                &|_| Err(io::ErrorKind::NotFound.into());
            let mut watcher = Watcher { progress: &mut |_, _| {}, is_interrupted, run };
            set.load(Path::new("auditctl"), &mut kernel.client(), &mut watcher).unwrap_err()
        };
        assert_eq!(load(&|| true), "interrupted while loading the rules");
        assert!(load(&|| false).starts_with("cannot run auditctl: "));
        let (mut client, kernel) = client();
        answer(&kernel, libc::NLMSG_ERROR as u16, 1, &(-libc::EPERM).to_ne_bytes());
        let run: &dyn Fn(Command) -> io::Result<Output> = &|_| panic!("nothing is loaded");
        let mut watcher = Watcher { progress: &mut |_, _| {}, is_interrupted: &|| false, run };
        let problem = set.load(Path::new("auditctl"), &mut client, &mut watcher).unwrap_err();
        assert!(problem.starts_with("the kernel does not list its audit rules: "), "{problem}");
    }

    #[test]
    fn what_would_blind_an_audited_host_is_confined_or_passed_over() {
        let of = |text| unloaded(&source(1, text), Some(7));
        let (line, words) = of("-A never,exit -S read");
        assert!(line.is_confined && line.is_prepended && line.warnings == [CONFINED]);
        assert_eq!(words.unwrap().arguments().last(), Some("auid=7"));
        let (line, words) = of("-a never,filesystem -F fstype=tmpfs");
        assert_eq!((line.outcome, words), (LineOutcome::Skipped(BLINDS.into()), None));
        let (line, words) = of("-a always,exit -S read");
        assert!(!line.is_confined && !line.is_prepended && line.warnings.is_empty());
        assert_eq!(words.unwrap().arguments().last(), Some("read"));
        let (line, _) = of("-w /etc/passwd -p wa -k a\tb");
        let [warning] = &line.warnings[..] else { panic!("{line:?}") };
        assert!(warning.contains("the value of `-k` contains a tab: `a\\tb`"), "{warning}");
    }

    #[test]
    fn refusals_are_put_in_our_words_where_those_of_auditctl_mislead() {
        let absent = "Error sending add rule data request (No such file or directory)";
        let in_our_words = LineOutcome::Refused("a file or directory in it does not exist".into());
        assert_eq!(refusal(absent), in_our_words);
        for other in ["Error sending add rule data request (Invalid argument)", &absent[6..]] {
            assert_eq!(refusal(other), LineOutcome::Refused(other.into()));
        }
    }

    fn line(number: usize, outcome: LineOutcome, rules: &[Rule]) -> RuleLine {
        RuleLine {
            file: "a.rules".into(),
            number,
            text: "-a".into(),
            outcome,
            warnings: Vec::new(),
            rules: rules.to_vec(),
            is_prepended: false,
            is_confined: false,
        }
    }

    #[test]
    fn a_rule_that_an_earlier_line_has_loaded_is_a_copy_of_that_line() {
        let [ours, other] = [7, 8].map(|loginuid| {
            RuleWords::parse(&format!("-a always,exit -S all -F auid={loginuid}")).unwrap()
        });
        let mut report = [
            line(2, LineOutcome::Present, &[]),
            line(3, LineOutcome::Loaded, &[]),
            line(4, LineOutcome::Present, &[]),
        ];
        name_copies(&mut report, &[(0, &other), (1, &ours), (2, &ours)]);
        let outcomes = report.map(|line| line.outcome);
        let copy = LineOutcome::Refused("the same as line 3".into());
        assert_eq!(outcomes, [LineOutcome::Present, LineOutcome::Loaded, copy]);
    }

    #[test]
    fn a_rule_that_is_spelled_otherwise_is_a_copy_of_the_line_that_loaded_it() {
        let [ours, other] = [7, 8].map(|loginuid| Rule::always_exit(loginuid, "k"));
        let mut report = [
            line(3, LineOutcome::Loaded, std::slice::from_ref(&ours)),
            line(4, LineOutcome::Present, &[]),
            RuleLine { file: "b.rules".into(), ..line(1, LineOutcome::Present, &[]) },
            line(5, LineOutcome::Present, &[]),
        ];
        name_copy_of_rule(&mut report, 1, &ours);
        name_copy_of_rule(&mut report, 2, &ours);
        name_copy_of_rule(&mut report, 3, &other);
        assert_eq!(report[1].outcome, LineOutcome::Refused("the same as line 3".into()));
        assert_eq!(report[2].outcome, LineOutcome::Refused("the same as a.rules:3".into()));
        assert_eq!(report[3].outcome, LineOutcome::Present);
    }
}
