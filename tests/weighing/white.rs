//! Requests of White's paper of 2003: a tracked set-up, debug output, prices, the hardware's own rates.

use crate::support::{Home, Turn};

#[test]
fn a_set_up_of_workloads_is_listed_and_what_its_clean_up_left_is_said() {
    let _turn = Turn::share();
    let home = Home::new();
    let measure = |cleanup: &str| {
        let work = ["compare", "none", "-w", "getppid", "--pairs", "8", "--sample", "10ms"];
        let lines = ["--setup", "touch made kept", "--cleanup", cleanup];
        home.measure(&[&work[..], &lines].concat())
    };
    let left = "`--cleanup` did not remove what `--setup` added: file or directory kept";
    measure("rm made").assert_says(&[left]);
    home.succeed("show -v").assert_says(&["were added: file or directory kept, made"]);
    std::fs::remove_file(home.path("kept")).unwrap();
    let clean = measure("rm made kept");
    assert!(!clean.stderr.contains("did not remove"), "{clean:#?}");
}

#[test]
fn each_level_of_debug_prints_more() {
    let _turn = Turn::share();
    let home = Home::new();
    let lines = |debug: &[&str]| {
        let run = ["run", "getppid", "--samples", "3", "--sample", "10ms"];
        home.succeed(&[&run[..], debug].concat()).stderr
    };
    let traces = |text: &str| {
        ["executes \"", "ended after ", "printed on stdout: ", "is ordered "]
            .map(|part| text.lines().any(|it| it.starts_with("debug: ") && it.contains(part)))
    };
    assert_eq!(traces(&lines(&[])), [false; 4]);
    assert_eq!(traces(&lines(&["--debug"])), [true, true, false, false]);
    assert_eq!(traces(&lines(&["--debug=2"])), [true, true, true, false]);
    assert_eq!(traces(&lines(&["--debug=3"])), [true; 4]);
    home.run("run getppid --debug=4").assert_error(&["4 is not in 1..=3"]);
}

#[test]
fn the_price_of_a_machine_is_set_against_its_rates() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed("run getppid --samples 3 --sample 10ms");
    let shown = home.succeed("show --price 2900");
    shown.assert_says(&["the machine costs 2,900", "price of 1", "getppid"]);
    home.run("show --price 0").assert_error(&["takes a number above 0"]);
    home.measure("compare none -w getppid --pairs 8 --sample 10ms");
    home.run("show --price 2900").assert_error(&["only results of `weigh run` and `weigh load`"]);
}

#[test]
fn the_rates_of_the_hardware_are_in_later_reports() {
    let _turn = Turn::share();
    let home = Home::new();
    home.succeed("run getppid --samples 3 --sample 10ms");
    assert!(home.json()["machine"]["hardware"].is_null());
    home.succeed("run hardware --samples 3 --sample 10ms");
    let id = home.json()["id"].clone();
    home.succeed("run getppid --samples 3 --sample 10ms");
    let known = home.json()["machine"]["hardware"].clone();
    assert_eq!(known["experiment"], id);
    assert!(known["rates"]["stream-copy"]["rate"].as_f64().unwrap() > 0.0, "{known}");
}
