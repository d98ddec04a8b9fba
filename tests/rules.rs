//! `weigh rules` on this very kernel: which rules it finds to be dear, and what it leaves behind.

mod support;

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use support::audit::Audit;
use support::{Home, wait_until};
use weighbridge::audit::netlink::Client;

/// Weighs a rule file and gives the JSON.
fn weigh(audit: &Audit, home: &Home, rules: &str) -> Value {
    weigh_for("10s", audit, home, rules)
}

fn weigh_for(budget: &str, audit: &Audit, home: &Home, rules: &str) -> Value {
    let file = home.file("my.rules", rules);
    let file = file.to_str().unwrap();
    let outcome = home.run(&["rules", file, "--top", "3", "--budget", budget, "--json", "-"]);
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    audit.assert_restored();
    assert_eq!(home.leftovers(), Vec::<PathBuf>::new());
    outcome.json()
}

fn lines(json: &Value) -> &[Value] {
    json["lines"].as_array().unwrap()
}

/// The texts of the `count` dearest rules, sorted.
fn dearest(json: &Value, count: usize) -> Vec<String> {
    let cost = |line: &Value| line["fate"]["loaded"]["per_syscall"]["value"].as_f64();
    let mut costs: Vec<(f64, String)> = lines(json)
        .iter()
        .filter_map(|line| Some((cost(line)?, line["text"].as_str()?.to_owned())))
        .collect();
    costs.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut dearest: Vec<String> = costs.into_iter().take(count).map(|(_, text)| text).collect();
    dearest.sort();
    dearest
}

/// Rules for calls that nobody here makes.
fn cheap(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "-a always,exit -F arch=b64 -S kexec_load -F auid={}", 2000 + number)
            .unwrap();
        text
    })
}

/// The rules of three kinds that cost every system call, as texts.
fn dear(home: &Home) -> Vec<String> {
    let mut dear = Vec::new();
    for number in 0..100 {
        // `exe=` names an existing file, so the rules are for other programs of this machine.
        let program = home.file(&format!("program-{number}"), "none");
        let program = program.display();
        dear.push(format!("-a always,exit -F arch=b64 -S all -F exe={program}"));
    }
    for number in 0..20 {
        let directory = home.path(&format!("watched-{number}"));
        std::fs::create_dir(&directory).unwrap();
        dear.push(format!("-w {}/ -p wa", directory.display()));
    }
    dear.extend((0..10).map(|n| format!("-a always,exit -F arch=b64 -S all -F auid={}", 7000 + n)));
    dear
}

#[test]
fn rules_that_cost_every_system_call_are_found_among_cheap_ones() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut dear = dear(&home);
    let cheap = cheap(100);
    // Far from their kind in the file: what is told apart must not be told by the place.
    let mut text = String::new();
    for (number, line) in cheap.lines().enumerate() {
        let others = dear.iter().skip(number).step_by(100);
        others.for_each(|other| writeln!(text, "{other}").unwrap());
        writeln!(text, "{line}").unwrap();
    }
    let json = weigh(&audit, &home, &text);
    dear.sort();
    assert_eq!(dearest(&json, dear.len()), dear, "{json:#}");
    let class = &json["classes"][0];
    assert_eq!(class["rules"], 100, "{class:#}");
    assert!(class["share_pct"].as_f64().unwrap() > 50.0, "{class:#}");
}

/// The rules as they would be after the rewrite.
fn rewritten(json: &Value, rewrite: &Value) -> String {
    let replaced: Vec<u64> =
        rewrite["replaces"].as_array().unwrap().iter().map(|line| line.as_u64().unwrap()).collect();
    let texts = lines(json).iter().map(|line| line["text"].as_str().unwrap());
    let kept = texts.enumerate().filter(|(line, _)| !replaced.contains(&(*line as u64)));
    let with = rewrite["with"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let kept = kept.map(|(_, text)| text);
    let all: Vec<&str> = match rewrite["is_first"].as_bool().unwrap() {
        true => with.chain(kept).collect(),
        false => kept.chain(with).collect(),
    };
    all.join("\n")
}

#[test]
fn what_is_counted_is_the_same_again_and_a_rewrite_saves_what_it_says() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let directories: Vec<String> = (0..3)
        .map(|number| {
            let directory = home.path(&format!("watched-{number}"));
            std::fs::create_dir(&directory).unwrap();
            format!("-w {}/ -p wa\n", directory.display())
        })
        .collect();
    let reads =
        (0..10).map(|n| format!("-a always,exit -F arch=b64 -S read -F auid={}\n", 6000 + n));
    let text = format!("{}{}{}", cheap(20), directories.concat(), reads.collect::<String>());
    let first = weigh_for("3s", &audit, &home, &text);
    if first["metric"] != "instructions" {
        println!("skipped: no PMU that counts");
        return;
    }
    let again = weigh_for("3s", &audit, &home, &text);
    let cost = |line: &Value| line["fate"]["loaded"]["per_syscall"]["value"].as_f64().unwrap();
    for (one, other) in lines(&first).iter().map(cost).zip(lines(&again).iter().map(cost)) {
        assert!((one - other).abs() <= 0.05 * one.abs().max(1.0), "{one} {other}: {first:#}");
    }
    let total = |json: &Value| json["total"]["value"].as_f64().unwrap();
    let sum = first["sum_of_lines"]["value"].as_f64().unwrap();
    let of_rules = total(&first) - first["armed"]["value"].as_f64().unwrap();
    assert!((sum - of_rules).abs() < 0.1 * of_rules, "{first:#}");
    let saving = |rewrite: &Value| rewrite["saving_per_syscall"]["value"].as_f64().unwrap();
    let mut applied = 0;
    for rewrite in first["rewrites"].as_array().unwrap().iter().filter(|r| saving(r) > 20.0) {
        let then = weigh_for("3s", &audit, &home, &rewritten(&first, rewrite));
        let (saved, said) = (total(&first) - total(&then), saving(rewrite));
        assert!((saved - said).abs() < 0.2 * said, "{saved} {said}: {rewrite:#}");
        applied += 1;
    }
    assert!(applied >= 2, "{first:#}");
}

#[test]
fn directory_watches_are_dearer_than_watches_of_files() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut dear = Vec::new();
    let mut text = String::new();
    for number in 0..6 {
        let directory = home.path(&format!("watched-{number}"));
        std::fs::create_dir(&directory).unwrap();
        let file = home.file(&format!("file-{number}"), "watched");
        dear.push(format!("-w {}/ -p wa", directory.display()));
        writeln!(text, "-w {}/ -p wa\n-w {} -p wa", directory.display(), file.display()).unwrap();
    }
    let json = weigh(&audit, &home, &text);
    dear.sort();
    assert_eq!(dearest(&json, 6), dear, "{json:#}");
    let rewrites = json["rewrites"].as_array().unwrap();
    let lists =
        |rewrite: &&Value| rewrite["title"].as_str().unwrap().contains("list the system calls");
    assert!(rewrites.iter().any(|rewrite| lists(&rewrite)), "{rewrites:#?}");
}

#[test]
fn a_rule_that_matches_is_weighed_by_its_records() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = weigh(&audit, &home, "-a always,exit -F arch=b64 -S getppid -F uid=0\n");
    let matched = &lines(&json)[0]["fate"]["loaded"]["matched"];
    assert_eq!(matched["operation"], "getppid", "{json:#}");
    assert_eq!(matched["is_estimate"], false);
    assert!((2.9..3.1).contains(&matched["records"].as_f64().unwrap()), "{matched:#}");
    assert!(matched["elapsed_ns"].as_f64().unwrap() > 500.0, "{matched:#}");
}

#[test]
fn every_line_of_a_set_is_accounted_for() {
    let Some(audit) = Audit::take() else { return };
    let Ok(stig) = std::fs::read_to_string("/usr/share/doc/auditd/examples/rules/30-stig.rules")
    else {
        println!("skipped: Debian's rule sets are not installed");
        return;
    };
    let home = Home::new();
    let json = weigh(&audit, &home, &stig);
    let wanted =
        stig.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let texts: Vec<&str> = lines(&json).iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(texts, wanted.collect::<Vec<_>>());
    for line in lines(&json) {
        assert!(!line["fate"].is_null(), "{line:#}");
    }
    for part in ["total", "sum_of_lines", "armed"] {
        assert!(json[part]["value"].is_f64(), "{json:#}");
    }
    let [clean, full] =
        ["clean", "full"].map(|level| json["operations"][0][level]["value"].as_f64().unwrap());
    assert!(full > 1.2 * clean, "{clean} {full}");
}

#[test]
fn a_kill_in_the_middle_leaves_nothing() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let file = home.file("my.rules", cheap(60));
    let mut running = home.start(home.weigh(&["rules", file.to_str().unwrap()]));
    let loaded = || Client::open().unwrap().rules().unwrap().len();
    let begun =
        wait_until(Duration::from_secs(60), || loaded() > 40 && audit.status().enabled == 1);
    assert!(begun, "{}", running.said());
    running.kill();
    drop(running);
    audit.assert_restored();
    let is_alone = wait_until(Duration::from_secs(10), || home.processes().is_empty());
    assert!(is_alone, "{:#?}", home.describe_processes());
    assert!(wait_until(Duration::from_secs(10), || home.leftovers().is_empty()));
}

#[test]
fn what_is_no_rule_file_is_refused() {
    let home = Home::new();
    let random = home.file("random.rules", [0xff_u8, 0, 13, 200, 10, 7].repeat(50));
    home.run(&["rules", random.to_str().unwrap()]).assert_error(&["is this a rule file?"]);
    let empty = home.file("empty.rules", "# nothing\n-D\n");
    home.run(&["rules", empty.to_str().unwrap()]).assert_error(&["there is no rule"]);
    home.run(&["rules", "/nonexistent/x.rules"]).assert_error(&["/nonexistent/x.rules"]);
}
