//! The completions in a real bash, and the man pages as `man` shows them.

use std::process::Command;

use crate::support::{Home, program, skip};

/// Runs a script in a shell that finds the program as `weigh`, and returns what it prints.
fn in_shell(home: &Home, shell: &[&str], script: &str) -> Vec<String> {
    let mut command = home.command(shell[0]);
    let directory = program().parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    command.args(&shell[1..]).args(["-c", script]).env("PATH", format!("{directory}:{path}"));
    let outcome = home.start(command).finish();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{script}");
    outcome.stdout.lines().map(String::from).collect()
}

/// Returns what bash would insert for the last word of a line: bash splits words at `:`, `=` and `@`, too.
fn in_bash(home: &Home, line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in line.chars() {
        match character {
            ' ' => words.push(String::new()),
            ':' | '=' | '@' => words.extend([character.to_string(), String::new()]),
            other => words.last_mut().unwrap().push(other),
        }
    }
    let last = words.len() - 1;
    let is_part = |(at, word): (usize, String)| (at == last || !word.is_empty()).then_some(word);
    let words: Vec<String> = words.into_iter().enumerate().filter_map(is_part).collect();
    let script = format!(
        "source <(weigh completions bash); COMP_LINE='{line}' COMP_POINT={}; COMP_WORDS=({}); \
         COMP_CWORD={}; _weigh weigh; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        line.len(),
        words.iter().map(|word| format!("'{word}' ")).collect::<String>(),
        words.len() - 1,
    );
    in_shell(home, &["bash", "--norc"], &script)
}

fn in_zsh(home: &Home, line: &str) -> Vec<String> {
    let (words, last) = line.rsplit_once(' ').unwrap();
    // In place of the functions that only a terminal has.
    let script = format!(
        "compdef() {{ :; }}; _files() {{ print -- '(files)'; }}; \
         _describe() {{ print -rl -- ${{(P)3}}; }}; source <(weigh completions zsh); \
         words=({words} '{last}'); CURRENT=${{#words}}; PREFIX='{last}'; _weigh"
    );
    let offered = in_shell(home, &["zsh", "-f"], &script);
    offered.iter().map(|line| line.replace("\\:", "\0")).map(value_of_zsh).collect()
}

/// `_describe` takes `value:help`.
fn value_of_zsh(line: String) -> String {
    line.split(':').next().unwrap_or_default().replace('\0', ":")
}

fn in_fish(home: &Home, line: &str) -> Vec<String> {
    let script = format!("source (weigh completions fish | psub); complete -C '{line}'");
    let offered = in_shell(home, &["fish", "--no-config"], &script);
    offered.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// A file whose name a shell would execute.
const HOSTILE: &str = "ho$(touch bad);`x` 'y'\"z\".rules";

/// bash inserts what it is given; zsh and fish quote it themselves.
fn quoted_by_bash(name: &str) -> String {
    let special = |c: char| "$();` '\"".contains(c);
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

type Complete = fn(&Home, &str) -> Vec<String>;

/// Checks what a shell offers. One that splits words at some characters is offered the rest after the last
/// of them in the typed word.
fn check(complete: Complete, hostile: fn(&str) -> String, splits_at: &[char]) {
    let home = Home::new();
    home.file(HOSTILE, "");
    home.file("ho\nsecond", "");
    home.file("mine.rules", "");
    let offers = |line: &str, word: &str| {
        let typed = line.rsplit(' ').next().unwrap();
        let rest = &word[typed.rfind(splits_at).map_or(0, |at| at + 1)..];
        let offered = complete(&home, line);
        assert!(offered.iter().any(|offer| offer == rest), "{line}: {offered:?}");
    };
    offers("weigh compare audit -w unixb", "unixbench");
    offers("weigh run lat-pi", "lat-pipe@same-cpu");
    offers("weigh compare sec", "seccomp:");
    offers("weigh compare seccomp:pro", "seccomp:profile=");
    offers("weigh compare seccomp:", "seccomp:compares=");
    offers("weigh compare audit:backlog=64,wai", "audit:backlog=64,wait=");
    offers("weigh compare audit:rules=mi", "audit:rules=mine.rules");
    offers("weigh compare audit:rules=ho", &format!("audit:rules={}", hostile(HOSTILE)));
    offers("weigh compare -w load:sha", "load:shared");
    offers("weigh compare --workload=unixbench-3", "--workload=unixbench-3.11");
    offers("weigh compare seccomp -- sor", "sort");
    offers("weigh comp", "compare");
    offers("weigh versus a b --same", "--same-output");
    assert!(!complete(&home, "weigh ").iter().any(|word| word.starts_with("__")));
    assert!(!home.database().exists(), "to look makes no database");
    home.file("t.csv", "test,unit,a,b\nx,us,1,2\n");
    home.succeed("import t.csv");
    let id = home.query_text("SELECT id FROM experiment");
    home.succeed(&["tag", &id, "--name", "first-one"]);
    offers(&format!("weigh show {}", &id[..2]), &id);
    offers("weigh diff latest fir", "first-one");
    offers("weigh export ", "latest");
}

#[test]
fn bash_completes_names_labels_and_files() {
    check(in_bash, quoted_by_bash, &[':', '=', '@']);
}

/// A word is what the shell makes of it, without its quotes and backslashes.
#[test]
fn bash_completes_words_with_quotes_and_backslashes() {
    let home = Home::new();
    home.file("a b.rules", "");
    home.file("c'd.rules", "");
    for (words, offer) in [
        (r"compare audit : rules = a\ b", r"a\ b.rules"),
        (r#"compare audit : rules = "a b"#, "a b.rules"),
        ("compare audit : rules = 'a b", "a b.rules"),
        (r"compare audit : rules = c\'", r"c\'d.rules"),
        (r#"list "workloads" lat-pi"#, "lat-pipe@same-cpu"),
        (r"compare --ba\se seccomp -w unixb", "unixbench"),
    ] {
        home.file("line", format!("weigh {}", words.replace(" : ", ":").replace(" = ", "=")));
        // A blank within a name stands behind a backslash or an open quote.
        let parts = words.replace(r"\ b", r"\~b").replace("\"a b", "\"a~b").replace("'a b", "'a~b");
        let parts: Vec<String> = parts.split(' ').map(|part| part.replace('~', " ")).collect();
        home.file("parts", format!("weigh\n{}", parts.join("\n")));
        let offered = in_shell(
            &home,
            &["bash", "--norc"],
            "source <(weigh completions bash); COMP_LINE=$(<line) COMP_POINT=${#COMP_LINE}; \
             mapfile -t COMP_WORDS <parts; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _weigh weigh; \
             printf '%s\\n' \"${COMPREPLY[@]}\"",
        );
        assert!(offered.iter().any(|one| one == offer), "{words}: {offered:?}");
    }
}

#[test]
fn zsh_completes_names_labels_and_files() {
    match Command::new("zsh").arg("--version").output() {
        Ok(_) => check(in_zsh, str::to_owned, &[]),
        Err(_) => skip("zsh", "needs zsh"),
    }
}

#[test]
fn fish_completes_names_labels_and_files() {
    match Command::new("fish").arg("--version").output() {
        Ok(_) => check(in_fish, str::to_owned, &[]),
        Err(_) => skip("fish", "needs fish"),
    }
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
