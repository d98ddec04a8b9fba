//! Findings of the checks of the machine.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It makes results wrong or needlessly wide; in every report.
    Warning,
    /// Worth knowing: it limits what a result says, or could not be seen; in the JSON and HTML of every
    /// report.
    Note,
    Good,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Subject of the check, e.g. `CPU governor`.
    pub name: String,
    pub severity: Severity,
    /// How it is now, e.g. `powersave`.
    pub now: String,
    /// Effect of the finding on a measurement, a whole sentence.
    pub effect: String,
    /// How to fix it, a whole sentence with the command between backticks.
    #[serde(rename = "mend", skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    /// A finding without a fix.
    pub fn new(name: &str, severity: Severity, now: impl Into<String>, effect: &str) -> Finding {
        Finding { name: name.into(), severity, now: now.into(), effect: effect.into(), fix: None }
    }

    pub fn fix(self, how: &str) -> Finding {
        Finding { fix: Some(how.into()), ..self }
    }

    /// All of it in one line, for the warnings of a report.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.name, self.without_name())
    }

    /// Formats the finding without its name, for a table that shows the name in another column.
    pub fn without_name(&self) -> String {
        let fix = self.fix.as_deref().map(|fix| format!(" {fix}")).unwrap_or_default();
        format!("{}. {}{fix}", self.now, self.effect)
    }
}
