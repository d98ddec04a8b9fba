//! Where lines stand: `30-stig.rules:41`, and many of them in few words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Line, RuleReport};
use crate::report::format;

/// How files are called in a report: by their names, or by their paths where two have one name.
pub struct Files<'a>(BTreeMap<&'a Path, String>);

impl<'a> Files<'a> {
    pub fn of(r: &'a RuleReport) -> Files<'a> {
        let name = |path: &Path| path.file_name().map_or_else(PathBuf::new, PathBuf::from);
        let mut paths: Vec<&Path> = r.lines.iter().map(|line| line.file.as_path()).collect();
        paths.sort_unstable();
        paths.dedup();
        let shown = paths.iter().map(|path| {
            let is_clear = paths.iter().filter(|other| name(other) == name(path)).count() == 1;
            let shown = if is_clear { name(path) } else { path.to_path_buf() };
            (*path, format::label(&shown.display().to_string()))
        });
        Files(shown.collect())
    }

    /// The names of all files, in the order of their paths.
    pub fn all(&self) -> Vec<String> {
        self.0.values().cloned().collect()
    }

    fn name(&self, line: &Line) -> &str {
        self.0.get(line.file.as_path()).map_or("", String::as_str)
    }

    /// As compilers write it, so that editors know it: `30-stig.rules:41`.
    pub fn place(&self, line: &Line) -> String {
        format!("{}:{}", self.name(line), line.number)
    }

    /// Lines with their common reason: `unknown field: a.rules:3, 7–9 (4 lines)`.
    pub fn grouped<'b>(&self, said: impl Iterator<Item = (String, &'b Line)>) -> Vec<String> {
        let mut groups: Vec<(String, Vec<&Line>)> = Vec::new();
        for (reason, line) in said {
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, lines)) => lines.push(line),
                None => groups.push((reason, vec![line])),
            }
        }
        groups.iter().map(|(reason, lines)| format!("{}: {reason}", self.places(lines))).collect()
    }

    /// The places of lines, neighbours joined: `a.rules:3, 7–9; b.rules:1`.
    pub fn places(&self, lines: &[&Line]) -> String {
        let mut text = String::new();
        let mut run: Option<(&Line, usize)> = None;
        for line in lines {
            match run {
                Some((first, last)) if first.file == line.file && last + 1 == line.number => {
                    run = Some((first, line.number));
                }
                Some((first, last)) => {
                    text += &ending(first, last);
                    let is_same = first.file == line.file;
                    let place = self.place(line);
                    text +=
                        &if is_same { format!(", {}", line.number) } else { format!("; {place}") };
                    run = Some((line, line.number));
                }
                None => {
                    text = self.place(line);
                    run = Some((line, line.number));
                }
            }
        }
        text + &run.map_or_else(String::new, |(first, last)| ending(first, last))
    }
}

/// The end of a run of lines, if it is more than its beginning.
fn ending(first: &Line, last: usize) -> String {
    if last > first.number { format!("–{last}") } else { String::new() }
}
