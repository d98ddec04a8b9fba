//! The completions in a real bash, and the man pages as `man` shows them.

use std::process::Command;

use crate::support::{Home, program, skip};

/// Returns the completions that bash offers for the last of these words.
fn complete(home: &Home, words: &[&str]) -> Vec<String> {
    let script = "source <(\"$1\" completions bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _weigh_with_names \"$1\" \"${!#}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = home.command("bash");
    command.args(["-c", script, "bash"]).arg(program()).args(words);
    let outcome = home.start(command).finish();
    assert_eq!(outcome.stderr, "", "{words:?}");
    outcome.stdout.lines().map(String::from).collect()
}

#[test]
fn bash_knows_workloads_suites_treatments_and_experiments() {
    let home = Home::new();
    let offers = |words: &[&str], name: &str| {
        let offered = complete(&home, words);
        assert!(offered.iter().any(|offer| offer == name), "{words:?}: {offered:?}");
    };
    offers(&["compare", "audit", "-w", "unixb"], "unixbench");
    offers(&["compare", "-w", "getpp"], "getppid");
    offers(&["run", "lat-pi"], "lat-pipe@same-cpu");
    offers(&["compare", "sec"], "seccomp");
    offers(&["compare", "--base", "no"], "none");
    offers(&["compare", "-w", "load"], "load:shared");
    offers(&["load", "sh"], "shared");
    offers(&["show", "--as", "nitz"], "nitzberg");
    offers(&["comp"], "compare");
    offers(&["vers"], "versus");
    offers(&["versus", "a", "b", "--same"], "--same-output");
    offers(&["compare", "--fail"], "--fail-above");
    assert!(!home.database().exists(), "to look makes no database");
    home.file("t.csv", "test,unit,a,b\nx,us,1,2\n");
    home.succeed("import t.csv");
    let id = home.query_text("SELECT id FROM experiment");
    home.succeed(&["tag", &id, "--name", "first-one"]);
    offers(&["show", &id[..2]], &id);
    offers(&["diff", "latest", "fir"], "first-one");
    offers(&["export", ""], "latest");
}

#[test]
fn man_shows_the_pages_without_a_complaint() {
    let home = Home::new();
    let has_man = Command::new("man").arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_man {
        skip("man", "needs man");
        return;
    }
    std::fs::create_dir(home.path("man")).unwrap();
    home.succeed("man --directory man");
    for entry in std::fs::read_dir(home.path("man")).unwrap() {
        let page = entry.unwrap().path();
        let mut command = home.command("man");
        command.env("MANWIDTH", "80").env("MANROFFOPT", "-ww").env("LC_ALL", "C.UTF-8");
        command.args(["--warnings", "-P", "cat", "-l"]).arg(&page);
        let outcome = home.start(command).finish();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{}", page.display());
        assert!(!outcome.stdout.contains("weigh-help"), "there is no such page");
        for title in ["EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
            assert!(outcome.stdout.contains(title), "{title}: {}", page.display());
        }
    }
}
