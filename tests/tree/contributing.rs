//! Additions that CONTRIBUTING.md describes for a newcomer: one file each, two for a metric and an
//! option. The test takes the files and diffs from that page, puts them into a copy of this tree,
//! builds it, and uses the additions.
//!
//! The copy and its build stay in the target directory, so that a second time little is compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::stored::{fixtures, stored};
use crate::support::{Home, Turn, row, skip};
use serde_json::Value;

/// Kernel setting that the treatment of the page switches.
const SWITCH: &str = "/proc/sys/kernel/task_delayacct";

fn root() -> &'static Path {
    Path::new(env!("WORKSPACE"))
}

/// The blocks of code of a language, each with the text between it and the one before.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let parts: Vec<&str> = page.split("\n```").collect();
    // What is between fences has an odd number.
    let pairs = parts.chunks_exact(2);
    let of_language =
        |pair: &[&'a str]| Some((pair[0], pair[1].strip_prefix(language)?.strip_prefix('\n')?));
    pairs.filter_map(of_language).collect()
}

/// Most files that an addition may touch, by the heading of its section.
const MOST_FILES: [(&str, usize); 10] = [
    ("a workload", 1),
    ("a treatment", 1),
    ("a place", 1),
    ("a fixture", 1),
    ("a plan", 1),
    ("a report format", 1),
    ("a table", 1),
    ("an import", 1),
    ("a metric", 2),
    ("an option", 2),
];

/// Files by their path in the tree.
type Files = BTreeMap<PathBuf, String>;

/// Takes the examples of a section: new files, at the path that the sentence before them names, and
/// changed files. Returns the paths.
fn take(section: &str, files: &mut Files) -> BTreeSet<PathBuf> {
    let mut touched = BTreeSet::new();
    for language in ["c", "rust"] {
        for (before, code) in blocks(section, language) {
            let named = before.split('`').skip(1).step_by(2);
            let path = named.filter(|name| name.contains('/')).last().expect("a path before code");
            let is_new = !root().join(path).exists();
            assert!(is_new, "{path} is in the tree: as an example it shows nothing");
            files.insert(path.into(), format!("{code}\n"));
            touched.insert(path.into());
        }
    }
    for (_, diff) in blocks(section, "diff") {
        for (path, hunks) in changed_files(diff) {
            let in_tree = || fs::read_to_string(root().join(path)).unwrap();
            let text = files.entry(path.into()).or_insert_with(in_tree);
            *text = changed(text, hunks);
            touched.insert(path.into());
        }
    }
    touched
}

/// The files of a diff, each with its hunks.
fn changed_files(diff: &str) -> impl Iterator<Item = (&str, &str)> {
    let files = diff.strip_prefix("--- ").expect("a diff begins with a file").split("\n--- ");
    files.map(|file| file.split_once('\n').expect("hunks below the file"))
}

/// Applies hunks, whose lines without `+` have to be in the text exactly once.
fn changed(text: &str, hunks: &str) -> String {
    hunks.split("@@").skip(1).fold(text.to_owned(), |text, hunk| {
        let lines = || hunk.lines().skip(1);
        let without = |mark: char| -> String {
            let kept = lines().filter(|line| !line.starts_with(mark));
            kept.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
        };
        let (old, new) = (without('+'), without('-'));
        assert_eq!(text.matches(&old).count(), 1, "of a file that is changed:\n{old}");
        text.replacen(&old, &new, 1)
    })
}

/// The files of all examples; asserts that each addition touches few.
fn examples() -> Files {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut files = Files::new();
    let mut additions = BTreeMap::new();
    for section in page.split("\n## Add ").skip(1) {
        let touched = take(section.split("\n## ").next().unwrap(), &mut files);
        if !touched.is_empty() {
            additions.insert(section.lines().next().unwrap(), touched);
        }
    }
    let found: BTreeSet<&str> = additions.keys().copied().collect();
    assert_eq!(found, MOST_FILES.map(|(name, _)| name).into());
    for (name, most) in MOST_FILES {
        assert!(additions[name].len() <= most, "{name}: {:?}", additions[name]);
    }
    files
}

/// Writes a file only where that changes it: cargo goes by the time of the last change.
fn put(path: &Path, content: &[u8]) {
    if fs::read(path).is_ok_and(|there| there == content) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Makes `copy` what `original` is, without what is built; leaves the examples in it alone.
fn copy_tree(original: &Path, copy: &Path, examples: &BTreeSet<PathBuf>) {
    const BUILT: [&str; 3] = ["target", "build", ".git"];
    fs::create_dir_all(copy).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(original).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if BUILT.iter().any(|built| name == *built) {
            continue;
        }
        match copy.join(&name) {
            there if path.is_dir() => copy_tree(&path, &there, examples),
            there if examples.contains(&there) => {}
            there => put(&there, &fs::read(&path).unwrap()),
        }
        names.push(name);
    }
    // What was taken from the tree, or from the page, since the last time.
    for entry in fs::read_dir(copy).unwrap() {
        let path = entry.unwrap().path();
        let is_known = names.iter().any(|name| path.ends_with(name))
            || examples.iter().any(|file| file.starts_with(&path));
        match path.is_dir() {
            _ if is_known => {}
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
}

/// Gives a new target directory what was built of other crates for this one, as links.
fn share_dependencies(built: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for part in ["deps", "build", ".fingerprint"] {
        link_tree(&built.join(part), &target.join(part));
    }
}

fn link_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        // Test programs have no extension; there are gigabytes of them.
        let is_program = from.ends_with("deps") && path.extension().is_none();
        // Our own build script writes into files that are there: a link would change those of this tree.
        if from.ends_with("build") && name.to_string_lossy().starts_with("weigh-") {
            continue;
        }
        match path.is_dir() {
            true => link_tree(&path, &to.join(name)),
            false if is_program => {}
            false => match fs::hard_link(&path, to.join(name)) {
                // Another cargo may tidy up meanwhile.
                Err(error)
                    if ![ErrorKind::NotFound, ErrorKind::AlreadyExists].contains(&error.kind()) =>
                {
                    panic!("{}: {error}", path.display())
                }
                _ => {}
            },
        }
    }
}

/// Builds the tree with the examples in it; the program.
fn build() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contributing");
    let (tree, target) = (scratch.join("tree"), scratch.join("target"));
    let examples = examples();
    copy_tree(root(), &tree, &examples.keys().map(|path| tree.join(path)).collect());
    for (path, content) in &examples {
        put(&tree.join(path), content.as_bytes());
    }
    if !target.exists() {
        share_dependencies(crate::support::program().parent().unwrap(), &target.join("debug"));
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--offline", "-p", "weigh", "--bin", "weigh", "--target-dir"])
        .arg(&target)
        .current_dir(&tree)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("debug/weigh")
}

/// A named network namespace, removed in the end.
struct Namespace(String);

impl Namespace {
    /// `None` where there can be none.
    fn new() -> Option<Namespace> {
        let name = format!("weigh-test-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).status();
        made.is_ok_and(|status| status.success()).then_some(Namespace(name))
    }

    fn path(&self) -> String {
        format!("/run/netns/{}", self.0)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let path = self.path();
        let unmount = || Command::new("umount").args(["--lazy", &path]).output();
        while unmount().is_ok_and(|output| output.status.success()) {}
        let _ = fs::remove_file(path);
    }
}

struct Newcomer {
    program: PathBuf,
    home: Home,
}

impl Newcomer {
    fn run(&self, arguments: &[&str]) -> crate::support::Outcome {
        let mut command = self.home.command(&self.program);
        command.args(arguments);
        self.home.start(command).finish()
    }

    fn succeed(&self, arguments: &[&str]) -> crate::support::Outcome {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(0), "weigh {arguments:?}: {outcome:#?}");
        outcome
    }

    /// A sample counts only if the workload's own check agreed. The suite is the page's too.
    fn measures_the_workload(&self) {
        let listed = self.succeed(&["list", "workloads"]);
        listed.assert_says(&["memfd_create, a short write, fstat and close"]);
        let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
        self.home.file("new.toml", blocks(&page, "toml")[0].1);
        let run = self.succeed(&["run", "./new.toml", "--samples", "3", "--json", "-"]).json();
        let measured = row(&run, "memfd");
        assert_eq!(measured["samples"], 3, "{run:#}");
        assert!(measured["rate"].as_f64().unwrap() > 0.0, "{run:#}");
    }

    /// Proved at every launch, and put back.
    fn weighs_the_treatment(&self) {
        let listed = self.succeed(&["list", "treatments"]);
        listed.assert_says(&["delayacct", "the kernel's delay accounting"]);
        if fs::OpenOptions::new().write(true).open(SWITCH).is_err() {
            skip("sysctl", &format!("{SWITCH} cannot be written"));
            return;
        }
        let was = fs::read_to_string(SWITCH).unwrap();
        let compare = ["compare", "delayacct", "-w", "memfd", "--pairs", "8", "--json", "-"];
        let compared = self.run(&compare);
        let json = compared.json();
        assert_eq!(row(&json, "memfd")["pairs"], 8, "{json:#}");
        assert_eq!(json["failures"], Value::Array(Vec::new()), "{json:#}");
        let facts = json["treatments"][0]["facts"].to_string();
        assert!(facts.contains("accounts for the delays"), "{json:#}");
        assert_eq!(fs::read_to_string(SWITCH).unwrap(), was, "it is as it was");

        // Where another turns it back, no number comes out.
        let is_over = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    fs::write(SWITCH, "0").unwrap();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            // Caught, so that the other ends where it fails.
            let outcome = std::panic::catch_unwind(|| self.run(&compare));
            is_over.store(true, Ordering::Relaxed);
            outcome
        });
        let outcome = outcome.unwrap();
        outcome.assert_error(&["was changed during the measurement"]);
        fs::write(SWITCH, was).unwrap();
    }

    /// Proved at every launch: where the name leads to another namespace, or nowhere, no number comes
    /// out.
    fn measures_in_the_place(&self) {
        self.succeed(&["list", "treatments"])
            .assert_says(&["netns", "a different network namespace"]);
        let Some(namespace) = Namespace::new() else {
            skip("root", "`ip netns` makes no network namespace");
            return;
        };
        let arm = format!("netns:{}", namespace.0);
        let measure = ["-w", "memfd", "--pairs", "8", "--json", "-"];
        let compared = self.run(&[&["compare", &arm][..], &measure].concat()).json();
        assert_eq!(row(&compared, "memfd")["pairs"], 8, "{compared:#}");
        assert_eq!(compared["failures"], Value::Array(Vec::new()), "{compared:#}");
        let facts = compared["treatments"][0]["facts"].to_string();
        assert!(facts.contains(&namespace.path()), "{compared:#}");
        let in_it = format!("{arm}::seccomp");
        let both = self.run(&[&["compare", &in_it, "--base", &arm][..], &measure].concat()).json();
        assert_eq!(row(&both, "memfd")["pairs"], 8, "two arms in one namespace: {both:#}");

        // A command that leads the name elsewhere, and one that removes it.
        let path = namespace.path();
        drop(namespace);
        let moves = format!("mount --bind /proc/{}/ns/net {path}", std::process::id());
        let removes = format!("umount --lazy {path}; rm -f {path}");
        let problem = "ran in the network namespace";
        for (script, problem) in [(moves, problem), (removes, "was removed")] {
            let _namespace = Namespace::new().unwrap();
            let weigh = ["compare", &arm, "--budget", "20s", "--", "sh", "-c", &script];
            self.run(&weigh).assert_error(&[problem]);
        }
    }

    /// Besides the rate, in the report and in the help.
    fn judges_the_metric(&self) {
        self.succeed(&["compare", "--help"]).assert_says(&["system_time, peak_memory"]);
        let compare = ["compare", "none", "-w", "memfd", "--pairs", "8", "--metric", "system_time"];
        let json = self.run(&[&compare[..], &["--json", "-"]].concat()).json();
        let readings = row(&json, "memfd")["readings"].as_array().unwrap();
        let own = readings.iter().find(|one| one["metric"] == "system_time").unwrap();
        assert_eq!(own["unit"], "ns/op", "{json:#}");
        assert!(own["baseline"].as_f64().unwrap() > 0.0, "{json:#}");
        self.run(&["show", "-v", "latest"]).assert_says(&["System time per operation"]);
    }

    fn takes_the_option(&self) {
        let compare = ["compare", "none", "-w", "memfd", "--budget", "3s", "--json", "-"];
        let is_judged = |json: &Value| row(json, "memfd").to_string().contains("cpu_time");
        let json = self.run(&compare).json();
        assert!(is_judged(&json), "{json:#}");
        let json = self.run(&[&compare[..], &["--no-cpu-time"]].concat()).json();
        assert!(!is_judged(&json), "{json:#}");
    }

    /// Around a workload that does not know of it.
    fn uses_the_fixture(&self) {
        self.succeed(&["list", "fixtures"]).assert_says(&["crowd", "many other files"]);
        let compare = ["compare", "crowd:files=50", "-w", "memfd", "--pairs", "8", "--json", "-"];
        let json = self.run(&compare).json();
        assert_eq!(row(&json, "memfd")["pairs"], 8, "{json:#}");
        let facts = json["treatments"][0]["facts"].to_string();
        assert!(facts.contains("holds 50 other files"), "{json:#}");
        // A command that takes the files away.
        let script = "rm -f \"$PWD\"/tmp/weigh-*/crowd-*/*/other-1";
        let command = ["compare", "crowd", "--budget", "20s", "--", "sh", "-c", script];
        self.run(&command).assert_error(&["of 1000 files in the directory, 999 are left"]);
    }

    /// The least number of samples suffices for a wide share, and the budget ends a narrow one.
    fn follows_the_plan(&self) {
        self.succeed(&["run", "--help"]).assert_says(&["--until <PERCENT>"]);
        let run = ["run", "memfd", "getppid", "--budget", "30s", "--json", "-", "--until"];
        let samples = |share: &str, workload: &str| {
            let json = self.succeed(&[&run[..], &[share]].concat()).json();
            row(&json, workload)["samples"].as_u64().unwrap()
        };
        assert_eq!((samples("90%", "memfd"), samples("90%", "getppid")), (5, 5));
        assert!(samples("0.0001%", "memfd") > 5);
        self.run(&["run", "--until", "0%"]).assert_error(&["--until", "takes a share"]);
        self.run(&["run", "--until", "1%", "--samples", "3"])
            .assert_error(&["cannot be used with"]);
    }

    fn prints_the_table(&self) {
        let printed = self.succeed(&["show", "5kgm3e", "--as", "rates"]).stdout;
        let cells: Vec<Vec<&str>> =
            printed.lines().map(|line| line.split('\t').collect()).collect();
        let names: Vec<&str> = cells.iter().map(|cells| cells[0]).collect();
        assert_eq!(names, ["getppid", "pipe"], "{printed}");
        assert!(cells.iter().all(|cells| cells.len() == 4), "two arms: {printed}");
    }

    fn reads_the_import(&self) {
        self.succeed(&["import", "--help"]).assert_says(&["sysbench"]);
        let report =
            |rate: &str| format!("sysbench 1.0.20\n\nCPU speed:\n    events per second:  {rate}\n");
        let [before, after] = [("before.txt", "1000.0"), ("after.txt", "900.0")]
            .map(|(name, rate)| self.home.file(name, report(rate)).display().to_string());
        self.run(&["import", &before, &after]).assert_says(&["cpu"]);
        let json = self.succeed(&["export", "latest", "--json"]).json();
        assert_eq!(row(&json, "cpu")["effect_pct"].as_f64().unwrap().round(), -10.0, "{json:#}");
        let broken = self.home.file("broken.txt", report("many")).display().to_string();
        self.run(&["import", &broken]).assert_error(&["broken.txt:4: `many` is not a rate"]);
    }

    /// Checks the format's output for a stored experiment.
    fn renders_the_format(&self) {
        let ranked = self.succeed(&["export", "5kgm3e", "--ranking"]).stdout;
        let known = fs::read_to_string(fixtures().join("5kgm3e.json")).unwrap();
        let known: Value = serde_json::from_str(&known).unwrap();
        let mut rows: Vec<(f64, &str)> = known["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["effect_pct"].as_f64().unwrap(), row["workload"].as_str().unwrap()))
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lines: Vec<&str> = ranked.lines().collect();
        assert_eq!(lines.len(), rows.len(), "{ranked}");
        for (line, (_, workload)) in lines.iter().zip(rows) {
            assert!(line.contains(&format!(" % {workload} under seccomp: ")), "{ranked}");
        }
    }
}

#[test]
fn each_example_is_few_files() {
    let _turn = Turn::share();
    let program = build();
    let newcomer = Newcomer { program: program.clone(), home: Home::new() };
    newcomer.measures_the_workload();
    newcomer.weighs_the_treatment();
    newcomer.measures_in_the_place();
    newcomer.judges_the_metric();
    newcomer.takes_the_option();
    newcomer.uses_the_fixture();
    newcomer.follows_the_plan();
    newcomer.reads_the_import();
    let with_stored = Newcomer { program, home: stored() };
    with_stored.renders_the_format();
    with_stored.prints_the_table();
}

#[test]
fn hunks_are_applied() {
    let diff = "--- a\n@@ x\n a\n+b\n@@\n-c\n--- d\n@@\n e";
    let files: Vec<(&str, &str)> = changed_files(diff).collect();
    assert_eq!(files, [("a", "@@ x\n a\n+b\n@@\n-c"), ("d", "@@\n e")]);
    assert_eq!(changed("a\nc\nd\n", files[0].1), "a\nb\nd\n");
}

#[test]
fn blocks_are_found_with_the_text_before_them() {
    let page = "a `x/y.c`:\n\n```c\nint x;\n```\n\nb\n\n```console\n$ c\n```\nd `z.rs`\n\
                ```rust\nfn f() {}\n```\n";
    assert_eq!(blocks(page, "c"), [("a `x/y.c`:\n", "int x;")]);
    assert_eq!(blocks(page, "rust")[0].1, "fn f() {}");
}
