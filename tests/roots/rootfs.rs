//! `rootfs:`: arms in other root file systems, in each form that there is, proved with every sample, and
//! nothing of them left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::audit::Audit;
use crate::support::roots::{
    bare, docker_save, give_to_nobody, mounts, oci_layout, squashfs, tar, tiny,
};
use crate::support::{Home, Outcome, Turn, as_nobody, is_root, program, skip};
use serde_json::Value;

fn label(path: &Path) -> String {
    format!("rootfs:{}", path.display())
}

/// Eight pairs of one against the other.
fn compare(home: &Home, treated: &str, base: &str, what: &[&str]) -> Outcome {
    let options =
        ["compare", treated, "--base", base, "--pairs", "8", "--no-detail", "--inconclusive-ok"];
    home.run(&[&options[..], what].concat())
}

#[track_caller]
fn assert_measured(home: &Home, outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_nothing_left(home);
    let json = home.json();
    assert_eq!(json["state"], "complete", "{json:#}");
    assert_eq!(json["failures"].as_array().map(Vec::len), Some(0), "{json:#}");
    json
}

#[track_caller]
fn assert_nothing_left(home: &Home) {
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_eq!(mounts(home), Vec::<String>::new());
}

/// Every file with its size and time, so that a change shows.
fn listing(directory: &Path) -> Vec<(std::path::PathBuf, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(listing(&path));
        }
        found.push((path, metadata.len(), metadata.modified().unwrap()));
    }
    found.sort();
    found
}

#[test]
fn a_tar_is_weighed_against_a_directory_which_stays_as_it_is() {
    let _turn = Turn::share();
    let home = Home::new();
    let (one, other) = (tiny(&home, "one"), tiny(&home, "other"));
    let before = listing(&one);
    let packed = tar(&other, "tar.gz", "--gzip");
    let outcome = compare(&home, &label(&packed), &label(&one), &["-w", "getppid", "-w", "exec"]);
    let json = assert_measured(&home, &outcome);
    assert_eq!(listing(&one), before);
    let facts = json["treatments"][0]["facts"].to_string();
    for fact in [
        "other.tar.gz (a tar archive, SHA-256 ",
        "other 1.0, GNU C Library",
        "same dynamically linked workloads",
    ] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
    let facts = json["baseline_facts"].to_string();
    assert!(facts.contains("one (a directory, "), "{facts}");
}

/// A directory of this host that no root of these tests has.
const NOT_THERE: &str = "/usr/share";

/// It fails in any other root, and where a pair before has left something.
const COMMAND: [&str; 4] = [
    "--",
    "/bin/sh",
    "-c",
    "read name </only-there && test $name = \"$WANTED\" && test ! -e /written && echo >/written && \
     test $PWD = / && test ! -e /usr/bin/env && test -c /dev/null && echo >/dev/null && \
     test -r /proc/self/stat && test -d /sys/kernel",
];

fn command_in(home: &Home, label: &str, name: &str) -> Outcome {
    let options = ["compare", label, "--base", label, "--pairs", "8", "--inconclusive-ok"];
    let mut command = home.weigh(&[&options[..], &COMMAND].concat());
    command.env("WANTED", name).current_dir(NOT_THERE);
    home.start(command).finish()
}

#[test]
fn a_command_runs_in_the_root_and_what_it_writes_is_gone_with_the_pair() {
    let _turn = Turn::share();
    let home = Home::new();
    let root = tiny(&home, "lonely");
    assert_measured(&home, &command_in(&home, &label(&root), "lonely"));
    assert!(!root.join("written").exists());
    let wrong = command_in(&home, &label(&root), "another");
    assert_ne!(wrong.code, Some(0), "{wrong:#?}");
    wrong.assert_says(&["exited with status 1"]);
    let options = ["--", "/usr/bin/env"];
    let missing = compare(&home, &label(&root), &label(&root), &options);
    missing
        .assert_error(&["cannot run `/usr/bin/env` in the arm's root file system: No such file"]);
}

#[test]
fn the_layers_of_an_image_make_the_root() {
    let _turn = Turn::share();
    let home = Home::new();
    let root = tiny(&home, "layers");
    let saved = docker_save(&home, &root, "upper");
    assert_measured(&home, &command_in(&home, &label(&saved), "upper"));
    let layout = oci_layout(&home, &root, "oci");
    let json = assert_measured(&home, &command_in(&home, &label(&layout), "oci"));
    assert!(json.to_string().contains("a directory with a container's image"));
    let packed = tar(&layout, "tar", "");
    let json = assert_measured(&home, &command_in(&home, &label(&packed), "oci"));
    assert!(json.to_string().contains("a tar archive of a container's image"));
}

#[test]
fn a_squashfs_is_mounted_for_us_alone() {
    let _turn = Turn::share();
    let home = Home::new();
    let root = tiny(&home, "squashed");
    let Some(image) = squashfs(&root) else { return };
    fs::remove_dir_all(&root).unwrap();
    let json = assert_measured(&home, &command_in(&home, &label(&image), "squashed"));
    assert!(json.to_string().contains("a squashfs, SHA-256"), "{json:#}");
}

#[test]
fn one_root_that_takes_the_static_build_alone_gives_it_to_all() {
    let _turn = Turn::share();
    let home = Home::new();
    let (bare, tiny) = (bare(&home, "bare"), tiny(&home, "tiny"));
    let base = label(&tiny);
    let outcome = compare(&home, &label(&bare), &base, &["-w", "getppid", "-w", "fork"]);
    let json = assert_measured(&home, &outcome);
    for facts in [&json["treatments"][0]["facts"], &json["baseline_facts"]] {
        let facts = facts.to_string();
        assert!(facts.contains("All arms run the statically linked workloads"), "{facts}");
        assert!(facts.contains("bare"), "{facts}");
    }
    assert_measured(&home, &compare(&home, &label(&bare), "none", &["-w", "getppid"]));
}

#[test]
fn another_treatment_is_applied_in_the_root() {
    let _turn = Turn::share();
    let home = Home::new();
    let base = label(&tiny(&home, "filtered"));
    let treated = format!("{base}::seccomp:compares=2000");
    let outcome = compare(&home, &treated, &base, &["-w", "getppid"]);
    let json = assert_measured(&home, &outcome);
    crate::support::assert_slows(crate::support::row(&json, "getppid"), 30.0);
}

/// File systems and neighbours are in the root, and proved there.
#[test]
fn what_a_workload_needs_around_it_is_in_the_root_too() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let disk = home.path("disk");
    fs::create_dir(&disk).unwrap();
    let root = label(&tiny(&home, "furnished"));
    for around in ["fs:tmpfs,size=64", "busy:processes=1", &format!("fs:dir={}", disk.display())] {
        let outcome = compare(&home, &format!("{root}::{around}"), &root, &["-w", "open-close"]);
        assert_measured(&home, &outcome);
    }
    assert_eq!(fs::read_dir(disk).unwrap().count(), 0);
}

#[test]
fn what_is_done_in_the_root_is_audited() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let base = label(&tiny(&home, "audited"));
    let outcome = compare(&home, &format!("{base}::audit"), &base, &["-w", "getppid"]);
    let json = assert_measured(&home, &outcome);
    let evidence = &crate::support::row(&json, "getppid")["evidence"];
    assert!(evidence["records_per_op"].as_f64().unwrap() > 2.9, "{evidence:#}");
    audit.assert_restored();
}

/// Somebody puts another mark above the root: what is entered then is not proved to be it.
#[test]
fn a_root_that_is_not_the_one_fails_the_experiment() {
    let _turn = Turn::share();
    let home = Home::new();
    let root = label(&tiny(&home, "swapped"));
    let arguments = ["compare", &root, "-w", "getppid", "--pairs", "500"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(4, &mut running);
    let scratch = fs::read_dir(home.path("tmp")).unwrap().next().unwrap().unwrap().path();
    let entries = fs::read_dir(&scratch).unwrap().map(|entry| entry.unwrap().path());
    let is_root = |path: &std::path::PathBuf| path.join("above").is_dir();
    let mark = entries.into_iter().find(is_root).unwrap().join("above/.weigh-root");
    fs::write(mark, "00000000000000ff\n").unwrap();
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "its root has a different mark"]);
    assert_nothing_left(&home);
}

/// Samples from before and after are of two systems.
#[test]
fn a_directory_that_is_changed_meanwhile_fails_the_experiment() {
    let _turn = Turn::share();
    let home = Home::new();
    let root = tiny(&home, "edited");
    let arguments = ["compare", &label(&root), "-w", "getppid", "--pairs", "2000"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(4, &mut running);
    fs::write(root.join("more"), "").unwrap();
    let outcome = running.finish();
    outcome.assert_error(&["The experiment failed", "is not as it was when the experiment began"]);
    assert_nothing_left(&home);
}

/// An overlay takes no mount along, and nobody should wonder at that.
#[test]
fn what_is_mounted_in_a_directory_is_told_to_be_absent() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let (root, other) = (tiny(&home, "with mounts"), home.path("other"));
    fs::create_dir_all(root.join("mnt/in it")).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "").unwrap();
    let mut command = home.command("unshare");
    let line = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    command.args(["--mount", "sh", "-c", line, "sh"]).arg(&other).arg(root.join("mnt/in it"));
    command.arg(program()).args(["compare", &format!("rootfs:path=\"{}\"", root.display())]);
    command.args(["--pairs", "8", "--no-detail", "-w", "getppid"]);
    let outcome = home.start(command).finish();
    let said = format!("are absent in this arm: {}/mnt/in it", root.display());
    outcome.assert_says(&[&said]);
    assert!(home.json().to_string().contains(&said), "{outcome:#?}");
}

#[test]
fn another_root_than_before_does_not_go_on() {
    let _turn = Turn::share();
    let home = Home::new();
    let root = tiny(&home, "changing");
    let packed = tar(&root, "tar", "");
    let treated = label(&packed);
    let options = ["compare", &treated, "-w", "getppid", "--margin", "0.001%", "--budget", "2s"];
    home.run(&options);
    let id = home.query_text("SELECT id FROM experiment");
    let go_on = || home.run(&["compare", "--continue", &id, "--budget", "1s", "--inconclusive-ok"]);
    assert_eq!(go_on().code, Some(0));
    fs::write(root.join("more"), "").unwrap();
    tar(&root, "tar", "");
    go_on().assert_error(&["what `rootfs:", "is made of has changed"]);
    assert_nothing_left(&home);
}

/// The placebo of another root: this system's, under the same overlay.
#[test]
fn another_root_is_compared_with_this_systems_under_the_same_overlay() {
    let _turn = Turn::share();
    let home = Home::new();
    let tar = tar(&tiny(&home, "other"), "tar", "");
    let outcome = home.measure(
        &[
            &["compare", &*label(&tar), "-w", "getppid", "-w", "fork", "--pairs", "8"][..],
            &["--no-detail", "--json", "-"],
        ]
        .concat(),
    );
    let json = outcome.json();
    if json["baseline"] == "none" {
        let warnings = json["warnings"].to_string();
        assert!(warnings.contains("`rootfs:/` does not work here"), "{json:#}");
        skip("overlay", &warnings);
        return;
    }
    assert_eq!(json["baseline"], "rootfs:/");
    let facts = json["baseline_facts"].to_string();
    assert!(facts.contains("this system's own, under an overlay"), "{facts}");
    assert!(json["treatments"][0].get("differences").is_none(), "the root alone: {json:#}");
    assert_nothing_left(&home);
}

#[test]
fn what_is_no_root_file_system_is_refused_with_what_to_do() {
    let home = Home::new();
    let try_it = |label: &str| home.run(&["compare", label, "-w", "getppid", "--pairs", "8"]);
    try_it("rootfs").assert_error(&["rootfs:PATH"]);
    try_it("rootfs:/no/such").assert_error(&["no such directory or archive"]);
    let fifo = home.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    try_it(&label(&fifo)).assert_error(&["not a regular file"]);
    try_it("rootfs:a,b").assert_error(&["takes one path", "path=\"PATH\""]);
    let junk = home.file("junk", b"no archive ".repeat(100));
    try_it(&label(&junk)).assert_error(&["junk: not a valid tar archive"]);
    let empty = home.file("empty", "");
    try_it(&label(&empty)).assert_error(&["it is empty"]);
    let odd = home.path("odd, name");
    try_it(&format!("rootfs:path=\"{}\"", odd.display())).assert_error(&["no such directory"]);
    let with_ours = label(home.directory.path());
    try_it(&with_ours).assert_error(&["contains the directory for temporary files", "TMPDIR"]);
    let twice = format!("{}::{}", label(&junk), label(&junk));
    try_it(&twice).assert_error(&["occurs twice in one arm"]);
    assert_nothing_left(&home);
}

/// Through `/proc` a link could lead to the root of any process.
#[test]
fn a_link_in_a_root_leads_nothing_out_of_it() {
    let _turn = Turn::share();
    let home = Home::new();
    let outside = home.path("outside");
    fs::create_dir(&outside).unwrap();
    for (number, name) in ["tmp", "dev", "sys", "proc", "etc"].into_iter().enumerate() {
        let root = tiny(&home, &format!("hostile{number}"));
        let _ = fs::remove_dir_all(root.join(name));
        let target = format!("/proc/1/root{}", outside.display());
        std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        let label = label(&root);
        let outcome = home.run(&["compare", &label, "-w", "getppid", "--pairs", "8"]);
        assert_ne!(outcome.code, Some(101), "{outcome:#?}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{name}: {outcome:#?}");
        if name != "etc" {
            outcome.assert_error(&["the new root"]);
        }
        assert_nothing_left(&home);
    }
}

#[test]
fn root_enters_nothing_that_others_can_change() {
    if !is_root() {
        skip("root", "needs root");
        return;
    }
    let home = Home::new();
    let root = bare(&home, "theirs");
    give_to_nobody(&root);
    let outcome = home.run(&["compare", &label(&root), "-w", "getppid", "--pairs", "8"]);
    outcome.assert_error(&["belongs to another user (uid 65534)"]);
}

/// In every form, without root: by a user namespace.
#[test]
fn an_ordinary_user_weighs_roots_where_he_may() {
    let _turn = Turn::share();
    let home = Home::new();
    fs::copy(program(), home.path("weigh")).unwrap();
    fs::set_permissions(home.path("weigh"), fs::Permissions::from_mode(0o755)).unwrap();
    let root = tiny(&home, "own");
    let mut sources = vec![root.clone(), tar(&root, "tar", "")];
    sources.extend(squashfs(&root));
    fs::set_permissions(home.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    give_to_nobody(home.directory.path());
    let run = |arguments: &[&str]| {
        let mut command = home.command(home.path("weigh"));
        command.args(arguments).env("WANTED", "own").current_dir(NOT_THERE);
        as_nobody(&mut command);
        home.start(command).finish()
    };
    let listed = run(&["list", "treatments", "--json"]).json();
    let kinds = listed["treatments"].as_array().unwrap();
    let rootfs = kinds.iter().find(|kind| kind["name"] == "rootfs").unwrap();
    for source in sources {
        let label = label(&source);
        let options = ["compare", &label, "--base", &label, "--pairs", "8", "--inconclusive-ok"];
        let outcome = run(&[&options[..], &COMMAND].concat());
        if rootfs["here"]["state"] != "available" {
            outcome.assert_error(&["user namespaces are not permitted to ordinary users here"]);
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        assert_nothing_left(&home);
    }
}
