//! A receiver of the records that does not read for a while, as on a disk that stalls. The kernel puts
//! aside what it cannot deliver, and with the last record of a sample nothing follows that would have it
//! tried again: the experiment must come through that, and say what was lost.

mod support;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::audit::Audit;
use support::{Home, Running, wait_until};

#[test]
fn an_experiment_goes_on_when_the_receiver_stalls_between_samples() {
    let Some(audit) = Audit::take() else { return };
    let home = Home::new();
    let mut running = home.start(home.weigh(&[
        "compare",
        "audit",
        "-w",
        "getppid",
        "--pairs",
        "8",
        "--no-detail",
        "--sample",
        "20ms",
    ]));
    home.wait_for_samples(2, &mut running);
    let stalls = stall_again_and_again(&home, &mut running);
    let outcome = running.finish();
    assert!(stalls >= 2, "it ended before the receiver stalled: {outcome:#?}");
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:#?}");
    let json = home.json();
    assert_eq!(json["state"], "complete", "{json:#}");
    let row = support::row(&json, "getppid");
    assert_eq!(row["pairs"], 8);
    // What the kernel may have dropped meanwhile is not told as nothing.
    assert!(row["evidence"]["records_per_op"].is_null(), "{row:#}");
    home.succeed(&["show"])
        .assert_says(&["counted incompletely: the receiver of the records stood still"]);
    audit.assert_restored();
    assert!(home.processes().is_empty());
}

/// Stops the sink for longer than the kernel waits for it (100 ms), and for longer than a sample takes.
/// Gives how often.
fn stall_again_and_again(home: &Home, running: &mut Running) -> u32 {
    const STALL: Duration = Duration::from_millis(600);
    const REST: Duration = Duration::from_millis(50);
    let mut stalls = 0;
    while !running.has_ended() {
        let Some(sink) = sink_of(home) else { break };
        if kill_process(sink, Signal::STOP).is_err() {
            break;
        }
        wait_until(STALL, || running.has_ended());
        let _ = kill_process(sink, Signal::CONT);
        stalls += 1;
        std::thread::sleep(REST);
    }
    stalls
}

fn sink_of(home: &Home) -> Option<Pid> {
    let is_sink = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|&byte| byte == 0).any(|word| word == b"__sink"))
    };
    home.processes().into_iter().find(is_sink).and_then(Pid::from_raw)
}
