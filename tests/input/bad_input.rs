//! Whatever is wrong with the input gets a sentence that says what and where, exit status 2, and
//! never a panic; the system is not changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::audit::Audit;
use crate::support::processes::signal;
use crate::support::{Home, Turn, is_root, program, skip, wait_until};

#[test]
fn names_that_do_not_exist_are_named_with_what_is_near() {
    let _turn = Turn::share();
    let home = Home::new();
    home.run("compare none -w getpid").assert_error(&[
        "no workload or suite `getpid`",
        "did you mean",
        "`getppid`",
    ]);
    home.run("run unixbenhc").assert_error(&["did you mean `unixbench`?"]);
    home.run("compare none -w zzzzzzzz").assert_error(&["weigh list workloads"]);
    home.run("compare audti").assert_error(&[
        "unknown treatment `audti`",
        "did you mean `audit`?",
        "weigh list",
    ]);
    home.run("compare none getppid").assert_error(&["not a treatment: use -w getppid"]);
    home.run("compare unixbench").assert_error(&["not a treatment: use -w unixbench"]);
    home.run("compare none --base nix").assert_error(&["unknown treatment `nix`"]);
    home.run("show").assert_error(&["no experiment yet"]);
    home.measure("compare none -w getppid --pairs 8 --no-detail");
    home.run("show nosuch").assert_error(&["no experiment `nosuch`", "weigh history"]);
    home.run("export nosuch --json").assert_error(&["no experiment `nosuch`"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// From the command line, from a file, from the database and from the experiment.
#[test]
fn every_error_has_one_style() {
    let home = Home::new();
    home.file("junk.toml", "name = [\n");
    home.file("junk.db", "no database");
    for arguments in [
        &["compre"][..],
        &["compare", "--bugdet", "5s"],
        &["compare", "--budget", "soon"],
        &["compare", "none", "--color", "purple"],
        &["versus", "a", "b", "--min-runs", "5"],
        &["rules"],
        &["compare", "secomp"],
        &["compare", "seccomp:profile=nothing.json"],
        &["run", "./junk.toml"],
        &["--database", "junk.db", "history"],
        &["show"],
        &["import", "nothing.json"],
        &["load", "nothing"],
        &["net", "--grid", "nothing"],
        &["compare", "none", "-w", "getppid", "--json", "nowhere/file"],
        &["forget", "nothing"],
    ] {
        let outcome = home.run(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        let (first, rest) = outcome.stderr.split_once('\n').unwrap();
        assert!(first.starts_with("error: ") && first.len() > 20, "{arguments:?}: {outcome:#?}");
        assert!(rest.lines().all(|line| line.starts_with("  ")), "{arguments:?}: {outcome:#?}");
        for noise in ["weigh: ", "tip:", "Usage:", "os error", "'-- --"] {
            assert!(!outcome.stderr.contains(noise), "{noise}: {outcome:#?}");
        }
    }
}

/// A FIFO that nobody writes to, and a device without an end: `finish` gives up on what hangs.
#[test]
fn files_that_would_be_waited_for_are_refused_at_once() {
    let home = Home::new();
    let fifo = home.path("fifo.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    for file in ["./fifo.toml", "/dev/zero"] {
        let treatment = format!("seccomp:profile={file}");
        for arguments in [
            vec!["compare", "none", "-w", file],
            vec!["compare", &treatment],
            vec!["run", file],
            vec!["import", file],
        ] {
            let running = home.start(home.weigh(&arguments));
            running
                .finish()
                .assert_error(&["not a regular file", "save the content to a regular file"]);
        }
        let mut command = home.weigh("list workloads");
        command.env("WEIGH_WORKLOADS", file);
        home.start(command).finish().assert_error(&["WEIGH_WORKLOADS=", "not a regular file"]);
    }
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let home = Home::new();
    for (option, value, said) in [
        ("--budget", "soon", "such as 90s"),
        ("--budget", "0s", "such as 90s"),
        ("--budget", "-5m", "such as 90s"),
        ("--margin", "0", "above 0 and below 100"),
        ("--margin", "100%", "above 0 and below 100"),
        ("--margin", "NaN", "above 0 and below 100"),
        ("--fail-above", "much", "such as 1%"),
        ("--pairs", "1", "--pairs"),
        ("--pairs", "99999999999", "--pairs"),
        ("--seed", "-1", "--seed"),
        ("--sets", "0", "--sets"),
    ] {
        home.run(&["compare", "none", &format!("{option}={value}")]).assert_error(&[said]);
    }
    home.run("history -n 0").assert_error(&["takes a whole number, 1 or more"]);
    home.run("tag latest").assert_error(&["--name <NAME>", "--untag <TAG>"]);
    home.run("compare none -w stat -- true").assert_error(&["not both"]);
    home.run("run --samples 1").assert_error(&["--samples"]);
    home.run("export x").assert_error(&["--json"]);
    home.run("weight").assert_error(&["weight"]);
}

/// Who gave one would take the numbers for those of what it says.
#[test]
fn options_that_nothing_uses_are_refused() {
    let home = Home::new();
    let refused = |words: &str, said: &[&str]| {
        home.run(&words.split(' ').collect::<Vec<_>>()).assert_error(said);
    };
    let getppid = "compare seccomp -w getppid";
    refused(
        &format!("{getppid} --active a.lab --passive p.lab"),
        &["--active and --passive apply only to network grids", "-w net:quick"],
    );
    refused(&format!("{getppid} --treat client"), &["requests to a server", "remove --treat"]);
    refused(&format!("{getppid} --reboot-by grub"), &["--reboot-by is for arms that are boots"]);
    refused(
        "run app:web.page --for 1m --think 10ms",
        &["--think has no effect on these workloads: it applies to mixes"],
    );
    for command in ["show", "run getppid", "compare none", "load shared", "versus true false"] {
        refused(&format!("{command} --as unixbench -v"), &["--as <TABLE>", "cannot be used with"]);
    }
    assert_eq!((home.samples(), home.leftovers()), (0, Vec::<std::path::PathBuf>::new()));
}

#[test]
fn a_slip_on_the_command_line_creates_no_database() {
    let home = Home::new();
    home.file("figures.csv", "case,a,b\nx,1,2\n");
    for words in [
        "compare none -w getpid",
        "compare secomp -w getppid",
        "run getpid",
        "load shred",
        "calibrate -w getpid",
        "versus no-such-program true",
        "budget -w getpid",
        "budget audit:rules=missing.rules",
        "rules missing.rules",
        "import figures.csv --base none-of-these",
    ] {
        let refused = home.run(words);
        assert_eq!(refused.code, Some(2), "{words}: {refused:#?}");
        assert!(!home.database().exists(), "{words}: {refused:#?}");
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let home = Home::new();
    for (treatment, said) in [
        ("seccomp:compares=0", "from 1 to 2000"),
        ("seccomp:compares=many", "from 1 to 2000"),
        ("seccomp:compares=1,compares=2", "given twice"),
        ("seccomp:", "empty"),
        ("seccomp:comparisons=5", "it takes compares=N, profile=FILE"),
        ("seccomp:profile=missing.json", "missing.json"),
        ("none:really", "it takes nothing"),
        ("audit:backlog=0", "backlog=0"),
        ("audit:backlog=-1", "backlog=-1"),
        ("audit:rules=missing.rules", "missing.rules"),
        ("audit:residual,backlog=9", "auditing is off"),
    ] {
        home.run(&["compare", treatment, "-w", "getppid"]).assert_error(&[said]);
    }
    home.file("broken.json", "{\"defaultAction\": \"SCMP_ACT_ALLOW\",\n \"syscalls\": [}");
    home.run("compare seccomp:profile=broken.json -w getppid")
        .assert_error(&["broken.json", "line 2"]);
}

#[test]
fn a_rule_file_that_is_none_is_named_with_its_line() {
    let home = Home::new();
    for (name, content, said) in [
        ("empty.rules", &b""[..], "no rule in this file"),
        ("control.rules", b"# nothing but\n-D\n-e 1\n", "no rule in this file"),
        ("binary.rules", b"-w /etc/passwd -p wa\n\x7fELF\x02\x00\xff\n", "binary.rules:2"),
        ("limit.rules", b"-w /etc/passwd -p wa\n\n-b many\n", "limit.rules:3"),
    ] {
        home.file(name, content);
        home.run(&["compare", &format!("audit:rules={name}"), "-w", "getppid"])
            .assert_error(&[name, said]);
    }
}

#[test]
fn a_rule_file_with_some_bad_lines_is_weighed_and_they_are_reported() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    home.file(
        "mixed.rules",
        "-D\n-b 1000\n-f 2\n-a always,exit -S getppid -k good\n-a always,exit -S no_such_call -k x\n\
         -w /etc/passwd -p wa -k good\n-a never,always\nrubbish\n-e 2\n",
    );
    let outcome = home.measure("compare audit:rules=mixed.rules -w getppid --pairs 8 --json -");
    let json = outcome.json();
    let facts = json["treatments"][0]["facts"].to_string();
    for said in [
        "mixed.rules: 2 rules loaded",
        "Line 5 refused (Syscall name unknown: no_such_call)",
        "Line 7 refused (`-a` takes `always` or `never` and a list",
        "Line 8 refused (it is not a rule): rubbish",
        "Line 9 skipped (weigh itself switches auditing on, and never locks it)",
        "backlog limit is 1000 records",
    ] {
        assert!(facts.contains(said), "`{said}` is not in {facts}");
    }
    let warning = "`audit:rules=mixed.rules`: 3 lines were refused, and are not weighed; the first is line \
                   5 of mixed.rules (Syscall name unknown: no_such_call).";
    assert!(json["warnings"].as_array().unwrap().contains(&warning.into()), "{json:#}");
    assert!(outcome.stderr.contains("3 lines were refused"), "{outcome:#?}");
    crate::support::assert_slows(crate::support::row(&json, "getppid"), 30.0);
    audit.assert_restored();
}

#[test]
fn a_rule_file_with_bad_lines_only_leaves_nothing_loaded() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    home.file("bad.rules", "-a always,exit -S nosuch\n-a never\n-w relative -p wa\n");
    home.run("compare audit:rules=bad.rules -w getppid --pairs 8").assert_error(&[
        "bad.rules: Line 1 refused (Syscall name unknown: nosuch)",
        "Line 3 refused (The path must start with '/')",
    ]);
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    home.run("show").assert_error(&["no experiment yet"]);
}

#[test]
fn a_broken_suite_file_is_named_with_its_line() {
    let home = Home::new();
    let head = "name = \"mine\"\nsummary = \"of mine\"\n";
    for (name, text, said) in [
        ("key.toml", format!("{head}[[workload]]\nnam = \"stat\"\n"), "key.toml:4"),
        ("syntax.toml", format!("{head}[[workload\n"), "syntax.toml:3"),
        ("empty.toml", format!("{head}workload = []\n"), "no [[workload]]"),
        ("unknown.toml", format!("{head}[[workload]]\nname = \"stta\"\n"), "did you mean `stat`"),
    ] {
        home.file(name, text);
        home.run(&["compare", "none", "-w", name]).assert_error(&[name, said]);
    }
    home.run("run ./missing.toml").assert_error(&["missing.toml"]);
    home.file("binary.toml", b"\xff\xfe");
    home.run("run binary.toml").assert_error(&["binary.toml"]);
    home.run("run ./data/").assert_error(&["./data/"]);
}

#[test]
fn a_damaged_database_is_named_with_a_way_out() {
    let home = Home::new();
    fs::create_dir_all(home.database().parent().unwrap()).unwrap();
    fs::write(home.database(), "not a database at all, ".repeat(400)).unwrap();
    let commands: [&[&str]; 4] =
        [&["show"], &["history"], &["compare", "none", "-w", "getppid"], &["run", "getppid"]];
    for command in commands {
        home.run(command).assert_error(&["weigh.db is damaged", "move it away"]);
    }
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn damage_within_the_database_is_found_where_it_is_read() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed("run getppid --samples 3");
    let mut bytes = fs::read(home.database()).unwrap();
    assert!(bytes.len() > 3 * 4096);
    bytes[4096..].fill(0xa5);
    fs::write(home.database(), bytes).unwrap();
    for command in [&["show"][..], &["history"], &["run", "getppid", "--samples", "3"]] {
        home.run(command).assert_error(&["weigh.db is damaged"]);
    }
    home.file("data/foreign.db", "");
    let foreign = rusqlite::Connection::open(home.path("data/foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE experiment (x); PRAGMA user_version = 1").unwrap();
    home.run("--database data/foreign.db show").assert_error(&["foreign.db"]);
}

#[test]
fn a_slip_on_the_command_line_is_told_before_a_database_of_another_version() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed("run getppid --samples 3");
    let newer = rusqlite::Connection::open(home.database()).unwrap();
    newer.execute_batch("PRAGMA user_version = 99999").unwrap();
    for (words, said) in [
        ("compare seccmp -w getppid", "did you mean `seccomp`?"),
        ("run getppid --fixture fss", "`fss`"),
        ("compare seccomp -w getppidd", "did you mean `getppid` or"),
        ("run getppidd", "did you mean `getppid` or"),
        ("calibrate -w getppidd", "did you mean `getppid` or"),
        ("budget -w getppidd", "did you mean `getppid` or"),
        ("budget seccomp", "`seccomp` writes no log"),
        ("rules missing.rules", "missing.rules"),
        ("compare seccomp -w getppid", "version 99999"),
    ] {
        home.run(words).assert_error(&[said]);
    }
}

/// `weigh` with this script in the place of apt-cache.
fn with_apt_cache(home: &Home, script: &str) -> Command {
    let file = home.file("apt-cache", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("mount --bind {} /usr/bin/apt-cache && exec \"$0\" \"$@\"", file.display());
    let mut command = home.command("unshare");
    command.args(["--mount", "sh", "-c", &line]).arg(program());
    command
}

/// Each question takes apt a second of CPU time where it keeps no cache, as in a container.
#[test]
fn an_unknown_kernel_package_costs_one_question_to_apt() {
    if !is_root() || !fs::exists("/usr/bin/apt-cache").unwrap() {
        skip("root", "needs root and apt-cache");
        return;
    }
    let home = Home::new();
    let asked = home.path("asked");
    let mut command = with_apt_cache(&home, &format!("echo \"$@\" >> {}", asked.display()));
    command.args(["compare", "vm:kernel=none-7", "--base", "vm", "-w", "getppid"]);
    let outcome = home.start(command).finish();
    outcome.assert_error(&["does not know the package none-7", "apt-get update", "kernel=PATH"]);
    let questions = fs::read_to_string(&asked).unwrap();
    assert_eq!(questions, "show --no-all-versions -- none-7\n");
}

/// Only root asks apt, which takes a minute on a busy machine.
#[test]
fn an_interrupt_ends_the_look_for_a_kernel_package() {
    if !is_root() || !fs::exists("/usr/bin/apt-cache").unwrap() {
        skip("root", "needs root and apt-cache");
        return;
    }
    let home = Home::new();
    let asked = home.path("asked");
    let mut command = with_apt_cache(&home, &format!(": > {}\nexec sleep 600", asked.display()));
    command.args(["compare", "vm:kernel=none-7", "--base", "vm:audit,kernel=none-7"]);
    let mut running = home.start(command);
    let limit = Duration::from_secs(60);
    assert!(wait_until(limit, || asked.exists() || running.has_ended()), "{}", running.said());
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.signal, Some(libc::SIGINT), "{outcome:#?}");
    assert!(!home.database().exists() || home.samples() == 0);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// Not by a bit, but on purpose.
#[test]
fn a_database_that_says_what_cannot_be_is_refused_in_a_sentence() {
    let _turn = Turn::share();
    let home = Home::new();
    home.run("compare none -w getppid --pairs 8 --no-detail");
    let copy = fs::read(home.database()).unwrap();
    for (statement, what) in [
        ("UPDATE sample SET work = 99", "a sample of workload 99 in arm"),
        ("UPDATE sample SET treated_arm = 99", "in arm 99"),
        ("UPDATE sample SET set_number = 1099511627776", "more than 10000 sets"),
        ("UPDATE experiment SET elapsed_s = 1e300", "longer than thirty years"),
    ] {
        fs::write(home.database(), &copy).unwrap();
        rusqlite::Connection::open(home.database()).unwrap().execute(statement, []).unwrap();
        for command in [
            &["show", "-v"][..],
            &["export", "latest", "--csv"],
            &["compare", "--continue", "latest"],
        ] {
            home.run(command).assert_error(&["is damaged: ", what]);
        }
    }
}

#[test]
fn a_database_where_none_can_be_is_named() {
    let home = Home::new();
    home.file("plain", "");
    for (path, said) in [
        ("plain/weigh.db", "plain"),
        ("data", "data"),
        ("/proc/no/weigh.db", "/proc/no"),
        ("/dev/full", "/dev/full"),
    ] {
        home.run(&["--database", path, "history"]).assert_error(&[said]);
        home.run(&["--database", path, "compare", "none", "-w", "getppid", "--pairs", "8"])
            .assert_error(&[said]);
    }
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// Without --database there is none before the first experiment, which is no error.
#[test]
fn a_database_that_does_not_exist_is_named() {
    let home = Home::new();
    for command in [&["history"][..], &["history", "--json"], &["show"], &["diff", "a", "b"]] {
        let named = ["--database", "nodir/x.db"];
        let outcome = home.run(&[&named[..], command].concat());
        outcome.assert_error(&["nodir/x.db does not exist", "--database"]);
        assert_eq!(outcome.stdout, "");
    }
    assert!(!home.path("nodir").exists(), "a look made a directory");
    home.succeed("history").assert_says(&["There is no experiment yet"]);
}

#[test]
fn reports_that_cannot_be_written_are_named_before_anything_is_measured() {
    let _turn = Turn::share();
    let home = Home::new();
    let experiment = ["compare", "none", "-w", "getppid", "--pairs", "8", "--json", "no/such/file"];
    home.run(&experiment).assert_error(&["cannot write no/such/file"]);
    assert!(!home.database().exists(), "it began nevertheless");
    home.run("compare nosuch --json out.json").assert_error(&["unknown treatment"]);
    home.run("run nosuch --html out.html").assert_error(&["`nosuch`"]);
    assert!(!home.path("out.json").exists() && !home.path("out.html").exists());
    home.measure("compare none -w getppid --pairs 8");
    let id = home.query_text("SELECT id FROM experiment");
    home.run(&["export", &id, "--csv", "-o", "no/such/file"]).assert_error(&["no/such/file"]);
    home.run(&["export", &id, "--html", "-o", "/dev/full"]).assert_error(&["/dev/full", "space"]);
}

/// Whoever reads JSON from a pipe cannot read a page behind it.
#[test]
fn two_documents_do_not_share_stdout() {
    let home = Home::new();
    home.file("my.rules", "-a always,exit -S getppid\n");
    for (command, first, second) in [
        (&["compare", "none", "-w", "getppid"][..], "csv", "json"),
        (&["versus", "true", "false"], "html", "junit"),
        (&["run", "getppid"], "json", "html"),
        (&["rules", "my.rules"], "json", "html"),
        (&["net", "rank", "./a.json", "./b.json"], "json", "html"),
    ] {
        let option = |name: &str| match (command[0], name) {
            ("net", "json") => vec!["--json".to_owned()],
            _ => vec![format!("--{name}"), "-".to_owned()],
        };
        let options = [option(first), option(second)].concat();
        let words = command.iter().copied().chain(options.iter().map(String::as_str));
        let outcome = home.run(&words.collect::<Vec<_>>());
        outcome.assert_error(&["both want stdout", &format!("--{first}"), &format!("--{second}")]);
        assert_eq!(outcome.stdout, "", "{command:?}");
    }
    let summary = ["compare", "none", "-w", "getppid", "--github-summary=-"];
    home.run(&summary).assert_error(&["use --markdown - instead"]);
    assert!(!home.path("-").exists() && !home.database().exists());
}

/// Before anything is stored, and before another experiment is waited for.
#[test]
fn what_is_missing_is_told_before_anything_is_stored() {
    let home = Home::new();
    for (words, said) in [
        (&["compare", "cpus:99999"][..], "`cpus:99999`: takes a list of CPUs"),
        (&["compare", "cpus:1000"], "CPU 1000 does not exist or is offline"),
        (&["compare", "sysctl:vm.swapiness=10"], "this kernel has no such setting"),
        (
            &["compare", "vm:kernel=no-such-7", "--base", "vm:audit,kernel=no-such-7"],
            "the kernel no-such-7: apt",
        ),
        (&["compare", "rootfs:no/such.tar"], "no/such.tar"),
        (&["compare", "fs:dir=no/such"], "no such directory"),
        (
            &["compare", "with:perl=./no-such-7", "--base", "with:perl=sh", "-w", "interp-perl"],
            "there is no program `./no-such-7`; nothing was measured",
        ),
    ] {
        let outcome = home.run(words);
        outcome.assert_error(&[said]);
        assert_eq!(outcome.stdout, "", "{words:?}");
    }
    home.run("show").assert_error(&["no experiment yet"]);
    home.succeed("history").assert_says(&["no experiment"]);
    assert!(!home.path("data/weighbridge/reports").exists());
}

#[test]
fn an_option_of_another_command_is_explained() {
    let home = Home::new();
    for (words, said) in [
        (&["run", "getppid", "--pairs", "20"][..], "`weigh run` has no --pairs: --samples N sets"),
        (&["run", "-w", "getppid"], "`weigh run` has no -w: name workloads without an option"),
        (&["load", "shared", "--samples=5"], "`weigh load` has no --samples: --repeat N sets"),
        (
            &["profile", "--budget", "5s", "--", "true"],
            "`weigh profile` has no --budget: --for TIME",
        ),
        (&["show", "--margin", "1%"], "an option of `weigh compare`, `weigh versus`"),
    ] {
        let outcome = home.run(words);
        outcome.assert_error(&[said]);
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:#?}");
    }
    home.run("run getppid --bugdet 5s").assert_error(&["unexpected argument", "--budget"]);
}

#[test]
fn a_command_that_fails_gives_no_number() {
    let _turn = Turn::share();
    let home = Home::new();
    home.run("compare none -- /no/such/command")
        .assert_error(&["there is no program `/no/such/command`", "nothing was measured"]);
    let failing = ["--json", "-", "--", "sh", "-c", "echo oh dear >&2; exit 3"];
    let outcome = home.run(&[&["compare", "none"], &failing[..]].concat());
    outcome.assert_error(&["exited with status 3", "oh dear"]);
    let json = outcome.json();
    assert_eq!(json["id"], "", "it has no sample, so it is not stored");
    home.run("show").assert_error(&["no experiment yet"]);
    assert_eq!(json["results"], serde_json::json!([]));
    assert_eq!(json["failures"].as_array().unwrap().len(), 1, "{json:#}");
    home.run(&["compare", "none", "--", "sh", "-c", "kill -SEGV $$"])
        .assert_error(&["killed by signal 11"]);
    let nothing = r#"echo '{"operations":0,"elapsed_ns":5}'"#;
    home.run(&["compare", "none", "--", "sh", "-c", nothing])
        .assert_error(&["not a valid measurement"]);
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// A sample is refused that no program can have measured, however plausible it looks.
#[test]
fn a_sample_that_cannot_be_gives_no_number() {
    let _turn = Turn::share();
    let home = Home::new();
    for (sample, said) in [
        (r#"{"operations":5,"elapsed_ns":60000000000}"#, "but ran for"),
        (r#"{"operations":5,"elapsed_ns":9,"total_operations":-5}"#, "-5 operations in total"),
        (r#"{"operations":5,"elapsed_ns":9,"rate":1e300}"#, "not a valid measurement"),
        (
            r#"{"operations":5,"elapsed_ns":100000}"#,
            "in each of 8 launches: it was not measured with a \
            clock",
        ),
    ] {
        let line = format!("echo '{sample}'");
        let outcome =
            home.run(&["compare", "none", "--pairs", "8", "--json", "-", "--", "sh", "-c", &line]);
        outcome.assert_error(&[said]);
        assert_eq!(outcome.json()["results"], serde_json::json!([]), "{sample}");
    }
}

/// Tests that a command's own count and whole runs are two metrics: their ratio is not an effect.
#[test]
fn a_command_that_stops_printing_its_sample_gives_no_number() {
    let _turn = Turn::share();
    let home = Home::new();
    let sample = r#"echo "{\"operations\":50,\"elapsed_ns\":100000,\"rate\":5.0$$}""#;
    for (first, then) in [(sample, "echo a warning"), ("echo a warning", sample)] {
        home.file("launches", "");
        let line = format!(
            "echo >> launches; if [ $(wc -l < launches) -le 5 ]; then {first}; else {then}; fi"
        );
        let outcome =
            home.run(&["compare", "none", "--pairs", "8", "--json", "-", "--", "sh", "-c", &line]);
        outcome.assert_error(&["ops/s", "the first launch"]);
        let json = outcome.json();
        assert_eq!(json["results"], serde_json::json!([]), "{json:#}");
        assert_eq!(json["failures"].as_array().unwrap().len(), 1, "{json:#}");
    }
}

#[test]
fn directories_that_are_missing_are_named() {
    let home = Home::new();
    let mut command = home.weigh("compare none -w getppid");
    command.env("TMPDIR", "/no/such/directory");
    home.start(command).finish().assert_error(&["/no/such/directory", "TMPDIR"]);
    let mut command = home.weigh("compare none -w getppid");
    command.env("XDG_STATE_HOME", "/proc/no");
    home.start(command).finish().assert_error(&["state"]);
    let mut command = home.weigh("run getppid");
    command.env("HOME", "/proc").env_remove("XDG_DATA_HOME");
    let said = ["cannot create /proc/.local/share/weighbridge", "XDG_DATA_HOME", "--database FILE"];
    home.start(command).finish().assert_error(&said);
}
