//! Treatments and fixtures as a command line names them: their parameters, and the result of
//! probing for them. Each has a file of its own.

use serde::Serialize;

use crate::label::Term;

/// A kind of treatment, place or fixture: what `audit`, `vm` or `fs` stands for before it has parameters.
pub struct Kind {
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    /// Tries what it needs, and changes nothing; the sentence says what to install.
    pub probe: fn() -> Probe,
}

/// Result of probing for something on this machine: it works, or the reason it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "why", rename_all = "kebab-case")]
pub enum Probe {
    Available,
    NeedsRoot(String),
    /// Something on this host is in the way.
    Conflict(String),
    /// The kernel cannot, or answers in a way that we do not understand.
    Broken(String),
}

impl Probe {
    /// The sentence that says why not; `None` where it works.
    pub fn obstacle(&self) -> Option<&str> {
        match self {
            Probe::Available => None,
            Probe::NeedsRoot(why) | Probe::Conflict(why) | Probe::Broken(why) => Some(why),
        }
    }
}

/// A parameter, as `weigh list` explains it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameter {
    /// As it is written: `backlog=N`, or a bare word. What is in capitals stands for anything: `PATH`,
    /// `NAME=VALUE`.
    pub form: &'static str,
    pub help: &'static str,
}

/// Refuses parameters that none of these forms allows.
pub fn check_parameters(term: &Term, known: &[Parameter]) -> Result<(), String> {
    for (key, value) in term.parameters.iter() {
        let is_known = known.iter().any(|parameter| match parameter.form.split_once('=') {
            Some((head, _)) => value.is_some() && is_of_form(key, head),
            None => value.is_none() && (key == parameter.form || is_placeholder(parameter.form)),
        });
        if !is_known {
            let forms: Vec<&str> = known.iter().map(|parameter| parameter.form).collect();
            let takes = if forms.is_empty() { "nothing".into() } else { forms.join(", ") };
            let equals = if value.is_some() { "=" } else { "" };
            return Err(format!("`{}` does not take `{key}{equals}`; it takes {takes}", term.name));
        }
    }
    Ok(())
}

/// Returns true if a key has this form: the key itself, or a placeholder. `mariadb.NAME` is the
/// form of all keys that begin with `mariadb.`.
pub fn is_of_form(key: &str, form: &str) -> bool {
    let begins = |prefix: &str| key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
    let is_one_of = |(prefix, name): (&str, &str)| is_placeholder(name) && begins(prefix);
    key == form || is_placeholder(form) || form.split_once('.').is_some_and(is_one_of)
}

/// Returns true if a word in the form of a parameter is a placeholder for user input.
pub fn is_placeholder(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || c == '-' || c == '.')
}
