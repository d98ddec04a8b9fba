//! A question before something that is probably not meant.

use std::io::{self, IsTerminal, Write};

use weigh_model::printable;

/// Asks on the terminal whether to go on; without one, or with another answer than yes, it is refused with
/// what to type.
pub fn ask(question: &str, flag: &str) -> Result<(), String> {
    match answer(&format!("{question}. Continue? [y/N] ")) {
        Some(true) => Ok(()),
        _ => Err(format!("{question}: add {flag} if that is what you want")),
    }
}

/// Returns true if the answer on the terminal is yes; `None` without a terminal.
pub fn answer(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let mut stderr = io::stderr();
    let asked = write!(stderr, "{}", printable::text(question)).and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.and_then(|()| io::stdin().read_line(&mut answer)).ok()?;
    Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
