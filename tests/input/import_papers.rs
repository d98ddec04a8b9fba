//! `weigh import` of published figures: the tables of the papers, to the printed digits, and where the
//! papers contradict themselves.

use crate::support::import::{effect, fixture, import};
use crate::support::{Home, row};
use serde_json::Value;

/// Digits as the thesis has them: it cuts off, where others round.
fn cut(value: f64, decimals: usize) -> f64 {
    let scale = 10_f64.powi(decimals as i32);
    // What is 7 in binary fractions may be a little less.
    (value.abs() * scale + 1e-6).floor() / scale
}

fn decimals(printed: &str) -> usize {
    printed.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

#[test]
fn table_2_of_the_thesis_is_reproduced() {
    let home = Home::new();
    let runs = ["nitzberg-RUN1.txt", "nitzberg-RUN2.txt", "nitzberg-RUN3.txt", "nitzberg-RUN4.txt"];
    import(&home, &runs, &["--as", "on,off", "--base", "off"]);
    let json = home.json();
    let table = std::fs::read_to_string(fixture("nitzberg-table2.csv")).unwrap();
    let (mut without_sign, mut rows) = (Vec::new(), 0);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut printed = line.rsplitn(4, ',');
        let (third, second, first) =
            (printed.next().unwrap(), printed.next().unwrap(), printed.next().unwrap());
        let test = printed.next().unwrap();
        let set = |n: usize| row(&json, test)["sets"][n]["effect_pct"].as_f64().unwrap();
        let (delta_1, delta_2) = (set(0), set(1));
        // Delta-3 holds the signs that the other two were printed without.
        for (delta, printed) in [(delta_1, first), (delta_2, second), (delta_1 - delta_2, third)] {
            let digits: f64 = printed.trim_start_matches('-').parse().unwrap();
            assert_eq!(cut(delta, decimals(printed)), digits, "{test}: {delta} is not {printed}");
        }
        for (number, delta, printed) in [(1, delta_1, first), (2, delta_2, second)] {
            if delta < 0.0 && !printed.starts_with('-') {
                without_sign.push(format!("{test}, Delta-{number}"));
            }
            assert!(!(delta > 0.0 && printed.starts_with('-')), "{test}: {delta} is not {printed}");
        }
        rows += 1;
    }
    assert_eq!(rows, 27);
    // Where the thesis says that something got faster, and its own rates say slower. The two rows
    // that have their sign are the C compiler's (Delta-1) and two shell scripts'.
    let both = |test: &str| [format!("{test}, Delta-1"), format!("{test}, Delta-2")];
    let expected = [
        vec!["Dhrystone 2 without register variables, Delta-2".to_owned()],
        both("Arithmetic Test (type = arithoh)").to_vec(),
        vec!["Arithmetic Test (type = register), Delta-1".to_owned()],
        both("System Call Overhead Test").to_vec(),
        both("Pipe Throughput Test").to_vec(),
        both("Pipebased Context Switching Test").to_vec(),
        both("Process Creation Test").to_vec(),
        both("Execl Throughput Test").to_vec(),
        vec!["File Read (10 seconds), Delta-2".to_owned()],
        both("File Read (30 seconds)").to_vec(),
        vec!["File Write (30 seconds), Delta-2".to_owned()],
        both("Shell scripts (1 concurrent)").to_vec(),
        both("Dc: sqrt(2) to 99 decimal places").to_vec(),
    ];
    assert_eq!(without_sign, expected.concat());
    home.succeed("show --as nitzberg").assert_says(&[
        "Delta-1 Delta-2 Delta-3",
        "−85.219440 −84.796742 0.422699",
        "4.000000 −7.692308 11.692308",
    ]);
    assert!(row(&json, "System Call Overhead Test")["sets"][0]["low_pct"].is_null());
}

/// The index of 3.11 is a linear average, of baselines of its own.
#[test]
fn the_thesis_s_indices_are_those_of_its_report() {
    let home = Home::new();
    import(&home, &["nitzberg-RUN1.txt"], &[]).assert_says(&["only one label was imported"]);
    let shown = home.succeed("show --as unixbench");
    shown.assert_says(&["SUM of 6 items", "6.5", "AVERAGE", "1.1"]);
    assert_eq!(home.json()["warnings"], Value::Array(Vec::new()));
}

#[test]
fn table_9_of_smalley_is_reproduced() {
    let home = Home::new();
    import(&home, &["smalley-table9.csv"], &[]);
    let shown = home.succeed("show --as smalley").stdout;
    // All eight overheads as printed: the time of the same work, also where the table has throughput.
    for line in [
        "file copy 4KB      49.5     48.6        2%  MB/s",
        "file copy 1KB      40.4     38.6        5%  MB/s",
        "file copy 256B     23.0     21.0       10%  MB/s",
        "pipe               6.17     7.17       16%  µs",
        "pipe switching     12.7     15.0       18%  µs",
        "process creation    485      494        2%  µs",
        "execl              2480     2610        5%  µs",
        "shell scripts (8)   659      684        4%  ms",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
}

#[test]
fn the_reports_of_lunar_and_red_hat_contradict_their_table() {
    let home = Home::new();
    let files = ["redhat-4.1.txt", "lunar-4.1.txt"];
    import(&home, &files, &["--as", "Lunar", "--base", "RedHat"]);
    let reports = home.json();
    // Every index and both final scores are sound.
    assert_eq!(reports["warnings"], Value::Array(Vec::new()));
    let shown = home.succeed("show --as unixbench");
    shown.assert_says(&["204.1", "277.7", "cover different tests and cannot be compared"]);
    import(&home, &["whitcher-unixbench.csv"], &[]);
    let table = home.json();
    let printed = [
        ("file copy 4KB", "File Copy 4096 bufsize 8000 maxblocks", 23.0),
        ("file copy 1KB", "File Copy 1024 bufsize 2000 maxblocks", 74.0),
        ("file copy 256B", "File Copy 256 bufsize 500 maxblocks", 122.0),
        ("pipe", "Pipe Throughput", -6.0),
        ("process creation", "Process Creation", -22.0),
        ("execl", "Execl Throughput", 7.0),
        ("shell scripts (8)", "Shell Scripts (8 concurrent)", 381.0),
    ];
    let differing = |of: &dyn Fn(&str, &str) -> f64| -> Vec<&str> {
        let wrong = |row: &&(&str, &str, f64)| of(row.0, row.1).round() != row.2;
        printed.iter().filter(wrong).map(|row| row.0).collect()
    };
    // 322.5 over 144.7 is 122.9 % more: cut off, not rounded.
    assert_eq!(differing(&|name, _| effect(&table, name)), ["file copy 256B"]);
    // The pipe's 279.1 is the index of the line below it, context switching. Its own is 297.6, and the
    // difference +0.1 %.
    assert_eq!(differing(&|_, title| effect(&reports, title)), ["file copy 256B", "pipe"]);
    assert_eq!(effect(&reports, "Pipe Throughput").round(), 0.0);
    // "n/a", though the report has a rate for it among its results (but not in its index): a loss.
    assert_eq!(effect(&reports, "Pipe-based Context Switching").round(), -22.0);
    assert!(table["results"].as_array().unwrap().iter().all(|r| r["workload"] != "pipe switching"));
}

/// Reproduces Whitcher's tables of UnixBench and lmbench, and the ratios of the appendix.
#[test]
fn the_tables_of_whitcher_are_reproduced() {
    let home = Home::new();
    let files = ["redhat-4.1.txt", "lunar-4.1.txt"];
    import(&home, &files, &["--as", "RedHat,Lunar"]);
    let said = |home: &Home| home.succeed("show --as whitcher");
    said(&home).assert_says(&[
        "Microbenchmark Lunar RedHat Difference",
        "file copy 4KB 280.7 228.6 23%",
        "file copy 1KB 301.7 173.7 74%",
        "process creation 318.8 409.5 −22%",
        "pipe switching 279.1 n/a n/a",
        "execl 396.0 369.4 7%",
        "shell scripts (8) 650.0 135.0 381%",
        "FINAL SCORE 277.7 204.1 n/a",
    ]);
    import(&home, &["whitcher-lmbench.txt"], &["--base", "RedHat"]);
    let text = said(&home);
    // As printed, where that was not computed from more digits than are printed.
    text.assert_says(&[
        "null I/O 0.730 0.710 −3%",
        "0KB create 40.1 63.9 59%",
        "0KB delete 8.40 21.0 150%",
        "execve 1002 1050 5%",
        "sh 4971 4131 −17%",
        "pipe 8.80 7.20 −18%",
        "AF_UNIX 27.2 11.4 −58%",
        "TCP 60.0 35.1 −41%",
        "TCP connect 143 78.0 −45%",
    ]);
    let ratios = |of: &str| -> Vec<f64> {
        let lines: Vec<&str> = text.stdout.lines().collect();
        let title = lines.iter().position(|line| line.starts_with(of)).unwrap();
        let number = |word: &str| word.parse().unwrap();
        lines[title + 5].split_whitespace().map(number).collect()
    };
    for (title, printed) in [
        // As lmbench does, with the first of the context switches again.
        ("*Local*", &[0.5000, 0.8201, 0.4203, 0.5854, 0.5461][..]),
        ("File & VM", &[1.5915, 2.5432, 1.5310, 1.2563, 1.6401, 0.5298, 1.5069, 0.9056]),
    ] {
        let found = ratios(title);
        assert_eq!(found.len(), printed.len(), "{}", text.stdout);
        for (found, printed) in found.iter().zip(printed) {
            assert!((found / printed - 1.0).abs() < 0.02, "{title}: {found} is not {printed}");
        }
    }
}

/// Jobs per user as White's tables imply them: rate times time over sixty times users. With the weights that
/// re-aim ships a user does as many, but of two mixes, which had other weights then.
#[test]
fn the_tables_of_re_aim_follow_from_users_time_and_the_jobs_of_their_mix() {
    let home = Home::new();
    import(&home, &["reaim-2003.txt"], &[]);
    let json = home.json();
    assert_eq!(json["warnings"], Value::Array(Vec::new()), "each table agrees with itself");
    let mixes = weigh_model::workload::mix::embedded().unwrap();
    let count = |name: &str| {
        let mix = mixes.iter().find(|mix| mix.name == name)?;
        Some(mix.jobs_per_user(100).iter().map(|(_, jobs)| jobs).sum::<u32>())
    };
    let (mut differing, mut rows) = (Vec::new(), 0);
    for file in json["imported"]["files"].as_array().unwrap() {
        let label = file["arm"].as_str().unwrap();
        let figures = file["figures"].as_array().unwrap();
        let of = |test: &str| {
            let found = figures.iter().find(|figure| figure["test"] == test);
            found.unwrap_or_else(|| panic!("{test}: {file:#}"))["value"].as_f64().unwrap()
        };
        for figure in figures {
            let test = figure["test"].as_str().unwrap();
            let Some(with_noun) = test.strip_suffix(", jobs per minute") else { continue };
            let Some((users, _)) = with_noun.split_once(" user") else { continue };
            let time_s = of(&format!("{with_noun}, parent time"));
            let jobs =
                figure["value"].as_f64().unwrap() * time_s / (60.0 * users.parse::<f64>().unwrap());
            assert!((jobs - jobs.round()).abs() < 0.01, "{label}, {users} users: {jobs}");
            rows += 1;
            let words: Vec<&str> = label.split(' ').collect();
            if let Some(expected) =
                count(words[2]).filter(|jobs_of| f64::from(*jobs_of) != jobs.round())
            {
                differing.push(format!(
                    "{} {}: {} for {expected}",
                    words[2],
                    words[3],
                    jobs.round()
                ));
            }
        }
    }
    differing.dedup();
    let expected = [
        "alltests Single: 93 for 98",
        "alltests Dual: 94 for 98",
        "alltests Quad: 93 for 98",
        "disk Single: 105 for 100",
        "disk Dual: 105 for 100",
        "disk Quad: 105 for 100",
    ];
    assert_eq!((differing, rows), (expected.map(str::to_owned).to_vec(), 66));
}

#[test]
fn table_7_of_re_aim_is_reproduced_but_for_its_first_row() {
    let home = Home::new();
    let printed = [
        ("10", 1167.50, 1074.15, 8.3),
        ("20", 1240.24, 1219.13, 1.7),
        ("22", 1252.72, 1219.14, 2.7),
        ("100", 1247.36, 1203.68, 3.6),
    ];
    let line = |(users, mjb, plain, _): &(&str, f64, f64, f64)| {
        format!("{users} users,jobs/min,{plain},{mjb}\n")
    };
    let table: String = printed.iter().map(line).collect();
    home.file("table7.csv", format!("test,unit,2.5.68,2.5.68-mjb0.5\n{table}"));
    home.succeed("import table7.csv");
    let json = home.json();
    let differing = printed.iter().filter(|(users, .., delta)| {
        let effect = effect(&json, &format!("{users} users"));
        cut(effect, 1) != *delta
    });
    let differing: Vec<&str> = differing.map(|(users, ..)| *users).collect();
    assert_eq!(differing, ["10"]);
    assert_eq!(cut(effect(&json, "10 users"), 1), 8.6);
}

/// Table 7 of the same paper: what a patched kernel gains. Its first row does not follow from its numbers.
#[test]
fn re_aims_comparison_of_two_kernels_is_off_in_its_first_row() {
    let rows = [
        (10, 1167.50, 1074.15, 8.3),
        (20, 1240.24, 1219.13, 1.7),
        (22, 1252.72, 1219.14, 2.7),
        (100, 1247.36, 1203.68, 3.6),
    ];
    let gained = |with: f64, without: f64| 100.0 * (with / without - 1.0);
    let off = rows
        .iter()
        .filter(|(_, with, without, printed)| (gained(*with, *without) - printed).abs() > 0.1);
    assert_eq!(off.map(|row| row.0).collect::<Vec<_>>(), [10]);
    assert!((gained(rows[0].1, rows[0].2) - 8.69).abs() < 0.005);
}
