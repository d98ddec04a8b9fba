//! Parts of a load: the files of re-aim, programs among the jobs, disks, memory. The tests include
//! observers of the load, the ramp, and that nothing is left when the load is killed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::chown;
use std::time::Duration;

use crate::support::processes::signal;
use crate::support::{Home, Turn, is_root, row, wait_until};
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;

/// Nobody's.
const UNUSED: u32 = 61_234;
const LONG: Duration = Duration::from_secs(30);

/// Tests the files of a re-aim user: two input files, and re-aim's table and CSV.
#[test]
fn a_workfile_and_a_configuration_of_re_aim_are_what_it_takes() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("workfile.mine", "FILESIZE: 20 K\nPOOLSIZE: 10 K\n30 disk_brd\n10 getppid\n");
    let [one, two] = ["one", "two"].map(|name| home.path(name));
    [&one, &two].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    let config = format!(
        "FILESIZE 10k\nDISKDIR {}\nDISKDIR {}\nSTARTUSERS 1\nENDUSERS 3\nINCREMENT 2\nJOBS 40\n",
        one.display(),
        two.display()
    );
    home.file("reaim.config", &config);
    let arguments = ["load", "--workfile", "workfile.mine", "--config", "reaim.config"];
    let options = ["--budget", "60s", "--precision", "90%", "--repeat", "1"];
    home.succeed(&[&arguments[..], &options].concat()).assert_says(&["load:workfile.mine"]);
    let points = home.json()["loads"][0]["points"].clone();
    let users: Vec<u64> =
        points.as_array().unwrap().iter().map(|p| p["users"].as_u64().unwrap()).collect();
    assert_eq!(users, [1, 3]);
    // Three of four jobs read 30 KiB, of three users 23: the workfile's sizes.
    let kib = points[0]["file_bytes_per_job"].as_f64().unwrap() / 1024.0;
    assert!((kib - 0.75 * 30.0).abs() < 0.1, "{points:#}");
    for directory in [one, two] {
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
    }
    let csv = home.succeed("show latest --as reaim-csv").stdout;
    assert!(csv.starts_with("Forks,JPM,JPM_C,JPS_C,"), "{csv}");
    fs::write(home.path("reaim.csv"), &csv).unwrap();
    home.succeed("import reaim.csv").assert_says(&["3 users, jobs per minute"]);

    home.file("reaim.config", "FILESIZE 10k\nUSERS 3\n");
    home.run(&arguments).assert_error(&["reaim.config:2: `USERS` is not one of"]);
    home.run("load shared --workfile workfile.mine").assert_error(&["--workfile"]);
    home.run("load --disk-dir ./nowhere").assert_error(&["no such directory"]);
    if is_root() {
        fs::create_dir(home.path("theirs")).unwrap();
        chown(home.path("theirs"), Some(UNUSED), Some(UNUSED)).unwrap();
        home.run("load --disk-dir ./theirs").assert_error(&["belongs to another user"]);
    }
    for wrong in ["0", "many"] {
        home.run(&["load", "--increment", wrong]).assert_error(&["adaptive"]);
    }
}

/// As re-aim's -o has it, with the CPU times of its report.
#[test]
fn the_tests_of_a_workfile_are_measured_alone_with_their_cpu_time() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("workfile.mine", "FILESIZE: 20 K\n30 creat_clo\n10 add_double\n");
    let run = home.succeed("run --workfile ./workfile.mine --samples 3 --sample 1s");
    run.assert_says(&["user system", "FILESIZE is for users only"]);
    assert!(run.stdout.contains("again: weigh run add_double creat_clo --samples 3"), "{run:?}");
    let json = home.json();
    let seconds = |name: &str| {
        ["elapsed_s", "user_s", "system_s"].map(|field| row(&json, name)[field].as_f64().unwrap())
    };
    let ([elapsed, user, system], [_, user_of_calls, system_of_calls]) =
        (seconds("add_double"), seconds("creat_clo"));
    assert!(user > system && user + system <= 1.05 * elapsed, "{json:#}");
    assert!(system_of_calls > user_of_calls, "{json:#}");
    home.succeed("show --as reaim").assert_says(&["Test_Name Parent Child Sys Child usr"]);
    home.run("show --as reaim-csv").assert_error(&["no mix with several numbers of users"]);
    home.file(
        "mine.toml",
        "name = \"a\"\nsummary = \"b\"\n[commands.c]\nrun = \"true\"\nweight = 1\n",
    );
    home.run("run --workfile ./mine.toml").assert_error(&["mine.toml has commands"]);
}

/// re-aim's -r, and White's Table 6.
#[test]
fn a_whole_load_is_repeated_and_lengths_of_samples_are_compared() {
    let _turn = Turn::share();
    let home = Home::new();
    // It stops after eight rounds, which a busy machine takes time for.
    let repeated = "load short --users 1 --jobs 20 --budget 60s --precision 90% --seed 7 --sets 2";
    let written = "--json l.json --csv l.csv --html l.html --markdown l.md --junit l.xml";
    let said = ["set experiment users jobs/min", "of 2 sets was"];
    home.succeed(&*format!("{repeated} {written}")).assert_says(&said);
    let runs = "FROM experiment WHERE kind = 'run'";
    let commands = home.query_text(&format!("SELECT group_concat(command, char(10)) {runs}"));
    let of_seeds =
        ["--seed 7", "--seed 8"].map(|seed| commands.lines().filter(|l| l.contains(seed)).count());
    assert_eq!(of_seeds, [1, 1], "each set has its own seed: {commands}");
    assert!(!commands.contains("--sets"), "{commands}");
    home.run("load short --sets 2 --as reaim").assert_error(&["--as reaim"]);
    // The report of both is stored, and every format shows it.
    let json = home.json();
    assert_eq!(json["schema"], "weighbridge/repeated/1");
    let read = |name: &str| std::fs::read_to_string(home.path(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("l.json")).unwrap(), json);
    let sets = json["sets"].as_array().unwrap().iter();
    let ids: Vec<&str> = sets.map(|set| set["experiment"].as_str().unwrap()).collect();
    let stored = home.query_text(&format!("SELECT group_concat(id, ' ') {runs}"));
    assert_eq!(ids.join(" "), stored);
    for (name, part) in
        [("l.html", said[1]), ("l.md", said[1]), ("l.xml", "2 sets"), ("l.csv", ids[1])]
    {
        assert!(read(name).contains(part), "{name}: {}", read(name));
    }
    home.succeed("show latest").assert_says(&said);
    home.succeed("history").assert_says(&["The highest throughput of 2 sets was"]);

    let lengths = home.succeed("run getppid add_int --lengths 10ms,20ms --samples 3");
    lengths.assert_says(&[
        "run time change largest workload",
        "10 ms",
        "20 ms",
        "The change is smallest",
    ]);
    let both = home.json();
    assert_eq!(both["lengths"][1]["sample_s"], 0.02);
    assert_eq!(both["lengths"][1]["change"]["workloads"], 2);
    let id = both["lengths"][1]["experiment"].as_str().unwrap();
    let json = home.succeed(&["export", id, "--json"]).json();
    assert!(json["command"].as_str().unwrap().ends_with("--sample 20ms"), "{json:#}");
    assert_eq!(row(&json, "add_int")["samples"], 3);
    home.run("run getppid --lengths 10ms --sample 10ms").assert_error(&["--sample"]);
}

#[test]
fn a_mix_has_programs_and_workloads_of_any_kind_among_its_jobs() {
    let _turn = Turn::share();
    let home = Home::new();
    let mix = |commands: &str| {
        format!("name = \"x\"\nsummary = \"\"\njobs = 8\n[tests]\ngetppid = 2\n{commands}")
    };
    let placed =
        "\"context1@same-cpu\" = 1\n[commands.hello]\nrun = \"sh -c 'exit 0'\"\nweight = 1\n";
    home.file("mix.toml", mix(placed));
    let run = |name: &str| home.run(&["run", &format!("load:./{name}:users=2"), "--samples", "3"]);
    let outcome = run("mix.toml");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    // One that fails is no result.
    home.file("bad.toml", mix("[commands.bad]\nrun = \"sh -c 'exit 3'\"\nweight = 1\n"));
    let outcome = run("bad.toml");
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["exited with status 3"]);
    // What another user may change, root does not execute.
    if is_root() {
        chown(home.path("mix.toml"), Some(UNUSED), Some(UNUSED)).unwrap();
        run("mix.toml").assert_error(&["as root, weigh does not run its commands"]);
    }
}

/// Cold and warm are different rows; what is cold comes from the device.
#[test]
fn a_cold_load_reads_from_the_device_and_says_so_in_its_name() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("reads.toml", "name = \"reads\"\nsummary = \"\"\n[tests]\ndisk_rd = 1\n");
    let place = format!("fs:dir={}", env!("CARGO_TARGET_TMPDIR"));
    let device = |cold: &[&str]| {
        let arguments = ["run", "load:./reads.toml:users=1", "--samples", "3", "--fixture", &place];
        let outcome = home.succeed(&[&arguments[..], &["--file-size", "1m"], cold].concat());
        (outcome, home.json()["results"][0].clone())
    };
    let (_, warm) = device(&[]);
    let (_, cold) = device(&["--cold"]);
    assert_eq!(warm["workload"], "load:./reads.toml");
    assert_eq!(cold["workload"], "load:./reads.toml@cold");
    // A file system without a device has none to read from.
    let moved = [&warm, &cold].map(|row| row["device_bytes_per_op"].as_f64());
    match moved {
        [Some(warm), Some(cold)] => assert!(cold > warm + 500e3, "{warm} {cold}"),
        _ => assert_eq!(moved, [None, None]),
    }
    // The same of a workload by itself; what reads nothing cannot be cold, nor can what is in memory anyway.
    let run = |words: &[&str]| home.run(&[&["run"], words, &["--samples", "3", "--cold"]].concat());
    let outcome = run(&["disk_brd", "--fixture", &place]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(home.json()["results"][0]["workload"], "disk_brd@cold");
    let outcome = run(&["fsdisk-r", "fstime-w", "--fixture", &place]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(home.json()["results"][1]["workload"], "fstime-w@cold");
    run(&["getppid"]).assert_error(&["--cold has no effect on `getppid`", "disk_brd, "]);
    let outcome = run(&["disk_brd", "--fixture", "fs:dir=/dev/shm"]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    outcome.assert_says(&["nothing is cold there"]);
}

/// A number that was asked for and not used would be taken for one of what was asked for; and what reads more
/// than memory holds is a row of its own.
#[test]
fn an_option_that_nothing_uses_is_refused_and_files_beyond_the_cache_are_other_rows() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("reads.toml", "name = \"reads\"\nsummary = \"\"\n[tests]\ndisk_brd = 1\n");
    home.file("calls.toml", "name = \"calls\"\nsummary = \"\"\n[tests]\ngetppid = 1\n");
    let run = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        home.run(&[&["run"], &words[..], &["--samples", "3"]].concat())
    };
    for (words, why) in [
        ("disk_brd --file-size 1m", "--file-size has no effect on these workloads"),
        ("disk_brd --beyond-cache 150%", "--beyond-cache has no effect on these workloads"),
        ("disk_brd --block-size 4k", "--block-size has no effect on these workloads"),
        ("load:./calls.toml --block-size 4k", "with jobs on files"),
        ("load:./reads.toml --block-size 2m", "from 1k to 1m"),
        ("getppid --jobs 5", "--jobs has no effect on these workloads"),
        ("getppid --rate 5", "--rate has no effect on these workloads"),
        ("load:./calls.toml --pool-size 1m", "with jobs on files"),
        ("load:./calls.toml --resident 64m", "with the job `resident`"),
        ("load:./calls.toml --beyond-cache 150%", "--beyond-cache has no effect on the mix"),
        ("load:./calls.toml --cold", "--cold has no effect on the mix"),
    ] {
        run(words).assert_error(&[why]);
    }
    let outcome = home.run("compare none --jobs 5 --budget 1s -- true");
    outcome.assert_error(&["a command is no mix"]);

    let row = |words: &str| {
        let outcome = run(words);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        home.json()["results"][0]["workload"].as_str().unwrap().to_owned()
    };
    let beyond = "load:./reads.toml@beyond-cache-0.1%";
    assert_eq!(row("load:./reads.toml:users=1"), "load:./reads.toml");
    assert_eq!(row("load:./reads.toml:users=1 --beyond-cache 0.1%"), beyond);
    assert_eq!(row(&format!("{beyond}:users=1")), beyond);
    let blocks = "load:./reads.toml@block-4k";
    assert_eq!(row("load:./reads.toml:users=1 --block-size 4k"), blocks);
    assert_eq!(row(&format!("{blocks}:users=1")), blocks);
    let outcome = run("load:./reads.toml:users=1 disk_brd --file-size 20k");
    outcome.assert_says(&["--file-size: used only by mixes (load:NAME), ignored by disk_brd"]);
}

/// In launches that are no samples; one that fails takes nothing along, and one that goes on is ended.
#[test]
fn a_profiler_looks_at_the_users_and_costs_no_result() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("mine.toml", "name = \"mine\"\nsummary = \"\"\n[tests]\nstat = 3\nfstime = 1\n");
    let run = |profiler: &str| {
        let arguments = ["load", "./mine.toml", "--users", "2", "--budget", "20s", "--profiler"];
        let outcome = home.succeed(&[&arguments[..], &[profiler]].concat());
        (outcome, home.json())
    };
    let samples = |json: &Value| json["loads"][0]["points"][0]["samples"].as_u64().unwrap_or(0);
    // The driver and its users; it prints what it has until it is told to end.
    let looks = "for p in $(echo {pids} | tr , ' '); do cat /proc/$p/comm; done; sleep 1234";
    let (outcome, json) = run(looks);
    outcome.assert_says(&["Profiler: load:./mine.toml:users=2, none", "weigh-workloads"]);
    let arms = json["profiles"][0]["arms"].as_array().unwrap();
    assert_eq!((arms.len(), &arms[0]["arm"]), (1, &Value::from("none")), "{json:#}");
    let printed = arms[0]["printed"].as_str().unwrap();
    assert!(printed.matches("weigh-workloads").count() >= 3, "{printed}");
    assert!(samples(&json) > 0 || json["results"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(home.processes_of("sleep 1234").is_empty(), "{:?}", home.describe_processes());
    let (_, json) = run("echo out of order; exit 3");
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("Could not profile") && warnings.contains("out of order"));
    assert!(json["profiles"].is_null(), "{json:#}");
    let outcome = home.run(&["load", "./mine.toml", "--profiler", " "]);
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
}

/// `weigh load` of a mix whose job fails the time of this number; each user does it once in each launch.
fn load_that_fails(home: &Home, users: &str, failing: usize) -> crate::support::Outcome {
    let runs = home.path("runs");
    fs::create_dir(&runs).unwrap();
    // Only one of those who make a directory has made it.
    let script = format!(
        "n=1; while ! mkdir '{}'/$n 2>/dev/null; do n=$((n + 1)); done; test $n -ne {failing}",
        runs.display()
    );
    home.file("job.sh", script);
    let job = home.path("job.sh");
    home.file(
        "mine.toml",
        format!(
            "name = \"mine\"\nsummary = \"\"\n[commands.job]\nrun = \"sh {}\"\nweight = 1\n",
            job.display()
        ),
    );
    let arguments = ["load", "./mine.toml", "--users", users, "--jobs", "1", "--json", "json"];
    home.run(&[&arguments[..], &["--budget", "30s", "--precision", "90%"]].concat())
}

/// It was good at first: one user, two, one again; and with two again it failed.
#[test]
fn a_load_point_that_fails_after_a_good_sample_has_no_number() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = load_that_fails(&home, "1,2", 5);
    let name = "load:./mine.toml:users=2";
    outcome.assert_error(&["there is no result for", name]);
    outcome.assert_says(&["The ramp stopped at", "exited with status 1"]);
    let json: Value =
        serde_json::from_str(&fs::read_to_string(home.path("json")).unwrap()).unwrap();
    let points = json["loads"][0]["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[0]["users"]), (1, &Value::from(1)), "{json:#}");
    assert_eq!(json["loads"][0]["peak"]["users"], 1, "{json:#}");
    assert_eq!(json["results"].as_array().unwrap().len(), 1, "{json:#}");
}

#[test]
fn a_first_load_point_that_fails_after_a_good_sample_is_an_error() {
    let _turn = Turn::share();
    let home = Home::new();
    let outcome = load_that_fails(&home, "1", 2);
    outcome.assert_error(&["the run failed: load:./mine.toml:users=1", "exited with status 1"]);
    let json: Value =
        serde_json::from_str(&fs::read_to_string(home.path("json")).unwrap()).unwrap();
    assert_eq!(json["failures"].as_array().unwrap().len(), 1, "{json:#}");
    assert!(json["results"].as_array().is_none_or(Vec::is_empty), "{json:#}");
}

#[test]
fn a_search_that_was_interrupted_goes_on_where_it_was() {
    let _turn = Turn::share();
    let home = Home::new();
    home.file("mine.toml", "name = \"mine\"\nsummary = \"calls\"\n[tests]\ngetppid = 1\n");
    let arguments =
        ["compare", "none", "-w", "load:./mine.toml", "--jobs", "5000", "--budget", "120s"];
    let mut running = home.start(home.weigh(&arguments));
    home.wait_for_samples(4, &mut running);
    signal(running.pid(), Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    let of_search =
        |what: &str| home.query_text(&format!("SELECT CAST({what} AS TEXT) FROM sample"));
    assert_eq!(of_search("sum(role <> 'search')"), "0", "the search was not over");
    let id = home.json()["id"].as_str().unwrap().to_owned();
    let outcome = home.run(&["compare", "--continue", &id, "--budget", "6s"]);
    // How far it comes in that time is the machine's affair.
    assert_eq!(outcome.signal, None, "{outcome:#?}");
    outcome.assert_says(&["session 2"]);
    let places = "DISTINCT work || ' ' || arm || ' ' || treated_arm || ' ' || role || ' ' || pair";
    assert_eq!(
        of_search(&format!("count({places})")),
        of_search("count(*)"),
        "none is taken twice"
    );
}

#[test]
fn a_ramp_finds_a_peak_with_its_interval() {
    let _turn = Turn::share();
    let home = Home::new();
    // A few microseconds a job, in the kernel and in a file.
    let tests = "[tests]\nstat = 3\nfstime = 1\n";
    home.file(
        "mine.toml",
        format!("name = \"mine\"\nsummary = \"stat and a copied file\"\n{tests}"),
    );
    // It ends as soon as the interval is narrow. On a busy machine it never is, and 30 s may leave no time
    // for eight fresh samples of each point.
    let words = "load ./mine.toml --users 1,2,4 --jobs 500 --precision 40% --budget";
    let within = |budget| (home.run(format!("{words} {budget}").as_str()), home.json());
    let (mut outcome, mut json) = within("30s");
    if !outcome.stdout.contains("jobs/min [") {
        (outcome, json) = within("180s");
    }
    outcome.assert_says(&["jobs/min [", "Crossover"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let loads = &json["loads"][0];
    // What noise leaves of it is a matter of the machine; what is said agrees with the table in any case.
    let (best, said) = match loads["peak"].is_null() {
        true => (&loads["no_peak"], "No clear peak for `load:./mine.toml`"),
        false => (&loads["peak"], "`load:./mine.toml` peaks with"),
    };
    outcome.assert_says(&[said]);
    let number = |name: &str| best[name].as_f64().unwrap_or_else(|| panic!("{name}: {best:#}"));
    assert!(number("samples") >= 8.0);
    assert!(number("low") <= number("jobs_per_min") && number("jobs_per_min") <= number("high"));
    let points = loads["points"].as_array().unwrap();
    // A point with fewer samples in rounds may be higher by chance, and then is no peak.
    let is_in_rounds =
        |point: &&Value| point["in_rounds"] == true && point["samples"].as_f64() >= Some(8.0);
    let in_rounds = points.iter().filter(is_in_rounds);
    let highest = in_rounds.filter_map(|point| point["jobs_per_min"].as_f64());
    assert_eq!(highest.fold(0.0, f64::max), number("jobs_per_min"), "{loads:#}");
    let as_good = best["as_good"].as_array().unwrap();
    assert!(as_good.contains(&best["users"]), "{best:#}");
    assert_eq!(as_good.len() == points.len(), loads["peak"].is_null(), "{loads:#}");
    assert!(points.len() >= 2, "{loads:#}");
    // The last of the columns is there, so all readings were stored.
    let table = home.succeed("show latest --as reaim").stdout;
    assert!(table.contains("Jobs per Minute") && !table.contains("n/a"), "{table}");
    let max = format!("Max Jobs per Minute {:.2}", number("jobs_per_min"));
    assert!(table.contains(&max), "{max}: {table}");
}

/// Our System V objects, and mounts and loop devices over files of this home.
fn traces(home: &Home) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let uid = rustix::process::geteuid().as_raw().to_string();
    // Servers of other tests have some too, as other users. The columns: sysvipc(7), proc(5).
    for (table, uid_column) in [("sem", 4), ("shm", 7)] {
        let text = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
        let columns = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = columns.filter(|columns| columns.get(uid_column) == Some(&&*uid));
        found.extend(ours.map(|columns| format!("{table} {}", columns[1])));
    }
    let here = home.directory.path().display().to_string();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(&here)).map(str::to_owned));
    for device in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        found.extend(file.contains(&here).then_some(file));
    }
    found
}

/// Whoever dies: weigh, the driver, or a user.
#[test]
fn a_ramp_that_is_killed_leaves_nothing() {
    let _turn = Turn::share();
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(41);
    let raw = if is_root() { "disk_raw_rw = 1\n" } else { "" };
    let tests = format!("[tests]\nshared_memory = 1\nfifo_test = 1\ndisk_rr = 1\n{raw}");
    for kill in 0..crate::support::hard(4, 60) {
        let home = Home::new();
        home.file("mine.toml", format!("name = \"mine\"\nsummary = \"\"\n{tests}"));
        let before = traces(&home);
        let mut command = home.command(crate::support::program());
        let load = ["load", "./mine.toml", "--users", "3,9,27", "--jobs", "2000"];
        command.args(load).args(["--budget", "6s"]);
        let running = home.start(command);
        std::thread::sleep(Duration::from_millis(chance.random_range(100..3000)));
        let loads = home.processes_of("load --users");
        let victim = match loads.get(chance.random_range(0..loads.len().max(1))) {
            Some(one) if kill % 3 != 0 => *one,
            _ => running.pid(),
        };
        signal(victim, Signal::KILL);
        // Where a user of a later load point was killed, those before have their results.
        running.finish();
        let is_gone = || {
            home.processes().is_empty()
                && home.leftovers().is_empty()
                && traces(&home).difference(&before).next().is_none()
        };
        assert!(
            wait_until(LONG, is_gone),
            "{:?} {:?} {:?}",
            home.describe_processes(),
            home.leftovers(),
            traces(&home).difference(&before).collect::<Vec<_>>()
        );
    }
}

/// Workers of a load that is killed leave their files; the directory that they are in goes.
#[test]
fn a_killed_load_leaves_nothing_in_the_users_directories() {
    let _turn = Turn::share();
    let home = Home::new();
    let own = home.path("own");
    fs::create_dir(&own).unwrap();
    let load = ["load", "disk", "--users", "1", "--disk-dir", "./own", "--budget", "60s"];
    let mut running = home.start(home.weigh(&load));
    let files = || -> usize {
        let entries = fs::read_dir(&own).unwrap().flatten();
        let below = entries.filter_map(|entry| fs::read_dir(entry.path()).ok());
        below.map(|files| files.flatten().count()).sum()
    };
    let begun = wait_until(LONG * 4, || running.has_ended() || files() > 0);
    assert!(begun && files() > 0, "{}", running.said());
    running.kill();
    let is_empty = || fs::read_dir(&own).unwrap().next().is_none();
    assert!(wait_until(LONG * 4, is_empty), "{} files", files());
}
