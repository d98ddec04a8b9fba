//! `weigh net`: every class and component in three namespaces, one BTU; nothing left, whatever is killed.

use std::fs;
use std::time::Duration;

use crate::support::grid::small;
use crate::support::processes::signal;
use crate::support::{Home, Turn, row, skip, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;

const LONG: Duration = Duration::from_secs(30);

fn two_classes() -> String {
    small("arith-double", &[("Telnet", 1000), ("Video", 65536)])
}

/// Returns true if hosts can be made here.
fn can_make_hosts() -> bool {
    let can = fs::metadata("/dev/net/tun").is_ok() && crate::support::is_root();
    if !can {
        skip("tun", "needs root and /dev/net/tun");
    }
    can
}

#[test]
fn a_grid_gives_one_btu_with_its_interval_and_both_penalties_and_can_go_on() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let further = "further = [\"requests\", \"loaded\", \"datagrams\"]\n[[class]]";
    home.file("small.toml", two_classes().replacen("[[class]]", further, 1));
    std::fs::create_dir(home.path("packets")).unwrap();
    let trace = ["--trace", "packets"];
    let grid = ["net", "--grid", "./small.toml", "--precision", "90%", "--budget", "280s"];
    let arguments = [&grid[..], &trace].concat();
    let outcome = home.succeed(&arguments);
    let traced: Vec<_> = std::fs::read_dir(home.path("packets")).unwrap().collect();
    let cells = 26 + 3 * 4;
    assert_eq!(traced.len(), cells);
    for file in traced {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_ne_bytes());
        // What moves nothing has no packets.
        let is_alone = path.file_name().unwrap().to_string_lossy().starts_with("alone");
        assert_eq!(bytes.len() > 24, !is_alone, "{}", path.display());
        assert!(is_alone || matches!(bytes[40] >> 4, 4 | 6), "{}", path.display());
    }
    outcome.assert_says(&[
        "(BTU): ",
        "Mb/s",
        "grid small (",
        "Penalty: ",
        "send to 2, with drops",
        "harmonic mean",
    ]);
    let json = home.json();
    let net = &json["net"];
    assert_eq!((net["cells"].as_u64(), net["missing"].as_array().unwrap().len()), (Some(26), 0));
    let sweeps = net["sweeps"].as_u64().unwrap();
    assert!(sweeps >= 2, "{net:#}");
    for score in ["btu", "activity_slowdown", "comm_slowdown"] {
        let of = |name: &str| net[score][name].as_f64().unwrap();
        assert!(0.0 < of("low") && of("low") <= of("value") && of("value") <= of("high"));
    }
    for class in net["classes"].as_array().unwrap() {
        for rates in ["components", "components_alone"] {
            let rates = class[rates].as_array().unwrap();
            assert_eq!(rates.len(), 6);
            assert!(rates.iter().all(|rate| rate.as_f64().unwrap() > 0.0), "{class:#}");
        }
    }
    // What is not scored has its turn in each third sweep.
    let kinds = net["further"].as_array().unwrap();
    assert_eq!(kinds.len(), 3);
    let cells = net["measured"].as_array().unwrap();
    for cell in cells.iter().filter(|cell| cell["activity"].is_null() && cell["unit"] == "Mb/s") {
        assert!(cell["readings"]["cpu_per_gb"].as_f64().is_some(), "{cell:#}");
    }
    // Unless a slow machine did not get to the first look, or a busy one made the interval wider.
    let [low, high] = ["low", "high"].map(|name| net["btu"][name].as_f64().unwrap());
    if sweeps == 8 && (high / low).sqrt() - 1.0 <= 0.9 {
        let finished = home.succeed("net --continue latest --budget 60s");
        finished
            .assert_says(&["There is nothing left to measure of", "as narrow as --precision says"]);
        assert_eq!(home.json(), json);
    }
    another_session_adds_whole_sweeps(&home, sweeps);
    a_failed_cell_is_begun_again(&home);
    assert_eq!((home.leftovers(), home.processes()), (Vec::new(), Vec::new()));
}

/// Continues the experiment, with the same payload in each cell.
fn another_session_adds_whole_sweeps(home: &Home, sweeps: u64) {
    let payloads = "SELECT count(DISTINCT json_extract(sample, '$.operations') || '/' || work) \
        FROM sample WHERE json_extract(sample, '$.unit') = 'Mb/s' AND work < 26";
    let before: i64 = home.open_database().query_row(payloads, [], |row| row.get(0)).unwrap();
    assert_eq!(before, 24);
    // A busy machine takes its time for a sweep, so it ends when there are samples for two.
    let samples = home.samples();
    let arguments = "net --continue latest --budget 300s --precision 0.01%";
    let mut running = home.start(home.weigh(arguments));
    home.wait_for_samples(samples + 2 * samples / i64::try_from(sweeps).unwrap(), &mut running);
    signal(running.pid(), Signal::INT);
    running.finish();
    assert!(home.json()["net"]["sweeps"].as_u64().unwrap() > sweeps);
    let after: i64 = home.open_database().query_row(payloads, [], |row| row.get(0)).unwrap();
    assert_eq!(after, before);
}

/// Takes an experiment of two classes without a failure.
fn a_failed_cell_is_begun_again(home: &Home) {
    // A cell that failed takes the score away, until another session has begun it again.
    let fail = "INSERT INTO failure SELECT experiment, name, load_axis, load_value, 'none', 'it broke' \
        FROM work WHERE number = 0";
    home.open_database().execute(fail, []).unwrap();
    home.run("show").assert_says(&["No BTU: 1 of 26 cells"]);
    let before = home.json()["net"]["sweeps"].as_u64().unwrap();
    // It does not give a score that nothing was measured for.
    let stopped = home.start(home.weigh("net --continue latest --budget 20s --precision 0.01%"));
    assert!(wait_until(Duration::from_secs(60), || stopped.said().contains("Continuing ")));
    signal(stopped.pid(), Signal::INT);
    stopped.finish();
    home.run("show").assert_says(&["No BTU: 1 of 26 cells"]);
    let samples = home.samples();
    let arguments = "net --continue latest --budget 300s --precision 0.01%";
    let mut running = home.start(home.weigh(arguments));
    home.wait_for_samples(samples + 2 * samples / i64::try_from(before).unwrap(), &mut running);
    signal(running.pid(), Signal::INT);
    running.finish().assert_says(&["had failed, so this session began it again: it broke."]);
    let net = &home.json()["net"];
    assert!(net["btu"]["value"].as_f64().is_some(), "{net:#}");
    assert!(net["sweeps"].as_u64().unwrap() > before, "{net:#}");
}

#[test]
fn a_cell_that_fails_leaves_the_score_incomplete() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    home.file("small.toml", two_classes());
    let arguments = ["net", "--grid", "./small.toml", "--beside", "nonesuch"];
    let outcome = home.run(&arguments);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["--beside: there is no workload"]);
    let grid = two_classes();
    let line = 1 + grid.lines().position(|line| line.starts_with("activities")).unwrap();
    home.file("activity.toml", grid.replace("arith-double", "arith-duoble"));
    let outcome = home.run("net --grid ./activity.toml --spec written.toml");
    outcome.assert_error(&[
        &format!("./activity.toml:{line}: there is no workload"),
        "`arith-double`",
    ]);
    assert!(!home.path("written.toml").exists());
    home.file("cubic.toml", two_classes().replace("reno", "nonesuch"));
    let outcome = home.run("net --grid ./cubic.toml");
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["congestion control `nonesuch`"]);
    assert!(!outcome.stdout.contains("(BTU): "), "{outcome:#?}");
}

#[test]
fn a_grid_is_a_row_that_a_treatment_can_have_an_effect_on() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    home.file("small.toml", two_classes());
    let outcome = home.measure(&[
        "compare",
        "seccomp:compares=2000",
        "-w",
        "net:./small.toml",
        "-w",
        "net:./small.toml:bytes=1000",
        "--pairs",
        "8",
        "--no-detail",
    ]);
    // Two classes of six components beside the activity, and twice the activity alone; how long they last was
    // told before the first.
    let said = outcome.stderr.find("A pair of net:./small.toml has 14 cells in each arm");
    assert!(said.is_some(), "{outcome:#?}");
    let json = home.json();
    let measured = row(&json, "net:./small.toml");
    assert_eq!(measured["unit"], "Mb/s");
    let text = json.to_string();
    for metric in ["activity_slowdown", "btu_1000", "btu_65536"] {
        assert!(text.contains(metric), "{metric}");
    }
    assert!(!text.contains("comm_slowdown"), "nobody asked for it");
    // All samples of a row have moved as much, and each began at a time of its own.
    let ask =
        |sql: &str| -> i64 { home.open_database().query_row(sql, [], |row| row.get(0)).unwrap() };
    let payload = "json_extract(sample, '$.operations')";
    let of_row = format!("SELECT count(DISTINCT work || '/' || {payload}) FROM sample");
    assert_eq!(ask(&of_row), 2);
    assert_eq!(ask("SELECT count(DISTINCT started_s) FROM sample"), 2 * 2 * 8);
    assert_eq!((home.leftovers(), home.processes()), (Vec::new(), Vec::new()));
}

#[test]
fn the_networks_penalty_is_judged_where_it_was_asked_for() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    home.file("small.toml", two_classes());
    let arguments = ["compare", "none", "-w", "net:./small.toml:bytes=65536", "--pairs", "8"];
    home.measure(&[&arguments[..], &["--metric", "comm_slowdown"]].concat());
    assert!(home.json().to_string().contains("\"comm_slowdown\""));
}

#[test]
fn ftp_is_served_by_vsftpd_where_there_is_one() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    let fetching = two_classes().replace("\"arith-double\"", "\"activity-ftp\"");
    home.file("small.toml", fetching);
    home.succeed("net --grid ./small.toml --precision 99% --budget 120s");
    let server = match fs::metadata("/usr/sbin/vsftpd") {
        Ok(_) => "FTP is served by vsftpd, version ",
        Err(_) => "FTP is served by our own server, because `vsftpd` is not installed",
    };
    let json = home.json();
    assert!(json.to_string().contains(server), "{json:#}");
    assert_eq!((home.leftovers(), home.processes()), (Vec::new(), Vec::new()));
}

#[test]
fn whatever_process_is_killed_nothing_is_left() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(1996);
    for _ in 0..crate::support::hard(4, 60) {
        let home = Home::new();
        home.file("small.toml", two_classes());
        let arguments = ["net", "--grid", "./small.toml", "--precision", "0.01%"];
        let mut running = home.start(home.weigh(&arguments));
        home.wait_for_samples(1, &mut running);
        std::thread::sleep(Duration::from_millis(chance.random_range(0..500)));
        let processes = home.processes();
        let victim = processes[chance.random_range(0..processes.len())];
        signal(victim, Signal::KILL);
        // What the death of one of them does not end goes on well.
        std::thread::sleep(Duration::from_millis(200));
        signal(running.pid(), Signal::INT);
        running.finish();
        assert!(
            wait_until(LONG, || home.processes().is_empty()),
            "{:?}",
            home.describe_processes()
        );
        home.run("restore");
        assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_link_does_what_its_grid_says_and_a_testbed_is_replicated() {
    if !can_make_hosts() {
        return;
    }
    let _turn = Turn::share();
    let home = Home::new();
    // A queue of few packets at a low rate, bursts of loss, and only some packets delayed, over IPv6.
    let link = r#"
ipv6 = true
further = ["datagrams"]
[link]
everywhere = true
[link.from_test]
loss = ["2%x3"]
seed = 7
rate_bits_per_s = 200000000
queue_bytes = 30000
duplicated = "1%"
[link.to_test]
delayed = "3@1%10"
reordered = "1%"
late_ns = 1000000
[[class]]
name = "Video"
bytes = 65536
"#;
    let two_classes = two_classes();
    let (head, _) = two_classes.split_once("[[class]]").unwrap();
    home.file("link.toml", [head, link].concat());
    let wrote = home.succeed("net --grid ./link.toml --spec spec.toml");
    assert!(wrote.stderr.contains("`weigh net --from-spec spec.toml` measures"), "{wrote:#?}");
    let outcome = home.succeed("net --from-spec ./spec.toml --precision 99% --budget 120s");
    outcome.assert_says(&["This testbed is as ./spec.toml has it", "grid small ("]);
    let json = home.json();
    let cells = json["net"]["measured"].as_array().unwrap();
    let sum = |reading: &str| -> f64 {
        cells.iter().filter_map(|cell| cell["readings"][reading].as_f64()).sum()
    };
    assert!(sum("queue_dropped_packets") > 0.0, "{json:#}");
    assert!(sum("dropped_packets") > sum("queue_dropped_packets") / 100.0);
    assert!(sum("datagrams_lost") > 0.0 && sum("datagrams_duplicated") > 0.0);
    // The whole of it cannot be faster than its link.
    let limit = |cell: &&serde_json::Value| {
        let sends = cell["cell"].as_str().unwrap().starts_with("send/");
        sends && cell["bytes"] == 65536
    };
    for cell in cells.iter().filter(limit) {
        assert!(cell["median"].as_f64().unwrap() < 200.0, "{cell:#}");
    }
    outcome.assert_says(&["Bottleneck of 6 transfers without an activity: the link's rate in "]);
    for cell in cells.iter().filter(|cell| cell["is_of_suite"] == true) {
        let busy = |name: &str| cell["readings"][name].as_f64();
        assert_eq!(busy("host_busy").is_some(), cell["activity"].is_null(), "{cell:#}");
        // Its packets have headers, so the link is busier than the payload alone would make it.
        if let Some(link_busy) = busy("link_busy").filter(|_| limit(&cell)) {
            let of_payload = cell["median"].as_f64().unwrap() / 200.0 * 100.0;
            assert!(of_payload < link_busy && link_busy < 110.0, "{cell:#}");
        }
    }
    let id = json["id"].as_str().unwrap();
    home.file("other.json", json.to_string());
    let price = format!("{id}=2900");
    let outcome = home.succeed(&["net", "rank", id, "./other.json", "--price", &price]);
    outcome.assert_says(&["Final BTU ranking", "1-2", "other", "2,900"]);
    let page = home.succeed(&["net", "rank", id, "./other.json", "--html", "-"]).stdout;
    assert!(page.trim_end().ends_with("</html>"), "{page}");
    let changed = home.run(&["net", "rank", id, "./nonesuch.json"]);
    assert_eq!(changed.code, Some(2), "{changed:#?}");
}

#[test]
fn what_is_no_grid_is_said() {
    let home = Home::new();
    let refused = |arguments: &[&str], said: &str| {
        let outcome = home.run(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:#?}");
        outcome.assert_says(&[said]);
    };
    refused(&["net", "--grid", "nonesuch"], "unknown grid `nonesuch`");
    refused(&["compare", "none", "-w", "net:nonesuch"], "unknown grid `nonesuch`");
    refused(&["compare", "none", "-w", "net:quick:bytes=7"], "100, 1024, 1250, 4096, 65536");
    refused(&["compare", "none", "-w", "net:quick:copies=7"], "there is `bytes`");
    refused(&["run", "pipe", "net:quick"], "`weigh net --grid quick` measures it");
    for of_a_run in ["--json=-", "--csv=x", "--budget=1m", "--name=x", "--anonymise"] {
        refused(&["net", "--spec", "spec.toml", of_a_run], "cannot be used with");
    }
    assert!(!home.path("spec.toml").exists());
    home.file("broken.toml", "name = \"x\"\nsummary = 5\n");
    refused(&["net", "--grid", "./broken.toml"], "./broken.toml:2");
}
