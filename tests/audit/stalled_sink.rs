//! A receiver of the records that does not read for a while, as on a disk that stalls. The kernel puts
//! aside what it cannot deliver, and with the last record of a sample nothing follows that would have it
//! tried again: the experiment must come through that, and say what was lost.

use std::time::Duration;

use crate::support::audit::Audit;
use crate::support::{Home, Running, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The kernel waits 100 ms for room, tries again five times, and drops what waits then.
const LONGER_THAN_IT_TRIES: Duration = Duration::from_millis(1200);
const REST: Duration = Duration::from_millis(50);
const SHORTER_THAN_IT_TRIES: Duration = Duration::from_millis(250);

#[test]
fn an_experiment_goes_on_when_the_receiver_stalls_between_samples() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let json = compare_with_stalls(&home, LONGER_THAN_IT_TRIES);
    let row = crate::support::row(&json, "getppid");
    // What the kernel may have dropped meanwhile is not told as nothing.
    assert!(row["evidence"]["records_per_op"].is_null(), "{row:#}");
    home.succeed("show -v")
        .assert_says(&["counted incompletely: the receiver of the records stalled"]);
    audit.assert_restored();
    assert!(home.processes().is_empty());
}

#[test]
fn what_the_kernel_sends_again_is_counted() {
    let Some(audit) = Audit::take() else { return };
    // On a busy machine a stall may become longer than ours.
    let is_counted = (0..3).any(|_| {
        let home = Home::new();
        let json = compare_with_stalls(&home, SHORTER_THAN_IT_TRIES);
        audit.assert_restored();
        let evidence = &crate::support::row(&json, "getppid")["evidence"];
        println!("{evidence}");
        evidence["lost"] == 0
            && evidence["records_per_op"].as_f64().is_some_and(|made| (2.95..3.05).contains(&made))
    });
    assert!(is_counted, "each time the kernel dropped records, or we think so");
}

#[test]
fn a_budget_counts_again_what_a_stall_disturbed() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut running = home.start(home.weigh("budget -w getppid --json -"));
    let counts =
        wait_until(Duration::from_secs(60), || running.said().contains("Counting the records"));
    assert!(counts, "{}", running.said());
    // The first launch makes too few to fill the socket's buffer; each of the next can.
    for _ in 0..3 {
        let stalls = || stall(&home, &mut running, LONGER_THAN_IT_TRIES);
        assert!(wait_until(Duration::from_secs(60), stalls));
        std::thread::sleep(REST);
    }
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let records = outcome.json()["per_operation"]["records"].as_f64().unwrap();
    assert!((2.95..3.05).contains(&records), "{outcome:#?}");
    audit.assert_restored();
}

/// Compares while the receiver stalls again and again, and returns the report.
fn compare_with_stalls(home: &Home, stall: Duration) -> Value {
    let arguments = ["compare", "audit", "-w", "getppid", "--pairs", "8", "--no-detail"];
    let more = ["--sample", "20ms", "--inconclusive-ok"];
    let mut running = home.start(home.weigh(&[&arguments[..], &more].concat()));
    home.wait_for_samples(2, &mut running);
    let stalls = stall_again_and_again(home, &mut running, stall);
    let outcome = running.finish();
    assert!(stalls >= 2, "it ended before the receiver stalled: {outcome:#?}");
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let json = home.json();
    assert_eq!(json["state"], "complete", "{json:#}");
    assert_eq!(crate::support::row(&json, "getppid")["pairs"], 8);
    json
}

/// Stops the sink so long, time and again. Gives how often.
fn stall_again_and_again(home: &Home, running: &mut Running, long: Duration) -> u64 {
    let mut stalls = 0;
    // The second is more than there are samples.
    while stalls < crate::support::hard(4, 100)
        && !running.has_ended()
        && stall(home, running, long)
    {
        stalls += 1;
        // One stall for each sample: the kernel's tries of several would add up.
        let before = home.samples();
        wait_until(Duration::from_secs(20), || home.samples() > before || running.has_ended());
    }
    stalls
}

/// Stops the sink for a while. Returns true if a sink could be stopped.
fn stall(home: &Home, running: &mut Running, long: Duration) -> bool {
    let Some(sink) = sink_of(home) else { return false };
    if kill_process(sink, Signal::STOP).is_err() {
        return false;
    }
    wait_until(long, || running.has_ended());
    let _ = kill_process(sink, Signal::CONT);
    true
}

fn sink_of(home: &Home) -> Option<Pid> {
    let is_sink = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|&byte| byte == 0).any(|word| word == b"__sink"))
    };
    home.processes().into_iter().find(is_sink).and_then(Pid::from_raw)
}
