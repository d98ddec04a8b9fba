//! `vm`: arms in virtual machines. The guests of these tests have a shell and its libraries, and a kernel of
//! the distribution that is fetched once and kept between runs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::processes::signal;
use crate::support::roots::{mounts, tiny};
use crate::support::{Home, Outcome, Turn, hard, is_root, skip, wait_until};

const LIMIT: Duration = Duration::from_secs(900);
const QEMU: &str = "/usr/bin/qemu-system-x86_64";

/// A home whose guests are made of the kernel that is kept.
fn home() -> Home {
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
    fs::create_dir_all(&kept).unwrap();
    let home = Home::new();
    fs::create_dir_all(home.path("state/weighbridge")).unwrap();
    std::os::unix::fs::symlink(kept, home.path("state/weighbridge/vm")).unwrap();
    home
}

fn run(home: &Home, arguments: &[&str]) -> Outcome {
    home.start(home.weigh(arguments)).finish_within(LIMIT)
}

/// Why no guest can be booted here.
fn is_skipped() -> bool {
    let missing = ["/usr/bin/mmdebstrap", QEMU].into_iter().find(|file| !fs::exists(file).unwrap());
    match missing {
        _ if !is_root() => skip("root", "needs root"),
        Some(file) => skip("qemu", &format!("there is no {file} (scripts/install-deps vm)")),
        None => return false,
    }
    true
}

/// In namespaces of its own, after a line of shell; `$@` is the command.
fn apart(home: &Home, line: &str, arguments: &[&str]) -> Outcome {
    let own = home.weigh(arguments);
    let mut command = home.command("unshare");
    let script = format!("{line} && exec \"$@\"");
    command.args(["--mount", "--net", "sh", "-c", &script, "sh"]).arg(own.get_program());
    command.args(own.get_args());
    home.start(command).finish_within(LIMIT)
}

fn is_qemu(pid: i32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.starts_with(QEMU)
}

/// Who gets out of a guest is nobody, with no network, and without the files of the host.
#[track_caller]
fn assert_has_nothing_of_the_host(qemu: i32) {
    let status = fs::read_to_string(format!("/proc/{qemu}/status")).unwrap();
    for line in ["Uid:\t65534\t65534\t65534\t65534", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"]
    {
        assert!(status.contains(line), "{status}");
    }
    let interfaces = fs::read_to_string(format!("/proc/{qemu}/net/dev")).unwrap();
    let names: Vec<&str> = interfaces
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .collect();
    assert_eq!(names, ["lo"]);
    for file in ["etc/shadow", "etc/passwd", "var/lib", "root", "home", "proc/1"] {
        assert!(!fs::exists(format!("/proc/{qemu}/root/{file}")).unwrap(), "{file}");
    }
}

#[test]
fn a_guest_is_measured_in_instructions_and_every_sample_is_proved() {
    if is_skipped() {
        return;
    }
    let _turn = Turn::share();
    let home = home();
    let root = tiny(&home, "guest").display().to_string();
    let [base, audited, walled, both] =
        ["", ",audit", "::landlock+seccomp", ",audit::landlock+seccomp"]
            .map(|more| format!("vm:root={root}{more}"));
    // Without KVM each boot takes twenty seconds of CPU time.
    let arms = match hard(1, 2) {
        1 => vec![&*both],
        _ => vec![&*audited, &walled],
    };
    let json = home.path("out.json").display().to_string();
    let mut arguments = [&["compare"], &arms[..], &["--base", &base, "-w", "getppid"]].concat();
    arguments.extend(["--budget", "30m", "--json", &json]);
    let mut running = home.start(home.weigh(&arguments));
    let mut qemu = None;
    let look = || {
        qemu = home.processes().into_iter().find(|pid| is_qemu(*pid));
        qemu.is_some() || running.has_ended()
    };
    assert!(wait_until(LIMIT, look), "{}", running.said());
    assert_has_nothing_of_the_host(qemu.unwrap());
    // A pair tells how many instructions there are more.
    home.wait_for_samples(2 * arms.len() as i64, &mut running);
    signal(running.pid(), Signal::INT);
    let outcome = running.finish_within(LIMIT);
    assert_eq!(outcome.code, Some(130), "{outcome:#?}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let row = &json["results"][0];
    if row["metric"] == "rate" {
        // With KVM it is time.
        assert_eq!(row["unit"], "ops/s", "{row}");
    } else {
        assert_eq!((&row["metric"], &row["unit"]), (&"path_length".into(), &"ops/Ginstr".into()));
        assert!(row["effect_pct"].as_f64().unwrap() < -3.0, "{row}");
        assert!(row["added_instructions_per_op"].as_f64().unwrap() > 10.0, "{row}");
        assert!(json["warnings"][0].as_str().unwrap().starts_with("The unit is operations per"));
        assert!(row["readings"].as_array().is_none_or(Vec::is_empty), "a time: {row}");
        let refused = format!("vm:root={root},cmdline=\"mitigations=off\"");
        let refused = run(&home, &["compare", &refused, "--base", &base, "-w", "getppid"]);
        refused.assert_error(&["`mitigations=off` changes how the CPU works", "/dev/kvm"]);
    }
    let rows = json["results"].as_array().unwrap();
    assert!(rows.len() == arms.len() && rows.iter().all(|row| row["pairs"].as_u64() >= Some(1)));
    // Each process was denied what Landlock does not allow, or it would not have been executed.
    assert!(json["failures"].as_array().unwrap().is_empty(), "{}", json["failures"]);
    let facts = json["treatments"][0]["facts"].to_string();
    assert!(facts.contains("audit=1") && facts.contains("applies to the next boot"), "{facts}");
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    assert_eq!(home.processes(), Vec::<i32>::new(), "{:#?}", home.describe_processes());
}

#[test]
fn what_is_missing_is_told_with_what_gets_it() {
    if is_skipped() {
        return;
    }
    let home = Home::new();
    let vm = ["compare", "vm:selinux", "--base", "vm", "-w", "getppid"];
    for (file, package) in [(QEMU, "qemu-system-x86"), ("/usr/bin/mmdebstrap", "mmdebstrap")] {
        let told = apart(&home, &format!("mount --bind /dev/null {file}"), &vm);
        told.assert_error(&["apt-get install --no-install-recommends", package]);
    }
    let small = home.path("small").display().to_string();
    fs::create_dir(&small).unwrap();
    let line = format!(
        "mount -t tmpfs -o size=64m,mode=755 tmpfs {small} && export XDG_STATE_HOME={small}"
    );
    apart(&home, &line, &vm).assert_error(&["MiB are free: set XDG_STATE_HOME"]);
    let alone = apart(&home, "true", &vm);
    alone.assert_error(&["cannot reach the distribution's mirror"]);
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_booted() {
    let home = Home::new();
    let refused = |arguments: &[&str], parts: &[&str]| home.run(arguments).assert_error(parts);
    refused(&["compare", "vm:selinux"], &["is a virtual machine", "--base vm"]);
    refused(&["compare", "vm:selinux,apparmor", "--base", "vm"], &["two arms"]);
    refused(&["compare", "vm:hooks", "--base", "vm"], &["write selinux,hooks"]);
    refused(
        &["compare", "vm::thp:never", "--base", "vm"],
        &["`vm` is a different machine", "`thp`"],
    );
    refused(&["compare", "vm:x", "--base", "vm"], &["does not take `x`"]);
}

/// `weigh`, qemu and whatever builds are killed at random: nothing is left, and the next one works.
#[test]
#[ignore = "it builds a guest again and again; make check-hard"]
fn killed_at_any_moment_it_leaves_nothing_and_no_half_built_image() {
    use rand::{RngExt, SeedableRng};
    assert!(!is_skipped());
    let _turn = Turn::share();
    let home = Home::new();
    let root = tiny(&home, "guest").display().to_string();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(17);
    for kill in 0..hard(6, 40) {
        let made = home.path("state/weighbridge/vm");
        if kill % 3 == 0 {
            let _ = fs::remove_dir_all(&made);
        }
        let base = if kill % 6 == 0 { "vm".to_owned() } else { format!("vm:root={root}") };
        let audited = if base == "vm" { "vm:audit".to_owned() } else { format!("{base},audit") };
        let arguments = ["compare", &audited, "--base", &base, "-w", "getppid", "--budget", "60s"];
        let mut running = home.start(home.weigh(&arguments));
        let moment = Duration::from_millis(chance.random_range(100..40_000));
        wait_until(moment, || running.has_ended());
        running.kill();
        let _ = running.finish();
        let gone = wait_until(Duration::from_secs(30), || home.processes().is_empty());
        assert!(gone, "kill {kill} after {moment:?}: {:#?}", home.describe_processes());
        assert!(wait_until(Duration::from_secs(10), || mounts(&home).is_empty()), "{kill}");
        assert_eq!(home.leftovers(), Vec::<PathBuf>::new(), "kill {kill} after {moment:?}");
        let kept = fs::read_dir(&made).into_iter().flatten().flatten();
        for name in kept.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
            let is_whole = ["kernel-", "root-", "kvm"].iter().any(|start| name.starts_with(start));
            assert!(is_whole, "kill {kill} after {moment:?}: {name}");
        }
    }
}
