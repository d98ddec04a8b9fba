//! Words in place of `{NAME}` in the command that every worker executes.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::setup::{Act, look};

/// Each name with its value; with none, what was executed is only looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilledCommand {
    pub values: Vec<(String, String)>,
}

impl FilledCommand {
    /// The file that the kernel executed, where a value names one that is none of its scripts.
    pub const PROGRAM: &str = "program";

    /// Name of the observation: the file that the kernel should execute for the value `name`.
    ///
    /// It applies to a value that names a program. A script's interpreter is the script's own
    /// affair.
    #[must_use]
    pub fn wanted(name: &str) -> String {
        format!("program of {name}")
    }

    /// The programs that values name, as they are found where the launcher is.
    pub fn programs(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.values.iter().filter_map(|(name, value)| Some((name.as_str(), program(value)?)))
    }

    /// The word with the values in it. What stands in a value stays as it is.
    fn filled(&self, word: &str) -> String {
        let mut filled = String::new();
        let mut rest = word;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            filled.push_str(before);
            let named = self.values.iter().find_map(|(name, value)| {
                let behind = from.strip_prefix('{')?.strip_prefix(name.as_str())?;
                Some((value, behind.strip_prefix('}')?))
            });
            let (value, behind) = named.map_or(("{", &from[1..]), |(value, rest)| (value, rest));
            filled.push_str(value);
            rest = behind;
        }
        filled + rest
    }
}

/// The file that would be executed for this word; `None` where there is none, or it is a script.
fn program(word: &str) -> Option<PathBuf> {
    let found = match word.contains('/') {
        true => PathBuf::from(word),
        false => env::split_paths(&env::var_os("PATH")?)
            .map(|directory| directory.join(word))
            .find(|file| file.is_file())?,
    };
    // A pipe would be waited for.
    if !found.metadata().ok()?.is_file() {
        return None;
    }
    let mut first = [0; 2];
    fs::File::open(&found).ok()?.read_exact(&mut first).ok()?;
    (first != *b"#!").then(|| found.canonicalize().ok())?
}

impl Act for FilledCommand {
    fn holds(&self) -> bool {
        true
    }

    fn command_line(&self, argv: Vec<String>) -> Vec<String> {
        argv.iter().map(|word| self.filled(word)).collect()
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        look::command_line(worker, seen)?;
        for (name, wanted) in self.programs() {
            seen.insert(FilledCommand::wanted(name), wanted.display().to_string());
            if let Ok(program) = fs::read_link(format!("/proc/{worker}/exe")) {
                seen.insert(FilledCommand::PROGRAM.into(), program.display().to_string());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_filled_and_once() {
        let values = [("a", "{b}"), ("b", "2"), ("long", "")].map(|(n, v)| (n.into(), v.into()));
        let filled = |word: &str| FilledCommand { values: values.to_vec() }.filled(word);
        assert_eq!(filled("x{a}y{b}{b}"), "x{b}y22");
        assert_eq!(filled("{c} {} {a {long}{{b}}"), "{c} {} {a {2}");
        assert_eq!(filled("ä{b}ä"), "ä2ä");
    }
}
