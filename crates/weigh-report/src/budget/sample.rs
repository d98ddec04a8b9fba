//! Budgets for tests.

use weigh_model::facts::Facts;
use weigh_model::result::budget::{
    Backlog, BudgetReport, Common, Compressed, Day, DiskFull, KeptUp, Load, PerOperation, SCHEMA,
    Tried,
};
use weigh_model::result::warning::Warning;

pub fn report() -> BudgetReport {
    let compressed = Some(Compressed { log_bytes: 1000, gzip_bytes: 100 });
    let day = |rate| Day::new(rate, 400.0, compressed);
    BudgetReport {
        schema: SCHEMA.into(),
        id: String::new(),
        command: "weigh budget -w getppid".into(),
        treatment: "audit".into(),
        workload: "getppid".into(),
        operation: "operation".into(),
        machine: Facts::default(),
        warnings: vec![Warning::Sentence("Load: the load average is 1.1 on 2 CPUs.".into())],
        facts: vec!["All of it.".into()],
        per_operation: PerOperation { records: 3.0, log_bytes: 400.0, ..Default::default() },
        compressed,
        days: vec![day(1.0), day(100.0), Day { is_full_speed: true, ..day(5e4) }],
        backlog: Some(Backlog {
            burst: 4000,
            burst_records: 12_000.0,
            enough: Some(Tried { limit: 320, lost: vec![0, 0, 0] }),
            half: Some(Tried { limit: 160, lost: vec![77] }),
            common: vec![Common { limit: 64, waited_s: 0.2, lost: 0, lost_without_wait: 900 }],
        }),
        backlog_bytes_per_record: Some(2304.0),
        loads: vec![Load {
            multiple: 2.0,
            rate: 10_000.0,
            asked: 30_000.0,
            achieved: 15_000.0,
            elapsed_s: 2.0,
            waited_s: 1.0,
            lost: 0,
            sink_cpu: Some(0.5),
            kauditd_cpu: Some(0.25),
            tries: 3,
            kept: 0,
            kept_up: KeptUp::No,
        }],
        disk_full: Vec::new(),
        interrupted: false,
        failure: None,
    }
}

/// With markup and escapes wherever text may come from elsewhere.
pub fn hostile() -> BudgetReport {
    let text = "<script>alert(1)</script>\u{1b}[31m\n|".to_owned();
    let outcome = DiskFull {
        action: "IGNORE".into(),
        file_system: "ext4".into(),
        due: 100,
        due_s: 2.0,
        made: 50,
        logged: 20,
        lost: 3,
        backlog: 4,
        waited_s: 0.5,
        longest_s: 0.1,
        is_registered: false,
        has_ended: true,
        messages: vec![text.clone()],
    };
    BudgetReport {
        command: text.clone(),
        treatment: text.clone(),
        workload: text.clone(),
        warnings: vec![Warning::Sentence(text.clone())],
        facts: vec![text.clone()],
        disk_full: vec![outcome],
        failure: Some(text),
        ..report()
    }
}
