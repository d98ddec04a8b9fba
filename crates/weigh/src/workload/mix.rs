//! Mixes: what the users of a multi-user load do, as jobs of several kinds in given proportions. Those of
//! `suites/load/` are embedded; any other file is given by its path, ours in TOML or one of re-aim's.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::workfile::{self, Workfile};
use trust::user_file;

/// Before the name of a mix, where a workload is expected.
pub const PREFIX: &str = "load:";
/// The same of a grid of network cells.
pub const GRID: &str = "net:";
const LONGEST_FILE: u64 = 1 << 20;

static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/mixes.rs"));

/// A mix of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobMix {
    pub name: String,
    /// One line.
    pub summary: String,
    /// Where the weights are from.
    pub source: Option<String>,
    /// What the weights are parts of, where that is not their sum.
    pub total: Option<f64>,
    /// The files of its disk jobs, where it says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_kib: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_kib: Option<u64>,
    /// Workloads, and the weight of each.
    pub tests: BTreeMap<String, f64>,
}

/// How much each user of a mix does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSizes {
    /// About how many jobs.
    pub jobs: u32,
    /// Files of disk jobs have so much, and each user's share of the pool besides; otherwise as the mix says.
    pub file_kib: Option<u64>,
    pub pool_kib: Option<u64>,
    /// When a user begins a job.
    #[serde(default)]
    pub pace: JobPace,
}

/// When jobs begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum JobPace {
    /// Each when the one before it is done.
    #[default]
    AtOnce,
    /// So many microseconds after it.
    Thinking(u64),
    /// Those of all users together so many times in 1000 s, whether others are done or not.
    Arriving(u64),
}

impl Default for JobSizes {
    fn default() -> JobSizes {
        JobSizes { jobs: 100, file_kib: None, pool_kib: None, pace: JobPace::AtOnce }
    }
}

/// Those of re-aim's own configuration.
const FILE_KIB: u64 = 10;
const POOL_KIB: u64 = 1024;

impl JobSizes {
    /// The files of one of so many users (classic-suites.md, 3.2).
    pub fn kib_of(&self, users: usize, mix: &JobMix) -> u64 {
        let file_kib = self.file_kib.or(mix.file_kib).unwrap_or(FILE_KIB);
        let pool_kib = self.pool_kib.or(mix.pool_kib).unwrap_or(POOL_KIB);
        (file_kib + pool_kib / users as u64).max(1)
    }

    /// How long the pace alone makes so many jobs of each of these users last.
    pub fn pace_ms(&self, users: usize, jobs_of_user: u64) -> u64 {
        match self.pace {
            JobPace::AtOnce => 0,
            JobPace::Thinking(us) => us.saturating_mul(jobs_of_user) / 1000,
            JobPace::Arriving(per_1000s) => {
                (jobs_of_user * users as u64).saturating_mul(1_000_000) / per_1000s.max(1)
            }
        }
    }
}

/// A mix of the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixFromFile {
    /// As the user named it.
    pub file: String,
    pub mix: JobMix,
}

impl JobMix {
    /// How many jobs of each test a user does where he is to do about `jobs` in all. re-aim's rule
    /// (classic-suites.md, 3.2): to the nearest, but one of each at least.
    pub fn jobs_per_user(&self, jobs: u32) -> Vec<(&str, u32)> {
        let total = self.total.unwrap_or_else(|| self.tests.values().sum());
        let count = |weight: f64| {
            let exact = weight / total * f64::from(jobs);
            let whole = exact.trunc();
            let is_more = exact - whole >= 0.5 || (whole == 0.0 && exact > 0.0);
            whole as u32 + u32::from(is_more)
        };
        self.tests.iter().map(|(name, weight)| (name.as_str(), count(*weight))).collect()
    }

    /// # Errors
    /// A sentence, where no user would have anything to do.
    fn checked(self, file: &str) -> Result<JobMix, String> {
        if self.tests.is_empty() {
            return Err(format!("{file}: the mix has no tests"));
        }
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0 && *weight <= 1e9;
        if let Some((name, weight)) = self.tests.iter().find(|(_, weight)| !is_weight(weight)) {
            return Err(format!("{file}: the weight of `{name}` is {weight}: 0 to 1000000000"));
        }
        let sum: f64 = self.tests.values().sum();
        if sum <= 0.0 {
            return Err(format!("{file}: all weights are 0: nobody would have anything to do"));
        }
        match self.total {
            Some(total) if !(total.is_finite() && total >= sum) => {
                Err(format!("{file}: the total is {total}, but the weights add up to {sum}"))
            }
            _ => Ok(self),
        }
    }
}

/// The mixes that are built in, sorted by name.
///
/// # Errors
/// Where an embedded file is broken, which the tests forbid.
pub fn embedded() -> Result<Vec<JobMix>, String> {
    let parse = |(name, text): &(&str, &str)| parse(&format!("suites/load/{name}.toml"), text);
    EMBEDDED.iter().map(parse).collect()
}

/// Reads those of these labels that name a file, each once, and says in sentences what is doubtful in them.
///
/// # Errors
/// A sentence with the file, the line, and what is wrong.
pub fn from_files(labels: &[String]) -> Result<(Vec<MixFromFile>, Vec<String>), String> {
    let (mut files, mut doubts): (Vec<MixFromFile>, Vec<String>) = Default::default();
    let named = labels.iter().filter_map(|label| label.strip_prefix(PREFIX));
    for file in named.filter(|name| name.contains(['/', '.'])) {
        if !files.iter().any(|other| other.file == file) {
            let (mix, of_it) = read(Path::new(file))?;
            files.push(MixFromFile { file: file.to_owned(), mix });
            doubts.extend(of_it);
        }
    }
    Ok((files, doubts))
}

fn read(path: &Path) -> Result<(JobMix, Vec<String>), String> {
    let text = user_file::read_text(path, LONGEST_FILE)
        .map_err(|error| format!("cannot read the mix {}: {error}", path.display()))?;
    let file = path.display().to_string();
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Ok((parse(&file, &text)?, Vec::new()));
    }
    let workfile = workfile::parse(&file, &text)?;
    let Workfile { hits: tests, total, file_kib, pool_kib, doubts } = workfile;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mix = JobMix {
        name: name.strip_prefix("workfile.").unwrap_or(&name).to_owned(),
        summary: format!("the workfile {file}"),
        source: None,
        total: Some(total),
        file_kib,
        pool_kib,
        tests,
    };
    Ok((mix.checked(&file)?, doubts))
}

fn parse(file: &str, text: &str) -> Result<JobMix, String> {
    let mix: JobMix = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        format!("{file}:{line}: {}", error.message())
    })?;
    mix.checked(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many jobs a user does of each mix with `-j100` (classic-suites.md, 3.2).
    #[test]
    fn users_do_as_many_jobs_as_with_re_aim() {
        let expected = [
            ("aim9", 120),
            ("all_utime", 102),
            ("alltests", 98),
            ("compute", 101),
            ("custom", 95),
            ("dbase", 99),
            ("disk", 100),
            ("five_sec", 99),
            ("fserver", 101),
            ("high_systime", 104),
            ("long", 108),
            ("new_dbase", 103),
            ("new_fserver", 98),
            ("shared", 97),
            ("short", 102),
        ];
        let mixes = embedded().unwrap();
        let found: Vec<(&str, u32)> = mixes
            .iter()
            .map(|mix| {
                let jobs = mix.jobs_per_user(JobSizes::default().jobs);
                (mix.name.as_str(), jobs.iter().map(|(_, count)| count).sum())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_small_share_is_one_job_and_none_is_none() {
        let tests = [("a", 1.0), ("b", 1000.0), ("c", 0.0)].map(|(n, w)| (n.to_owned(), w));
        let tests = BTreeMap::from(tests);
        let summary = String::new();
        let (file_kib, pool_kib) = (Some(100), Some(1000));
        let name = "x".into();
        let mix = JobMix { name, summary, source: None, total: None, file_kib, pool_kib, tests };
        let sizes = |file_kib| JobSizes { file_kib, ..JobSizes::default() };
        assert_eq!(sizes(None).kib_of(10, &mix), 200, "the mix's own");
        assert_eq!(sizes(Some(5)).kib_of(10, &mix), 105, "the command line's");
        assert_eq!(mix.jobs_per_user(100), [("a", 1), ("b", 100), ("c", 0)]);
    }

    #[test]
    fn what_gives_no_work_is_refused_with_the_file() {
        let head = "name = \"x\"\nsummary = \"y\"\n";
        for (tests, why) in [
            ("[tests]\n", "has no tests"),
            ("[tests]\na = 0\n", "all weights are 0"),
            ("[tests]\na = -1\n", "the weight of `a` is -1"),
            ("total = 1\n[tests]\na = 2\n", "the total is 1"),
            ("[tests]\na = 1\na = 2\n", "x.toml:5"),
            ("sizes = 3\n[tests]\na = 1\n", "x.toml:3"),
        ] {
            let problem = parse("x.toml", &format!("{head}{tests}")).unwrap_err();
            assert!(problem.contains(why) && problem.starts_with("x.toml"), "{problem}");
        }
    }
}
