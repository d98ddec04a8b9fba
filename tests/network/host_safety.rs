//! Root in the environment of somebody who means harm: nothing outside of what weigh makes is touched, and
//! nobody without privileges stands in its way.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::audit::Audit;
use crate::support::{Home, NOBODY, Outcome, Turn, as_nobody, is_root, program, skip};
use serde_json::json;
use weigh_host::undo::claim::{AUDIT, claim};

const SHORT: [&str; 8] =
    ["compare", "none", "-w", "getppid", "--pairs", "8", "--no-detail", "--inconclusive-ok"];

/// A home of root's, of which these directories are another user's; `None` without root.
fn home_with_theirs(names: &[&str]) -> Option<Home> {
    if !is_root() {
        skip("root", "needs root");
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
fn a_machine_without_proc_is_an_error_that_says_so() {
    let Some(home) = home_with_theirs(&[]) else { return };
    for arguments in [&["run", "getppid"][..], &["doctor"]] {
        let mut command = home.command("unshare");
        command.args(["--mount", "sh", "-c", "umount -l /proc && exec \"$0\" \"$@\""]);
        command.arg(program()).args(arguments);
        home.start(command).finish().assert_error(&["mount -t proc proc /proc"]);
    }
}

/// Runs `weigh` as a child of a program of root's that is called `sudo`, for this user.
fn run_by_sudo(home: &Home, uid: u32, arguments: &[&str]) -> Outcome {
    let sudo = home.path("bin/sudo");
    fs::create_dir_all(home.path("bin")).unwrap();
    fs::copy("/bin/sh", &sudo).unwrap();
    let mut command = home.command(sudo);
    command.env("SUDO_UID", uid.to_string()).env("SUDO_GID", uid.to_string());
    command.args(["-c", "\"$0\" \"$@\"; exit $?"]).arg(program()).args(arguments);
    home.start(command).finish()
}

/// All below this path, and itself, becomes a user's.
fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), uid));
    }
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
    home.succeed("restore").assert_says(&["Put back", "7.journal"]);
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
    assert_eq!(run_apart(&home, &SHORT).code, Some(0));
    chown(home.path("state"), Some(0), Some(0)).unwrap();
    home.run("restore").assert_error(&["7.journal", "symbolic links"]);
    home.run(&SHORT).assert_error(&["symbolic links"]);
    assert_eq!(fs::read_to_string(precious).unwrap(), "root's");
}

#[test]
fn root_works_in_no_temporary_directory_that_others_can_change() {
    let Some(home) = home_with_theirs(&["tmp"]) else { return };
    let refused = ["TMPDIR", "tmp belongs to another user (uid 65534)"];
    home.run(&SHORT).assert_error(&refused);
    home.run("list").assert_error(&refused);
    chown(home.path("tmp"), Some(0), Some(0)).unwrap();
    fs::set_permissions(home.path("tmp"), fs::Permissions::from_mode(0o777)).unwrap();
    home.run(&SHORT).assert_error(&["TMPDIR", "tmp can be written by everybody"]);
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_database_that_may_not_be_read_is_refused_with_the_reason() {
    let Some(home) = home_with_theirs(&[]) else { return };
    let database = home.file("roots.db", "not for others");
    fs::set_permissions(&database, fs::Permissions::from_mode(0o600)).unwrap();
    fs::copy(program(), home.path("weigh")).unwrap();
    let mut history = home.command(home.path("weigh"));
    as_nobody(history.args(["history", "--database"]).arg(database));
    let said = ["cannot read the database", "Permission denied; choose a different file"];
    home.start(history).finish().assert_error(&said);
}

#[test]
fn what_root_stores_in_a_users_home_is_his() {
    let Some(home) = home_with_theirs(&["data"]) else { return };
    let _turn = Turn::share();
    let html = home.path("data/report.html");
    let json = home.path("data/report.json");
    let more = ["--html", html.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let outcome = run_by_sudo(&home, NOBODY, &[&SHORT[..], &more].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let outcome = run_by_sudo(&home, NOBODY, &SHORT);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
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
    assert_eq!(home.start(history).finish().stdout.lines().count(), 3);
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
    let run_both = || {
        home.run(&SHORT).assert_error(&["weigh.db"]);
        run_by_sudo(&home, NOBODY, &SHORT).assert_error(&["weigh.db"]);
    };
    symlink(&precious, &database).unwrap();
    run_both();
    fs::remove_file(&database).unwrap();
    fs::remove_dir(home.path("data/weighbridge")).unwrap();
    symlink(roots.directory.path(), home.path("data/weighbridge")).unwrap();
    run_both();
    assert_eq!(fs::read(precious).unwrap(), b"");
    assert!(!roots.path("weigh.db").exists() && !roots.path("reports").exists());
}

/// Tests whose databases root opens, as `--continue` executes their content. Root opens its own,
/// and those of the user who called `sudo`.
#[test]
fn root_opens_no_database_of_a_user_who_did_not_call_sudo() {
    const THEIRS: u32 = 1002;
    let Some(home) = home_with_theirs(&[]) else { return };
    let _turn = Turn::share();
    home.succeed(&SHORT);
    give(&home.path("data"), THEIRS);
    let before = fs::read(home.database()).unwrap();
    let refused = ["data belongs to another user (uid 1002)", "sudo -u USER weigh"];
    let going_on = ["compare", "--continue", "latest", "--budget", "2s"];
    for command in [&["history"][..], &["show"], &["export", "latest", "--json"], &going_on, &SHORT]
    {
        home.run(command).assert_error(&refused);
        run_by_sudo(&home, 1001, command).assert_error(&refused);
        // Anybody can set these.
        let mut claimed = home.weigh(command);
        claimed.env("SUDO_UID", "1002").env("SUDO_GID", "1002");
        home.start(claimed).finish().assert_error(&refused);
    }
    assert_eq!(fs::read(home.database()).unwrap(), before);
    assert_eq!(run_by_sudo(&home, THEIRS, &["history"]).stdout.lines().count(), 2);
}

#[test]
fn a_database_of_roots_is_in_no_directory_where_others_can_make_files() {
    let Some(home) = home_with_theirs(&[]) else { return };
    fs::create_dir(home.path("shared")).unwrap();
    fs::set_permissions(home.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    let there = |name: &str| home.run(&[&["--database", name][..], &SHORT].concat());
    there("shared/w.db").assert_error(&["other users can create files in", "/shared"]);
    assert_eq!(fs::read_dir(home.path("shared")).unwrap().count(), 0);
    let _turn = Turn::share();
    let outcome = there("shared/own/w.db");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    for (name, mode) in [("shared/own", 0o700), ("shared/own/w.db", 0o600)] {
        assert_eq!(fs::metadata(home.path(name)).unwrap().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn an_id_of_another_program_names_no_file() {
    let home = Home::new();
    let _turn = Turn::share();
    home.succeed(&SHORT);
    let index = home.file("index.html", "precious");
    let id = home.path("index").display().to_string();
    let database = rusqlite::Connection::open(home.database()).unwrap();
    database.execute_batch("PRAGMA foreign_keys = off").unwrap();
    for table in ["sample", "detail", "startup", "failure", "work", "arm", "imported"] {
        database.execute(&format!("UPDATE {table} SET experiment = ?1"), [&id]).unwrap();
    }
    database.execute("UPDATE experiment SET id = ?1", [&id]).unwrap();
    drop(database);
    let going_on = ["compare", "--continue", "latest", "--budget", "2s"];
    for command in
        [&["history"][..], &["show"], &["show", &id], &["forget", &id, "--yes"], &going_on]
    {
        home.run(command).assert_error(&["is not an id of weigh"]);
    }
    assert_eq!(fs::read_to_string(index).unwrap(), "precious");
}

#[test]
fn root_executes_nothing_that_a_variable_or_label_finds_with_another_user() {
    let Some(home) = home_with_theirs(&[]) else { return };
    fs::create_dir(home.path("theirs")).unwrap();
    let marker = home.path("executed");
    let script = format!("#!/bin/sh\nid -u >> {}\n", marker.display());
    for name in ["perl", "workloads", "as"] {
        let file = home.file(&format!("theirs/{name}"), &script);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    give(&home.path("theirs"), 1002);
    let theirs = home.path("theirs").display().to_string();
    let refused = ["theirs belongs to another user (uid 1002)"];
    for label in [
        format!("preload:{theirs}/workloads"),
        format!("build:cflags=-O2 -B{theirs}/"),
        format!("build:cflags=-fplugin={theirs}/as"),
        format!("rootfs:{theirs}"),
    ] {
        home.run(&["compare", &label, "-w", "stat", "--pairs", "8"]).assert_error(&refused);
    }
    // By the user's own wish, which a variable is not.
    let by = "WEIGH_WORKLOADS=theirs/workloads \"$0\" list; exit $?";
    let mut named = home.command("/bin/sh");
    named.env("SUDO_UID", "1002").env("SUDO_GID", "1002").args(["-c", by]).arg(program());
    home.start(named).finish().assert_error(&refused);
    let mut found = home.weigh("run interp:perl.fib --samples 3");
    found.env("PATH", format!("{theirs}:/usr/bin:/bin"));
    let _turn = Turn::share();
    home.start(found).finish();
    assert!(!marker.exists(), "{:?}", fs::read_to_string(marker));
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
            .assert_error(&["theirs.db is the database of a different program", "--database FILE"]);
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!home.path("theirs.db-wal").exists() && !home.path("theirs.db-journal").exists());
    home.succeed("history").assert_says(&["There is no experiment yet"]);
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
    let audited = ["compare", "audit", "-w", "getppid", "--pairs", "500", "--no-detail"];
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
    assert!(crate::support::wait_until(std::time::Duration::from_secs(10), || claim(AUDIT).is_ok()));
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

/// SQLite would wait for its other end.
#[test]
fn a_named_pipe_beside_a_database_is_refused() {
    let home = Home::new();
    home.succeed("compare none -w getppid --pairs 8 --no-detail --inconclusive-ok");
    for suffix in ["-journal", "-wal"] {
        let mut pipe = home.database().into_os_string();
        pipe.push(suffix);
        let pipe = PathBuf::from(pipe);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        home.run("history").assert_error(&["is not a regular file", "remove it"]);
        fs::remove_file(&pipe).unwrap();
    }
    home.succeed("history");
}
