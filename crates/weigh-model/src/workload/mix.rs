//! Mixes: what the users of a multi-user load do, as jobs of several kinds in given proportions. Those of
//! `suites/load/` are embedded; any other file is given by its path, ours in TOML or one of re-aim's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::shell;
use crate::workload::mix_label::MixLabel;
use crate::workload::toml_problem;
use crate::workload::workfile;
use crate::workload::workfile::Workfile;
use trust::allowed::executable;
use trust::user_file;

/// Before the name of a mix, where a workload is expected.
pub const PREFIX: &str = "load:";
/// Prefix of the name of a grid of network cells, where a workload is expected.
pub const GRID: &str = "net:";
const LONGEST_FILE: u64 = 1 << 20;

static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/mixes.rs"));

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobMix {
    pub name: String,
    /// One line.
    pub summary: String,
    /// Where the weights are from.
    pub source: Option<String>,
    /// Total that the weights are parts of, where it differs from their sum.
    pub total: Option<f64>,
    /// The files of its disk jobs, where it says so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_kib: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_kib: Option<u64>,
    /// How many jobs each user does, how long it waits after each, and how much memory `resident` keeps,
    /// where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_mib: Option<u64>,
    /// Workloads, and the weight of each.
    #[serde(default)]
    pub tests: BTreeMap<String, f64>,
    /// Programs that are run as jobs, by a name of the user's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, MixCommand>,
}

/// A program that is run as a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixCommand {
    /// Its words, as a shell would split them; there is no shell.
    pub run: String,
    pub weight: f64,
}

/// How much each user of a mix does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSizes {
    /// About how many jobs; otherwise as the mix says, or 100.
    pub jobs: Option<u32>,
    /// Files of disk jobs have so much, and each user's share of the pool besides; otherwise as the mix says.
    pub file_kib: Option<u64>,
    pub pool_kib: Option<u64>,
    /// Size of each block that disk jobs read or write; otherwise 1.
    pub block_kib: Option<u64>,
    /// Default file size from a configuration of re-aim, where the mix does not state one.
    pub usual_file_kib: Option<u64>,
    pub usual_pool_kib: Option<u64>,
    /// When a user begins a job.
    #[serde(default)]
    pub pace: JobPace,
    /// Jobs are done again and again for so long, in place of each once.
    pub period_ms: Option<u64>,
    pub resident_mib: Option<u64>,
    /// Where disk jobs make their files, one after the other; otherwise in each user's directory.
    #[serde(default)]
    pub disk_directories: Vec<PathBuf>,
    /// Directory that `disk_src` searches in place of a tree of its own.
    pub disk_tree: Option<PathBuf>,
    /// The file that jobs read parts of is so large a share of memory; how much that is, is known where it is
    /// made.
    pub beyond_cache_pct: Option<f64>,
    pub common_kib: Option<u64>,
    /// True if the files that jobs read are removed from the page cache first.
    #[serde(default)]
    pub is_cold: bool,
}

/// When jobs begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum JobPace {
    /// Each when the one before it is done.
    #[default]
    AtOnce,
    /// So many microseconds after it.
    Thinking(u64),
    /// Jobs of all users together begin this many times in 1000 s, whether or not other jobs have
    /// finished.
    Arriving(u64),
}

/// A directory for disk jobs, without links in its path: files are made there, so nobody else may change it.
pub fn disk_directory(path: &Path) -> Result<PathBuf, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    match path.is_dir() {
        true => trust::path::trusted(&path).map_err(|error| error.to_string()),
        false => Err("there is no such directory".into()),
    }
}

/// As with re-aim.
pub const JOBS: u32 = 100;
/// File size in re-aim's own configuration.
const FILE_KIB: u64 = 10;
const POOL_KIB: u64 = 1024;

impl JobSizes {
    /// The files of one of so many users (classic-suites.md, 3.2).
    pub fn kib_of(&self, users: usize, mix: &JobMix) -> u64 {
        let file_kib = self.file_kib.or(mix.file_kib).or(self.usual_file_kib).unwrap_or(FILE_KIB);
        let pool_kib = self.pool_kib.or(mix.pool_kib).or(self.usual_pool_kib).unwrap_or(POOL_KIB);
        (file_kib + pool_kib / users as u64).max(1)
    }

    /// About how many jobs a user does.
    pub fn jobs_of(&self, mix: &JobMix) -> u32 {
        self.jobs.or(mix.jobs).unwrap_or(JOBS)
    }

    /// When a user begins a job of this mix.
    pub fn pace_of(&self, mix: &JobMix) -> JobPace {
        match (self.pace, mix.think_ms) {
            (JobPace::AtOnce, Some(ms)) => JobPace::Thinking(ms.saturating_mul(1000)),
            (pace, _) => pace,
        }
    }

    /// How long the pace alone makes so many jobs of each of these users last.
    pub fn pace_ms(&self, users: usize, mix: &JobMix) -> u64 {
        let jobs_of_user = mix.all_jobs_per_user(self.jobs_of(mix));
        match self.pace_of(mix) {
            _ if self.period_ms.is_some() => self.period_ms.unwrap_or_default(),
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
        let count = |weight: &f64| self.count(*weight, jobs);
        self.tests.iter().map(|(name, weight)| (name.as_str(), count(weight))).collect()
    }

    /// Returns how often each user runs each command of the mix.
    pub fn commands_per_user(&self, jobs: u32) -> Vec<(&MixCommand, u32)> {
        let commands = self.commands.values();
        commands.map(|command| (command, self.count(command.weight, jobs))).collect()
    }

    /// How many that is in all.
    pub fn all_jobs_per_user(&self, jobs: u32) -> u64 {
        let tests = self.jobs_per_user(jobs).into_iter().map(|(_, count)| count);
        let commands = self.commands_per_user(jobs).into_iter().map(|(_, count)| count);
        tests.chain(commands).map(u64::from).sum()
    }

    /// Share of the work that the tests of the mix `all_utime` do, which stay in user mode, in per cent.
    pub fn user_mode_pct(&self, all_utime: &JobMix) -> f64 {
        let weights = self.tests.iter().filter(|(name, _)| all_utime.tests.contains_key(*name));
        let sum: f64 = weights.map(|(_, weight)| weight).sum();
        let all = self.tests.values().chain(self.commands.values().map(|command| &command.weight));
        100.0 * sum / self.total.unwrap_or_else(|| all.sum())
    }

    fn count(&self, weight: f64, jobs: u32) -> u32 {
        let exact = weight / self.total.unwrap_or_else(|| self.sum()) * f64::from(jobs);
        let whole = exact.trunc();
        let is_more = exact - whole >= 0.5 || (whole == 0.0 && exact > 0.0);
        whole as u32 + u32::from(is_more)
    }

    fn sum(&self) -> f64 {
        let commands = self.commands.values().map(|command| command.weight);
        self.tests.values().copied().chain(commands).sum()
    }

    fn checked(self, file: &str) -> Result<JobMix, String> {
        if self.tests.is_empty() && self.commands.is_empty() {
            return Err(format!("{file}: the mix has no tests"));
        }
        let is_weight = |weight: f64| weight.is_finite() && (0.0..=1e9).contains(&weight);
        let commands = self.commands.iter().map(|(name, command)| (name, command.weight));
        let mut weights = self.tests.iter().map(|(name, weight)| (name, *weight)).chain(commands);
        if let Some((name, weight)) = weights.find(|(_, weight)| !is_weight(*weight)) {
            return Err(format!(
                "{file}: the weight of `{name}` is {weight}, but must be 0 to 1000000000"
            ));
        }
        for (name, command) in &self.commands {
            let words = shell::words(&command.run).unwrap_or_default();
            if words.is_empty() || words.iter().any(|word| word.contains('\0')) {
                return Err(format!(
                    "{file}: `run` of the command `{name}` is not a valid command line"
                ));
            }
        }
        let sizes =
            [self.think_ms.map(|ms| ms / 3600), self.resident_mib, self.jobs.map(u64::from)];
        if sizes.into_iter().flatten().any(|size| size > 1_000_000) || self.jobs == Some(0) {
            return Err(format!(
                "{file}: `jobs` must be 1 to 1000000, `think_ms` up to an hour, `resident_mib` up to 1000000"
            ));
        }
        let sum = self.sum();
        if sum <= 0.0 {
            return Err(format!("{file}: all weights are 0, so no job would run"));
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
pub fn embedded() -> Result<Vec<JobMix>, String> {
    let parse = |(name, text): &(&str, &str)| parse(&format!("suites/load/{name}.toml"), text);
    EMBEDDED.iter().map(parse).collect()
}

/// Reads those of these labels that name a file, each once, and says in sentences what is doubtful in them.
pub fn from_files(labels: &[String]) -> Result<(Vec<MixFromFile>, Vec<String>), String> {
    let (mut files, mut doubts): (Vec<MixFromFile>, Vec<String>) = Default::default();
    let named = labels.iter().filter_map(|label| label.strip_prefix(PREFIX));
    let named = named.map(|name| MixLabel::of(name).name);
    for file in named.filter(|name| name.contains(['/', '.'])) {
        if !files.iter().any(|other| other.file == file) {
            let (mix, of_it) = read(Path::new(file))?;
            files.push(MixFromFile { file: file.to_owned(), mix });
            doubts.extend(of_it);
        }
    }
    Ok((files, doubts))
}

/// Reads the tests of a file with a mix, and says in sentences what is doubtful when each is measured alone.
pub fn tests_alone(path: &Path) -> Result<(Vec<String>, Vec<String>), String> {
    let (mix, mut doubts) = read(path)?;
    let file = path.display();
    if !mix.commands.is_empty() {
        return Err(format!(
            "{file} has commands, which are jobs of a mix only: measure each with `weigh versus`"
        ));
    }
    let sizes = [("FILESIZE", mix.file_kib), ("POOLSIZE", mix.pool_kib)];
    for (name, _) in sizes.iter().filter(|(_, kib)| kib.is_some()) {
        doubts.push(format!(
            "{file}: {name} is for users only. A test alone has files of {FILE_KIB} KiB."
        ));
    }
    Ok((mix.tests.into_keys().collect(), doubts))
}

fn read(path: &Path) -> Result<(JobMix, Vec<String>), String> {
    let text = user_file::read_text(path, LONGEST_FILE)
        .map_err(|error| format!("cannot read the mix {}: {error}", path.display()))?;
    let file = path.display().to_string();
    if path.extension().is_some_and(|extension| extension == "toml") {
        let mix = parse(&file, &text)?;
        if !mix.commands.is_empty() {
            let cannot = |problem: &dyn std::fmt::Display| {
                format!("{file}: as root, weigh does not run its commands: {problem}")
            };
            let checked = executable(path).map_err(|error| cannot(&error))?;
            let again = user_file::read_text(&checked, LONGEST_FILE);
            if again.map_err(|error| cannot(&error))? != text {
                return Err(cannot(&"the file changed while it was read"));
            }
        }
        return Ok((mix, Vec::new()));
    }
    let workfile = workfile::parse(&file, &text)?;
    let Workfile { hits: tests, total, file_kib, pool_kib, doubts } = workfile;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mix = JobMix {
        name: name.strip_prefix("workfile.").unwrap_or(&name).to_owned(),
        summary: format!("the workfile {file}"),
        total: Some(total),
        file_kib,
        pool_kib,
        tests,
        ..JobMix::default()
    };
    Ok((mix.checked(&file)?, doubts))
}

fn parse(file: &str, text: &str) -> Result<JobMix, String> {
    let mix: JobMix =
        toml::from_str(text).map_err(|error| toml_problem::sentence(file, text, &error))?;
    mix.checked(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// White's appendix A.2. Its compute and dbase are older than ours.
    #[test]
    fn mixes_have_the_shares_of_user_mode_of_the_paper() {
        let mixes = embedded().unwrap();
        let find = |name: &str| mixes.iter().find(|mix| mix.name == name).unwrap();
        for (name, tenths) in [("shared", 397.0), ("fserver", 218.0), ("all_utime", 1000.0)] {
            let share = find(name).user_mode_pct(find("all_utime"));
            assert_eq!((share * 10.0).round(), tenths, "{name}");
        }
    }

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
            // Ours.
            ("memory", 100),
            ("new_dbase", 103),
            ("new_fserver", 98),
            ("shared", 97),
            ("short", 102),
        ];
        let mixes = embedded().unwrap();
        let found: Vec<(&str, u32)> = mixes
            .iter()
            .map(|mix| {
                let jobs = mix.jobs_per_user(JOBS);
                (mix.name.as_str(), jobs.iter().map(|(_, count)| count).sum())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_small_share_is_one_job_and_none_is_none() {
        let tests = [("a", 1.0), ("b", 1000.0), ("c", 0.0)].map(|(n, w)| (n.to_owned(), w));
        let tests = BTreeMap::from(tests);
        let mix = JobMix {
            file_kib: Some(100),
            pool_kib: Some(1000),
            jobs: Some(7),
            think_ms: Some(20),
            tests,
            ..JobMix::default()
        };
        let asked = JobSizes { jobs: Some(3), pace: JobPace::Arriving(1), ..JobSizes::default() };
        assert_eq!((asked.jobs_of(&mix), asked.pace_of(&mix)), (3, JobPace::Arriving(1)));
        let silent = JobSizes::default();
        assert_eq!((silent.jobs_of(&mix), silent.pace_of(&mix)), (7, JobPace::Thinking(20_000)));
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
            ("jobs = 0\n[tests]\na = 1\n", "`jobs` must be 1 to"),
            ("[commands.a]\nrun = \"\"\nweight = 1\n", "`run` of the command `a`"),
            ("[commands.a]\nrun = \"true\"\nweight = 0\n", "all weights are 0"),
        ] {
            let problem = parse("x.toml", &format!("{head}{tests}")).unwrap_err();
            assert!(problem.contains(why) && problem.starts_with("x.toml"), "{problem}");
        }
    }
}
