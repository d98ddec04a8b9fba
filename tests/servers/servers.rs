//! Workloads that ask a real server: those that Debian packages and are installed here. What is not is said.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::support::servers::{
    LONG, SERVERS, assert_nothing_is_left, has, open_home, servers_of, signal,
};
use crate::support::{Home, Outcome, Turn, is_root, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

fn rows(json: &Value) -> Vec<&str> {
    json["results"].as_array().unwrap().iter().filter_map(|row| row["workload"].as_str()).collect()
}

#[test]
fn every_server_that_is_there_has_a_row_and_what_is_missing_is_said() {
    if !is_root() {
        return skip("root", "needs root");
    }
    let _turn = Turn::share();
    let home = open_home();
    let sites =
        ["apache-mod-php", "apache-fpm", "nginx-fpm"].map(|s| format!("app:web.cookie@{s}"));
    let sites = sites.each_ref().map(String::as_str);
    let of_sites = home.succeed(&[&["run", "--samples", "3"][..], &sites].concat());
    let sites_json = home.json();
    let pages = ["app:web.page", "app:kv.get-set", "app:db.point-read@postgres"];
    let databases =
        ["app:db.report", "app:db.point-read@sqlite", "app:db.random-insert-90@mariadb"];
    let relaxed = ["app:db.point-read@mariadb-relaxed"];
    let works = [&["run", "--samples", "3"][..], &pages, &databases, &relaxed].concat();
    let outcome = home.succeed(&works);
    let json = home.json();
    let rows = [rows(&sites_json), rows(&json)].concat();
    let said = format!("{}{}{}", outcome.stdout, outcome.stderr, of_sites.stderr);
    for (server, is_there) in SERVERS.map(|(server, _)| (server, has(server))) {
        let row = match server {
            "php-site" => "@nginx-fpm".into(),
            "apache" => "@apache-event".into(),
            other => format!("@{other}"),
        };
        assert_eq!(rows.iter().any(|name| name.ends_with(&row)), is_there, "{server}: {rows:?}");
        assert!(is_there || said.contains("is not installed"), "{server}: {said}");
    }
    if has("sqlite") {
        assert!(rows.contains(&"app:db.report@sqlite"), "{rows:?}");
    }
    if has("mariadb") {
        assert!(rows.contains(&"app:db.random-insert-90@mariadb"), "{rows:?}");
        let facts = json["facts"].to_string();
        for fact in ["`mariadb`: MariaDB", "Durable: a commit is on disk", "Relaxed: a commit"] {
            assert!(facts.contains(fact), "{fact}: {facts}");
        }
        home.succeed("show --as whitcher")
            .assert_says(&["mariadb, 90 % full, 1 client", "Database - inserts per second"]);
    }
    assert_nothing_is_left(&home);
}

/// Each pass holds its table against all keys that it and the passes before have drawn.
#[test]
fn a_table_fills_over_the_passes_of_a_run() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let passes = ["--for", "3s", "--pass", "1s", "--clients", "2", "--as", "whitcher"];
    let outcome =
        home.succeed(&[&["run", "app:db.random-fill@mariadb-relaxed"][..], &passes].concat());
    outcome.assert_says(&["seconds per 100,000 queries while a table fills"]);
    let queries = outcome.stdout.lines().filter_map(|line| {
        let (_, rest) = line.split_once("mariadb-relaxed, 2 clients ")?;
        rest.split_whitespace().next()?.replace(',', "").parse::<u64>().ok()
    });
    let queries: Vec<u64> = queries.collect();
    assert!(queries.len() == 3 && queries.is_sorted(), "{}", outcome.stdout);
    assert_eq!(home.json()["failures"], serde_json::json!([]));
    // Without --for each sample makes its table anew.
    let samples =
        ["run", "app:db.random-fill@mariadb-relaxed", "--samples", "3", "--as", "whitcher"];
    home.run(&samples[..]).assert_error(&["no workload of this result is in these tables"]);
    assert_nothing_is_left(&home);
}

/// Each arm keeps its servers over all passes, so nothing is judged.
#[test]
fn two_arms_are_asked_in_pairs_of_passes() {
    if !has("nginx") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let passes = ["-w", "app:web.page@nginx", "--for", "3s", "--pass", "1s", "--json", "-"];
    home.succeed(&[&["compare", "nice:5"][..], &passes].concat());
    let json = home.json();
    let row = &json["results"][0];
    assert_eq!((&row["pairs"], &row["verdict"]), (&3.into(), &"inconclusive".into()), "{row:#}");
    assert_eq!((&row["low_pct"], &row["high_pct"]), (&().into(), &().into()), "{row:#}");
    let facts = json["baseline_facts"].to_string();
    for arm in ["none", "nice:5"] {
        for part in ["pass 1 of 3", "pass 3 of 3", "1 server exited when weigh stopped them"] {
            let between = if part.starts_with("pass") { ", " } else { ": " };
            let wanted = format!("under `{arm}`{between}{part}");
            assert!(facts.contains(&wanted), "{wanted}: {facts}");
        }
    }
    assert!(json["warnings"].to_string().contains("Each arm started its servers once"), "{json:#}");
    // What cannot be asked so is refused before anything is measured.
    let refused = |words: &[&str], why: &str| {
        home.run(&[&["compare"][..], words, &["--for", "3s"]].concat()).assert_error(&[why]);
    };
    refused(&["nice:5", "nice:6", "-w", "app:web.page@nginx"], "here are 2 treatments");
    refused(&["nice:5", "-w", "getppid"], "sends no requests to a server");
    refused(&["nice:5", "-w", "app:web.page@nginx", "--pairs", "8"], "cannot be used with");
    assert_nothing_is_left(&home);
}

/// It has not said how often it drew: the rows tell, and no database is blamed for them.
#[test]
fn a_table_fills_on_after_a_pass_that_was_killed() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let words = "run app:db.random-fill@mariadb-relaxed --for 9s --pass 3s --json -";
    let mut running = home.start(home.weigh(words));
    home.wait_for_samples(1, &mut running);
    // The second pass inserts.
    let clients = || home.processes_of("run app:db.random-fill --");
    thread::sleep(Duration::from_secs(1));
    assert!(wait_until(LONG, || !clients().is_empty()), "{:?}", home.processes());
    clients().into_iter().for_each(|pid| signal(pid, Signal::KILL));
    let outcome = running.finish();
    outcome.assert_says(&["pass 2 has no result", "killed by signal 9"]);
    assert!(!outcome.stderr.contains("not inserted"), "{outcome:#?}");
    let json = home.json();
    assert_eq!(json["results"][0]["samples"], 2, "{json:#}");
    assert_nothing_is_left(&home);
}

/// As if it had never been installed.
#[test]
fn without_a_server_the_others_are_measured() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let script =
        "for f in /usr/sbin/nginx; do [ ! -e $f ] || mount --bind /dev/null $f; done; exec \"$@\"";
    let mut command = home.command("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(crate::support::program());
    command.args(["run", "app:web.page@nginx", "app:kv.get-set", "--samples", "3"]);
    let outcome = home.start(command).finish();
    outcome.assert_says(&["`nginx` is not installed (Debian: apt-get install nginx-light)"]);
    assert_eq!(rows(&home.json()), ["app:kv.get-set@redis"]);
    let mut doctor = home.command("unshare");
    doctor.args(["--mount", "sh", "-c", script, "sh"]).arg(crate::support::program());
    doctor.args(["doctor", "--install", "apps"]);
    home.start(doctor).finish().assert_error(&["This installs", "nginx-light", "add --yes"]);
    assert_nothing_is_left(&home);
}

/// Runs a script beside a server again and again, until it has made this file.
fn run_until(home: &Home, fixture: &str, script: &str, file: &str) -> Outcome {
    let command = ["compare", "none", "--fixture", fixture, "--budget", "280s", "--"];
    let mut running = home.start(home.weigh(&[&command[..], &["sh", "-c", script]].concat()));
    wait_until(LONG, || home.path(file).exists() || running.has_ended());
    assert!(home.path(file).exists(), "{}", running.said());
    signal(running.pid(), Signal::INT);
    let outcome = running.finish();
    assert!([Some(0), Some(3), Some(130)].contains(&outcome.code), "{outcome:#?}");
    outcome
}

/// Held against the scheduler's own count; without the numbers of the servers' processes it is nobody's.
#[test]
fn what_the_server_used_is_in_the_cpu_time() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let program = home.workloads();
    let run = format!("{} run app:kv.get-set --operations 20000", program.display());
    let script = format!(
        "ran() {{ cut -d ' ' -f 1 /proc/$WEIGH_SERVERS/schedstat; }}; mkdir $$ && cd $$ && \
         ran >before && {run} >both && ran >after && env -u WEIGH_SERVERS {run} >client && \
         cd .. && {{ [ -e whole ] || mv $$ whole; }}"
    );
    let outcome = run_until(&home, "redis", &script, "whole");
    let read = |file: &str| -> Value {
        let text = fs::read_to_string(home.path("whole").join(file)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}: {outcome:#?}"))
    };
    let [before_ns, after_ns] = ["before", "after"].map(|file| read(file).as_f64().unwrap());
    let server_ns = |sample: &Value| {
        let readings = sample["readings"].as_array()?;
        let server = readings.iter().find(|reading| reading["name"] == "server_cpu")?;
        Some(server["value"].as_f64().unwrap() * 20_000.0)
    };
    let (both, client) = (read("both"), read("client"));
    let (counted_ns, ran_ns) = (server_ns(&both).unwrap(), after_ns - before_ns);
    // Before the first of the operations it answers some more.
    assert!((0.5 * ran_ns..=ran_ns).contains(&counted_ns), "{counted_ns} of {ran_ns}: {both}");
    let spent_ns: f64 = ["user_ns", "system_ns"].iter().filter_map(|of| both[of].as_f64()).sum();
    assert!(spent_ns > counted_ns, "{both}");
    assert_eq!(server_ns(&client), None, "{client}");
    let readings = both["readings"].as_array().unwrap();
    let share = readings.iter().find(|reading| reading["name"] == "server_cpu_share").unwrap();
    let expected_pct = 100.0 * counted_ns / both["elapsed_ns"].as_f64().unwrap();
    assert!((share["value"].as_f64().unwrap() / expected_pct - 1.0).abs() < 1e-6, "{both}");
}

/// The treatment is in the server.
#[test]
fn a_treatment_reaches_the_server() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["compare", "seccomp", "-w", "app:kv.get-set@redis", "--budget", "60s"];
    let mut running = home.start(home.weigh(&command));
    let with_filter = || {
        servers_of(&home, "redis-server").into_iter().any(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.contains("Seccomp:\t2") && status.contains("Uid:\t65534")
        })
    };
    assert!(wait_until(LONG, with_filter), "{}", running.said());
    home.wait_for_samples(4, &mut running);
    signal(running.pid(), Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    assert_nothing_is_left(&home);
}

#[test]
fn a_server_of_all_arms_is_a_treatment_like_others() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let command = ["compare", "mariadb:relaxed", "--base", "mariadb", "-w", "app:db.transaction"];
    let outcome = home.run(&[&command[..], &["--pairs", "8", "--no-detail"]].concat());
    // Whatever the verdict on eight pairs is.
    assert!([Some(0), Some(3)].contains(&outcome.code), "{outcome:#?}");
    assert_eq!(outcome.stderr.matches("Preparing the `mariadb` server").count(), 1, "{outcome:#?}");
    assert_eq!(rows(&home.json()), ["app:db.transaction"]);
    home.run("compare mariadb -w app:db.transaction")
        .assert_error(&["`mariadb` has a fixture for `database`, but `none` does not"]);
    home.run("run app:db.transaction@oracle").assert_error(&["choose one of mariadb"]);
    home.run("run app:kv.get-set@nginx").assert_error(&["there is no store `nginx`"]);
    home.run("run app:db.transaction --fixture mariadb:durable,relaxed")
        .assert_error(&["exclude each other"]);
    assert_nothing_is_left(&home);
}

/// Tests a disk without room for a database: its preparation may wait for room.
#[test]
fn a_disk_without_room_for_a_database_is_said() {
    if !has("mariadb") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let script = "mount -t tmpfs -o size=60m,mode=1777 none \"$TMPDIR\" && exec \"$@\"";
    let mut command = home.command("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(crate::support::program());
    command.args([
        "run",
        "app:db.point-read@mariadb",
        "app:db.point-read@sqlite",
        "--samples",
        "3",
    ]);
    let outcome = home.start(command).finish();
    outcome.assert_says(&["app:db.point-read@mariadb gave no result", "app:db.point-read@sqlite"]);
    assert_nothing_is_left(&home);
}

#[test]
fn the_data_of_servers_are_on_the_file_system_of_their_arm_and_checked_there() {
    if !is_root() || !has("mariadb") || !has("sqlite") || !has("nginx") {
        return skip("root", "needs root, MariaDB, SQLite and nginx");
    }
    let _turn = Turn::share();
    let home = open_home();
    let works = ["app:db.crash@mariadb-relaxed", "app:db.point-read@sqlite", "app:web.page@nginx"];
    let run = ["run", "--samples", "3", "--fixture"];
    home.succeed(&[&run[..], &["fs:ext4,size=300,check"], &works].concat());
    let json = home.json();
    assert_eq!(rows(&json), works);
    let facts = json["facts"].to_string();
    for fact in [
        "`mariadb:relaxed,revived`: MariaDB",
        "with its data on ext4, the file system of the arm, new",
        "with a file on ext4, new",
        "`e2fsck -p -f` found no damage",
    ] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
    let small = home.run(&[&run[..], &["fs:ext4,size=16", works[0]]].concat());
    assert_eq!(small.code, Some(2), "{small:#?}");
    small.assert_says(&["bringing the data of a server", "a larger size= may help"]);
    assert_nothing_is_left(&home);
}

/// In the midst of a sample, or when the next pair's database is copied.
#[test]
fn a_disk_that_fills_meanwhile_is_said() {
    if !has("postgres") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let script = "mount -t tmpfs -o size=400m,mode=1777 none \"$TMPDIR\" && exec \"$@\"";
    let mut command = home.command("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(crate::support::program());
    command.args(["compare", "none", "-w", "app:db.random-insert@postgres", "--budget", "60s"]);
    let mut running = home.start(command);
    home.wait_for_samples(2, &mut running);
    let place = format!("/proc/{}/root{}/filler", running.pid(), home.path("tmp").display());
    let fill = || {
        let mut filler = fs::OpenOptions::new().create(true).append(true).open(&place).ok();
        while filler.as_mut().is_some_and(|file| file.write_all(&[0; 1 << 16]).is_ok()) {}
        running.has_ended()
    };
    assert!(wait_until(LONG, fill), "{}", running.said());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    let why = home.json()["failures"].to_string();
    let says_so = ["No space left", "no space is left"].iter().any(|part| why.contains(part));
    assert!(says_so, "{why}");
    assert_nothing_is_left(&home);
}

#[test]
fn a_server_that_is_killed_gives_no_rate() {
    if !has("redis") {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let mut running = home.start(home.weigh("compare none -w app:kv.get-set@redis --budget 60s"));
    home.wait_for_samples(2, &mut running);
    let kill = || {
        servers_of(&home, "redis-server").first().inspect(|pid| signal(**pid, Signal::KILL));
        running.has_ended()
    };
    assert!(wait_until(LONG, kill), "{}", running.said());
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["app:kv.get-set@redis"]);
    assert_nothing_is_left(&home);
}

fn is_server(pid: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    ["mariadbd", "postgres", "nginx", "php-fpm", "apache2"].iter().any(|one| name.starts_with(one))
}

/// Not the worker that leaves its work to it, which is told of it.
fn is_client(pid: i32) -> bool {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    read("cmdline").contains("\0run\0app:") && !read("environ").contains("\0WEIGH_CLIENT=")
}

#[test]
fn whatever_is_killed_nothing_of_it_stays() {
    let there: Vec<&str> = [
        ("app:db.random-insert@mariadb", "mariadb"),
        ("app:db.transaction@postgres", "postgres"),
        ("app:web.cookie@nginx-fpm", "php-site"),
        ("app:web.cookie@apache-mod-php", "apache-mod-php"),
        ("app:web.cookie@apache-fpm", "apache-fpm"),
    ]
    .into_iter()
    .filter(|(_, server)| has(server))
    .map(|(work, _)| work)
    .collect();
    if there.is_empty() {
        return;
    }
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(16);
    for kill in 0..crate::support::hard(8, 60) as usize {
        let home = open_home();
        let moment = Duration::from_millis(chance.random_range(200..4000));
        let work = there[kill % there.len()];
        println!("kill {kill} after {moment:?} of {work}");
        let mut running =
            home.start(home.weigh(&["compare", "none", "-w", work, "--budget", "60s"]));
        thread::sleep(moment);
        assert!(!running.has_ended(), "{}", running.said());
        // It may be between two pairs.
        let one_of = |is_it: &dyn Fn(i32) -> bool| {
            let mut all = Vec::new();
            let is_there = || {
                all = home.processes().into_iter().filter(|pid| is_it(*pid)).collect();
                !all.is_empty()
            };
            assert!(wait_until(LONG, is_there), "there is none to kill");
            vec![all[kill % all.len()]]
        };
        let victims: Vec<i32> = match kill % 4 {
            0 => vec![running.pid()],
            1 => home.processes(),
            2 => one_of(&is_server),
            _ => one_of(&is_client),
        };
        victims.into_iter().for_each(|pid| signal(pid, Signal::KILL));
        if kill % 4 > 1 {
            // It goes on without that pair, or ends as the row failed.
            thread::sleep(Duration::from_millis(500));
            signal(running.pid(), Signal::INT);
        }
        running.finish();
        if kill % 4 == 1 {
            home.succeed("restore");
        }
        assert_nothing_is_left(&home);
    }
}

/// Rows that somebody else takes away in mid-sample are missed.
#[test]
fn rows_that_are_lost_are_found_by_the_reconciliation() {
    if !has("mariadb") || !Path::new("/usr/bin/mariadb").exists() {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let program = home.workloads();
    let script = format!(
        "{} run app:db.random-insert --target-ms 3000 --warm-up-ms 100 2>$$ & \
         sleep 1; mariadb -u root -S ${{WEIGH_DATABASE#mariadb:}} weigh \
         -e 'DELETE FROM random_0 LIMIT 3'; wait $!; test $? = 1 && mv $$ said",
        program.display()
    );
    let outcome = run_until(&home, "mariadb", &script, "said");
    let said = fs::read_to_string(home.path("said")).unwrap();
    let is_missed = ["the table has", "which was inserted"].iter().any(|part| said.contains(part));
    assert!(is_missed, "{said}: {outcome:#?}");
}

/// It is private, and configured as the row says.
#[test]
fn a_second_client_sees_the_same_server() {
    if !has("mariadb") || !Path::new("/usr/bin/mariadb").exists() {
        return;
    }
    let _turn = Turn::share();
    let home = open_home();
    let script = "mariadb -N -u root -S ${WEIGH_DATABASE#mariadb:} weigh \
                  -e 'SELECT @@innodb_flush_log_at_trx_commit, @@skip_networking' >$$; \
                  ss -Htlnp >$$.ports; mv $$.ports ports; mv $$ seen";
    run_until(&home, "mariadb:relaxed", script, "seen");
    assert_eq!(fs::read_to_string(home.path("seen")).unwrap().trim(), "0\t1");
    let ports = fs::read_to_string(home.path("ports")).unwrap();
    assert!(!ports.contains("mariadbd"), "{ports}");
}

/// Returns the output of another project's client next to a server, if both are installed. `DRIVER`
/// is our own client.
fn printed_by(client: &str, server: &str, fixture: &str, script: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|at| at.join(client).exists()) {
        skip(client, "it is not installed");
        return None;
    }
    has(server).then(|| {
        let home = open_home();
        let driver = home.workloads();
        let script = script.replace("DRIVER", &driver.display().to_string());
        let script = format!("{{ {script}; }} >$$ 2>&1 && mv $$ seen || {{ cat $$; exit 1; }}");
        run_until(&home, fixture, &script, "seen");
        let seen = fs::read_to_string(home.path("seen")).unwrap();
        assert_nothing_is_left(&home);
        seen.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// Each of its clients inserts the keys that it draws, and few of 2^20 are drawn twice.
#[test]
fn a_client_in_perl_asks_the_server_of_a_fixture() {
    let _turn = Turn::share();
    // As the home has no variables of the caller.
    let driver = Command::new("perl").env_clear().args(["-MDBD::MariaDB", "-e", "1"]).output();
    if !driver.is_ok_and(|output| output.status.success()) {
        skip("DBD::MariaDB", "it is not installed");
        return;
    }
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/random-insert.pl");
    let count = |table: usize| {
        format!(
            "mariadb -N -u root -S ${{WEIGH_DATABASE#mariadb:}} weigh -e 'SELECT COUNT(*) FROM keys{table}'"
        )
    };
    let script = format!("perl {} 2 100 && {} && {}", client.display(), count(1), count(2));
    if let Some(seen) = printed_by("mariadb", "mariadb", "mariadb:relaxed", &script) {
        assert!(seen.starts_with("{\"operations\":200,\"elapsed_ns\":"), "{seen}");
        let rows: Vec<u64> = seen.split(' ').skip(1).map(|rows| rows.parse().unwrap()).collect();
        assert!(rows.len() == 2 && rows.iter().all(|rows| (95..=100).contains(rows)), "{seen}");
    }
}

/// MariaDB counts no row as changed to which nothing is added.
#[test]
fn no_transaction_of_a_long_run_adds_nothing() {
    let _turn = Turn::share();
    let long = "DRIVER run app:db.transaction --operations 2500 && echo agreed";
    if let Some(seen) = printed_by("sh", "mariadb", "mariadb:relaxed", long) {
        assert!(seen.ends_with("agreed"), "{seen}");
    }
}

/// A second opinion: they find the pages that ours finds, and what a database acknowledges to them is there.
#[test]
fn other_clients_agree_with_ours() {
    let _turn = Turn::share();
    let page = "http://${WEIGH_WEB#*:}/page.html";
    let ab = format!("ab -q -n 300 -c 4 {page}");
    if let Some(seen) = printed_by("ab", "nginx", "nginx", &ab) {
        for part in ["Complete requests: 300 Failed requests: 0", "Document Length: 5000 bytes"] {
            assert!(seen.contains(part), "{part}: {seen}");
        }
    }
    let wrk = format!("wrk -t 1 -c 4 -d 1s {page}");
    if let Some(seen) = printed_by("wrk", "nginx", "nginx", &wrk) {
        let is_wrong = seen.contains("Non-2xx") || seen.contains("Socket errors");
        assert!(seen.contains("requests in") && !is_wrong, "{seen}");
    }
    let pgbench = "DRIVER run app:db.transaction --operations 1 >ours && socket=${WEIGH_DATABASE#*:} && \
                   ask() { psql -h ${socket%/*} -U bench -At postgres -c \"SELECT $1 FROM history_0\"; } && \
                   before=$(ask 'COUNT(*)') && printf '%s' 'BEGIN; \
                   UPDATE accounts_0 SET balance = balance + 3 WHERE id = :client_id; \
                   INSERT INTO history_0 VALUES (:client_id, 3); COMMIT;' >script && \
                   pgbench -n -M simple -h ${socket%/*} -U bench -f script -c 2 -t 25 postgres && \
                   echo $(($(ask 'COUNT(*)') - before)) lines, agree: \
                   $(ask 'SUM(amount) = (SELECT SUM(balance) FROM accounts_0)')";
    if let Some(seen) = printed_by("pgbench", "postgres", "postgres", pgbench) {
        assert!(seen.contains("processed: 50/50"), "{seen}");
        assert!(seen.ends_with("50 lines, agree: t"), "{seen}");
    }
    let lua = "function event() if not c then c = sysbench.sql.driver():connect() end \
               local key = sysbench.rand.uniform(0, 262143) \
               if c:query(\"SELECT rindex FROM random WHERE rindex=\" .. key).nrows == 0 then \
               c:query(\"INSERT INTO random VALUES (\" .. key .. \", 0, \\\"row\\\")\") end end";
    let sysbench = format!(
        "DRIVER run app:db.random-insert-shared --operations 1 >ours && socket=${{WEIGH_DATABASE#*:}} && \
         count() {{ mariadb -N -u root -S $socket weigh -e 'SELECT COUNT(*) FROM random'; }} && \
         before=$(count) && printf '%s' '{lua}' >script.lua && \
         sysbench script.lua --db-driver=mysql --db-ps-mode=disable --mysql-user=root --mysql-db=weigh \
         --mysql-socket=$socket --threads=1 --events=200 --time=0 run && echo $(($(count) - before)) rows"
    );
    if let Some(seen) = printed_by("sysbench", "mariadb", "mariadb:relaxed", &sysbench) {
        let word_after = |word: &str| {
            let (_, rest) = seen.split_once(word)?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        };
        let (acknowledged, rows) = (word_after("write: "), seen.rsplit(' ').nth(1));
        assert!(acknowledged.is_some_and(|rows| rows > 100), "{seen}");
        assert_eq!(rows.and_then(|rows| rows.parse().ok()), acknowledged, "{seen}");
    }
}
