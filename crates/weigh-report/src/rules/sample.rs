//! A rule report for the tests of this crate: 400 lines of a set like those that people load, and odd ones.

use weigh_model::example;
use weigh_model::result::rules::{
    Class, CostInterval, CostMetric, Elapsed, Fate, LineCost, LineReport, Matched, NotMeasured,
    OperationCosts, ProfileRecords, Rewrite, RuleReport, SCHEMA, Standing,
};
use weigh_model::result::warning::Warning;

const WATCHED: [&str; 7] = [
    "/etc/",
    "/etc/audit/",
    "/etc/pam.d/",
    "/usr/bin/",
    "/usr/lib/modules/",
    "/var/log/",
    "/root/.ssh/",
];

/// A known value with an interval of ± 2 %.
fn cost(value: f64) -> CostInterval {
    CostInterval { value, low: value - 0.02 * value.abs(), high: value + 0.02 * value.abs() }
}

fn scaled(cost: CostInterval, factor: f64) -> CostInterval {
    CostInterval { value: factor * cost.value, low: factor * cost.low, high: factor * cost.high }
}

/// Returns the cost of a rule on getppid, read, stat, open-close, create-unlink, fork and exec.
fn per_operation(per_call: f64) -> Vec<CostInterval> {
    [1.0, 1.0, 1.05, 2.1, 2.2, 3.0, 41.0].map(|calls| cost(calls * per_call)).to_vec()
}

fn line(number: usize, text: &str, fate: Fate) -> LineReport {
    let file = if number < 200 { "/etc/audit/rules.d/10-base.rules" } else { "/tmp/30-stig.rules" };
    LineReport { file: file.into(), number, text: text.to_owned(), fate, warnings: Vec::new() }
}

fn loaded(
    number: usize,
    text: &str,
    per_call: f64,
    standing: Standing,
    class: usize,
) -> LineReport {
    let matched = (class < 3).then(|| Matched {
        operation: "open-close".to_owned(),
        records: 4.0 + class as f64,
        log_bytes: 612.0 + 90.0 * class as f64,
        elapsed_ns: 5140.0 + 800.0 * class as f64,
        is_estimate: class > 0,
    });
    let cost = LineCost {
        per_operation: per_operation(per_call),
        per_syscall: cost(per_call),
        standing,
        class,
        matched,
    };
    line(number, text, Fate::Loaded(Box::new(cost)))
}

/// 352 loaded rules, of which a few are expensive, on a machine without a PMU.
pub fn stig() -> RuleReport {
    let lines = lines();
    let shares = [(0, 7), (1, 21), (2, 96), (3, 227), (4, 1)];
    let titles = [
        "directory watches",
        "rules of every system call for a program (exe=)",
        "lists of system calls, by user",
        "watches of files",
        "never",
    ];
    let of = |class: usize| -> f64 {
        let costs = lines.iter().filter_map(|line| match &line.fate {
            Fate::Loaded(cost) if cost.class == class => Some(cost.per_syscall.value),
            _ => None,
        });
        costs.sum()
    };
    let sum: f64 = (0..5).map(of).sum();
    let classes = shares.map(|(class, rules)| Class {
        title: titles[class].to_owned(),
        rules,
        per_syscall: cost(of(class)),
        one_by_one: None,
        share_pct: Some(100.0 * of(class) / sum),
    });
    RuleReport {
        schema: SCHEMA.into(),
        id: "k3f9qx".into(),
        command: "weigh rules /etc/audit/rules.d/10-base.rules /tmp/30-stig.rules".to_owned(),
        metric: CostMetric::Nanoseconds,
        is_estimate: true,
        machine: example::machine(),
        warnings: vec![Warning::Sentence("Load: the load average is 1.1 on 2 CPUs.".into())],
        operations: operations(),
        mix: "an even mix of the operations".to_owned(),
        classes: classes.to_vec(),
        rewrites: rewrites(),
        not_measured: vec![NotMeasured {
            what: "note no paths on tmpfs".to_owned(),
            why: "this host has rules of its own, which it would blind meanwhile".to_owned(),
        }],
        total: cost(sum + 262.0),
        total_ns: cost(sum + 262.0),
        armed: cost(251.0),
        sum_of_lines: cost(sum),
        sum_of_confirmed: cost(330.4),
        profile_cpu_pct: None,
        profile_records: None,
        notes: vec!["Loaded with 3 rules of others in force, which were left alone.".to_owned()],
        elapsed_s: 71.3,
        lines,
    }
}

/// With a profile, counted in instructions, and all in one file.
pub fn nginx() -> RuleReport {
    let mut r = stig();
    (r.metric, r.is_estimate) = (CostMetric::Instructions, false);
    r.total_ns = cost(640.0);
    for operation in &mut r.operations {
        let by_clock = |cost: CostInterval| scaled(cost, 0.25);
        operation.elapsed_ns = Some(Elapsed {
            clean: by_clock(operation.clean),
            armed: by_clock(operation.armed),
            full: by_clock(operation.full),
        });
    }
    r.mix = "nginx -g 'daemon off;'".to_owned();
    r.profile_cpu_pct = Some(CostInterval { value: 4.11, low: 3.8, high: 4.4 });
    r.profile_records = Some(ProfileRecords { calls: vec!["execve".to_owned()], cpu_pct: 1.19 });
    for line in &mut r.lines {
        line.file = "/tmp/30-stig.rules".into();
    }
    r
}

fn lines() -> Vec<LineReport> {
    let mut lines =
        vec![line(1, "-D", Fate::Skipped("it would take down the rules of others".into()))];
    lines.push(line(2, "-b 8192", Fate::Skipped("a setting, and no rule".into())));
    lines.push(loaded(
        4,
        "-a never,exit -F arch=b64 -S adjtimex -F auid=unset",
        0.9,
        Standing::BelowResolution,
        4,
    ));
    for (i, path) in WATCHED.iter().enumerate() {
        let text = format!("-w {path} -p wa -k watched");
        lines.push(loaded(10 + i, &text, 15.2 - 0.11 * i as f64, Standing::Confirmed, 0));
    }
    for i in 0..21 {
        let text = format!(
            "-a always,exit -F arch=b64 -S all -F exe=/usr/sbin/tool{i} -F auid>=1000 -k tools"
        );
        let standing = if i < 4 { Standing::Confirmed } else { Standing::OfItsClass };
        lines.push(loaded(30 + i, &text, if i < 4 { 84.1 - i as f64 } else { 80.2 }, standing, 1));
    }
    for i in 0..96 {
        let text = format!(
            "-a always,exit -F arch=b64 -S open,openat,creat -F exit=-EACCES -F auid>={} \
             -F auid!=unset -k access",
            1000 + i
        );
        lines.push(loaded(60 + i, &text, 4.63, Standing::OfItsClass, 2));
    }
    for i in 0..227 {
        let text = format!("-w /usr/share/programs/program-{i} -p x");
        lines.push(loaded(200 + i, &text, 0.02, Standing::BelowResolution, 3));
    }
    lines[140].warnings.push("the path does not exist".to_owned());
    lines[141].warnings.push("the path does not exist".to_owned());
    for i in 0..46 {
        let reason = "auditctl: Unknown field: obj_uid".to_owned();
        lines.push(line(500 + i, "-a always,exit -S all -F obj_uid=0", Fate::Refused(reason)));
    }
    let reason = "auditctl: Syscall name unknown: stime".to_owned();
    lines.push(line(700, "-a always,exit -F arch=b64 -S stime -k time", Fate::Refused(reason)));
    lines.push(line(701, "-w /etc/passwd -p wa", Fate::Present));
    lines
}

fn operations() -> Vec<OperationCosts> {
    let operation = |name: &str, calls: f64, clean: f64| OperationCosts {
        name: name.to_owned(),
        syscalls_per_op: calls,
        weight: 1.0 / (6.0 * calls),
        clean: cost(clean),
        armed: cost(clean + 251.0 * calls),
        full: cost(clean + 2750.0 * calls),
        elapsed_ns: None,
    };
    vec![
        operation("getppid", 1.0, 61.2),
        operation("read", 1.0, 112.0),
        operation("stat", 1.0, 498.0),
        operation("open-close", 2.0, 912.0),
        operation("create-unlink", 3.0, 9120.0),
        operation("fork", 3.0, 88_400.0),
        operation("exec", 42.0, 380_200.0),
    ]
}

fn rewrites() -> Vec<Rewrite> {
    let list = "-a always,exit -F arch=b64 -S open,openat,creat,rename,renameat,unlink,unlinkat,mkdir,rmdir \
                -F dir=/etc/ -F perm=wa -k watched";
    vec![
        Rewrite {
            title: "list the system calls instead of watching the directory /etc/".to_owned(),
            replaces: vec![3],
            with_each: vec![1],
            with: vec![list.to_owned()],
            is_first: false,
            gives_up: None,
            saving_per_operation: per_operation(11.2),
            saving_per_syscall: cost(11.2),
        },
        Rewrite {
            title: "put an exemption of read and write first".to_owned(),
            replaces: Vec::new(),
            with_each: Vec::new(),
            with: vec!["-a never,exit -F arch=b64 -S read,write".to_owned()],
            is_first: true,
            gives_up: Some("any record of read and write, whoever calls them".to_owned()),
            saving_per_operation: per_operation(820.0),
            saving_per_syscall: cost(820.0),
        },
        Rewrite {
            title: "ask for the user before the program".to_owned(),
            replaces: vec![10, 11, 12, 20],
            with_each: vec![1, 0, 0, 0],
            with: vec![
                "-a always,exit -F arch=b64 -S all -F auid>=1000 -F exe=/usr/sbin/tool0".to_owned(),
            ],
            is_first: false,
            gives_up: None,
            saving_per_operation: per_operation(1.0),
            saving_per_syscall: CostInterval { value: 1.0, low: -2.0, high: 4.0 },
        },
    ]
}

/// Nothing in it is as a report would like it.
pub fn hostile() -> RuleReport {
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -3.5, 1e300, 0.0];
    let text = "<script>alert(1)</script>`\u{1b}[31m\n|";
    let mut r = stig();
    for (i, line) in r.lines.iter_mut().enumerate() {
        let odd = |offset: usize| numbers[(i + offset) % numbers.len()];
        line.text = format!("{text}{i}");
        line.file = format!("/{}/<b>\u{1b}", i % 3).into();
        line.warnings = vec![text.to_owned()];
        if let Fate::Loaded(known) = &mut line.fate {
            known.per_operation.truncate(i % 3);
            known.per_syscall = CostInterval { value: odd(0), low: odd(1), high: odd(2) };
            known.standing = Standing::Confirmed;
            known.class = 99;
            if let Some(matched) = &mut known.matched {
                *matched = Matched {
                    operation: text.to_owned(),
                    records: odd(3),
                    log_bytes: odd(4),
                    elapsed_ns: odd(5),
                    is_estimate: true,
                };
            }
        }
    }
    for (i, class) in r.classes.iter_mut().enumerate() {
        class.title = text.to_owned();
        class.share_pct = Some(numbers[i]);
    }
    for (i, operation) in r.operations.iter_mut().enumerate() {
        operation.name = text.to_owned();
        operation.weight = numbers[i % numbers.len()];
        operation.clean.value = numbers[i % numbers.len()];
        operation.full.value = numbers[(i + 1) % numbers.len()];
    }
    for rewrite in &mut r.rewrites {
        rewrite.title = text.to_owned();
        rewrite.replaces.push(usize::MAX);
        rewrite.saving_per_operation.clear();
    }
    r.rewrites[0].saving_per_syscall =
        CostInterval { value: f64::NAN, low: f64::NAN, high: f64::NAN };
    r.sum_of_lines = CostInterval::default();
    r.total = CostInterval { value: f64::INFINITY, low: f64::NAN, high: f64::INFINITY };
    r.profile_cpu_pct = Some(r.total);
    (r.mix, r.command) = (text.to_owned(), text.to_owned());
    r
}
