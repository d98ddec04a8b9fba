//! A report to hand on: what names the machine, its boot or its people is taken out, and the numbers stay.
//!
//! The text of every field is scrubbed, also of those that a later version adds: a summary goes through
//! JSON and back. What a name of a workload, a command or a file tells besides a path is yours to judge.

use std::borrow::Cow;
use std::env;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::facts::Facts;
use crate::result::report::Report;
use crate::result::run::RunReport;
use crate::result::summary::Summary;
use crate::result::warning::Warning;

/// Stands for the machine's name, for a person's, and for the directories of a path.
const HOST: &str = "host";
const USER: &str = "user";
const DIRECTORIES: &str = "…/";
/// Paths that are alike on every machine stay as they are.
const COMMON: [&str; 8] =
    ["/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/proc/", "/sys/", "/usr/"];

/// Identifying parts to remove from texts.
struct Scrubber {
    /// As a whole, wherever they stand.
    texts: Vec<String>,
    /// As a word of its own, with what stands for it.
    words: Vec<(String, &'static str)>,
}

impl Scrubber {
    /// For the texts of a report of this machine; the names of the user are those of the environment.
    fn new(machine: &Facts) -> Scrubber {
        let users =
            ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(|name| env::var(name).ok());
        Scrubber::with_users(machine, users.filter(|name| name != "root"))
    }

    fn with_users(machine: &Facts, users: impl Iterator<Item = String>) -> Scrubber {
        let short = machine.hostname.split('.').next().unwrap_or_default();
        let hosts = [machine.hostname.as_str(), short].map(|name| (name.to_owned(), HOST));
        let words = hosts.into_iter().chain(users.map(|name| (name, USER)));
        let texts = [&machine.cmdline, &machine.boot_id].map(String::clone);
        let texts = texts.into_iter().chain(groups(machine));
        Scrubber {
            texts: texts.filter(|text| !text.is_empty()).collect(),
            words: words.filter(|(word, _)| !word.is_empty()).collect(),
        }
    }

    /// The text without what names somebody.
    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.texts {
            text = text.replace(secret.as_str(), "");
        }
        text = without_directories(&text);
        for (word, instead) in &self.words {
            text = replace_word(&text, word, instead);
        }
        text
    }

    /// The facts without name, boot and kernel command line; what else they say is scrubbed.
    fn machine(&self, machine: &Facts) -> Result<Facts, serde_json::Error> {
        let named = Facts {
            hostname: String::new(),
            boot_id: String::new(),
            cmdline: String::new(),
            ..machine.clone()
        };
        let mut value = serde_json::to_value(named)?;
        self.value(&mut value);
        serde_json::from_value(value)
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            _ => {}
        }
    }
}

/// The directories of control groups in the facts: they are named after users, services and containers.
fn groups(machine: &Facts) -> impl Iterator<Item = String> {
    let share = &machine.cpu_share;
    let unreadable = share.unreadable.iter().filter_map(|text| text.split(':').next());
    let files = share.quota_file.as_deref().into_iter().chain(unreadable);
    let files = files.filter(|file| file.starts_with("/sys/fs/cgroup/"));
    files.filter_map(|file| Some(file[..=file.rfind('/')?].to_owned()))
}

/// The report without what names the machine, its boot or its people.
pub fn report(report: Report) -> Result<Report, String> {
    let id = report.id().to_owned();
    let anonymous = match report {
        Report::Compared(s) => summary(&s).map(Report::from),
        Report::Run(report) => run(*report).map(Report::from),
        Report::Rules(report) => scrubbed(&*report, &report.machine).map(Report::from),
        Report::Budget(report) => scrubbed(&*report, &report.machine).map(Report::from),
        Report::Profile(report) => scrubbed(&*report, &report.machine).map(Report::from),
        Report::Atlas(report) => scrubbed(&*report, &report.machine).map(Report::from),
        Report::Repeated(report) => scrubbed(&*report, &report.machine).map(Report::from),
    };
    anonymous.map_err(|error| format!("cannot anonymise {id}: {error}"))
}

/// Through JSON and back.
fn scrubbed<T>(report: &T, machine: &Facts) -> Result<T, serde_json::Error>
where
    T: Serialize + DeserializeOwned,
{
    let scrubber = Scrubber::new(machine);
    let mut value = serde_json::to_value(report)?;
    value["machine"] = serde_json::to_value(scrubber.machine(machine)?)?;
    // It looks like a path.
    let schema = value["schema"].clone();
    scrubber.value(&mut value);
    value["schema"] = schema;
    serde_json::from_value(value)
}

fn summary(s: &Summary) -> Result<Summary, serde_json::Error> {
    let mut scrubbed = scrubbed(s, &s.machine)?;
    // The pairs have no text, and are no part of the JSON.
    for (row, known) in scrubbed.results.iter_mut().zip(&s.results) {
        row.series.clone_from(&known.series);
        row.least_pairs = known.least_pairs;
    }
    Ok(scrubbed)
}

fn run(mut report: RunReport) -> Result<RunReport, serde_json::Error> {
    let scrubber = Scrubber::new(&report.machine);
    report.machine = scrubber.machine(&report.machine)?;
    let failures = report.failures.iter_mut().map(|failure| &mut failure.reason);
    let files = report.indices.iter_mut().filter_map(|index| index.file.as_mut());
    let profiles = report.profiles.iter_mut().flat_map(|profiled| &mut profiled.arms);
    let profiles = profiles.map(|arm| &mut arm.printed);
    let texts = report
        .facts
        .iter_mut()
        .chain(&mut report.failure)
        .chain(failures)
        .chain(files)
        .chain(profiles);
    // A command or a mix from a file has its path for a name.
    let names = report.results.iter_mut().map(|row| &mut row.workload);
    let names = names.chain(report.times.iter_mut().map(|row| &mut row.workload));
    let names = names.chain(report.series.iter_mut().map(|series| &mut series.workload));
    let names = names.map(|name| &mut name.name);
    let mixes = report.loads.iter_mut().map(|load| &mut load.mix);
    for text in texts.chain([&mut report.command]).chain(names).chain(mixes) {
        *text = scrubber.text(text);
    }
    for warning in &mut report.warnings {
        *warning = Warning::Sentence(scrubber.text(&warning.to_string()));
    }
    for failure in &mut report.failures {
        failure.workload.name = scrubber.text(&failure.workload.name);
    }
    Ok(report)
}

/// Shortens each path to its last part. This includes a path after an option (`-I/home/x/y`) or in
/// a home directory (`~x/y`). Paths that every system has stay as they are.
fn without_directories(text: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:=()[]{}<>|@".contains(c);
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_end).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        result += &named(word);
        let next = after.chars().next().map_or(0, char::len_utf8);
        let (separator, tail) = after.split_at(next);
        result += separator;
        rest = tail;
    }
    result
}

/// A word without the directories of the path in it; `a/b`, `MB/s` and `~/x` tell nothing.
fn named(word: &str) -> Cow<'_, str> {
    let Some(start) = word.find(['/', '~']) else { return word.into() };
    let (before, path) = word.split_at(start);
    let path = path.trim_end_matches('/');
    let Some((directories, name)) = path.rsplit_once('/') else { return word.into() };
    if ["", "~"].contains(&directories) || is_common(path) {
        return word.into();
    }
    let option = if before.starts_with('-') { before } else { "" };
    format!("{option}{DIRECTORIES}{name}").into()
}

fn is_common(path: &str) -> bool {
    COMMON.iter().any(|common| path.starts_with(common))
}

fn replace_word(text: &str, word: &str, instead: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut result = String::with_capacity(text.len());
    let mut from = 0;
    for (at, _) in text.match_indices(word) {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        if at < from || is_part(before) || is_part(after) {
            continue;
        }
        result += &text[from..at];
        result += instead;
        from = at + word.len();
    }
    result + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    const BOOT: &str = "0c5b0f3e-7d53-4a8e-9b1c-6a1f2f6f2f10";
    const CMDLINE: &str = "BOOT_IMAGE=/vmlinuz root=UUID=77aa quiet";

    /// A report whose every corner names the machine or a person.
    fn named() -> Summary {
        let mut s = example::audit();
        s.machine.hostname = "bench1.acme.example".into();
        s.machine.boot_id = BOOT.into();
        s.machine.cmdline = CMDLINE.into();
        s.machine.scratch = Some("ext4 on /home/alice/tmp".into());
        s.command =
            "weigh compare audit:rules=/home/alice/acme/x.rules -- /srv/acme/bench --fast".into();
        s.treatments[0].facts.push(format!("On bench1 ({BOOT}): {CMDLINE}"));
        s.results[0].notes.push("bench1.acme.example was busy".into());
        s.results[0].evidence.amounts.set("path", "/home/alice/acme/log");
        s.failures[0].reason = "cannot open /home/alice/acme/file: denied".into();
        s.warnings.push(Warning::Sentence("bench1: load by alice".into()));
        s
    }

    /// Formats show what is in it, and no more.
    #[test]
    fn no_text_names_the_machine_its_boot_or_its_people() {
        let scrubbed = summary(&named()).expect("its numbers are numbers");
        let scrubber = Scrubber::with_users(&named().machine, ["alice".to_owned()].into_iter());
        let [before, after] =
            [&named(), &scrubbed].map(|s| serde_json::to_string(s).expect("a document"));
        for secret in ["bench1", BOOT, "UUID", "acme"] {
            assert!(before.contains(secret) && !after.contains(secret), "{secret}: {after}");
        }
        // A person's name is known from the environment, or as that of a directory.
        assert!(!scrubber.text(&after).contains("alice"), "{after}");
        assert!(before.contains("85.2") && after.contains("85.2"));
        assert_eq!(scrubbed.results[0].series, named().results[0].series);
        assert_eq!(scrubbed.schema, named().schema);
        assert_eq!(scrubbed.command, "weigh compare audit:rules=…/x.rules -- …/bench --fast");
    }

    #[test]
    fn texts_keep_what_names_nobody() {
        let mut machine = Facts { hostname: "vm".into(), ..Facts::default() };
        machine.cpu_share.quota_file =
            Some("/sys/fs/cgroup/cpu/docker/4f2a/cpu.cfs_quota_us".into());
        let scrubber = Scrubber::with_users(&machine, ["bob".to_owned()].into_iter());
        for (text, expected) in [
            ("vm: kvm on vm", "host: kvm on host"),
            ("/usr/bin/make and /etc/audit/x.rules", "/usr/bin/make and /etc/audit/x.rules"),
            ("half (/sys/fs/cgroup/cpu/docker/4f2a/cpu.cfs_quota_us)", "half (cpu.cfs_quota_us)"),
            ("12 MB/s, n/a, a/b", "12 MB/s, n/a, a/b"),
            ("path=/srv/x/y,z=/tmp/q", "path=…/y,z=…/q"),
            ("bob and bobby", "user and bobby"),
            ("cc -I/home/al/x -L/usr/lib/y", "cc -I…/x -L/usr/lib/y"),
            ("~al/work/x, ~al/work and ~/work/", "…/x, …/work and ~/work/"),
            ("al/home/x/y", "…/y"),
            ("unix:/home/al/s@/srv/q/r", "unix:…/s@…/r"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(scrubber.text(text), expected);
        }
    }

    #[test]
    fn what_cannot_be_read_back_is_an_error_and_no_leak() {
        assert!(report(example::hostile().into()).unwrap_err().starts_with("cannot anonymise"));
    }
}
