//! re-aim's configuration files: a key and a value a line, of which the first letter of the key decides, and
//! `#` before a comment (classic-suites.md, 3.1).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::workload::mix::disk_directory;
use crate::workload::workfile::size_kib;
use trust::user_file;

const LONGEST_FILE: u64 = 1 << 20;
/// re-aim's own limit of disk directories.
const MOST_DIRECTORIES: usize = 255;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReaimConfig {
    pub file_kib: Option<u64>,
    pub pool_kib: Option<u64>,
    pub disk_directories: Vec<PathBuf>,
    pub start_users: Option<u32>,
    pub end_users: Option<u32>,
    pub increment: Option<u32>,
    pub jobs: Option<u32>,
    /// True if the ramp goes on to the crossover.
    pub to_crossover: bool,
}

impl ReaimConfig {
    pub fn read(path: &Path) -> Result<ReaimConfig, String> {
        let text = user_file::read_text(path, LONGEST_FILE).map_err(|error| {
            format!("cannot read the configuration {}: {error}", path.display())
        })?;
        parse(&path.display().to_string(), &text)
    }
}

fn parse(file: &str, text: &str) -> Result<ReaimConfig, String> {
    let mut config = ReaimConfig::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            config.add(line).map_err(|why| format!("{file}:{}: {why}", number + 1))?;
        }
    }
    let (start, end) = (config.start_users.unwrap_or(1), config.end_users.unwrap_or(u32::MAX));
    if start > end {
        return Err(format!("{file}: STARTUSERS ({start}) is more than ENDUSERS ({end})"));
    }
    Ok(config)
}

impl ReaimConfig {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (key, value) = (key.trim_end_matches(':'), value.trim());
        let size = || {
            let joined: String = value.split_whitespace().collect();
            let plain = joined.parse().ok();
            size_kib(&joined).or(plain).ok_or(format!("{key} takes a number and K or M"))
        };
        let number = |least: u32, most: u32| {
            let number = value.parse().ok().filter(|n| (least..=most).contains(n));
            number.map(Some).ok_or(format!("{key} takes a number from {least} to {most}"))
        };
        match key.chars().next().map(|letter| letter.to_ascii_uppercase()) {
            Some('F') => self.file_kib = Some(size()?),
            Some('P') => self.pool_kib = Some(size()?),
            Some('D') if value.is_empty() => return Err(format!("{key} takes a directory")),
            Some('D') if self.disk_directories.len() >= MOST_DIRECTORIES => {
                return Err(format!("there are more than {MOST_DIRECTORIES} disk directories"));
            }
            Some('D') => {
                let directory = disk_directory(Path::new(value));
                let directory = directory.map_err(|why| format!("{key} {value}: {why}"))?;
                self.disk_directories.push(directory);
            }
            Some('S') => self.start_users = number(1, 1_000_000)?,
            Some('E') => self.end_users = number(1, 999_999_999)?,
            Some('I') => self.increment = number(1, 1_000_000)?,
            Some('J') => self.jobs = number(1, 1_000_000)?,
            // A switch: it may have a number behind it, of which 0 turns it off.
            Some('C') => self.to_crossover = value != "0",
            // What is printed, which is not re-aim's here.
            Some('V' | 'B') => {}
            _ => {
                return Err(format!(
                    "`{key}` is not one of FILESIZE, POOLSIZE, DISKDIR, STARTUSERS, ENDUSERS, INCREMENT, \
                     JOBS, CROSSOVER, VERBOSE, BRIEF"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn re_aims_own_configuration_is_read() {
        let home = tempfile::tempdir().unwrap();
        let own = std::fs::canonicalize(home.path()).unwrap().join("b c");
        std::fs::create_dir(&own).unwrap();
        let text = "# re-aim's\nFILESIZE 10k\nPOOLSIZE 1 M\nDISKDIR /tmp\nDISKDIR OWN\n\
                    STARTUSERS 2\nENDUSERS 20\nINCREMENT 3\nJOBS 50 # a user's\nVERBOSE 1\nCROSSOVER\n";
        let expected = ReaimConfig {
            file_kib: Some(10),
            pool_kib: Some(1024),
            disk_directories: vec!["/tmp".into(), own.clone()],
            start_users: Some(2),
            end_users: Some(20),
            increment: Some(3),
            jobs: Some(50),
            to_crossover: true,
        };
        let text = text.replace("OWN", &own.display().to_string());
        assert_eq!(parse("reaim.config", &text), Ok(expected));
        // The first letter decides, as with re-aim; a number without a unit is in KB.
        assert_eq!(parse("x", "files 7\n").unwrap().file_kib, Some(7));
        assert_eq!(parse("x", "CROSSOVER 0\n").unwrap(), ReaimConfig::default());
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (line, why) in [
            ("FILESIZE big", "x:2: FILESIZE takes a number and K or M"),
            ("DISKDIR", "x:2: DISKDIR takes a directory"),
            ("DISKDIR nowhere", "x:2: DISKDIR nowhere: there is no such directory"),
            ("STARTUSERS 0", "x:2: STARTUSERS takes a number from 1"),
            ("INCREMENT -1", "x:2: INCREMENT takes"),
            ("JOBS many", "x:2: JOBS takes"),
            ("USERS 4", "x:2: `USERS` is not one of FILESIZE"),
            ("ENDUSERS 3\nSTARTUSERS 4", "x: STARTUSERS (4) is more than"),
        ] {
            let problem = parse("x", &format!("# one\n{line}\n")).unwrap_err();
            assert!(problem.starts_with(why), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in "(?s).{0,200}") {
            let _ = parse("x", &text);
        }
    }
}
