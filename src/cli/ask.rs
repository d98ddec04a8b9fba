//! A question before something that is probably not meant.

use std::io::{self, IsTerminal, Write};

/// Asks on the terminal whether to go on; without one, or with another answer than yes, it is refused with
/// what to type.
///
/// # Errors
/// A sentence, where the answer is not yes.
pub fn ask(question: &str, flag: &str) -> Result<(), String> {
    let refused = || Err(format!("{question}: add {flag} if that is what you want"));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refused();
    }
    let mut stderr = io::stderr();
    let asked = write!(stderr, "{question}. Go on? [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    if asked.and_then(|()| io::stdin().read_line(&mut answer)).is_err() {
        return refused();
    }
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => refused(),
    }
}
