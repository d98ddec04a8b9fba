//! Text from files, commands and databases: it is shown, and never drives the terminal. No byte of
//! an escape sequence reaches stdout or stderr, except for our own colours.

use crate::support::{Home, Outcome, Turn};

/// Sets the title, clears the screen, goes red, types C1's CSI, turns the reading direction.
const PLANT: &str = "\x1b]0;pwned\x07\x1b[2J\x1b[41mx\u{9b}5n\u{202e}";

/// Escaped form of the text, for formats that do not allow control characters as they are.
const ESCAPED: &str = r"\u001b]0;pwned\u0007\u001b[2J\u001b[41mx\u009b5n\u202e";

/// Own colours: reset, bold, faint, or the colour of letters.
fn without_own_colours(text: &str) -> String {
    let own = (0..=2).chain(30..=37).map(|number| format!("\x1b[{number}m"));
    own.fold(text.to_owned(), |text, sequence| text.replace(&sequence, ""))
}

#[track_caller]
fn assert_harmless(arguments: &[&str], outcome: &Outcome, is_coloured: bool) {
    for stream in [&outcome.stdout, &outcome.stderr] {
        let left = if is_coloured { without_own_colours(stream) } else { stream.clone() };
        let bad = left.find(|c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}');
        assert_eq!(bad, None, "{arguments:?}: {stream:?}");
    }
}

/// Runs it without and with colours; `said` is what shows that the plant was reached.
#[track_caller]
fn run_both(home: &Home, arguments: &[&str], said: &str) {
    for colour in ["never", "always"] {
        let outcome = home.run(&[&["--color", colour], arguments].concat());
        assert_harmless(arguments, &outcome, colour == "always");
        outcome.assert_says(&[said]);
    }
}

#[test]
fn of_errors_about_files_of_every_kind() {
    let home = Home::new();
    let suite = |name: &str| {
        format!("name = \"{name}\"\nsummary = \"s\"\n[[workload]]\nname = \"{ESCAPED}\"\n")
    };
    home.file("unknown.toml", suite("mine"));
    home.file("key.toml", format!("\"{ESCAPED}\" = 1\n"));
    home.file("raw.toml", format!("name = {PLANT}\n"));
    home.file("action.json", format!("{{\"defaultAction\":\"{ESCAPED}\"}}"));
    home.file("broken.json", format!("{{\"{PLANT}\""));
    home.file("schema.json", format!("{{\"schema\":\"{ESCAPED}\"}}"));
    home.file("table.csv", format!("test,unit,a,b\nx,us,1,{PLANT}\n"));
    home.file("twice.csv", format!("test,unit,a,b\n{PLANT},us,1,2\n{PLANT},us,1,2\n"));
    home.file("perf.csv", format!("1,,{PLANT}\n"));
    home.file(
        "unixbench.txt",
        format!("BYTE UNIX Benchmarks (Version 5)\n{PLANT} {PLANT} lps (1 samples)\n"),
    );
    home.file("profile.json", format!("{{\"{ESCAPED}\": 1}}"));
    home.file("kind.json", format!("{{\"kind\":\"{ESCAPED}\"}}"));
    home.file("raw.0", format!("Simple syscall: {PLANT} microseconds\n"));
    home.file(
        "failed.json",
        format!(r#"{{"results":[{{"command":"{ESCAPED}","mean":1.0,"exit_codes":[1]}}]}}"#),
    );
    let compare = |suite: &'static str| ["compare", "none", "-w", suite];
    run_both(&home, &compare("unknown.toml"), "pwned");
    run_both(&home, &compare("key.toml"), "pwned");
    run_both(&home, &compare("raw.toml"), "raw.toml");
    for name in ["action.json", "broken.json", "kind.json"] {
        run_both(&home, &["compare", &format!("seccomp:profile={name}"), "-w", "getppid"], name);
    }
    for name in
        ["schema.json", "broken.json", "table.csv", "twice.csv", "perf.csv", "unixbench.txt"]
    {
        run_both(&home, &["import", name], name);
    }
    for name in ["raw.0", "failed.json"] {
        run_both(&home, &["import", name], "pwned");
    }
    run_both(&home, &["import", "--format", "perf", "perf.csv"], "pwned");
    run_both(&home, &["rules", "nowhere", "--profile", "profile.json"], "profile.json");
}

#[test]
fn of_names_on_the_command_line() {
    let home = Home::new();
    home.file("t.csv", "test,unit,a,b\nx,us,1,2\n");
    home.succeed(&["import", "t.csv"]);
    let file = home.file(&format!("{PLANT}.csv"), "nothing");
    let file = file.to_str().unwrap();
    for arguments in [
        &["import", file][..],
        &["import", "--as", PLANT, file],
        &["show", PLANT],
        &["show", "--as", PLANT],
        &["--database", file, "history"],
        &["compare", PLANT],
        &["compare", "none", "-w", PLANT],
        &["compare", "none", "--budget", PLANT],
        &["compare", "none", &format!("--{PLANT}")],
        &["compare", &format!("seccomp:profile={file}"), "-w", "getppid"],
        &["compare", "none", "--json", &format!("/nowhere/{PLANT}")],
        &[PLANT],
    ] {
        run_both(&home, arguments, "");
    }
    run_both(&home, &["show", PLANT], "pwned");
}

#[test]
fn of_what_is_stored_in_every_report() {
    let home = Home::new();
    home.file("t.csv", format!("test,unit,a{PLANT},=b\n{PLANT},us{PLANT},1,2\n"));
    run_both(&home, &["import", "t.csv"], "pwned");
    let id = home.query_text("SELECT id FROM experiment LIMIT 1");
    run_both(&home, &["show", &id], "pwned");
    run_both(&home, &["history"], "imported");
    for format in ["--json", "--markdown", "--html", "--text"] {
        run_both(&home, &["export", &id, format], "pwned");
    }
    // JSON is escaped, so that its reader gets what was there.
    let json = home.succeed(&["export", &id, "--json"]).json();
    assert!(json.to_string().contains("pwned"));
    assert_eq!(json["imported"]["files"][0]["figures"][0]["test"], PLANT.trim());
    for dialect in ["smalley", "unixbench", "lmbench", "nitzberg", "whitcher"] {
        run_both(&home, &["show", &id, "--as", dialect], "");
    }
    let run = |host: &str| {
        format!("[lmbench3.0 results for Linux {host} 6]\nSimple syscall: 1 microseconds\n")
    };
    home.file("hosts.0", run(PLANT) + &run("b"));
    run_both(&home, &["import", "hosts.0"], "pwned");
    // A database that another program has written to, and one that is broken in a way that SQLite quotes.
    let database = home.open_database();
    let change = format!(
        "UPDATE experiment SET command = '{PLANT}', started = '\u{1b}[31m2026';
        UPDATE imported SET summary = '{PLANT}'"
    );
    database.execute_batch(&change).unwrap();
    run_both(&home, &["history"], "pwned");
    run_both(&home, &["show", &id], "cannot be read");
}

#[test]
fn of_what_a_command_says_when_it_fails() {
    let _turn = Turn::share();
    let home = Home::new();
    // Without any sample nothing would be stored.
    let fails = format!(
        "echo >>runs\n[ $(wc -l <runs) -gt 6 ] || exit 0\nprintf '%s' '{PLANT}' >&2\nexit 3\n"
    );
    let script = home.file("fail.sh", fails);
    let script = script.to_str().unwrap();
    for colour in ["never", "always"] {
        let _ = std::fs::remove_file(home.path("runs"));
        let arguments =
            ["--color", colour, "compare", "none", "--pairs", "8", "--", "sh", script, PLANT];
        let outcome = home.run(&arguments);
        assert_harmless(&arguments, &outcome, colour == "always");
        outcome.assert_error(&["exited with status 3", "pwned"]);
    }
    run_both(&home, &["show"], "pwned");
    run_both(
        &home,
        &["export", &home.query_text("SELECT id FROM experiment LIMIT 1"), "--csv"],
        "",
    );
}

/// CI services take such a line for a command of ours.
#[test]
fn no_line_of_a_message_begins_with_what_a_file_says() {
    let home = Home::new();
    let hostile = "x\\n::error::forged";
    home.file(
        "suite.toml",
        format!("name = \"s\"\nindex = \"{hostile}\"\nworkloads = [\"stat\"]\n"),
    );
    home.file(
        "result.json",
        format!("{{\"schema\": \"weighbridge/experiment/2\", \"state\": \"{hostile}\"}}"),
    );
    for arguments in ["compare none -w suite.toml", "import result.json"] {
        let outcome = home.run(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        assert!(outcome.stderr.contains("::error::forged"), "{outcome:#?}");
        let is_ours = |line: &str| line.starts_with("error: ") || line.starts_with("  | ::error");
        assert!(outcome.stderr.lines().all(is_ours), "{outcome:#?}");
    }
}
