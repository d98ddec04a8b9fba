//! `weigh atlas`, end to end: each entry of a list is an experiment of its own, the page is made from them,
//! and an atlas that was interrupted or killed goes on where the store ends.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::{Home, Running, Turn, assert_slows, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(300);
const HEAD: &str =
    "summary = \"for a test\"\nworkloads = [\"getppid\"]\nquick_workloads = [\"stat\"]\n";

fn entry(treatment: &str, sees_every_exec: bool) -> String {
    format!(
        "[[entry]]\ntreatment = '{treatment}'\ngroup = \"a group\"\ntitle = \"a title\"\n\
         sees = \"something\"\nmisses = 'what {treatment} misses'\n\
         sees_every_exec = {sees_every_exec}\n"
    )
}

fn list(home: &Home, entries: &[String]) -> PathBuf {
    home.file("my.toml", format!("{HEAD}{}", entries.concat()))
}

fn id(home: &Home) -> String {
    home.query_text("SELECT id FROM experiment WHERE kind = 'atlas'")
}

fn json(home: &Home) -> Value {
    home.succeed(&["export", &id(home), "--json"]).json()
}

fn result<'a>(atlas: &'a Value, treatment: &str) -> &'a Value {
    let mut results = atlas["entries"].as_array().unwrap().iter();
    results.find(|result| result["entry"]["treatment"] == treatment).unwrap()
}

fn experiments(home: &Home) -> String {
    home.query_text(
        "SELECT group_concat(label, ' ') FROM (SELECT label FROM experiment
         JOIN arm ON arm.experiment = experiment.id AND number = 1 ORDER BY experiment.rowid)",
    )
}

#[test]
fn each_entry_is_an_experiment_and_the_page_is_made_from_them() {
    let _turn = Turn::share();
    let home = Home::new();
    let absent = "preload:/usr/lib/there-is-no-such.so";
    let supervised = "seccomp-notify:calls=getppid";
    list(&home, &[entry(absent, false), entry("nice:0", false), entry(supervised, true)]);
    let words = "atlas --list my.toml --budget 20s --markdown a.md --html a.html --name mine";
    home.run(words);
    let atlas = json(&home);
    let results = atlas["entries"].as_array().unwrap().iter();
    let rows = results.filter_map(|result| result["measured"]["rows"].as_array()).flatten();
    assert_eq!(rows.count(), 2, "{atlas:#}");
    assert_eq!(experiments(&home), format!("nice:0 {supervised}"));
    assert_slows(&result(&atlas, supervised)["measured"]["rows"][0], 50.0);
    let obstacle = &result(&atlas, absent)["obstacle"];
    assert_eq!(obstacle["is_of_machine"], true);
    assert!(obstacle["reason"].as_str().unwrap().contains("there-is-no-such.so"), "{obstacle}");
    // Without the terminal's lines.
    let read = |name: &str| std::fs::read_to_string(home.path(name)).unwrap();
    for page in [read("a.md"), read("a.html")] {
        let first = page.find("what seccomp-notify:calls=getppid misses").expect("a row");
        let second = page.find("what nice:0 misses").expect("a row");
        assert!(first < second, "sorted by cost: {page}");
        assert!(page.contains("Cannot run here") && page.contains("2 of 3 treatments"), "{page}");
    }
    let shown = home.succeed(&["show", "mine"]);
    shown.assert_says(&["getppid by cost", "answered calls/op", "there-is-no-such.so"]);
    let csv = home.succeed(&["export", "mine", "--csv"]).stdout;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let tagged = home.succeed(&["history", "--tag", &format!("atlas/{}", id(&home)), "--json"]);
    assert_eq!(tagged.json()["experiments"].as_array().unwrap().len(), 2);
    // What was missing may be there now. `latest` is the latest atlas, not the experiment of an entry.
    home.run(&["atlas", "--continue", "latest"]).assert_says(&["Not measured: preload:"]);
    assert_eq!(experiments(&home), format!("nice:0 {supervised}"));
}

/// Its start takes longer than the session would wait for another experiment.
#[test]
fn an_entry_that_fails_late_does_not_end_the_session() {
    let _turn = Turn::share();
    let home = Home::new();
    let fails = "agent:start=\"sleep 2; exit 3\",proof=\"test -e x\"";
    list(&home, &[entry(fails, false), entry("nice:0", false)]);
    home.run("atlas --list my.toml --budget 20s --wait=1s");
    let atlas = json(&home);
    let reason = atlas["entries"][0]["obstacle"]["reason"].as_str().unwrap();
    assert!(reason.contains("it failed (exit status: 3)"), "{atlas:#}");
    assert_eq!(experiments(&home), "nice:0");
}

#[test]
fn an_atlas_whose_rows_have_a_verdict_ends_with_status_0() {
    let _turn = Turn::share();
    let home = Home::new();
    list(&home, &[entry("seccomp-notify:calls=getppid", true), entry("none", false)]);
    home.succeed("atlas --list my.toml --only seccomp --budget 120s");
    let id = id(&home);
    let other = "UPDATE experiment SET document = json_set(document, '$.machine.kernel', '9.9')
                 WHERE kind = 'atlas'";
    home.open_database().execute(other, []).unwrap();
    home.run(&["atlas", "--continue", &id]).assert_error(&["the kernel is", "was `9.9` when"]);
}

/// Ends the process by this signal once more samples are stored.
fn end(home: &Home, mut running: Running, samples: i64, signal: Signal) {
    home.wait_for_samples(home.samples() + samples, &mut running);
    kill_process(Pid::from_raw(running.pid()).unwrap(), signal).unwrap();
    let outcome = running.finish();
    match signal {
        Signal::KILL => assert_eq!(outcome.signal, Some(9), "{outcome:#?}"),
        _ => assert_eq!(outcome.code, Some(130), "{outcome:#?}"),
    }
}

#[test]
fn an_atlas_that_was_interrupted_or_killed_goes_on_where_the_store_ends() {
    let _turn = Turn::share();
    let home = Home::new();
    let labels = ["seccomp", "landlock", "nice:0", "none"];
    list(&home, &labels.map(|label| entry(label, false)));
    let begun = home.start(home.weigh("atlas --list my.toml --budget 60s"));
    end(&home, begun, 5, Signal::INT);
    let id = id(&home);
    assert_eq!(home.query_text("SELECT state FROM experiment WHERE kind = 'atlas'"), "interrupted");
    let mut before = home.samples();
    for _ in 0..crate::support::hard(2, 20) {
        let words = ["atlas", "--continue", &id, "--budget", "60s"];
        end(&home, home.start(home.weigh(&words)), 5, Signal::KILL);
        assert!(home.samples() > before, "samples are lost");
        before = home.samples();
    }
    let outcome = home.run(&["atlas", "--continue", &id, "--budget", "6s"]);
    assert!(home.samples() > before && outcome.signal.is_none(), "{outcome:#?}");
    let mut measured: Vec<String> = experiments(&home).split(' ').map(str::to_owned).collect();
    measured.sort();
    assert_eq!(measured, ["landlock", "nice:0", "none", "seccomp"], "each once");
    let atlas = json(&home);
    for result in atlas["entries"].as_array().unwrap() {
        assert_eq!(result["measured"]["state"], "complete", "{result:#}");
    }
    assert_eq!(home.query_text("SELECT state FROM experiment WHERE kind = 'atlas'"), "complete");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

fn number(home: &Home, query: &str) -> f64 {
    home.open_database().query_row(query, [], |row| row.get(0)).unwrap()
}

/// A file that a label names has changed, so its experiment cannot be continued.
#[test]
fn an_entry_that_begins_anew_keeps_its_time_and_a_finished_one_its_result() {
    let _turn = Turn::share();
    let home = Home::new();
    let profile = |call: &str| {
        let rule = format!(r#"{{"names": ["{call}"], "action": "SCMP_ACT_ALLOW"}}"#);
        home.file("p.json", format!(r#"{{"defaultAction": "SCMP_ACT_LOG", "syscalls": [{rule}]}}"#))
    };
    let treatment = format!("seccomp:profile=\"{}\"", profile("read").display());
    list(&home, &[entry(&treatment, false)]);
    let begun = home.start(home.weigh("atlas --list my.toml --budget 60s"));
    end(&home, begun, 5, Signal::INT);
    profile("write");
    let id = id(&home);
    let anew = home.run(&["atlas", "--continue", &id, "--budget", "2s"]);
    anew.assert_says(&["Begins anew, as", "has changed since the experiment began"]);
    let both = "SELECT sum(elapsed_s) FROM experiment WHERE kind = 'compare'";
    let elapsed_s = json(&home)["elapsed_s"].as_f64().unwrap();
    assert!((elapsed_s - number(&home, both)).abs() < 1e-6, "{elapsed_s}");
    assert!(experiments(&home).contains(' '), "{}", experiments(&home));
    // Too few pairs for a verdict, so a session with a budget would add to them.
    home.open_database().execute("DELETE FROM sample WHERE pair > 2", []).unwrap();
    let before = experiments(&home);
    profile("read");
    let kept = home.run(&["atlas", "--continue", &id, "--budget", "2s"]);
    kept.assert_says(&["stays as it is, as it cannot be continued: "]);
    assert_eq!(experiments(&home), before);
    assert_eq!(json(&home)["entries"][0]["measured"]["state"], "complete");
}

#[test]
fn a_second_session_of_an_atlas_is_refused_or_waits_for_the_first() {
    let _turn = Turn::share();
    let home = Home::new();
    list(&home, &[entry("nice:0", false), entry("none", false)]);
    let mut first = home.start(home.weigh("atlas --list my.toml --budget 10m"));
    home.wait_for_samples(1, &mut first);
    let id = id(&home);
    let holder = format!("another session of atlas {id} is running on this host: `");
    let number = format!("(process {}, ", first.pid());
    let second = home.run(&["atlas", "--continue", &id]);
    second.assert_error(&[&holder, &number, "Use --wait to queue behind it"]);
    let second = home.run(&["atlas", "--continue", &id, "--wait=1s"]);
    second.assert_error(&["still busy after waiting", &holder, &number]);
    let last = home.start(home.weigh(&["atlas", "--continue", &id, "--budget", "6s", "--wait"]));
    // It is told in lines of the terminal's width.
    let said = || last.said().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(wait_until(LIMIT, || said().contains("because another session of atlas")));
    end(&home, first, 1, Signal::INT);
    last.finish();
    assert_eq!(experiments(&home), "nice:0 none", "each once");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn what_is_wrong_is_named_before_anything_is_stored() {
    let home = Home::new();
    list(&home, &[entry("none", false), entry("nise:1", false)]);
    let refused = |words: &str, parts: &[&str]| {
        home.run(words).assert_error(parts);
        assert!(!home.database().exists(), "{words}");
    };
    refused("atlas --list my.toml", &["unknown treatment `nise`"]);
    refused("atlas --list no.toml", &["cannot read the list no.toml"]);
    refused("atlas --only nothing-like-that", &["no entry of the list contains it"]);
    refused("atlas --only control -w getpid", &["getpid", "getppid"]);
    refused("atlas --quick --budget 5s", &["too short for", "--only"]);
    // A suite has many rows.
    refused(
        "atlas --only control -w syscalls --budget 20s",
        &["with 1", "workloads: use --budget"],
    );
    refused("atlas --only control --as nitzberg", &["--as nitzberg"]);
    let [plain, quoted] = ["seccomp-notify:calls=getppid", "seccomp-notify:calls=\"getppid\""];
    list(&home, &[entry(plain, false), entry(quoted, false)]);
    refused("atlas --list my.toml", &["is listed twice"]);
    list(&home, &[entry("nice:1", false), entry("nice:1", false)]);
    refused("atlas --list my.toml", &["my.toml:11: `nice:1` is listed twice"]);
}
