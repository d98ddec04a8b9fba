//! Equal root file systems do not differ: two copies, each unpacked for itself, are rarely called slower or
//! faster. With `--ignored`, and the network: Debian's own, as root and as an ordinary user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::roots::{give_to_nobody, mounts, tar, tiny};
use crate::support::{Home, Outcome, Turn, as_nobody, program};

/// Two roots are unpacked for it, and a minute is measured.
const LIMIT: Duration = Duration::from_secs(600);

/// One experiment, as root or not.
fn compare(home: &Home, roots: [&Path; 2], options: &[&str], is_rootless: bool) -> Outcome {
    let [treated, base] = roots.map(|root| format!("rootfs:{}", root.display()));
    let mut command = home.command(home.path("weigh"));
    command.args(["compare", &treated, "--base", &base, "--no-detail", "--inconclusive-ok"]);
    command.args(options);
    if is_rootless {
        as_nobody(&mut command);
    }
    home.start(command).finish_within(LIMIT)
}

/// How many of so many experiments say slower or faster of equal roots.
fn false_alarms(
    home: &Home,
    roots: [&Path; 2],
    how_many: u64,
    options: &[&str],
    is_rootless: bool,
) -> u64 {
    let mut alarms = 0;
    for _ in 0..how_many {
        let outcome = compare(home, roots, &[options, &["--json", "-"]].concat(), is_rootless);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let json = outcome.json();
        let results = json["results"].as_array().unwrap();
        let is_alarm =
            |row: &serde_json::Value| ["slower", "faster"].iter().any(|it| row["verdict"] == *it);
        let verdicts: Vec<String> = results.iter().map(|row| row["verdict"].to_string()).collect();
        println!("{} {}", json["id"], verdicts.join(" "));
        alarms += u64::from(results.iter().any(is_alarm));
    }
    alarms
}

/// A home with a copy of the program, which all may enter.
fn home() -> Home {
    let home = Home::new();
    fs::copy(program(), home.path("weigh")).unwrap();
    fs::set_permissions(home.path("weigh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// Each by itself is called slower or faster in 5 % of experiments at most: 3 of 4 in 1 of 2000.
#[test]
fn two_copies_of_a_root_are_rarely_called_different() {
    let _turn = Turn::share();
    let home = home();
    let one = tar(&tiny(&home, "one"), "tar", "");
    let other = home.path("other.tar");
    fs::copy(&one, &other).unwrap();
    let options = ["-w", "exec", "--budget", "2s"];
    let alarms = false_alarms(&home, [&one, &other], 4, &options, false);
    assert!(alarms <= 2, "{alarms} of 4");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

fn debian(home: &Home, suite: &str) -> PathBuf {
    let file = home.path(&format!("{suite}.tar"));
    let mut command = Command::new("mmdebstrap");
    let command = command.args(["--variant=essential", suite]).arg(&file);
    let made = command.status().expect("mmdebstrap is installed");
    assert!(made.success(), "mmdebstrap {suite}");
    file
}

#[test]
#[ignore = "needs mmdebstrap, the network, and ten minutes on a quiet machine"]
fn debian_is_weighed_against_debian_and_against_itself() {
    let _turn = Turn::take();
    let home = home();
    let (old, new) = (debian(&home, "bookworm"), debian(&home, "trixie"));
    let copy = home.path("copy.tar");
    fs::copy(&old, &copy).unwrap();
    for is_rootless in [false, true] {
        if is_rootless {
            give_to_nobody(home.directory.path());
        }
        let options = ["-w", "quick", "--budget", "60s"];
        let outcome = compare(&home, [&new, &old], &options, is_rootless);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        println!("{}", outcome.stdout);
        let options = ["-w", "getppid,exec,pipe", "--budget", "10s"];
        let alarms = false_alarms(&home, [&old, &copy], 20, &options, is_rootless);
        println!("{alarms} of 20 called different, rootless: {is_rootless}");
        assert!(alarms <= 3, "{alarms} of 20, rootless: {is_rootless}");
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
        assert_eq!(mounts(&home), Vec::<String>::new());
    }
}
