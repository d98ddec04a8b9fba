//! Words in place of `{NAME}` in the command that every worker executes.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::workload::setup::{Act, look};

/// Each name with its value; with none, what was executed is only looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FilledCommand {
    pub values: Vec<(String, String)>,
}

impl FilledCommand {
    /// The command line of the program as it was executed, as in `/proc/PID/cmdline`; absent where it ended
    /// before anybody could look.
    pub const SEEN: &str = "command line";

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

impl Act for FilledCommand {
    fn holds(&self) -> bool {
        true
    }

    fn command_line(&self, argv: Vec<String>) -> Vec<String> {
        argv.iter().map(|word| self.filled(word)).collect()
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        if let Some(found) = look::of_program(worker, "cmdline")? {
            seen.insert(FilledCommand::SEEN.into(), String::from_utf8_lossy(&found).into_owned());
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
