//! lmbench's result files (`results/OS/HOST.0`, 2.x and 3.0), from which its summary is made, and what its
//! programs print by themselves. A run begins with `[lmbench3.0 results for UNAME]`.
//!
//! The figures have the names that they have in the summary, and are those of the summary: of a curve, the
//! value of the largest size. A line that the summary leaves out keeps its own name.

use crate::formats::lmbench::{Of, ReadFigures};
use crate::{Document, ForeignFormat, ImportedResults, Problem, figure, number};
use weigh_model::result::imported::Figure;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "lmbench-raw",
    what: "lmbench's result files",
    rank: 3,
    is_json: false,
    is_it: |text| text.lines().any(|line| uname(line).is_some() || line.starts_with(FIRST_TEST)),
    read: |text| read(text).map(Document::of),
};

/// First line that `lmbench` measures. Programs that were run by hand print no header.
const FIRST_TEST: &str = "Simple syscall: ";

/// Lines of one figure, and the column of the summary that they are.
const COLUMNS: [(&str, &str); 18] = [
    ("Simple syscall", "null call"),
    ("Simple stat", "stat"),
    ("Simple open/close", "open clos"),
    ("Select on 100 fd's", "100fd selct"),
    ("Select on 100 tcp fd's", "slct TCP"),
    ("Signal handler installation", "sig inst"),
    ("Signal handler overhead", "sig hndl"),
    ("Protection fault", "Prot Fault"),
    ("Process fork+exit", "fork proc"),
    ("Process fork+execve", "exec proc"),
    ("Process fork+/bin/sh -c", "sh proc"),
    ("AF_UNIX sock stream latency", "AF UNIX latency"),
    ("UDP latency using localhost", "UDP latency"),
    ("TCP latency using localhost", "TCP latency"),
    ("TCP/IP connection cost to localhost", "TCP conn latency"),
    ("AF_UNIX sock stream bandwidth", "AF UNIX bandwidth"),
    ("Simple read", READ),
    ("Simple write", WRITE),
];
const READ: &str = "Simple read";
const WRITE: &str = "Simple write";
/// The mean of both.
const NULL_IO: &str = "null I/O";

const UNITS: [(&str, &str); 5] = [
    ("microseconds", "us"),
    ("nanoseconds", "ns"),
    ("milliseconds", "ms"),
    ("MB/sec", "MB/s"),
    ("KB/sec", "KB/s"),
];

/// Curves of which the summary has the value of the largest size.
const CURVES: [(&str, &str, &str); 8] = [
    ("mappings", "Mmap Latency", "us"),
    ("read bandwidth", "File reread bandwidth", "MB/s"),
    ("Mmap read bandwidth", "Mmap reread bandwidth", "MB/s"),
    ("libc bcopy unaligned", "Bcopy (libc) bandwidth", "MB/s"),
    ("unrolled bcopy unaligned", "Bcopy (hand) bandwidth", "MB/s"),
    ("Memory read bandwidth", "Mem read bandwidth", "MB/s"),
    ("Memory write bandwidth", "Mem write bandwidth", "MB/s"),
    ("Socket bandwidth using localhost", "TCP bandwidth", "MB/s"),
];
/// Sizes of the memory latencies that the summary calls those of the caches.
const CACHES: [(f64, &str); 2] = [(0.00098, "L1 $"), (0.125, "L2 $")];
const MEMORY_STRIDE: &str = "stride=128";
const RANDOM_STRIDE: &str = "stride=16";

/// Reads the runs; those of one host and system are runs of the same thing.
fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let mut kept = ReadFigures::default();
    let mut run = Run::default();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some((host, system)) = uname(line) {
            kept.add(std::mem::take(&mut run).end());
            (run.host, run.system) = (host.to_owned(), system.to_owned());
        } else {
            run.line(line).map_err(|problem| (Some(at + 1), problem))?;
        }
    }
    kept.add(run.end());
    Ok(kept.results())
}

/// Host and system in `[lmbench3.0 results for Linux HOST RELEASE …]`.
fn uname(line: &str) -> Option<(&str, &str)> {
    let (_, uname) = line.strip_prefix("[lmbench")?.split_once(" results for ")?;
    let mut words = uname.trim_end_matches(']').split_whitespace();
    let (_, host) = (words.next()?, words.next()?);
    Some((host, words.next().unwrap_or_default()))
}

/// A run that is being read.
#[derive(Default)]
struct Run {
    host: String,
    system: String,
    figures: Vec<Figure>,
    curve: Curve,
    /// True if the curves of memory are those of random accesses.
    is_random: bool,
}

/// Lines of a size and a value behind a title.
#[derive(Default)]
enum Curve {
    #[default]
    None,
    /// Name and unit of the figure, and the largest size so far with its value.
    Largest(&'static str, &'static str, Option<(f64, f64)>),
    /// Size of a process, as `16K`.
    Switches(String),
    Files,
    /// Latencies of memory, of which the last is that of the main memory.
    Memory(Option<f64>),
}

impl Run {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            self.end_curve();
        } else if let Some(curve) = self.title(line) {
            self.end_curve();
            self.curve = curve;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            self.point(line);
        } else {
            self.end_curve();
            if let Some((name, value, unit)) = single(line) {
                let value = number(value).ok_or_else(|| format!("{value:?} is not a number"))?;
                self.keep(&named(name), value, unit);
            }
        }
        Ok(())
    }

    /// The curve that a line is the title of; lines with other titles are left out.
    fn title(&mut self, line: &str) -> Option<Curve> {
        let quoted = line.strip_prefix('"');
        let title = quoted.unwrap_or(line);
        if let Some((_, name, unit)) = CURVES.iter().find(|(known, ..)| title == *known) {
            return Some(Curve::Largest(name, unit, None));
        }
        if matches!(title, "Memory load latency" | "Random load latency") {
            self.is_random = title.starts_with("Random");
            return Some(Curve::None);
        }
        let title = quoted?;
        if let Some((size, overhead)) =
            title.strip_prefix("size=").and_then(|rest| rest.split_once(" ovr="))
        {
            let size = size.to_ascii_uppercase();
            if let Some(overhead) = number(overhead) {
                self.keep(&format!("ovr {size}"), overhead, "us");
            }
            return Some(Curve::Switches(size));
        }
        let stride = if self.is_random { RANDOM_STRIDE } else { MEMORY_STRIDE };
        Some(match title {
            "File system latency" => Curve::Files,
            title if title.split_whitespace().next() == Some(stride) => Curve::Memory(None),
            _ => Curve::None,
        })
    }

    /// A line of numbers; one that is cut off or no point is passed over.
    fn point(&mut self, line: &str) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let at = |place: usize| cells.get(place).and_then(|cell| number(cell));
        let mut found: Vec<(String, Option<f64>, &str)> = Vec::new();
        match &mut self.curve {
            Curve::None => {}
            Curve::Files => {
                let size = cells[0].to_ascii_uppercase();
                let time =
                    |rate: Option<f64>| rate.filter(|rate| *rate > 0.0).map(|rate| 1e6 / rate);
                found.push((format!("{size} File Create"), time(at(2)), "us"));
                found.push((format!("{size} File Delete"), time(at(3)), "us"));
            }
            Curve::Largest(_, _, largest) => {
                if let (Some(size), Some(value)) = (at(0), at(1))
                    && largest.is_none_or(|(known, _)| size >= known)
                {
                    *largest = Some((size, value));
                }
            }
            Curve::Switches(size) => {
                found.push((format!("{}p/{size} ctxsw", cells[0]), at(1), "us"));
            }
            Curve::Memory(last) => {
                *last = at(1).or(*last);
                let is_size = |of: f64| !self.is_random && at(0) == Some(of);
                let cache = CACHES.iter().find(|(of, _)| is_size(*of));
                found.extend(cache.map(|(_, name)| ((*name).to_owned(), at(1), "ns")));
            }
        }
        for (test, value, unit) in found {
            if let Some(value) = value {
                self.keep(&test, value, unit);
            }
        }
    }

    fn end_curve(&mut self) {
        match std::mem::take(&mut self.curve) {
            Curve::Largest(name, unit, Some((_, value))) => self.keep(name, value, unit),
            Curve::Memory(Some(value)) => {
                self.keep(if self.is_random { "Rand mem" } else { "Main mem" }, value, "ns");
            }
            _ => {}
        }
    }

    fn keep(&mut self, test: &str, value: f64, unit: &str) {
        self.figures.push(Figure { runs: vec![value], ..figure(test, value, unit) });
    }

    /// The summary has the mean of reading and writing.
    fn end(mut self) -> Of {
        self.end_curve();
        let of = |name: &'static str| self.figures.iter().filter(move |figure| figure.test == name);
        let both: Vec<f64> =
            of(READ).zip(of(WRITE)).map(|(read, write)| (read.value + write.value) / 2.0).collect();
        for value in both {
            self.keep(NULL_IO, value, "us");
        }
        Of { host: self.host, system: self.system, figures: self.figures }
    }
}

/// `NAME: VALUE UNIT`
fn single(line: &str) -> Option<(&str, &str, &'static str)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let (value, unit) = (words.next()?, words.next()?);
    let (_, unit) = UNITS.iter().find(|(known, _)| *known == unit)?;
    words.next().is_none().then_some((name, value, *unit))
}

/// As the summary calls it. The name of a file says nothing.
fn named(name: &str) -> String {
    if name.starts_with("Pagefaults on ") {
        return "Page Fault".into();
    }
    if name.starts_with("File ") && name.ends_with(" write bandwidth") {
        return "File write bandwidth".into();
    }
    let column = COLUMNS.iter().find(|(known, _)| *known == name);
    column.map_or(name, |(_, column)| column).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = include_str!("../../../../tests/fixtures/import/lmbench-raw.0");

    fn values(results: &ImportedResults) -> Vec<(&str, f64, &str)> {
        let figures = results.figures.iter();
        figures.map(|figure| (&*figure.test, figure.value, &*figure.unit)).collect()
    }

    #[test]
    fn the_figures_are_those_of_the_summary() {
        let results = read(RUN).unwrap();
        assert!((IMPORT.is_it)(RUN) && results.len() == 1 && results[0].label.is_none());
        let found = values(&results[0]);
        for figure in [
            ("null call", 0.12, "us"),
            ("null I/O", 0.25, "us"),
            ("slct TCP", 3.5, "us"),
            ("Pipe latency", 8.0, "us"),
            ("Page Fault", 0.5, "us"),
            ("File write bandwidth", 800_000.0, "KB/s"),
            ("Mmap Latency", 40_000.0, "us"),
            ("0K File Create", 20.0, "us"),
            ("10K File Delete", 10.0, "us"),
            ("TCP bandwidth", 6000.5, "MB/s"),
            ("Mmap reread bandwidth", 26_000.0, "MB/s"),
            ("ovr 16K", 0.5, "us"),
            ("2p/16K ctxsw", 3.5, "us"),
            ("L1 $", 1.25, "ns"),
            ("L2 $", 3.5, "ns"),
            ("Main mem", 80.0, "ns"),
            ("Rand mem", 120.0, "ns"),
        ] {
            assert!(found.contains(&figure), "{figure:?}: {found:#?}");
        }
        assert_eq!(found.len(), 34, "{found:#?}");
    }

    #[test]
    fn runs_of_one_host_are_runs_and_other_hosts_other_results() {
        let again = RUN.replace("Simple syscall: 0.1200", "Simple syscall: 0.1400");
        let two = read(&format!("{RUN}{again}")).unwrap();
        assert_eq!((two.len(), two[0].figures[0].runs.len()), (1, 2));
        assert!((two[0].figures[0].value - 0.13).abs() < 1e-12);
        let other = RUN.replace("Linux first ", "Linux second ");
        let hosts = read(&format!("{RUN}{other}")).unwrap();
        let labels: Vec<_> = hosts.iter().map(|of| of.label.as_deref()).collect();
        assert_eq!(labels, [Some("first"), Some("second")]);
    }

    #[test]
    fn what_a_program_prints_by_hand_is_read_and_a_broken_value_named() {
        let text = "Simple syscall: 0.2 microseconds\nlocalhost: RPC: Timed out\n1 2\n";
        assert_eq!(values(&read(text).unwrap()[0]), [("null call", 0.2, "us")]);
        let problem = read("Simple syscall: -nan microseconds\n").unwrap_err();
        assert_eq!(problem, (Some(1), "\"-nan\" is not a number".to_owned()));
    }
}
