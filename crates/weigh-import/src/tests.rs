//! Tests of all readers: they recognise their own files, and no file makes them panic.

use proptest::prelude::*;

use super::compare::summary;
use super::labels::Labels;
use super::*;
use weigh_dialect as dialect;
use weigh_model::result::work_name::WorkName;
use weigh_report::hyperfine::EXPORTS;
use weigh_report::terminal;

/// A file of every format, by its name on the command line.
const FILES: [(&str, &[u8]); 15] = [
    ("unixbench", include_bytes!("../../../tests/fixtures/import/nitzberg-RUN1.txt")),
    ("unixbench", include_bytes!("../../../tests/fixtures/import/redhat-4.1.txt")),
    ("unixbench", include_bytes!("../../../tests/fixtures/import/unixbench-5.1.3.txt")),
    ("unixbench", include_bytes!("../../../tests/fixtures/import/unixbench-6.0.0.txt")),
    ("unixbench-log", include_bytes!("../../../tests/fixtures/import/unixbench-off.log")),
    ("unixbench-csv", include_bytes!("../../../tests/fixtures/import/unixbench-6.0.0.csv")),
    ("lmbench", include_bytes!("../../../tests/fixtures/import/lmbench.txt")),
    ("hyperfine", include_bytes!("../../../tests/fixtures/import/hyperfine-both.json")),
    ("perf", include_bytes!("../../../tests/fixtures/import/perf-base.csv")),
    ("table", include_bytes!("../../../tests/fixtures/import/smalley-table9.csv")),
    ("table", include_bytes!("../../../tests/fixtures/import/whitcher-unixbench.csv")),
    ("reaim", include_bytes!("../../../tests/fixtures/import/reaim-2003.txt")),
    (
        "weigh",
        br#"{"schema":"weighbridge/run/2","results":[{"workload":"a","unit":"lps","rate":2.5}]}"#,
    ),
    ("weigh", include_bytes!("../../../tests/fixtures/store/25ffvr.json")),
    ("lmbench-raw", include_bytes!("../../../tests/fixtures/import/lmbench-raw.0")),
];

/// The files that `weigh versus` exports for readers of hyperfine are read here, too.
#[test]
fn exported_times_of_commands_can_be_imported() {
    let export = EXPORTS.into_iter().find(|format| format.name == "export-json").unwrap();
    let mut summary = weigh_model::example::versus();
    let text = (export.render)(&summary.clone().into()).unwrap();
    let exported = results(text.as_bytes());
    assert_eq!((exported.len(), exported[0].figures[0].runs.len()), (3, 8));
    summary.versus.as_mut().unwrap().commands[1].exit_codes = vec![0, 1, 3, 1, 0, 0, 0, 0];
    let text = (export.render)(&summary.into()).unwrap();
    let read = read("f", text.as_bytes(), None).unwrap();
    assert_eq!(read.warnings, Vec::<String>::new(), "statuses that the user allowed");
}

fn results(bytes: &[u8]) -> Vec<ImportedResults> {
    match read("f", bytes, None).unwrap().content {
        Content::Results(results) => results,
        Content::Experiment(_) => panic!("these are figures"),
    }
}

#[test]
fn a_table_of_more_figures_than_memory_is_refused() {
    let wide = format!("test,unit{}\n", ",a".repeat(20_000));
    let problem = read("wide.csv", wide.as_bytes(), None).err().unwrap().to_string();
    assert_eq!(
        problem,
        "wide.csv:1: the table has 20000 columns, and the limit is 10000: split the file"
    );
    let labels: Vec<String> = (0..900).map(|at| format!("c{at}")).collect();
    let row = |at: usize| format!("t{at},us{}\n", ",1".repeat(900));
    let long = format!("test,unit,{}\n{}", labels.join(","), (0..60).map(row).collect::<String>());
    let problem = read("long.csv", long.as_bytes(), None).err().unwrap().to_string();
    assert!(problem.contains("more than 50000 figures"), "{problem}");
    let one = "{\"command\":\"c\",\"mean\":1.5}";
    let many = format!("{{\"results\":[{}]}}", vec![one; 50_001].join(","));
    let problem = read("many.json", many.as_bytes(), None).err().unwrap().to_string();
    assert!(problem.contains("more than 50000 figures"), "{problem}");
}

#[test]
fn a_format_is_known_by_its_content() {
    for (name, bytes) in FILES {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(detect(&text).unwrap().name, name, "{text}");
        assert!(!results(bytes)[0].figures.is_empty(), "{name}");
    }
}

#[test]
fn files_from_other_systems_are_the_same() {
    for (name, bytes) in FILES {
        let text = String::from_utf8_lossy(bytes);
        let foreign = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(results(foreign.as_bytes()), results(bytes), "{name}");
    }
}

#[test]
fn a_wrong_file_is_named_with_what_could_be_read() {
    for (text, part) in [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("hello\n", "unrecognised format. weigh import reads"),
        ("<!DOCTYPE html>\n", "UnixBench writes a text file next to its .html"),
        (" Performance counter stats for 'true':\n", "perf stat -x, -o FILE"),
        ("Benchmark 1: true\n", "--export-json FILE"),
        ("a,b\n1,2\n", "a different kind of CSV"),
        ("{\"a\":1}", "JSON of a different program"),
        ("{\"a\":\"L M B E N C H\"}", "JSON of a different program"),
        ("{\"schema\":\"weighbridge/diff/1\"}", "with the schema \"weighbridge/diff/1\""),
        ("{\"a\":", "is truncated or malformed"),
        ("BYTE UNIX Benchmarks (Version 5.1.3)\n", "the file contains no result"),
    ] {
        let problem = read("my.txt", text.as_bytes(), None).err().unwrap().to_string();
        assert!(problem.starts_with("my.txt: ") && problem.contains(part), "{problem}");
        assert!(problem.contains("weigh import reads: hyperfine --export-json"), "{problem}");
    }
    assert!(ForeignFormat::named("csv").err().unwrap().contains("unixbench-csv"));
}

#[test]
fn a_broken_line_is_named_by_its_number() {
    let head = "BYTE UNIX Benchmarks (Version 4.1.0)\n";
    for (text, place) in [
        (format!("{head}Pipe Throughput many lps (10.0 secs, 3 samples)\n"), "f:2: "),
        (format!("{head}Pipe 1 lps (1 s, 1 samples)\nPipe 2 lps (1 s, 1 samples)\n"), "f:3: "),
        (format!("{head}TEST BASELINE RESULT INDEX\nPipe 0 1.0 2.0\n"), "f:3: "),
        ("Concurrency,A,B\n1,2.0\n".into(), "f:2: "),
        ("Concurrency,A\none,2.0\n".into(), "f:2: "),
        ("test,unit,off,on\na,us,1\n".into(), "f:2: "),
        ("test,unit,off,on\na,us,1,-2\n".into(), "f:2: "),
        ("test,unit,off\na,us,1\na,us,1\n".into(), "f:3: "),
        ("A -- 1 copy\n#### Pass 1\n# COUNT0: x\n".into(), "f:3: "),
        ("A -- 1 copy\n#### Pass 1\n# COUNT0: 1\n".into(), "f: \"A\" has no score"),
        ("{\"schema\":\"weighbridge/experiment/2\",\n\"id\":1}".into(), "f:2: "),
    ] {
        let problem = read("f", text.as_bytes(), None).err().unwrap().to_string();
        assert!(problem.starts_with(place), "{problem}");
    }
    let problem = read("f", b"x,y\n", Some(&formats::perf::IMPORT)).err().unwrap().to_string();
    assert!(problem.starts_with("f:1: expected an event"), "{problem}");
    let cut = String::from_utf8_lossy(FILES[6].1).replace(" 16.1", " 16.1 1 2");
    let problem = read("f", cut.as_bytes(), None).err().unwrap().to_string();
    assert!(problem.starts_with("f:18: 13 figures under 11 columns"), "{problem}");
}

/// Output as people keep it, with `make results >file 2>&1`.
#[test]
fn output_of_make_and_of_compilers_costs_nothing() {
    let before = "[ -d results ] || mkdir results\nmake[1]: Entering directory '/src (x)'\n\
        gcc -O2 -o ./pgms/arithoh -DTIME -Ddatum=int ./src/arith.c\n\
        ./src/arith.c:12:3: warning: unused variable 'x' [-Wunused-variable]\n\
        12 |   int x = 3;\n   |   ^~~\n";
    let after = "make[1]: Leaving directory '/src (x)'\n";
    for (name, bytes) in [FILES[3], FILES[1], FILES[6], FILES[14]] {
        let text = String::from_utf8_lossy(bytes);
        let kept = format!("{before}{text}{after}");
        let read = read("f", kept.as_bytes(), None).map_err(|problem| problem.to_string());
        let read = read.unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let Content::Results(found) = read.content else { panic!("these are figures") };
        assert_eq!((found, read.warnings), (results(bytes), Vec::new()), "{name}");
    }
}

#[test]
fn two_reports_of_one_file_are_two_results() {
    let report = String::from_utf8_lossy(FILES[3].1);
    let of = |text: String| {
        let found = results(text.as_bytes());
        let labels = found.iter().map(|of| of.label.clone().unwrap()).collect::<Vec<String>>();
        (labels, found)
    };
    let (labels, found) = of(format!("{report}\n{report}"));
    assert_eq!(labels, ["report 1", "report 2"]);
    assert_eq!((&found[0].figures, found[1].figures.len()), (&found[1].figures, 24));
    let (labels, _) = of(format!("{report}{}", report.replace("System: bench", "System: other")));
    assert_eq!(labels, ["bench", "other"]);
}

#[test]
fn a_report_is_read_whole() {
    let figures = results(FILES[3].1).remove(0).figures;
    assert_eq!(figures.len(), 24);
    let name = WorkName::of_copies("System Call Overhead", 2);
    let syscall = figures.iter().find(|figure| figure.name() == name).unwrap();
    assert_eq!((syscall.value, syscall.unit.as_str()), (868_972.0, "ops/s"));
    assert_eq!((syscall.baseline, syscall.better), (Some(15_000.0), Better::More));
    // Its CSV says the same without units.
    for figure in &mut results(FILES[5].1)[0].figures {
        let of_report = figures.iter().find(|other| other.key() == figure.key()).unwrap();
        assert_eq!(figure.value, of_report.value, "{}", figure.name());
    }
    // What has no baseline is a result all the same.
    let partial = results(FILES[2].1).remove(0).figures;
    assert_eq!((partial.len(), partial[1].baseline), (3, None));
}

#[test]
fn sums_that_do_not_add_up_are_told() {
    let sound = String::from_utf8_lossy(FILES[3].1).into_owned();
    assert_eq!(read("f", sound.as_bytes(), None).unwrap().warnings, [""; 0]);
    for (from, to, told) in [
        ("333.4", "343.4", "index 343.4 for System Call Overhead, but result divided by"),
        ("732.8", "742.8", "final index 742.8, but its 12 lines give 732.8"),
        ("System Benchmarks Index Score", "", "ends within its index"),
        ("15000.0     500028.0", "15000.0     500029.0", "500029 in its index"),
    ] {
        let changed =
            if to.is_empty() { sound.replace(from, to) } else { sound.replacen(from, to, 1) };
        let warnings = read("f", changed.as_bytes(), None).unwrap().warnings;
        assert!(warnings.iter().any(|warning| warning.contains(told)), "{told}: {warnings:?}");
    }
    // The average of 3.11 is a linear one, and stands alone on its line.
    let thesis = String::from_utf8_lossy(FILES[0].1).into_owned();
    assert_eq!(read("f", thesis.as_bytes(), None).unwrap().warnings, [""; 0]);
    let (lines, average) = thesis.trim_end().rsplit_once('\n').unwrap();
    let changed = format!("{lines}\n{}", average.replace("1.1", "1.3"));
    let warnings = read("f", changed.as_bytes(), None).unwrap().warnings;
    assert_eq!(warnings, ["The report prints the final index 1.3, but its 6 lines give 1.1."]);
    let cut = read("f", &sound.as_bytes()[..700], None).unwrap().warnings;
    assert_eq!(cut, ["The report has no index, so its end may be missing."]);
}

#[test]
fn a_log_has_every_pass() {
    let figures = results(FILES[4].1).remove(0).figures;
    assert_eq!((figures[0].runs.len(), figures[0].runs[0]), (10, 500_028.0));
    // 190 scripts by two copies in ten seconds, in lines per minute.
    assert_eq!((figures[1].copies, figures[1].runs[0]), (Some(2), 1140.0));
    assert_eq!(figures[1].value, 1170.0, "the suite's own score");
    // Two runs in one file, such as before and after a change, are two results.
    let two = results(&[FILES[4].1, FILES[4].1].concat());
    let labels: Vec<_> = two.iter().map(|run| run.label.as_deref().unwrap()).collect();
    assert_eq!(labels, ["report 1", "report 2"]);
    assert_eq!((&two[0].figures, &two[1].figures), (&figures, &figures));
}

#[test]
fn the_hosts_of_lmbench_are_results_and_gaps_are_none() {
    let hosts = results(FILES[6].1);
    let labels: Vec<_> = hosts.iter().map(|host| host.label.as_deref().unwrap()).collect();
    assert_eq!(labels, ["off", "on"]);
    let name = |figure: &Figure| figure.test.clone();
    let names = |host: &ImportedResults| host.figures.iter().map(name).collect::<Vec<_>>();
    let off = names(&hosts[0]);
    assert_eq!(off[..4], ["null call", "null I/O", "stat", "open clos"]);
    assert_eq!(off[10..], ["Pipe bandwidth", "AF UNIX bandwidth"], "TCP is blank");
    assert_eq!(names(&hosts[1])[10..], ["Pipe bandwidth", "TCP bandwidth"], "AF UNIX is blank");
    assert_eq!(hosts[0].figures[11].value, 1700.0, "1.7K");
    assert_eq!(hosts[0].figures[0].better, Better::Less);
    assert_eq!(hosts[0].figures[10].better, Better::More);
}

#[test]
fn lines_of_one_host_are_runs() {
    let text = String::from_utf8_lossy(FILES[6].1).replace("\non  ", "\noff ");
    let hosts = results(text.as_bytes());
    assert_eq!((hosts.len(), hosts[0].label.as_deref()), (1, None));
    assert_eq!(hosts[0].figures[0].runs, [0.09, 0.33]);
    assert!((hosts[0].figures[0].value - 0.21).abs() < 1e-12);
}

#[test]
fn events_are_counts_and_clocks_are_times() {
    let figures = results(FILES[8].1).remove(0).figures;
    let kinds: Vec<_> = figures.iter().map(|f| (f.test.as_str(), f.better)).collect();
    assert_eq!(
        kinds,
        [
            ("task-clock", Better::Less),
            ("context-switches", Better::Neither),
            ("duration_time", Better::Less)
        ],
        "cycles were not counted"
    );
}

/// Files of each format with so many results, made up.
fn long_files(count: usize) -> Vec<(&'static str, String)> {
    let lines = |head: &str, line: &dyn Fn(usize) -> String| -> String {
        std::iter::once(head.to_owned()).chain((0..count).map(line)).collect()
    };
    let index = "TEST BASELINE RESULT INDEX\n";
    let ruler =
        "Processor - times in microseconds - smaller is better\nHost OS null\n---- ---- ----\n";
    let commands = lines("", &|n| format!("{{\"command\":\"c{n}\",\"mean\":1.5}},"));
    let columns = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<String>();
    vec![
        (
            "unixbench",
            lines("BYTE UNIX Benchmarks (Version 4.1.0)\n", &|n| {
                format!("T{n} 1.0 lps (10 secs, 6 samples)\n")
            }) + &lines(index, &|n| format!("T{n} 1.0 1.0 10.0\n"))
                + &lines(index, &|n| format!("U{n} 1.0 1.0 10.0\n")),
        ),
        (
            "unixbench-csv",
            format!("Concurrency{}\n1{}\n", columns(&|n| format!(",t{n}")), ",1".repeat(count)),
        ),
        (
            "lmbench-raw",
            lines("[lmbench3.0 results for Linux h 6]\n", &|n| format!("t{n}: 0.5 microseconds\n")),
        ),
        ("lmbench", lines(ruler, &|n| format!("h{n:03} L{} 0.5\n", n % 7))),
        ("hyperfine", format!("{{\"results\":[{}]}}", commands.trim_end_matches(','))),
        ("perf", lines("", &|n| format!("1,msec,event{n},1,100\n"))),
        ("table", lines("test,unit,a,b,a,b\n", &|n| format!("t{n},us,1,2,1,2\n"))),
        (
            "table",
            format!("test,unit{}\nt,us{}\n", columns(&|n| format!(",l{n}")), ",1".repeat(count)),
        ),
    ]
}

/// Reads a file, compares what is in it (or it with itself), and shows that; gives the CPU seconds.
fn handle(format: &str, text: &str) -> f64 {
    let now_s = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let started_s = now_s();
    let document = || {
        (
            "f".to_owned(),
            read("f", text.as_bytes(), Some(ForeignFormat::named(format).unwrap())).unwrap(),
        )
    };
    let first = document();
    let Content::Results(results) = &first.1.content else { panic!("these are figures") };
    let (documents, labels) = match results.len() {
        1 => (vec![first, document()], vec!["a".to_owned(), "b".to_owned()]),
        _ => (vec![first], Vec::new()),
    };
    let made = summary(documents, &Labels { labels, base: None }).unwrap();
    assert!(terminal::render(&made, terminal::Room::FILE, false).contains("Imported"), "{format}");
    let _ = dialect::render(dialect::named("smalley").unwrap(), &made.into());
    now_s() - started_s
}

/// Eight times as long a file takes about eight times as long, not 64 times: whatever there is many of.
#[test]
fn the_time_of_an_import_grows_as_its_file() {
    const TIMES: f64 = 8.0;
    let (short, long) = (long_files(1_000), long_files(1_000 * TIMES as usize));
    for ((format, short), (_, long)) in short.iter().zip(&long) {
        let least_s = |text| (0..3).map(|_| handle(format, text)).fold(f64::INFINITY, f64::min);
        let ratios = (0..5).map(|_| handle(format, long) / least_s(short));
        // On a busy machine CPU time is stretched too, but not each time.
        let ratios: Vec<f64> = ratios.take_while(|ratio| *ratio >= 3.0 * TIMES).collect();
        assert!(ratios.len() < 5, "{format}: {ratios:.1?} times as long");
    }
}

proptest! {
    #[test]
    fn foreign_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        format in 0..IMPORTS.len(),
    ) {
        let _ = read("f", &bytes, None);
        let _ = read("f", &bytes, Some(IMPORTS[format]));
    }

    /// Cut off anywhere, with a few bytes changed, and whatever it is taken for.
    #[test]
    fn damaged_files_never_panic(
        file in 0..FILES.len(),
        format in proptest::option::of(0..IMPORTS.len()),
        length in 0.0..1.0f64,
        changes in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 0..6),
    ) {
        let mut bytes = FILES[file].1.to_vec();
        bytes.truncate((bytes.len() as f64 * length) as usize);
        for (place, byte) in changes {
            let at = (bytes.len() as f64 * place) as usize;
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
        }
        let forced = format.map(|format| IMPORTS[format]);
        if let Ok(document) = read("a", &bytes, forced) {
            let whole = read("b", FILES[file].1, None).unwrap();
            let both = vec![("a".to_owned(), document), ("b".to_owned(), whole)];
            let _ = summary(both, &Labels::default());
        }
    }
}

#[test]
fn copies_are_a_load_in_runs() {
    let names = |bytes: &[u8]| -> Vec<String> {
        results(bytes)[0].figures.iter().map(|figure| figure.name().to_string()).collect()
    };
    let exported = include_bytes!("../../../tests/fixtures/store/25ffvr.json");
    assert_eq!(names(exported), ["getppid", "getppid:copies=2", "pipe", "pipe:copies=2"]);
}
