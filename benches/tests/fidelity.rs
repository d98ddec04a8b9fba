//! The bench `fidelity`: what foreign programs print is read as they mean it, and what is no
//! measurement is no rate. The programs here are stand-ins that print in the forms of UnixBench and
//! lmbench; the numbers of a comparison come from the bench alone.

#[path = "../fidelity/compare.rs"]
mod compare;
#[path = "../fidelity/options.rs"]
mod options;
#[path = "../fidelity/programs.rs"]
mod programs;
#[path = "../fidelity/read.rs"]
mod read;
#[path = "../fidelity/rows.rs"]
mod rows;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use options::Options;
use proptest::prelude::*;
use read::Form;
use rustix::thread::{CpuSet, sched_setaffinity};
use support::{duel, table};
use weigh_workload::executable::Executable;

const FORMS: [Form; 6] = [
    Form::UnixBench,
    Form::LmbenchLatency("Simple syscall"),
    Form::LmbenchBandwidth,
    Form::PerfMicroseconds,
    Form::PerfOperations,
    Form::PerfBytes,
];

fn parse(arguments: &[&str]) -> Result<Options, String> {
    Options::parse(arguments.iter().map(|argument| (*argument).to_owned()))
}

fn assert_rate(form: Form, output: &str, wall_s: f64, expected: f64) {
    let rate = form.rate(output, wall_s).unwrap();
    assert!((rate / expected - 1.0).abs() < 1e-9, "{form:?}: {rate} is not {expected}");
}

#[test]
fn unixbench_counts_are_per_timebase_and_by_its_own_time_if_it_has_one() {
    assert_rate(Form::UnixBench, "COUNT|3000000|1|lps\n", 2.0, 1.5e6);
    assert_rate(Form::UnixBench, "COUNT|300|60|lpm\n", 30.0, 600.0);
    assert_rate(Form::UnixBench, "COUNT|1000|1|lps\nTIME|4.0\n", 9.0, 250.0);
    assert_rate(Form::UnixBench, "COUNT|6564.1|0|MWIPS\n", 12.0, 6564.1);
    // Both processes of context1 print.
    assert_rate(Form::UnixBench, "COUNT|1|1|lps\nCOUNT|500|1|lps\n", 1.0, 500.0);
}

#[test]
fn lmbench_latencies_become_rates_and_bandwidths_stay() {
    assert_rate(
        Form::LmbenchLatency("Simple syscall"),
        "Simple syscall: 0.5000 microseconds\n",
        1.0,
        2e6,
    );
    assert_rate(Form::LmbenchLatency("fd's"), "Select on 100 fd's: 4.0 microseconds\n", 1.0, 2.5e5);
    assert_rate(Form::LmbenchBandwidth, "8.39 8531.45\n", 1.0, 8531.45);
    assert!(Form::LmbenchLatency("Pipe latency").rate("Simple read: 1 microseconds", 1.0).is_err());
}

#[test]
fn perf_bench_is_read_in_each_of_its_forms() {
    let basic = "# Running 'syscall/basic' benchmark:\n# Executed 10000000 getppid() calls\n     \
                 Total time: 4.517 [sec]\n\n       0.451742 usecs/op\n        2213653 ops/sec\n";
    assert_rate(Form::PerfMicroseconds, basic, 1.0, 1e6 / 0.451_742);
    let hash = "[thread  0] futexes: 0x5627 ... 0x5628 [ 1405952 ops/sec ]\n\n\
                Averaged 1405952 operations/sec (+- 0.00%), total secs = 1\n";
    assert_rate(Form::PerfOperations, hash, 1.0, 1_405_952.0);
    let memcpy = "# function 'default' (Default memcpy() provided by glibc)\n15875788716.667614\n";
    assert_rate(Form::PerfBytes, memcpy, 1.0, 15_875.788_716_667_614);
}

#[test]
fn no_rate_comes_of_nothing_zero_or_infinity() {
    let impossible = [
        "",
        "COUNT|0|1|lps",
        "COUNT|5|1",
        "COUNT|x|1|lps",
        "Simple syscall: 0 microseconds",
        "8.39 nan",
    ];
    for form in FORMS {
        for output in impossible {
            let rate = form.rate(output, 0.0);
            assert!(rate.is_err(), "{form:?} made {rate:?} of {output:?}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_a_program_prints_there_is_a_positive_rate_or_a_sentence(
        words in prop::collection::vec(
            prop_oneof![
                Just("COUNT|".to_owned()), Just("TIME|".to_owned()), Just("|".to_owned()),
                Just("Simple syscall".to_owned()), Just("microseconds".to_owned()),
                Just("usecs/op".to_owned()), Just("Averaged".to_owned()),
                Just("operations/sec".to_owned()), Just("\n".to_owned()), Just(" ".to_owned()),
                any::<f64>().prop_map(|number| number.to_string()), any::<String>(),
            ],
            0..12,
        ),
        wall_s in 0.0..100.0,
    ) {
        for form in FORMS {
            if let Ok(rate) = form.rate(&words.concat(), wall_s) {
                prop_assert!(rate.is_finite() && rate > 0.0);
            }
        }
    }
}

#[test]
fn options_are_taken_or_refused_in_a_sentence() {
    let options =
        parse(&["--bench", "--unixbench", "/ub", "--lmbench", "/lm", "--seconds", "5"]).unwrap();
    assert_eq!(options.unixbench.as_deref(), Some(Path::new("/ub")));
    assert_eq!(options.lmbench.as_deref(), Some(Path::new("/lm")));
    assert_eq!((options.seconds, options.write, options.only), (5.0, None, None));
    assert_eq!(parse(&["--lmbench"]).unwrap_err(), "--lmbench needs a value");
    assert_eq!(parse(&["--lmbnch"]).unwrap_err(), "`--lmbnch` is no option");
    for wrong in ["0", "-1", "inf", "nan", "soon"] {
        assert!(parse(&["--seconds", wrong]).unwrap_err().contains(wrong));
    }
}

#[test]
fn every_counterpart_names_a_workload_of_ours() {
    let directory = tempfile::tempdir().unwrap();
    let known = Executable::unpack(directory.path()).unwrap().workloads().unwrap();
    for one in rows::COUNTERPARTS {
        assert!(known.iter().any(|workload| workload.name == one.ours), "{}", one.ours);
    }
}

/// A program that is a shell script.
fn stand_in(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The only row of a comparison of as few pairs as can be.
fn only_row(tree: &[&str], only: &str) -> Vec<String> {
    let options = parse(&[tree, &["--seconds", "0.01", "--only", only]].concat()).unwrap();
    let (table, _) = compare::compare(&options).unwrap();
    assert_eq!(table.rows.len(), 1, "{}", table::text(&table));
    table.rows[0].clone()
}

#[test]
fn a_tree_of_unixbench_is_found_and_run_as_its_own_script_does() {
    let tree = tempfile::tempdir().unwrap();
    let program = tree.path().join("pgms/syscall");
    let path = tree.path().to_str().unwrap();
    fs::create_dir(tree.path().join("testdir")).unwrap();
    stand_in(
        &program,
        r#"[ "$*" = "1 close" ] && [ -x "$UB_BINDIR/syscall" ] && [ -d "$UB_TMPDIR" ] || exit 3
           [ "$(pwd -P)" = "$(cd "$UB_TESTDIR" && pwd -P)" ] || exit 4
           echo "COUNT|1000|1|lps" >&2; echo "TIME|1.0" >&2"#,
    );
    let row = only_row(&["--unixbench", path], "syscall 1 close");
    let ratio: f64 = row[4].parse().unwrap();
    assert!(ratio > 1.0, "ours does more than a thousand a second: {row:?}");
    stand_in(&program, "echo what is this >&2");
    assert!(only_row(&["--unixbench", path], "syscall 1 close")[7].contains("what is this"));
    stand_in(&program, "echo 'COUNT|1000|1|lps' >&2; exit 1");
    let row = only_row(&["--unixbench", path], "syscall 1 close");
    assert!(row[4] == "–" && row[7].contains("exit status: 1"), "{row:?}");
}

#[test]
fn a_tree_of_lmbench_is_found_below_bin_and_its_operation_may_be_half_of_ours() {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().to_str().unwrap();
    let bin = tree.path().join("bin/x86_64-linux-gnu");
    // One a second, or one in two seconds of ours: the ratio is our rate, or twice that.
    stand_in(&bin.join("lat_sem"), "echo 'Semaphore latency: 1000000.0 microseconds' >&2");
    let row = only_row(&["--lmbench", path], "lat_sem");
    assert!(row[4].parse::<f64>().unwrap() > 2.0, "{row:?}");
    let one = rows::COUNTERPARTS.iter().find(|one| one.theirs == "lat_sem").unwrap();
    assert_eq!(one.scale, 0.5);
}

/// Written for this bench, they are compiled when it runs, and count what ours count.
#[test]
fn programs_after_the_definitions_run_beside_ours() {
    // As the bench does: between two CPUs of an idle machine `context1` takes twenty times as long.
    let mut cpus = CpuSet::new();
    cpus.set(0);
    sched_setaffinity(None, &cpus).unwrap();
    for one in rows::COUNTERPARTS.iter().filter(|one| one.suite == rows::Suite::Definitions) {
        // A pair of a few milliseconds says what is measured; on a busy machine either of the two may have
        // waited for its CPU meanwhile, and not in every try.
        let is_alike = |row: &Vec<String>| (0.1..10.0).contains(&row[4].parse::<f64>().unwrap());
        let alike = (0..5).map(|_| only_row(&[], one.theirs)).find(is_alike);
        assert!(alike.is_some(), "{} is of the same work as {}", one.theirs, one.ours);
    }
}

#[test]
fn where_nothing_is_there_a_sentence_says_what_to_do() {
    let problem = compare::compare(&parse(&["--only", "lat_"]).unwrap()).err().unwrap();
    assert!(problem.contains("--lmbench DIR"), "{problem}");
}

#[test]
fn a_document_is_changed_between_its_marks_only() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let rows = vec![vec!["1".to_owned()]];
    let table = table::Table { title: "T".into(), head: vec!["h".into()], rows };
    let generated = table::markdown(&table);
    assert!(
        table::write(file.path(), "fidelity", &generated)
            .unwrap_err()
            .contains("begin: cargo bench")
    );
    fs::write(
        file.path(),
        "a <!-- begin: cargo bench -p benches --bench fidelity -->old<!-- end --> z",
    )
    .unwrap();
    table::write(file.path(), "fidelity", &generated).unwrap();
    let document = fs::read_to_string(file.path()).unwrap();
    assert!(document.starts_with("a ") && document.ends_with(" z") && !document.contains("old"));
    assert!(document.contains("| h |\n| --- |\n| 1 |\n"), "{document}");
}
