//! Rule files as people write them: the lines of files and directories, in the order in which the
//! system would load them.

use std::path::{Path, PathBuf};

use super::foreign_line::{described, named_file, placeholder};
use super::rule::Rule;
use super::rule_words::{is_rule, skip_reason};
use trust::user_file;

/// Far more than ten thousand rules take; what is larger is something else.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// `auditctl -R` takes what comes behind these for a line of its own (`LINE_SIZE` in auditctl.c).
pub(crate) const MAX_LINE_BYTES: usize = 6143;

/// A line of a rule file that is neither blank nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleSource {
    pub(crate) file: PathBuf,
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// Such a line, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLine {
    /// The file that it stands in.
    pub file: PathBuf,
    /// Its line there, counted from 1.
    pub number: usize,
    /// The line as it is written.
    pub text: String,
    /// Outcome of the line.
    pub outcome: LineOutcome,
    /// Warnings for a reader about the rule, as phrases.
    pub warnings: Vec<String>,
    /// The kernel's bytes of what the line loaded, in the order of adding; as a rule one. They can be
    /// deleted as they are, and added again (with [`Rule::prepended`] where `is_prepended`).
    pub rules: Vec<Rule>,
    /// True if the rule goes to the front of its list, as with `-A`.
    pub is_prepended: bool,
    /// True if the rule was loaded only for the measured processes; see [`RuleSet::confine_to`].
    pub is_confined: bool,
}

#[cfg(test)]
impl RuleLine {
    /// The first line of a file, which became this rule.
    pub(crate) fn loaded(text: &str, rule: Rule) -> RuleLine {
        RuleLine {
            file: "a.rules".into(),
            number: 1,
            text: text.into(),
            outcome: LineOutcome::Loaded,
            warnings: Vec::new(),
            rules: vec![rule],
            is_prepended: text.starts_with("-A"),
            is_confined: false,
        }
    }
}

/// Outcome of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOutcome {
    /// The kernel has its rules now.
    Loaded,
    /// This host had the very rule before; it is in force, and stays so afterwards.
    Present,
    /// `auditctl` or the kernel refused it.
    Refused(String),
    /// Not a rule but a control option, which a measurement must not carry out.
    Skipped(String),
}

/// Rule files, read but not loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    pub(crate) lines: Vec<RuleSource>,
    /// Backlog limit from the last `-b N`.
    pub backlog_limit: Option<u32>,
    /// On a host that is audited already: a login uid of ours, to whose processes every rule is confined
    /// that would take from what the host records. What cannot be confined is passed over.
    pub confine_to: Option<u32>,
}

impl RuleSet {
    /// Reads rule files; of a directory, its `*.rules` in the order of `augenrules`.
    ///
    /// # Errors
    /// A sentence with the file, and the line where there is one, that says what is wrong.
    pub fn read(paths: &[PathBuf]) -> Result<RuleSet, String> {
        let mut set = RuleSet::default();
        for path in paths {
            if path.is_dir() {
                for file in files_of(path)? {
                    set.read_file(&file)?;
                }
            } else {
                set.read_file(path)?;
            }
        }
        let can_be_rule =
            |line: &RuleSource| is_rule(&line.text) && placeholder(&line.text).is_none();
        if set.lines.iter().any(can_be_rule) {
            return Ok(set);
        }
        let where_ = match paths {
            [path] if path.is_dir() => {
                format!("{}: no rule in these files", path.display())
            }
            [path] => format!("{}: no rule in this file", path.display()),
            _ => "no rule in any of these files".into(),
        };
        if let Some(named) = named_file(set.lines.iter().map(|line| &*line.text)) {
            return Err(format!("{where_}; {named}"));
        }
        let instead = set.lines.iter().find_map(|line| {
            let reason = match skip_reason(&line.text) {
                Some(reason) => Some(reason).filter(|reason| reason.contains("include")),
                None => Some(described(&line.text)),
            };
            reason.map(|reason| format!("; line {}: {reason}", line.number))
        });
        let instead = instead.unwrap_or_default();
        Err(format!("{where_} (lines that start with -a, -A or -w){instead}"))
    }

    /// How many lines add a rule.
    pub fn rules(&self) -> usize {
        self.lines.iter().filter(|line| is_rule(&line.text)).count()
    }

    /// Its lines, without comments and blank ones.
    pub fn text(&self) -> String {
        self.lines.iter().map(|line| line.text.clone() + "\n").collect()
    }

    fn read_file(&mut self, path: &Path) -> Result<(), String> {
        let bytes = user_file::read(path, MAX_FILE_BYTES)
            .map_err(|error| format!("cannot read the rule file {}: {error}", path.display()))?;
        self.parse(path, &bytes).map_err(|(number, problem)| match number {
            Some(number) => format!("{}:{number}: {problem}", path.display()),
            None => format!("{}: {problem}", path.display()),
        })
    }

    fn parse(&mut self, path: &Path, bytes: &[u8]) -> Result<(), (Option<usize>, String)> {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            return Err((None, "this file is compressed; unpack it with `gunzip` first".into()));
        }
        for (index, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let number = index + 1;
            let text = text_of(raw).map_err(|problem| (Some(number), problem))?;
            let content = text.trim_start_matches('\t');
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if let Some(value) = text.strip_prefix("-b").filter(|_| placeholder(text).is_none()) {
                let value = value.trim();
                let limit = value.parse().map_err(|_| {
                    (Some(number), format!("`-b` takes a number of records, not `{value}`"))
                })?;
                self.backlog_limit = Some(limit);
            }
            self.lines.push(RuleSource { file: path.to_owned(), number, text: text.to_owned() });
        }
        Ok(())
    }
}

/// A line without what surrounds it, if it is one that `auditctl -R` would read as we do.
fn text_of(raw: &[u8]) -> Result<&str, String> {
    const NO_TEXT: &str = "this line is not text; is this a rule file?";
    if raw.len() > MAX_LINE_BYTES {
        return Err(format!(
            "this line has {} bytes, but `auditctl` starts a new line after {MAX_LINE_BYTES} bytes: split \
             the rule into several",
            raw.len()
        ));
    }
    // A tab is a part of a word, as of a key.
    let text = std::str::from_utf8(raw).map_err(|_| NO_TEXT)?.trim_matches([' ', '\r']);
    match text.chars().any(|c| c.is_control() && c != '\t') {
        false => Ok(text),
        true => Err(NO_TEXT.into()),
    }
}

/// The rule files of a directory, as `augenrules` orders them: those that `ls -v` shows.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let cannot =
        |error| format!("cannot read the directory of rules {}: {error}", directory.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        let bytes = name.as_encoded_bytes();
        if bytes.ends_with(b".rules") && !bytes.starts_with(b".") {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(format!("no file `*.rules` in the directory {}", directory.display()));
    }
    names.sort_by(|a, b| super::file_order::compare(a.as_encoded_bytes(), b.as_encoded_bytes()));
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(bytes: &[u8]) -> Result<RuleSet, (Option<usize>, String)> {
        let mut set = RuleSet::default();
        set.parse(Path::new("a.rules"), bytes).map(|()| set)
    }

    #[test]
    fn comments_blank_lines_and_carriage_returns_are_passed_over() {
        let set = parse(b"# c\r\n\r\n-w /etc/passwd -p wa\r\n-b 8192\n-D\n").unwrap();
        assert_eq!(set.backlog_limit, Some(8192));
        assert_eq!((set.lines[0].number, &*set.lines[0].text), (3, "-w /etc/passwd -p wa"));
        assert_eq!(set.text(), "-w /etc/passwd -p wa\n-b 8192\n-D\n");
        assert_eq!(set.rules(), 1);
    }

    #[test]
    fn what_is_not_text_is_named_by_its_line() {
        assert_eq!(parse(b"-w /a\n\xff\n").unwrap_err().0, Some(2));
        assert_eq!(parse(b"-w /a\n-w /b\0c\n").unwrap_err().0, Some(2));
        assert_eq!(parse(b"-w /a\n-b many\n").unwrap_err().0, Some(2));
        for separator in ["\r", "\u{b}", "\u{c}", "\u{85}", "\u{1b}"] {
            let line = format!("-w /etc -k{separator} -f 0 # c");
            assert_eq!(parse(line.as_bytes()).unwrap_err().0, Some(1), "{separator:?}");
        }
        let tabs = parse(b"\t# a\tb\n \t\n\t-w /a\t\r\n").unwrap().lines;
        assert_eq!((tabs.len(), tabs[0].number, &*tabs[0].text), (1, 3, "\t-w /a\t"));
        assert!(parse(&[0x1f, 0x8b, 8, 0]).unwrap_err().1.contains("gunzip"));
    }

    #[test]
    fn a_line_that_auditctl_would_cut_is_refused_comments_too() {
        for beginning in ["-w /etc -p wa", "# c", ""] {
            let line = |bytes: usize| {
                format!("{beginning}{}-D\n", " ".repeat(bytes - beginning.len() - 2))
            };
            assert!(parse(line(6143).as_bytes()).is_ok(), "{beginning}");
            let (number, said) = parse(format!("-w /a\n{}", line(6144)).as_bytes()).unwrap_err();
            assert!(number == Some(2) && said.contains("rule into several"), "{said}");
        }
    }

    #[test]
    fn a_directory_is_read_in_the_order_of_augenrules() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["100-c.rules", "9-a.rules", "10-b.rules", ".hidden.rules", "9-a.rules.bak"] {
            std::fs::write(directory.path().join(name), format!("-w /{name}\n")).unwrap();
        }
        let set = RuleSet::read(&[directory.path().to_owned()]).unwrap();
        let texts: Vec<&str> = set.lines.iter().map(|line| &*line.text).collect();
        assert_eq!(texts, ["-w /9-a.rules", "-w /10-b.rules", "-w /100-c.rules"]);
    }

    #[test]
    fn what_has_no_rules_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let read = |path: &Path| RuleSet::read(&[path.to_owned()]).unwrap_err();
        assert!(read(directory.path()).contains("no file `*.rules`"));
        let file = directory.path().join("a.rules");
        std::fs::write(&file, "-D\n-e 1\n").unwrap();
        assert!(read(&file).contains("no rule in this file"));
        assert!(read(directory.path()).contains("no rule in these files"));
        let both = RuleSet::read(&[file.clone(), file.clone()]).unwrap_err();
        assert!(both.contains("no rule in any of these files"), "{both}");
        std::fs::write(&file, "include other.rules\n").unwrap();
        assert!(read(&file).contains("line 1: `auditctl` cannot include a file"));
        std::fs::write(&file, "#!/bin/sh\n-D\nauditctl -w /etc/passwd -p wa\n").unwrap();
        assert!(read(&file).contains("line 3: it is a line of a shell script"));
        std::fs::write(&file, "-b {{ backlog }}\n").unwrap();
        assert!(read(&file).ends_with("no rule in this file (lines that start with -a, -A or -w)"));
        assert!(read(Path::new("/dev/null")).contains("not a regular file"));
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
