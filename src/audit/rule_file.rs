//! Loading a rule file as people write it, through the machine's own `auditctl`, line by line: one
//! bad line costs that line, where `auditctl -R` would silently stop at it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One line of a rule file that is neither blank nor a comment, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    pub text: String,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Loaded,
    /// This host had the very rule before; it is in force, and stays so afterwards.
    Present,
    /// `auditctl` or the kernel refused it.
    Refused(String),
    /// Not a rule but a control option, which a measurement must not carry out.
    Skipped(String),
}

/// A rule file, read but not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Number and text of every line that is neither blank nor a comment.
    lines: Vec<(usize, String)>,
    /// What `-b N` asks for.
    pub backlog_limit: Option<u32>,
}

impl RuleFile {
    /// Reads a rule file.
    ///
    /// # Errors
    /// A sentence with the file, and the line where there is one, that says what is wrong.
    pub fn read(path: &Path) -> Result<RuleFile, String> {
        let bytes = std::fs::read(path)
            .map_err(|error| format!("cannot read the rule file {}: {error}", path.display()))?;
        RuleFile::parse(&bytes).map_err(|(line, problem)| match line {
            Some(line) => format!("{}:{line}: {problem}", path.display()),
            None => format!("{}: {problem}", path.display()),
        })
    }

    fn parse(bytes: &[u8]) -> Result<RuleFile, (Option<usize>, String)> {
        let mut lines = Vec::new();
        let mut backlog_limit = None;
        for (index, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let text = std::str::from_utf8(raw)
                .ok()
                .filter(|text| !text.contains('\0'))
                .ok_or((Some(index + 1), "this line is not text; is this a rule file?".into()))?
                .trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if let Some(value) = text.strip_prefix("-b") {
                let limit = value.trim().parse().map_err(|_| {
                    (
                        Some(index + 1),
                        format!("`-b` takes a number of records, not `{}`", value.trim()),
                    )
                })?;
                backlog_limit = Some(limit);
            }
            lines.push((index + 1, text.to_owned()));
        }
        if !lines.iter().any(|(_, text)| is_rule(text)) {
            return Err((
                None,
                "there is no rule in this file (lines that start with -a, -A or -w)".into(),
            ));
        }
        Ok(RuleFile { lines, backlog_limit })
    }

    /// Loads every rule with `auditctl`, in order. What was loaded stays loaded; the caller undoes
    /// it. `work` is a private directory for the one-line files that `auditctl -R` is given, so
    /// that a line is split into words by the machine's own rules.
    ///
    /// # Errors
    /// Where `auditctl` cannot be run or the one-line file cannot be written.
    pub fn load(&self, auditctl: &Path, work: &Path) -> io::Result<Vec<Line>> {
        let single = work.join("line.rules");
        let mut report = Vec::with_capacity(self.lines.len());
        for (number, text) in &self.lines {
            let outcome = if is_rule(text) {
                std::fs::write(&single, format!("{text}\n"))?;
                load_single(auditctl, &single, text)?
            } else {
                Outcome::Skipped(skip_reason(text).into())
            };
            report.push(Line { number: *number, text: text.clone(), outcome });
        }
        Ok(report)
    }
}

/// Where `auditctl` is, or a sentence that says how to get it.
///
/// # Errors
/// It is not installed.
pub fn find_auditctl() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join("auditctl"))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            "rules=FILE is loaded by `auditctl`, which is not installed: \
             install the package `auditd` (Debian, Ubuntu) or `audit` (Fedora)"
                .into()
        })
}

fn is_rule(text: &str) -> bool {
    ["-a", "-A", "-w"].iter().any(|option| text.starts_with(option)) && !is_task_filter(text)
}

/// Such a rule exempts processes when they are started, the treated ones too.
fn is_task_filter(text: &str) -> bool {
    text.contains("never,task") || text.contains("task,never")
}

fn skip_reason(text: &str) -> &'static str {
    match text.split_whitespace().next().unwrap_or_default() {
        "-D" => "it would delete the rules of this host",
        "-d" | "-W" => "it would delete a rule of this host",
        "-e" => "weigh itself switches auditing on, and never locks it",
        "-f" => "the failure mode of this host stays as it is",
        "-b" => "its value is used as backlog=",
        _ if is_task_filter(text) => "it would exempt the treated processes from all other rules",
        _ => "it is not a rule",
    }
}

fn load_single(auditctl: &Path, single: &Path, text: &str) -> io::Result<Outcome> {
    let run = |command: &mut Command| command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    if run(Command::new(auditctl).arg("-R").arg(single))?.status.success() {
        return Ok(Outcome::Loaded);
    }
    // With a file, auditctl gives its reason to syslog; to arguments, it gives it here.
    let output = run(Command::new(auditctl).args(text.split_whitespace()))?;
    if output.status.success() {
        return Ok(Outcome::Loaded);
    }
    let said = [&output.stderr[..], &output.stdout[..]].concat();
    let said = String::from_utf8_lossy(&said);
    let reason = said
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("There was an error in line"))
        .unwrap_or("auditctl gave no reason");
    // How auditctl words EEXIST of AUDIT_ADD_RULE.
    if reason.contains("Rule exists") {
        return Ok(Outcome::Present);
    }
    Ok(Outcome::Refused(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_blank_lines_and_carriage_returns_are_passed_over() {
        let file = RuleFile::parse(b"# c\r\n\r\n-w /etc/passwd -p wa\r\n-b 8192\n-D\n").unwrap();
        assert_eq!(file.backlog_limit, Some(8192));
        assert_eq!(file.lines[0], (3, "-w /etc/passwd -p wa".into()));
        assert_eq!(file.lines.len(), 3);
    }

    #[test]
    fn what_is_not_text_is_named_by_its_line() {
        assert_eq!(RuleFile::parse(b"-w /a\n\xff\n").unwrap_err().0, Some(2));
        assert_eq!(RuleFile::parse(b"-w /a\n-b many\n").unwrap_err().0, Some(2));
    }

    #[test]
    fn a_file_without_rules_is_an_error() {
        assert!(RuleFile::parse(b"-D\n-e 1\n").unwrap_err().1.contains("no rule"));
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = RuleFile::parse(&bytes);
        }
    }
}
