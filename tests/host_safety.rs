//! Root in the environment of somebody who means harm: nothing outside of what weigh makes is touched, and
//! nobody without privileges stands in its way.

mod support;

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use support::audit::Audit;
use support::{Home, NOBODY, Outcome, Turn, as_nobody, is_root, program};
use weighbridge::treatment::claim::{AUDIT, claim};

const SHORT: [&str; 7] = ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail"];

/// A home of root's, of which these directories are another user's; `None` without root.
fn home_with_theirs(names: &[&str]) -> Option<Home> {
    if !is_root() {
        println!("skipped: needs root");
        return None;
    }
    let home = Home::new();
    fs::set_permissions(home.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    names.iter().for_each(|name| chown(home.path(name), Some(NOBODY), Some(NOBODY)).unwrap());
    Some(home)
}

/// Runs `weigh` with a `/var/lib` that is gone with it.
fn run_apart(home: &Home, arguments: &[&str]) -> Outcome {
    let mut command = home.command("unshare");
    let script = "mount -t tmpfs tmpfs /var/lib && \"$0\" \"$@\" && ls -ld /var/lib/weighbridge";
    command.args(["--mount", "sh", "-c", script]).arg(program()).args(arguments);
    home.start(command).finish()
}

#[test]
fn a_journal_of_another_user_is_not_roots_to_undo() {
    let Some(home) = home_with_theirs(&["state"]) else { return };
    let victim = home.path("weigh-7-0123456789abcdef");
    fs::create_dir(&victim).unwrap();
    fs::create_dir(home.path("state/weighbridge")).unwrap();
    // As good a journal as can be, in a directory of theirs.
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let entries = [json!({ "kind": "scratch directory", "state": victim })];
    let journal = json!({ "pid": 7, "boot_id": boot_id.trim(), "entries": entries }).to_string();
    home.file("state/weighbridge/7.journal", &journal);
    let restored = run_apart(&home, &["restore"]);
    restored.assert_says(&["Nothing was left behind", "drwx------", "/var/lib/weighbridge"]);
    assert!(victim.exists() && home.path("state/weighbridge/7.journal").exists());
    // The same in a directory of root's is undone: the journal is good.
    chown(home.path("state"), Some(0), Some(0)).unwrap();
    home.succeed(&["restore"]).assert_says(&["Put back", "7.journal"]);
    assert!(!victim.exists());
}

#[test]
fn a_link_in_place_of_a_lock_truncates_nothing() {
    let Some(home) = home_with_theirs(&["state"]) else { return };
    let precious = home.file("precious", "root's");
    fs::create_dir(home.path("state/weighbridge")).unwrap();
    for name in ["lock", "7.lock", "7.journal", "7.new"] {
        symlink(&precious, home.path("state/weighbridge").join(name)).unwrap();
    }
    run_apart(&home, &["restore"]).assert_says(&["Nothing was left behind"]);
    let _turn = Turn::share();
    assert!(matches!(run_apart(&home, &SHORT).code, Some(0 | 3)));
    chown(home.path("state"), Some(0), Some(0)).unwrap();
    home.run(&["restore"]).assert_error(&["7.journal", "symbolic links"]);
    home.run(&SHORT).assert_error(&["symbolic links"]);
    assert_eq!(fs::read_to_string(precious).unwrap(), "root's");
}

#[test]
fn root_works_in_no_temporary_directory_that_others_can_change() {
    let Some(home) = home_with_theirs(&["tmp"]) else { return };
    let refused = ["TMPDIR", "tmp belongs to another user (uid 65534)"];
    home.run(&SHORT).assert_error(&refused);
    home.run(&["list"]).assert_error(&refused);
    chown(home.path("tmp"), Some(0), Some(0)).unwrap();
    fs::set_permissions(home.path("tmp"), fs::Permissions::from_mode(0o777)).unwrap();
    home.run(&SHORT).assert_error(&["TMPDIR", "tmp can be written by everybody"]);
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn what_root_stores_in_a_users_home_is_his() {
    let Some(home) = home_with_theirs(&["data"]) else { return };
    let _turn = Turn::share();
    let html = home.path("data/report.html");
    let json = home.path("data/report.json");
    let more = ["--html", html.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let outcome = home.run(&[&SHORT[..], &more].concat());
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    let outcome = home.run(&SHORT);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    let mut found = vec![html, json, home.path("data/weighbridge"), home.database()];
    found.push(home.path("data/weighbridge/reports"));
    found.extend(fs::read_dir(&found[4]).unwrap().map(|entry| entry.unwrap().path()));
    assert_eq!(found.len(), 6);
    for path in found {
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY), "{}", path.display());
    }
    // He can go on without root.
    fs::copy(program(), home.path("weigh")).unwrap();
    let mut history = home.command(home.path("weigh"));
    as_nobody(history.arg("history"));
    assert_eq!(home.start(history).finish().stdout.lines().count(), 2);
    assert_eq!(fs::symlink_metadata(home.database()).unwrap().uid(), NOBODY);
}

#[test]
fn a_link_in_a_users_home_leads_root_to_no_file_of_its_own() {
    let Some(home) = home_with_theirs(&["data"]) else { return };
    let roots = Home::new();
    let precious = roots.file("precious", "");
    let database = home.path("data/weighbridge/weigh.db");
    fs::create_dir(home.path("data/weighbridge")).unwrap();
    chown(home.path("data/weighbridge"), Some(NOBODY), Some(NOBODY)).unwrap();
    symlink(&precious, &database).unwrap();
    home.run(&SHORT).assert_error(&["weigh.db"]);
    fs::remove_file(&database).unwrap();
    fs::remove_dir(home.path("data/weighbridge")).unwrap();
    symlink(roots.directory.path(), home.path("data/weighbridge")).unwrap();
    home.run(&SHORT).assert_error(&["weigh.db"]);
    assert_eq!(fs::read(precious).unwrap(), b"");
    assert!(!roots.path("weigh.db").exists() && !roots.path("reports").exists());
}

/// Whatever is not ours: the bytes are as before, and nothing lies beside.
#[test]
fn another_programs_database_is_left_as_it_is_and_a_mere_look_makes_nothing() {
    let home = Home::new();
    let path = home.path("theirs.db");
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign
        .execute_batch("CREATE TABLE places (url TEXT); INSERT INTO places VALUES ('x')")
        .unwrap();
    drop(foreign);
    let before = fs::read(&path).unwrap();
    let database = ["--database", path.to_str().unwrap()];
    for command in [&["history"][..], &["show"], &SHORT] {
        home.run(&[&database[..], command].concat())
            .assert_error(&["theirs.db is the database of another program", "--database FILE"]);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!home.path("theirs.db-wal").exists() && !home.path("theirs.db-journal").exists());
    home.succeed(&["history"]).assert_says(&["There is no experiment yet"]);
    for command in [&["show"][..], &["export", "x", "--json"], &["diff", "x", "y"]] {
        home.run(command).assert_error(&["there is no experiment yet"]);
    }
    assert!(!home.path("data/weighbridge").exists());
}

/// Runs `weigh` in namespaces of its own: of the network, and with a `/run` of its own.
fn run_in_namespaces(home: &Home, namespaces: &str, arguments: &[&str]) -> Outcome {
    let mut command = home.command("unshare");
    let script = match namespaces {
        "--net" => "exec \"$0\" \"$@\"",
        _ => "mount -t tmpfs tmpfs /run && exec \"$0\" \"$@\"",
    };
    command.args([namespaces, "sh", "-c", script]).arg(program()).args(arguments);
    home.start(command).finish()
}

#[test]
fn one_experiment_per_kernel_whatever_the_namespaces() {
    let Some(audit) = Audit::take() else { return };
    let (home, other) = (Home::new(), Home::new());
    let audited = ["compare", "audit", "-w", "getppid", "--budget", "60s", "--no-detail"];
    let mut running = home.start(home.weigh(&audited));
    home.wait_for_samples(1, &mut running);
    let during = audit.status();
    for namespaces in ["--net", "--mount"] {
        run_in_namespaces(&other, namespaces, &audited)
            .assert_error(&["another experiment on this host is using the kernel's audit"]);
    }
    let now = audit.status();
    assert_eq!((during.enabled, during.backlog_limit), (now.enabled, now.backlog_limit));
    assert!(!running.has_ended(), "the first was disturbed: {}", running.said());
    running.kill();
    running.finish();
    audit.assert_restored();
    // A guard holds the claim until all is put back, and no longer.
    assert!(support::wait_until(std::time::Duration::from_secs(10), || claim(AUDIT).is_ok()));
}

#[test]
fn nobody_without_privileges_blocks_root() {
    let Some(_audit) = Audit::take() else { return };
    drop(claim(AUDIT).unwrap());
    // Anybody can take the name by which it was claimed once.
    let name = format!("weighbridge: {AUDIT}");
    let squatted = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap());
    let locks = fs::read_dir("/run/weighbridge").unwrap();
    let mut locks: Vec<PathBuf> = locks.map(|entry| entry.unwrap().path()).collect();
    assert!(!locks.is_empty());
    locks.push("/run/weighbridge".into());
    for place in locks {
        let mut lock = Command::new("flock");
        lock.arg("--nonblock").arg(&place).arg("true");
        as_nobody(&mut lock);
        let locked = lock.output().unwrap();
        assert!(!locked.status.success(), "anybody can lock {}", place.display());
        let said = String::from_utf8_lossy(&locked.stderr).into_owned();
        assert!(said.contains("Permission denied"), "{said}");
    }
    assert!(claim(AUDIT).is_ok());
    drop(squatted);
}
