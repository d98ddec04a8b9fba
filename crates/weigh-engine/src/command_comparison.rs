//! Commands against each other: each is an arm, and the first is the baseline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use weigh_model::shell::{command_line, words};
use weigh_treatment::Named;
use weigh_treatment::command_arm::CommandArm;
use weigh_workload::launcher::Launched;

/// The commands, and what is asked of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandComparison {
    /// The words before a command, such as `/bin/sh -c`; none where commands are executed without a shell.
    pub shell: Vec<String>,
    /// As they were written, the baseline first.
    pub lines: Vec<String>,
    /// Labels of the commands; all different.
    pub labels: Vec<String>,
    /// Values of the parameters in each command, by name; empty where the user gave none.
    #[serde(default)]
    pub parameters: Vec<BTreeMap<String, String>>,
    pub expected: ExpectedExit,
    /// True if all commands must write equal output to stdout.
    pub same_output: bool,
    /// True if the output of each command in a first launch is shown.
    pub show_output: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedExit {
    Any,
    Codes(Vec<u8>),
}

impl Default for ExpectedExit {
    fn default() -> ExpectedExit {
        ExpectedExit::Codes(vec![0])
    }
}

impl ExpectedExit {
    pub fn allows(&self, code: i32) -> bool {
        match self {
            ExpectedExit::Any => true,
            ExpectedExit::Codes(codes) => codes.iter().any(|wanted| i32::from(*wanted) == code),
        }
    }
}

impl CommandComparison {
    /// Each command word by word, as it is executed.
    pub fn argvs(&self) -> Result<Vec<Vec<String>>, String> {
        self.lines.iter().map(|line| self.argv(line)).collect()
    }

    fn argv(&self, line: &str) -> Result<Vec<String>, String> {
        if line.trim().is_empty() {
            return Err("a command is empty; is a shell variable unset?".into());
        }
        if !self.shell.is_empty() {
            return Ok(self.shell.iter().cloned().chain([line.to_owned()]).collect());
        }
        let words =
            words(line).map_err(|problem| format!("`{line}` is not a valid command: {problem}"))?;
        match words.iter().find(|word| is_operator(line, word)) {
            Some(operator) => {
                Err(format!("`{operator}` in `{line}` needs a shell: leave out --no-shell (-N)"))
            }
            None => Ok(words),
        }
    }

    pub fn treatments(&self) -> Result<Vec<Named>, String> {
        let arms = self.argvs()?.into_iter().zip(&self.lines).zip(&self.labels);
        let named = arms.map(|((argv, line), label)| {
            let by = match self.shell.is_empty() {
                true => "without a shell".into(),
                false => format!("by `{}`", command_line(self.shell.iter().map(String::as_str))),
            };
            let facts = vec![format!("The command is `{line}`, executed {by}.")];
            let treatment = Box::new(CommandArm { argv, facts });
            Named { label: label.clone(), kinds: Vec::new(), treatment }
        });
        Ok(named.collect())
    }

    /// The words that name programs: a shell, and what the commands begin with as far as that can be told.
    pub fn programs(&self) -> Vec<String> {
        let is_assignment = |word: &String| {
            let name = word.split_once('=').map(|(name, _)| name);
            name.is_some_and(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
        };
        let first = |line: &String| words(line).ok()?.into_iter().find(|word| !is_assignment(word));
        self.shell.first().cloned().into_iter().chain(self.lines.iter().filter_map(first)).collect()
    }

    /// Describes how the output of a launch differs from the expected one, if outputs are compared.
    pub fn difference(&self, launched: &Launched) -> Option<String> {
        let found = launched.difference.as_ref()?;
        let line = found.line;
        let first = format!("the first launch of `{}`", self.labels[0]);
        Some(match (&found.expected, &found.found) {
            (_, None) => {
                format!("its output ends before line {line}, but the output of {first} does not")
            }
            (None, Some(more)) => {
                format!("its output has a line {line}, `{more}`, which the output of {first} lacks")
            }
            (Some(expected), Some(found)) if expected == found => {
                format!(
                    "line {line} of its output, `{found}`, has a different line ending than in {first}"
                )
            }
            (Some(expected), Some(found)) => {
                format!("line {line} of its output is `{found}`, but `{expected}` in {first}")
            }
        })
    }
}

/// Labels that are all different: one that comes again has a number.
pub fn distinct(labels: Vec<String>) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut distinct: Vec<String> = Vec::new();
    for label in &labels {
        let times = seen.entry(label.clone()).or_default();
        *times += 1;
        let mut number = *times;
        let mut own = if number == 1 { label.clone() } else { format!("{label} ({number})") };
        while distinct.contains(&own) {
            number += 1;
            own = format!("{label} ({number})");
        }
        distinct.push(own);
    }
    distinct
}

/// Returns true if a shell would take this word of the line as an operator: it is one, and not quoted.
fn is_operator(line: &str, word: &str) -> bool {
    const OPERATORS: [&str; 9] = ["|", "||", "&", "&&", ";", "<", ">", ">>", "2>&1"];
    OPERATORS.contains(&word) && line.split_whitespace().any(|written| written == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_workload::stdout_use::OutputDifference;

    fn contest(shell: &[&str], lines: &[&str]) -> CommandComparison {
        let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        CommandComparison {
            shell: strings(shell),
            lines: strings(lines),
            labels: strings(lines),
            ..CommandComparison::default()
        }
    }

    #[test]
    fn a_command_is_one_word_for_a_shell_and_several_without() {
        let argvs = |shell: &[&str], line: &str| contest(shell, &[line]).argvs();
        assert_eq!(argvs(&["bash", "-c"], "a | b").unwrap(), [["bash", "-c", "a | b"]]);
        assert_eq!(argvs(&[], "a 'b c' \"d\"").unwrap(), [["a", "b c", "d"]]);
        assert!(argvs(&[], "a 'b").unwrap_err().contains("`a 'b` is not a valid command: a quote"));
        for (line, operator) in [("a | b", "|"), ("a && b", "&&"), ("a >f 2>&1", "2>&1")] {
            let said = format!("`{operator}` in `{line}` needs a shell: leave out --no-shell (-N)");
            assert_eq!(argvs(&[], line).unwrap_err(), said);
        }
        assert_eq!(argvs(&[], "grep '|' f").unwrap(), [["grep", "|", "f"]], "quoted");
        assert!(argvs(&["sh", "-c"], " ").unwrap_err().contains("empty"));
    }

    #[test]
    fn programs_are_told_from_assignments() {
        let programs = contest(&["/bin/sh", "-c"], &["A=1 ./old --x=1", "(", "a=b/c d"]).programs();
        assert_eq!(programs, ["/bin/sh", "./old", "(", "d"]);
    }

    #[test]
    fn labels_are_all_different() {
        let labels = ["a", "a", "b", "a (2)", "a"].map(str::to_owned).to_vec();
        assert_eq!(distinct(labels), ["a", "a (2)", "b", "a (2) (2)", "a (3)"]);
    }

    #[test]
    fn what_differs_is_said() {
        let said = |expected: Option<&str>, found: Option<&str>| {
            let [expected, found] = [expected, found].map(|text| text.map(str::to_owned));
            let difference = Some(OutputDifference { line: 3, expected, found });
            let launched = Launched { difference, ..Launched::default() };
            contest(&[], &["old"]).difference(&launched).unwrap()
        };
        let told = said(Some("a"), Some("b"));
        assert_eq!(told, "line 3 of its output is `b`, but `a` in the first launch of `old`");
        let shorter =
            "its output ends before line 3, but the output of the first launch of `old` does not";
        assert_eq!(said(Some("a"), None), shorter);
        let longer =
            "its output has a line 3, `b`, which the output of the first launch of `old` lacks";
        assert_eq!(said(None, Some("b")), longer);
        assert!(
            said(Some("a"), Some("a"))
                .contains("line 3 of its output, `a`, has a different line ending")
        );
    }
}
