//! Uses of a finished experiment: every format, the history, and the program's own papers.

use std::fs;
use std::process::Command;

use crate::support::{Home, Turn, program, row};

fn home_with_an_experiment() -> (Home, String) {
    let home = Home::new();
    home.measure(&[
        "compare",
        "none",
        "-w",
        "getppid",
        "--pairs",
        "8",
        "--json",
        "r.json",
        "--csv",
        "r.csv",
        "--markdown",
        "r.md",
        "--html",
        "r.html",
    ]);
    let id = home.query_text("SELECT id FROM experiment");
    (home, id)
}

#[test]
fn every_format_is_written_and_exported_alike() {
    let _turn = Turn::share();
    let (home, id) = home_with_an_experiment();
    for (format, file, part) in [
        ("--json", "r.json", "weighbridge/experiment/2"),
        ("--csv", "r.csv", "getppid"),
        ("--markdown", "r.md", "| getppid"),
        ("--html", "r.html", "<!doctype html>"),
    ] {
        let exported = home.succeed(&["export", &id, format]).stdout;
        assert!(exported.to_lowercase().contains(&part.to_lowercase()), "{format}: {exported}");
        assert_eq!(exported, fs::read_to_string(home.path(file)).unwrap(), "{format}");
    }
    home.succeed(&["export", &id, "--text"]).assert_says(&["getppid", "again: weigh compare none"]);
    let lines = fs::read_to_string(home.path("r.csv")).unwrap().lines().count();
    assert_eq!(lines, 9, "a head and a line per pair");
    // The beginning of an id is enough, and a file can be named.
    home.succeed(&["export", &id[..4], "--json", "-o", "again.json"]);
    assert_eq!(fs::read(home.path("again.json")).unwrap(), fs::read(home.path("r.json")).unwrap());
    home.succeed(&["show", &id[..4]]).assert_says(&[&id]);
    home.succeed("history").assert_says(&[&id, "started", "weigh compare none"]);
}

/// Returns true if a text has a word by itself: `kvm` does not contain the word `vm`.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

#[test]
fn an_anonymised_report_names_neither_the_machine_nor_its_boot() {
    let _turn = Turn::share();
    let (home, compared) = home_with_an_experiment();
    home.succeed("run getppid --samples 3");
    let ran =
        home.query_text("SELECT id FROM experiment ORDER BY started DESC, rowid DESC LIMIT 1");
    let read = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
    let secrets = [
        read("/proc/sys/kernel/hostname"),
        read("/proc/sys/kernel/random/boot_id"),
        read("/proc/cmdline"),
    ];
    for (id, formats) in [
        (&compared, &["--json", "--csv", "--markdown", "--html", "--text"][..]),
        (&ran, &["--json", "--csv", "--markdown", "--junit", "--html", "--text"]),
    ] {
        for format in formats {
            let text = home.succeed(&["export", id, format, "--anonymise"]).stdout;
            assert!(text.contains("getppid"), "{format}");
            for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
                assert!(!has_word(&text, secret), "{format} has {secret:?}:\n{text}");
            }
        }
        let shown = home.succeed(&["show", id, "-v", "--anonymise"]).stdout;
        assert!(secrets.iter().all(|secret| !has_word(&shown, secret)), "{shown}");
        let named = home.succeed(&["export", id, "--json"]).stdout;
        assert!(has_word(&named, &secrets[0]) && has_word(&named, &secrets[1]), "{named}");
    }
}

#[test]
fn the_html_needs_nothing_from_elsewhere() {
    let _turn = Turn::share();
    let (home, _) = home_with_an_experiment();
    let html = fs::read_to_string(home.path("r.html")).unwrap();
    for from_elsewhere in ["src=\"http", "href=\"http", "@import", "url(http", "<link"] {
        assert!(!html.contains(from_elsewhere), "{from_elsewhere}");
    }
    assert!(html.contains("prefers-color-scheme") && html.contains("@media print"));
}

#[test]
fn formats_of_export_take_no_file() {
    let home = Home::new();
    for wrong in ["export --json -", "export --html - -o x.html", "export latest --json -"] {
        let said = "In `weigh export` the formats take no file";
        home.run(wrong).assert_error(&[said, "For example: weigh export latest --json"]);
    }
    let said = ["`x.csv` is read as an experiment", "latest --csv --output x.csv`"];
    home.run("export latest --csv x.csv").assert_error(&said);
}

#[test]
fn several_experiments_are_one_page() {
    let _turn = Turn::share();
    let (home, _) = home_with_an_experiment();
    home.succeed("run getppid --samples 3 --sample 10ms --name alone");
    let page = home.succeed("export latest~1 alone --html").stdout;
    for (part, times) in [("<main", 3), ("<h1>", 3), ("<h1>2 experiments</h1>", 1), ("</html>", 1)]
    {
        assert_eq!(page.matches(part).count(), times, "{part}");
    }
    let ids = home.query_text("SELECT group_concat(id) FROM experiment");
    for id in ids.split(',') {
        for part in [format!("<a href=\"#{id}\">"), format!("<main id=\"{id}\">")] {
            assert_eq!(page.matches(&part).count(), 1, "{part}");
        }
    }
    home.run("export latest alone --html").assert_error(&["named twice"]);
    home.run("export latest~1 alone --csv").assert_error(&["on one page, use --html"]);
}

#[test]
fn a_run_is_written_and_exported_in_every_format() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed(
        "run getppid --samples 3 --json r.json --csv r.csv --markdown r.md --junit r.xml --html r.html \
         --text r.txt --github-summary=r.github",
    )
    .assert_says(&["getppid", "ops/s"]);
    let id = home.query_text("SELECT id FROM experiment");
    for (format, file, part) in [
        ("--json", "r.json", "weighbridge/run/2"),
        ("--csv", "r.csv", ",getppid,ops/s,3,"),
        ("--markdown", "r.md", "| getppid"),
        ("--junit", "r.xml", "<testcase classname=\"weigh.run\" name=\"getppid\">"),
        ("--html", "r.html", "<!DOCTYPE html>"),
        ("--text", "r.txt", "again: weigh run getppid"),
    ] {
        let exported = home.succeed(&["export", &id, format]).stdout;
        assert!(exported.contains(part), "{format}: {exported}");
        assert_eq!(exported, fs::read_to_string(home.path(file)).unwrap(), "{format}");
    }
    let summary = fs::read_to_string(home.path("r.github")).unwrap();
    assert!(summary.contains("| getppid"), "{summary}");
    let csv = home.succeed("run getppid --samples 3 --csv -").stdout;
    assert_eq!(csv.lines().count(), 4, "a head and a line per sample: {csv}");
}

/// The samples are kept, and the usual report is shown.
#[test]
fn a_table_that_the_results_do_not_fit_is_an_error() {
    let _turn = Turn::share();
    let home = Home::new();
    let run = home.run("run getppid --samples 3 --as nitzberg");
    run.assert_error(&["--as nitzberg: "]);
    assert!(run.stdout.contains("getppid") && run.stdout.contains("again: weigh run"), "{run:#?}");
    let compare = "compare none -w getppid --pairs 8 --no-detail --inconclusive-ok --as reaim";
    home.run(compare).assert_error(&["--as reaim: "]);
    home.succeed("show").assert_says(&["getppid"]);
}

#[test]
fn a_workload_without_a_result_is_an_error_in_the_junit_of_a_run() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run("run getppid --samples 3 --sample 3s --timeout 1s --junit -");
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let xml = &outcome.stdout;
    assert!(xml.contains("failures=\"0\"") && xml.contains("<error message="), "{xml}");
}

#[test]
fn completions_and_man_pages_are_generated() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        home.succeed(&["completions", shell]).assert_says(&[" __complete -- "]);
    }
    home.succeed("man").assert_says(&[".TH", "weigh"]);
    fs::create_dir(home.path("man")).unwrap();
    home.succeed("man --directory man");
    for page in ["weigh.1", "weigh-compare.1", "weigh-net-rank.1", "weigh-restore.1"] {
        let text = fs::read_to_string(home.path("man").join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
    let help = home.succeed("compare --help");
    help.assert_says(&["Examples:", "--fail-above"]);
    // The roles that the program starts itself in are not for people.
    assert!(!home.succeed("--help").stdout.contains("__"));
}

/// One file, copied to a machine with nothing, in a directory with nothing, and no environment.
#[test]
fn the_program_alone_is_enough() {
    let _turn = Turn::share();
    let home = Home::new();
    fs::create_dir(home.path("alone")).unwrap();
    fs::copy(program(), home.path("alone/weigh")).unwrap();
    let alone = |arguments: &[&str]| {
        let mut command = Command::new("./weigh");
        command.env_clear().current_dir(home.path("alone")).args(arguments);
        home.start(command).finish()
    };
    let listed = alone(&["list", "workloads"]);
    assert_eq!(listed.code, Some(0), "{listed:#?}");
    // Without HOME it cannot know where to keep experiments, and says so.
    alone(&["run", "getppid", "--samples", "3"]).assert_error(&["--database FILE"]);
    let command = ["--database", "weigh.db", "run", "getppid", "--samples", "3"];
    if crate::support::is_root() {
        let outcome = alone(&command);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    } else {
        alone(&command).assert_error(&["HOME is not set"]);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let home = Home::new();
    let mut command = home.command("sh");
    let script = format!(
        "'{}' list | head -n 1; '{}' list >/dev/full",
        program().display(),
        program().display()
    );
    command.args(["-c", &script]);
    home.start(command).finish().assert_error(&["cannot write the output", "No space left"]);
}

#[test]
fn every_sample_is_stored_with_what_others_took_and_every_row_has_its_bound() {
    let _turn = Turn::share();
    let home = Home::new();
    // Where arms seem equal and few pairs confirm it, nothing bounds the cost.
    home.run("compare planted:share=50% -w getppid --pairs 8 --csv r.csv");
    let json = home.json();
    let row = row(&json, "getppid");
    let disturbed = row["disturbed_pairs"].as_u64().unwrap();
    let csv = fs::read_to_string(home.path("r.csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "disturbed");
    let is_marked = |line: &&str| line.split(',').nth(column.unwrap()) == Some("true");
    let marked = csv.lines().filter(is_marked).count();
    assert_eq!(marked as u64, disturbed, "{csv}");
    let at_most = row["cost_at_most_pct"].as_f64().unwrap();
    let (low, effect) = (row["low_pct"].as_f64().unwrap(), row["effect_pct"].as_f64().unwrap());
    assert!(-effect <= at_most && at_most <= -low, "{row:#}");
    let told = home.query_text(
        "SELECT min(json_extract(disturbance, '$.during_ns') > \
                    json_extract(sample, '$.elapsed_ns')) || '' FROM sample",
    );
    assert_eq!(told, "1", "a launch takes longer than its timed part");
}
