//! Arms that differ in their servers, who of server and client is treated, and what a crash takes.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::roots::{bring, tiny};
use crate::support::servers::{LONG, assert_nothing_is_left, has, open_home, signal};
use crate::support::{Home, Running, SETTINGS, Turn, hard, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// Options that leave enough time for servers to start on a busy machine.
const ENOUGH: [&str; 5] = ["--budget", "280s", "--no-detail", "--sample", "20ms"];

/// Runs an experiment until it has a pair, or eight: the settings of an arm's server are proved with each.
/// Returns its report.
#[track_caller]
fn compared(home: &Home, arms: &[&str], work: &str) -> Value {
    let wanted = home.samples() + 2 * hard(1, 8) as i64;
    let words = [&["compare"][..], arms, &["-w", work], &ENOUGH].concat();
    let mut running = home.start(home.weigh(&words));
    home.wait_for_samples(wanted, &mut running);
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert!([Some(0), Some(3), Some(130)].contains(&outcome.code), "{outcome:#?}");
    home.json()
}

#[test]
fn a_setting_is_in_force_and_the_server_says_so() {
    if !has("mariadb") || !has("postgres") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let few = ["server:mariadb.max_connections=20,mariadb.sort_buffer_size=1M"];
    let json = compared(&home, &few, "app:db.point-read@mariadb").to_string();
    for fact in [
        "max_connections=20 and reports 20",
        "sort_buffer_size=1M and reports 1048576",
        "the server ran without mariadb.max_connections=20,mariadb.sort_buffer_size=1M",
    ] {
        assert!(json.contains(fact), "{fact}: {json}");
    }
    let base = ["server:postgres.work_mem=8MB", "--base", "server:postgres.work_mem=1MB"];
    let json = compared(&home, &base, "app:db.point-read@postgres").to_string();
    for fact in ["work_mem=8MB and reports 8192", "work_mem=1MB and reports 1024"] {
        assert!(json.contains(fact), "{fact}: {json}");
    }
    assert_nothing_is_left(&home);
}

/// The arms differ in nothing where the baseline's server has the setting by itself.
#[test]
fn a_baseline_that_says_the_same_is_no_baseline() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let arms = ["server:mariadb.max_connections=20", "--fixture", "mariadb:connections=20"];
    let outcome =
        home.run(&[&["compare"][..], &arms, &["-w", "app:db.point-read"], &ENOUGH].concat());
    let part = "without mariadb.max_connections=20 reports the same values";
    outcome.assert_error(&[part]);
    assert_nothing_is_left(&home);
}

#[test]
fn a_setting_that_the_server_does_not_take_is_an_error() {
    if !has("mariadb") || !has("postgres") || !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let refused = |arm: &str, work: &str, parts: &[&str]| {
        let outcome = home.run(&["compare", arm, "-w", work, "--budget", "60s"]);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(parts);
    };
    let of_mariadb = "app:db.point-read@mariadb";
    refused("server:mariadb.max_conections=20", of_mariadb, &["max_conections"]);
    refused("server:mariadb.max_connections=5", of_mariadb, &["adjusted to 10"]);
    let of_postgres = "app:db.point-read@postgres";
    refused("server:postgres.work_mmem=8MB", of_postgres, &["work_mmem"]);
    refused("server:postgres.work_mem=much", of_postgres, &["work_mem"]);
    refused("server:mariadb.config=/no/such", of_mariadb, &["/no/such", "No such file"]);
    refused("server:oracle.sga=1", of_mariadb, &["unknown server `oracle`"]);
    refused(
        "server:mariadb.max_connections=20",
        "app:kv.get-set@redis",
        &["every workload failed", "does not use `mariadb`"],
    );
    assert_nothing_is_left(&home);
}

#[test]
fn a_configuration_and_another_build_are_in_force() {
    if !has("mariadb") || !has("nginx") || !has("apache") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let file = |name: &str, text: &str| {
        fs::write(home.path(name), text).unwrap();
        home.path(name).display().to_string()
    };
    let config = file("m.cnf", "[mysqld]\nmax_connections=30\n");
    let arm = format!("server:mariadb.config={config},mariadb.sort_buffer_size=1M");
    let json = compared(&home, &[&arm], "app:db.point-read@mariadb").to_string();
    assert!(json.contains("has the SHA-256"), "{json}");
    let wrong = file("wrong.cnf", "[mysqld]\nmax_conections=30\n");
    let arm = format!("server:mariadb.config={wrong}");
    home.run(&["compare", &arm, "-w", "app:db.point-read@mariadb"])
        .assert_error(&["max_conections"]);
    let config = file("a.conf", "Timeout 30\n");
    compared(&home, &[&format!("server:apache.config={config}")], "app:web.page@apache-event");
    let wrong = file("wrong.conf", "Timeoutt 30\n");
    let arm = format!("server:apache.config={wrong}");
    home.run(&["compare", &arm, "-w", "app:web.page@apache-event"]).assert_error(&["Timeoutt"]);
    let build = home.path("nginx");
    fs::copy("/usr/sbin/nginx", &build).unwrap();
    let arm = format!("server:nginx.binary={}", build.display());
    let json = compared(&home, &[&arm], "app:web.page@nginx").to_string();
    assert!(json.contains(&format!("The program of nginx is {}", build.display())), "{json}");
    assert_nothing_is_left(&home);
}

/// By itself it would have 30 s to start.
#[test]
fn a_server_that_starts_for_longer_than_the_budget_is_given_up() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo slow && exit\nexec sleep 600\n";
    let slow = home.file("slow", script);
    fs::set_permissions(&slow, Permissions::from_mode(0o755)).unwrap();
    let arm = format!("server:redis.binary={}", slow.display());
    let outcome = home.run(&["compare", &arm, "-w", "app:kv.get-set", "--budget", "3s"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["--budget 3 s is too short: no sample finished. Use --budget "]);
    assert_nothing_is_left(&home);
}

/// Its users are the arm's, and cannot be exempt by themselves.
#[test]
fn a_mix_that_asks_a_server_is_treated_as_a_whole() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let mix = "name = \"reads\"\nsummary = \"reads\"\njobs = 50\n[tests]\n\"app:kv.get-set\" = 1\n";
    home.file("reads.toml", mix);
    let command = ["compare", "none", "--fixture", "redis", "-w", "load:./reads.toml:users=2"];
    home.run(&command)
        .assert_error(&["the job `app:kv.get-set`, which needs a `store` server", "--treat both"]);
    let arms = ["none", "--fixture", "redis", "--treat", "both"];
    let json = compared(&home, &arms, "load:./reads.toml:users=2");
    assert!(json["results"][0]["pairs"].as_u64() >= Some(1), "{json:#}");
    assert_nothing_is_left(&home);
}

/// In pairs, until there were so many processes of a kind: how many had a filter, and how many had none.
fn filters(home: &Home, running: &mut Running, is_one: &dyn Fn(i32) -> bool) -> [usize; 2] {
    let mut seen = BTreeMap::new();
    let have_several = || {
        for pid in home.processes().into_iter().filter(|pid| is_one(*pid)) {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if let Some(filter) = status.split_once("Seccomp:\t") {
                seen.insert(pid, filter.1.starts_with('2'));
            }
        }
        seen.len() >= 6
    };
    assert!(wait_until(LONG, have_several), "{}", running.said());
    let filtered = seen.values().filter(|is_filtered| **is_filtered).count();
    [filtered, seen.len() - filtered]
}

#[test]
fn who_is_treated_has_the_filter_and_who_is_exempt_has_none() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    for treat in ["server", "client"] {
        let home = open_home();
        let command = ["compare", "seccomp", "-w", "app:kv.get-set@redis", "--treat", treat];
        let mut running = home.start(home.weigh(&[&command[..], &["--pairs", "500"]].concat()));
        let file = |pid: i32, name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        let is_server = |pid| file(pid, "comm").is_ok_and(|name| name.trim() == "redis-server");
        // The worker that leaves its work to another has the treatment, and is told of that one.
        let is_client = |pid| {
            let delegates = file(pid, "environ").is_ok_and(|all| all.contains("\0WEIGH_CLIENT="));
            !delegates && file(pid, "cmdline").is_ok_and(|line| line.contains("\0run\0app:"))
        };
        let [filtered, others] = filters(&home, &mut running, &is_server);
        assert!(
            others > 0 && (filtered > 0) == (treat == "server"),
            "{treat}: {filtered} {others}"
        );
        if treat == "server" {
            let [filtered, others] = filters(&home, &mut running, &is_client);
            assert!(others > 0 && filtered == 0, "{filtered} {others}");
        }
        home.wait_for_samples(2, &mut running);
        signal(running.pid(), Signal::INT);
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(130), "{outcome:#?}");
        let facts = home.json().to_string();
        let exempt = ["The client is exempt", "The servers are exempt"];
        assert!(facts.contains(exempt[usize::from(treat == "client")]), "{facts}");
        assert_nothing_is_left(&home);
    }
}

/// Each row of a run with what it told: the inserts that were acknowledged, and those that were lost.
fn losses(home: &Home) -> Vec<(String, f64, f64)> {
    let of_row = |row: &Value| {
        let reading = |name: &str| {
            let all = row["readings"].as_array().unwrap();
            all.iter().find(|one| one["name"] == name).unwrap()["mean"].as_f64().unwrap()
        };
        let name = row["workload"].as_str().unwrap().to_owned();
        (name, reading("acknowledged_inserts"), reading("lost_inserts"))
    };
    home.json()["results"].as_array().unwrap().iter().map(of_row).collect()
}

/// Durable databases lose nothing that they acknowledged; what relaxed ones lose is told.
#[test]
fn what_was_acknowledged_outlives_a_crash_or_is_counted() {
    let _turn = Turn::share();
    let home = open_home();
    let run = |works: &[&str]| {
        home.succeed(&[&["run", "--samples", "3", "--sample", "10ms"][..], works].concat())
    };
    let nothing = "acknowledged inserts (0.00 %)";
    if has("mariadb") {
        run(&["app:db.crash@mariadb", "app:db.crash@mariadb-relaxed"]).assert_says(&[nothing]);
        for (name, acknowledged, lost) in losses(&home) {
            assert!(
                acknowledged >= 10.0 && (lost == 0.0 || name.ends_with("-relaxed")),
                "{name}: {lost}"
            );
        }
    }
    if has("postgres") {
        // Else it flushes each of its files by itself before it answers.
        let fixture = "postgres:revived,postgres.recovery_init_sync_method=syncfs";
        run(&["app:db.crash", "--fixture", fixture]).assert_says(&[nothing]);
        assert!(losses(&home)[0].1 >= 10.0);
    }
    assert_nothing_is_left(&home);
}

/// A database that promised more than it kept.
#[test]
fn a_lost_insert_of_a_durable_database_gives_no_rate() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let program = home.workloads();
    let script = format!(
        "env -u WEIGH_DURABILITY {} run app:db.crash --operations 3 >said 2>&1",
        program.display()
    );
    let fixture = "mariadb:relaxed,revived";
    let command =
        ["compare", "none", "--fixture", fixture, "--budget", "30s", "--", "sh", "-c", &script];
    let outcome = home.run(&command);
    let said = fs::read_to_string(home.path("said")).unwrap_or_default();
    assert!(said.contains("a crash that took acknowledged inserts"), "{said}: {outcome:#?}");
    assert_nothing_is_left(&home);
}

#[test]
fn a_server_has_a_capacity_for_a_limit_of_its_p99() {
    if !has("nginx") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command =
        ["run", "app:web.page@nginx", "--clients", "4", "--sample", "100ms", "--capacity"];
    let outcome = home.run(&[&command[..], &["p99=2s"]].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    outcome.assert_says(&[
        "search 6 of 6",
        "requests/s with a p99 of at most 2.0 s: the median of 6 searches",
    ]);
    let json = home.json();
    assert_eq!(json["results"][0]["samples"], 6, "{json}");
    assert!(json["facts"].to_string().contains("96.9 % interval"), "{json}");
    home.run("run app:web.page@nginx --capacity 50ms").assert_error(&["p99=50ms"]);
    assert_nothing_is_left(&home);
}

/// The server is that of the arm's root, where the treatment proves with each sample that it is.
#[test]
fn an_arm_with_another_root_has_the_server_of_that() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let roots = ["one", "other"].map(|name| tiny(&home, name));
    let labels = roots.each_ref().map(|root| format!("rootfs:{}", root.display()));
    let arms = [&*labels[0], "--base", &labels[1]];
    bring(&roots[0], Path::new("/usr/bin/redis-server"));
    let outcome = home.run(&[&["compare"][..], &arms, &["-w", "app:kv.get-set"], &ENOUGH].concat());
    outcome.assert_error(&["`redis-server` is not installed in the arm's root file system (Deb"]);
    bring(&roots[1], Path::new("/usr/bin/redis-server"));
    for who in ["server", "client", "both"] {
        let json = compared(&home, &[&arms[..], &["--treat", who]].concat(), "app:kv.get-set");
        assert!(json["results"][0]["pairs"].as_u64() >= Some(hard(1, 8)), "{who}: {json}");
        assert!(json.to_string().contains("Redis server v="), "{who}: {json}");
    }
    let beside = [&arms[..], &["--beside", "app:kv.get-set@redis"]].concat();
    let json = compared(&home, &beside, "getppid");
    assert!(json.to_string().contains("Redis server v="), "{json}");
    fs::remove_file(roots[0].join("usr/bin/redis-server")).unwrap();
    let outcome = home.run(&[&["compare"][..], &beside, &["-w", "getppid"], &ENOUGH].concat());
    outcome.assert_error(&["`redis-server` is not installed in the arm's root file system (Deb"]);
    assert_nothing_is_left(&home);
    for (own, workload) in [
        ("redis", "app:kv.get-set"),
        ("sqlite", "app:db.point-read"),
        ("beside:workload=app:kv.get-set@redis", "getppid"),
    ] {
        let own = labels.each_ref().map(|root| format!("{root}::{own}"));
        let arms = ["compare", &own[0], "--base", &own[1], "-w", workload];
        let outcome = home.run(&[&arms[..], &ENOUGH].concat());
        outcome.assert_error(&["Remove the server or library"]);
    }
    assert_nothing_is_left(&home);
}

/// It said that the server had ended, and not what had ended it.
#[test]
fn a_row_names_the_limit_that_ended_its_server() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::with(SETTINGS);
    for (limit, said) in [
        ("memory.max=3M", "the out-of-memory killer killed "),
        ("pids.max=2", "the limit pids.max refused to start"),
    ] {
        let home = open_home();
        let arm = format!("cgroup:{limit}");
        let works = ["-w", "getppid", "-w", "app:kv.get-set", "--pairs", "8"];
        let outcome = home.run(&[&["compare", &arm][..], &works].concat());
        outcome.assert_says(&["app:kv.get-set", "there is no result", said]);
        let json = home.json();
        let rows: Vec<&Value> = json["results"].as_array().unwrap().iter().collect();
        assert!(rows.len() == 1 && rows[0]["workload"] == "getppid", "{outcome:#?}");
        assert_nothing_is_left(&home);
    }
}
