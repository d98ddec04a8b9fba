//! `weigh versus`: commands against each other, by commands whose differences are large, or that fail in one
//! of the ways in which commands do.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Home, Turn, row};
use serde_json::Value;

/// A pair that any machine tells apart, and what is enough for it.
const QUICK: &str = "sleep 0.01";
const SLOW: &str = "sleep 0.06";
const ENOUGH: [&str; 4] = ["--budget", "90s", "--margin", "10%"];

fn row_of<'a>(json: &'a Value, command: &str) -> &'a Value {
    let rows = json["results"].as_array().unwrap();
    rows.iter().find(|row| row["treatment"] == command).unwrap_or_else(|| panic!("{json:#}"))
}

fn failure_of<'a>(json: &'a Value, command: &str) -> &'a str {
    let failures = json["failures"].as_array().unwrap();
    let found = failures.iter().find(|failure| failure["arm"] == command);
    found.and_then(|failure| failure["reason"].as_str()).unwrap_or_else(|| panic!("{json:#}"))
}

fn exported(home: &Home, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(home.path(file)).unwrap()).unwrap()
}

fn lines(home: &Home, file: &str) -> Vec<String> {
    fs::read_to_string(home.path(file)).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_slower_command_is_slower_and_all_are_in_order() {
    let _turn = Turn::share();
    let home = Home::new();
    // So far apart that a busy machine delays none of them beyond the next one.
    let slowest = "sleep 0.01; sleep 0.5";
    let commands = ["versus", QUICK, slowest, SLOW];
    let outcome = home.succeed(&[&commands[..], &ENOUGH].concat());
    outcome.assert_says(&[
        "`sleep 0.06` is",
        "slower than `sleep 0.01`",
        "Times as long as the first: `sleep 0.01` 1.000, `sleep 0.06`",
        "including the start of `/bin/sh -c`",
    ]);
    let json = home.json();
    assert_eq!(
        (&json["baseline"], row(&json, "command")["unit"].as_str()),
        (&QUICK.into(), Some("runs/s"))
    );
    assert_eq!(row_of(&json, SLOW)["verdict"], "slower");
    let ranking = json["versus"]["ranking"].as_array().unwrap();
    let order: Vec<&str> = ranking.iter().map(|one| one["command"].as_str().unwrap()).collect();
    assert_eq!(order, [QUICK, SLOW, slowest]);
    assert!(ranking[1]["run_ms"].as_f64().unwrap() >= 60.0, "{ranking:#?}");
    assert!(json["versus"]["shell_start_ms"].as_f64().unwrap() > 0.0);
    // What is measured is what `show` and `history` know, and what can be measured again.
    home.succeed("show -v").assert_says(&["The command is `sleep 0.06`, executed by"]);
    home.succeed("history --kind versus").assert_says(&[json["id"].as_str().unwrap()]);
    let again = json["command"].as_str().unwrap();
    assert!(
        again.starts_with("weigh versus 'sleep 0.01' 'sleep 0.01; sleep 0.5' 'sleep 0.06' "),
        "{again}"
    );
    for format in ["--csv", "--markdown", "--html", "--text", "--junit"] {
        let text = home.succeed(&["export", "latest", format]).stdout;
        assert!(text.contains(SLOW), "{format}: {text}");
    }
}

#[test]
fn the_faster_command_is_faster_and_a_gate_knows_the_slower() {
    let _turn = Turn::share();
    let home = Home::new();
    let words = ["versus", "-N", SLOW, QUICK, "-n", "before"];
    home.succeed(&[&words[..], &ENOUGH].concat()).assert_says(&[
        "`sleep 0.01` is",
        "faster than `before`",
        "without a shell",
    ]);
    let json = home.json();
    assert_eq!(row_of(&json, QUICK)["verdict"], "faster");
    assert_eq!(json["versus"]["shell"], Value::Null);
    let gate = home.run(&[&["versus", QUICK, SLOW, "--fail-above", "20%"][..], &ENOUGH].concat());
    assert_eq!(gate.code, Some(1), "{gate:#?}");
    gate.assert_says(&["shown to cost more than 20 %: sleep 0.06"]);
}

/// Equal ones are equivalent once the pairs are enough, and never different.
#[test]
fn equal_commands_are_not_different() {
    let _turn = Turn::share();
    let home = Home::new();
    let words = ["versus", "-N", "sleep 0.02", "sleep 0.02", "--margin", "40%", "--budget", "5s"];
    // One may be wrong by chance, of one in twenty at most; two of three have a chance of less than 1 %.
    let is_right = || {
        home.measure(&words);
        let json = home.json();
        let row = row_of(&json, "sleep 0.02 (2)");
        assert!(row["pairs"].as_u64().unwrap() > 0, "{json:#}");
        ["equivalent", "inconclusive"].contains(&row["verdict"].as_str().unwrap())
    };
    let (first, second) = (is_right(), is_right());
    home.succeed("diff latest~1 latest").assert_says(&["sleep 0.02 (2)"]);
    assert!(if first == second { first } else { is_right() }, "{:#}", home.json());
}

#[test]
fn what_fails_hangs_or_is_killed_has_no_result_and_the_others_have() {
    let _turn = Turn::share();
    let home = Home::new();
    let killed = "kill -9 $$";
    let commands = ["versus", QUICK, "exit 3", SLOW, "sleep 7007", killed, "--timeout", "3s"];
    let outcome = home.run(&[&commands[..], &ENOUGH].concat());
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["there is no result for", "3 commands gave no result"]);
    let json = home.json();
    assert_eq!(row_of(&json, SLOW)["verdict"], "slower");
    assert_eq!(failure_of(&json, "exit 3"), "it exited with status 3");
    assert!(failure_of(&json, "sleep 7007").contains("did not end within 3 s"));
    assert!(failure_of(&json, killed).contains("killed by signal 9"));
    assert!(home.processes().is_empty(), "{:#?}", home.describe_processes());
    assert!(home.leftovers().is_empty(), "{:?}", home.leftovers());
}

#[test]
fn a_baseline_that_fails_leaves_nothing_to_compare_with() {
    let _turn = Turn::share();
    let failing = "echo no >&2; exit 4";
    let nothing = "the first command gave no result, so there is nothing to compare with it";
    let run = |home: &Home, more: [&str; 2]| {
        let outcome = home.run(&[&["versus", failing, QUICK, SLOW][..], &more].concat());
        outcome.assert_error(&["there is no result", "it exited with status 4: no", nothing]);
    };
    // In the first pair, whose other sample came first and is stored. The next session knows of the failure
    // from the stored experiment alone.
    let home = Home::new();
    run(&home, ["--seed", "1"]);
    assert_eq!((&home.json()["state"], home.samples()), (&"failed".into(), 1));
    home.run("versus --continue latest --budget 5s").assert_error(&[nothing]);
    // When it is tried, before there is any sample.
    let home = Home::new();
    run(&home, ["--warmup", "1"]);
    home.run("show").assert_error(&["no experiment yet"]);
    home.succeed("history").assert_says(&["There is no experiment yet"]);
}

#[test]
fn all_commands_that_fail_are_told_with_their_reasons() {
    let _turn = Turn::share();
    let home = Home::new();
    let failing = ["exit 3", "exit 4", "exit 5", "exit 6", "exit 3 # again"];
    let outcome = home.run(&[&["versus", QUICK][..], &failing].concat());
    outcome.assert_error(&["no other command gave a result to compare with the first"]);
    for reason in ["status 3", "status 4", "status 5", "status 6"] {
        outcome.assert_says(&[&format!("it exited with {reason}")]);
    }
    // Of two in one sentence, the first is the one that failed first.
    let said = &outcome.stdout;
    let orders = ["exit 3, exit 3 # again: it", "exit 3 # again, exit 3: it"];
    assert!(orders.iter().any(|order| said.contains(order)), "{said}");
}

/// Once, and before anything is measured or stored.
#[test]
fn a_program_that_is_not_there_is_told_at_once() {
    let home = Home::new();
    let missing = "there is no program `no-such-program-7`; nothing was measured";
    for words in [
        &["versus", QUICK, "no-such-program-7 | cat"][..],
        &["versus", "-N", "no-such-program-7", QUICK],
        &["compare", "nice:3", "--", "no-such-program-7", "x"],
    ] {
        let outcome = home.run(words);
        outcome.assert_error(&[missing]);
        assert_eq!(outcome.stderr.matches("no-such-program-7").count(), 1, "{outcome:#?}");
        assert_eq!(outcome.stdout, "");
    }
    let history = home.run("history").stdout;
    assert!(!history.contains("weigh versus") && !history.contains("weigh compare"), "{history}");
}

#[test]
fn exit_statuses_that_are_expected_are_fine() {
    let _turn = Turn::share();
    let home = Home::new();
    let [quick, slow] = ["sleep 0.01; exit 3", "sleep 0.06; exit 1"];
    let ends = |option: &[&str]| {
        let words = [&["versus", quick, slow][..], &ENOUGH, option].concat();
        home.run(&words)
    };
    ends(&["--expect-exit", "1,3"]).assert_says(&["slower than"]);
    assert_eq!(row_of(&home.json(), slow)["verdict"], "slower");
    ends(&["-i"]).assert_says(&["slower than"]);
    let only = ends(&["--expect-exit", "3"]);
    only.assert_error(&["it exited with status 1"]);
}

/// Not only of what is kept, which is the end.
#[test]
fn all_of_the_output_is_compared() {
    let _turn = Turn::share();
    let home = Home::new();
    let many = |first: &str| format!("echo {first}; seq 100000");
    let [same, first, last, shorter] =
        [many("a; sleep 0.05"), many("b"), many("a; echo z"), "echo a; seq 99999".to_owned()];
    let base = many("a");
    let words = [
        "versus",
        "--same-output",
        "--pairs",
        "8",
        &base,
        &same,
        &first,
        &last,
        &shorter,
        "echo a; seq 100001",
    ];
    let outcome = home.run(&words);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let json = home.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 1, "{json:#}");
    assert_eq!(row_of(&json, &same)["pairs"], 8);
    let of_first = format!("the first launch of `{base}`");
    let says = |command: &str, what: String| {
        assert_eq!(failure_of(&json, command), what, "{command}");
    };
    says(&first, format!("line 1 of its output is `b`, but `a` in {of_first}"));
    says(&last, format!("line 2 of its output is `z`, but `1` in {of_first}"));
    let ends = "its output ends before line 100001, but the output of";
    says(&shorter, format!("{ends} {of_first} does not"));
    let longer = "its output has a line 100002, `100001`, which the output of";
    says("echo a; seq 100001", format!("{longer} {of_first} lacks"));
    // One that writes something else later cannot be held against itself.
    home.file("kept", "a\n");
    let changes = "cat kept; echo b > kept";
    let outcome = home.run(&["versus", "--same-output", "--json", "-", changes, "echo a"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    // Without any sample nothing is stored.
    let of_itself = failure_of(&outcome.json(), changes).to_owned();
    assert!(of_itself.starts_with("line 1 of its output is `b`, but "), "{of_itself}");
    // The output that is kept lies in the scratch directory.
    assert!(home.leftovers().is_empty(), "{:?}", home.leftovers());
}

#[test]
fn output_is_shown_on_request() {
    let _turn = Turn::share();
    let home = Home::new();
    let words = ["versus", "echo one two", "echo three >&2", "--show-output", "--pairs", "8"];
    let outcome = home.measure(&words);
    outcome.assert_says(&["echo one two: on stdout one two", "echo three >&2: on stderr three"]);
}

#[test]
fn each_command_has_its_own_preparation() {
    let _turn = Turn::share();
    let home = Home::new();
    home.measure(&[
        "versus",
        "--pairs",
        "8",
        "--warmup",
        "1",
        "--setup",
        "echo setup >> log",
        "--prepare",
        "echo for one >> log",
        "--prepare",
        "echo for two >> log",
        "--cleanup",
        "echo cleanup >> log",
        "echo one >> log",
        "echo two >> log",
    ]);
    let log = lines(&home, "log");
    assert_eq!((log.first().unwrap().as_str(), log.last().unwrap().as_str()), ("setup", "cleanup"));
    let steps: Vec<&[String]> = log[1..log.len() - 1].chunks(2).collect();
    assert_eq!(steps.len(), 2 * (8 + 1));
    for step in steps {
        assert_eq!(step[0], format!("for {}", step[1]), "{log:#?}");
    }
    let one_too_many = ["versus", "a", "b", "c", "--prepare", "true", "--prepare", "true"];
    home.run(&one_too_many).assert_error(&["3 commands and 2 times --prepare"]);
}

#[test]
fn a_shell_is_chosen_or_none() {
    let _turn = Turn::share();
    let home = Home::new();
    let by_bash = ["versus", "-S", "bash --norc", "echo ${BASH_VERSION:+bash} >> log", "true"];
    home.measure(&[&by_bash[..], &["--pairs", "8"]].concat());
    assert_eq!(
        lines(&home, "log").into_iter().collect::<BTreeSet<_>>(),
        ["bash".to_owned()].into()
    );
    assert_eq!(home.json()["versus"]["shell"], "bash --norc -c");
    let words =
        ["versus", "-N", "sh -c 'echo \"$0 $1\" >> words' 'a b' '$HOME'", "true", "--pairs", "8"];
    home.measure(&words);
    assert_eq!(lines(&home, "words")[0], "a b $HOME");
    home.run(&["versus", "-N", "echo 'a", "true"])
        .assert_error(&["`echo 'a` is not a valid command"]);
    let no_shell = home.run("versus -S false a b");
    no_shell.assert_error(&["the shell `false -c` cannot run an empty command"]);
    home.run("versus --pairs 8 true").assert_error(&["--pairs needs a second command"]);
    home.run(&["versus", "true", " "]).assert_error(&["a command is empty"]);
}

/// The start of the shell is most of what a built-in takes.
#[test]
fn it_is_told_when_a_shell_is_most_of_the_time() {
    let _turn = Turn::share();
    let home = Home::new();
    // A start that is delayed makes the command seem longer than the start: not three times.
    let is_told = || {
        home.measure("versus true : --pairs 8");
        home.json()["warnings"].to_string().contains("Use -N to execute them without a shell")
    };
    assert!((0..3).any(|_| is_told()), "{:#}", home.json());
    home.measure(&["versus", "sleep 1", "sleep 1.1", "--pairs", "8"]);
    assert!(!home.json()["warnings"].to_string().contains("Use -N"));
}

#[test]
fn another_session_goes_on_with_the_same_programs_only() {
    let _turn = Turn::share();
    let home = Home::new();
    let script = |name: &str, line: &str| {
        let path = home.file(name, format!("#!/bin/sh\n{line}\n"));
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    // So far apart that 1 s decides nothing.
    let noisy = "sleep 0.0$(od -An -N1 -tu1 /dev/urandom | tail -c 2)";
    script("old", noisy);
    script("new", noisy);
    let words = ["versus", "./old", "./new", "--margin", "0.01%", "--budget", "1s"];
    home.measure(&words);
    let pairs = |home: &Home| row_of(&home.json(), "./new")["pairs"].as_u64().unwrap();
    let before = pairs(&home);
    home.measure("versus --continue latest --budget 5s");
    assert!(pairs(&home) > before, "{before} pairs, and no more");
    script("new", "sleep 0.02");
    let changed = home.run("versus --continue latest --budget 1s");
    changed.assert_error(&["/new has changed since the experiment began"]);
}

#[test]
fn parameters_make_commands_and_scripts_read_the_files_of_hyperfine() {
    let _turn = Turn::share();
    let home = Home::new();
    let words =
        "versus -r 3 -w 1 -L n 1,2 -L log a,b -s \"echo {log} >> setup\" -p \"echo {n} >> {log}\"";
    let words: Vec<String> = weigh_model::shell::words(words).unwrap();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["echo {n}{log} >> ran; exit {n}", "-i", "--inconclusive-ok"]);
    words.extend(["--export-json", "out.json", "--export-csv", "out.csv"]);
    home.succeed(&[&words[..], &["--export-markdown", "out.md"]].concat())
        .assert_says(&["a verdict takes at least 8 runs: use --runs 8"]);
    let written = exported(&home, "out.json");
    let results = written["results"].as_array().unwrap();
    let commands: Vec<&str> = results.iter().map(|one| one["command"].as_str().unwrap()).collect();
    let expected = ["1a", "2a", "1b", "2b"];
    let command = |both: &str| format!("echo {both} >> ran; exit {}", &both[..1]);
    assert_eq!(commands, expected.map(command));
    // The first one runs in the pairs of each other one.
    let runs: Vec<usize> =
        results.iter().map(|one| one["times"].as_array().unwrap().len()).collect();
    assert_eq!(runs, [9, 3, 3, 3]);
    assert_eq!(results[3]["parameters"], serde_json::json!({"n": "2", "log": "b"}));
    assert_eq!(results[3]["exit_codes"], serde_json::json!([2, 2, 2]));
    let times = |one: &Value| -> Vec<f64> {
        one["times"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect()
    };
    let mean = times(&results[1]).iter().sum::<f64>() / 3.0;
    assert!((results[1]["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9, "{written:#}");
    let ran = lines(&home, "ran");
    let count = |both: &str| ran.iter().filter(|line| *line == both).count();
    assert_eq!(expected.map(count), [10, 4, 4, 4], "with a warm-up each");
    assert_eq!(lines(&home, "setup"), ["a", "b"]);
    assert_eq!(lines(&home, "a").len(), 14);
    let csv = lines(&home, "out.csv");
    assert_eq!(csv[0], "command,mean,stddev,median,user,system,min,max,parameter_log,parameter_n");
    assert_eq!((csv.len(), csv[4].split(',').next_back()), (5, Some("2")));
    let markdown = lines(&home, "out.md");
    assert!(markdown[0].starts_with("| Command | Mean ["), "{markdown:#?}");
    // A stored experiment gives the same files.
    for (format, file) in [("--export-json", "out.json"), ("--export-markdown", "out.md")] {
        let again = home.succeed(&["export", "latest", format]).stdout;
        assert_eq!(again, fs::read_to_string(home.path(file)).unwrap(), "{format}");
    }
    let again = home.json()["command"].as_str().unwrap().to_owned();
    assert!(again.contains(" -L n 1,2 -L log a,b "), "{again}");
}

#[test]
fn one_command_is_timed_without_a_verdict() {
    let _turn = Turn::share();
    let home = Home::new();
    let words = ["versus", "-N", QUICK, "--runs", "5", "--export-json", "out.json"];
    let outcome = home.succeed(&words);
    outcome.assert_says(&["`sleep 0.01` takes", "of 5 runs", "min … max"]);
    assert!(!outcome.stdout.contains("verdict"), "{outcome:#?}");
    let json = home.json();
    assert_eq!(
        (&json["state"], json["results"].as_array().unwrap().len()),
        (&"complete".into(), 0)
    );
    assert_eq!(json["versus"]["commands"][0]["times_s"].as_array().unwrap().len(), 5);
    let written = exported(&home, "out.json");
    assert_eq!(written["results"][0]["exit_codes"], serde_json::json!(vec![0; 5]));
    home.succeed("import out.json").assert_says(&["sleep 0.01"]);
    let id = json["id"].as_str().unwrap();
    home.succeed(&["show", id]).assert_says(&["`sleep 0.01` takes", "of 5 runs"]);
    for format in ["--markdown", "--html", "--text", "--junit", "--export-csv"] {
        let text = home.succeed(&["export", id, format]).stdout;
        assert!(text.contains(QUICK), "{format}: {text}");
    }
    home.run(&["export", id, "--csv"]).assert_error(&["use --export-csv"]);
    home.run(&["versus", "--continue", id]).assert_error(&["it has one command, so no pairs"]);
}

#[test]
fn one_command_that_fails_has_no_times_unless_failures_are_ignored() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = home.run(&["versus", "exit 3", "--export-json", "out.json"]);
    outcome.assert_error(&["it exited with status 3", "has no times of commands"]);
    home.run("show").assert_error(&["no experiment yet"]);
    assert!(!home.path("out.json").exists());
    home.succeed(&["versus", "exit 3", "-i", "-r", "2", "--export-json", "out.json"]);
    assert_eq!(exported(&home, "out.json")["results"][0]["exit_codes"], serde_json::json!([3, 3]));
    home.succeed("import out.json").assert_says(&["Imported, not measured here", "exit 3"]);
    let own = "echo '{\"operations\":5,\"elapsed_ns\":1000}'";
    let outcome = home.run(&["versus", own, "-r", "2", "--export-json", "out.json"]);
    outcome.assert_error(&["prints a rate of its own", "has no times of commands"]);
}

/// Before anything is measured or stored.
#[test]
fn what_hyperfine_takes_and_weigh_does_not_is_told_at_once() {
    let home = Home::new();
    for (words, problem) in [
        (&["-L", "n", "1,2", "true"][..], "no command has the parameter {n}"),
        (&["-P", "n", "1", "200", "true {n}"], "it has 200 values"),
        (&["-P", "n", "0.1", "1", "true {n}"], "decimals need --parameter-step-size"),
        (&["--min-runs", "5", "true"], "`weigh versus` has no --min-runs"),
        (&["true", "--sort", "command"], "`weigh versus` has no --sort"),
        (&["true", "--fail-above", "1%"], "--fail-above needs a second command"),
    ] {
        home.run(&[&["versus"], words].concat()).assert_error(&[problem]);
    }
    assert!(!home.run("history").stdout.contains("weigh versus"));
}
