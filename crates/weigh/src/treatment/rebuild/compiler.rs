//! A compiler of this machine and what it is told.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::jobs::Jobs;
use crate::shell::{command_line, words};
use trust::program;

/// What the build of `weigh` uses, too.
const DEFAULT: &str = "cc";

const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// A program, and the words of its command line that the user wrote.
#[derive(Clone, Debug)]
pub struct Compiler {
    pub file: PathBuf,
    pub cflags: Vec<String>,
    pub ldflags: Vec<String>,
}

impl Compiler {
    /// By its name or path, as on a command line.
    ///
    /// # Errors
    /// A sentence, where there is none, or a quote is not closed.
    pub fn named(
        name: Option<&str>,
        cflags: &str,
        ldflags: Option<&str>,
    ) -> Result<Compiler, String> {
        let named = name.unwrap_or(DEFAULT);
        let file = program::named(named).map_err(|problem| {
            format!("cc={named}: {problem}. Install a C compiler, or write the path of one")
        })?;
        let split = |key: &str, text: &str| {
            words(text).map_err(|problem| format!("{key}={text}: {problem}"))
        };
        let ldflags = ldflags.unwrap_or_default();
        Ok(Compiler { file, cflags: split("cflags", cflags)?, ldflags: split("ldflags", ldflags)? })
    }

    /// The flags, as they are typed.
    pub fn flags(&self) -> String {
        let line = |words: &[String]| command_line(words.iter().map(String::as_str));
        match self.ldflags.is_empty() {
            true => line(&self.cflags),
            false => format!("{}, linked with {}", line(&self.cflags), line(&self.ldflags)),
        }
    }

    /// What it says that it is, in a line.
    ///
    /// # Errors
    /// A sentence, where it says nothing.
    pub fn version(&self) -> Result<String, String> {
        let never = AtomicBool::new(false);
        let jobs = Jobs { directory: "/".as_ref(), interrupted: &never, limit: VERSION_LIMIT };
        let command = vec![self.file.display().to_string(), "--version".into()];
        let said = jobs.run_all(&[command]).map_err(|error| error.to_string())?.concat();
        let line = said.lines().next().unwrap_or_default().trim();
        if line.is_empty() { Err("of an unknown version".into()) } else { Ok(line.to_owned()) }
    }
}
