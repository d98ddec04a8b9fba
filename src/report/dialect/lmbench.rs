//! lmbench's summary: a table per kind of test, with a line per arm. A column is there where some
//! workload is.

use super::super::table::{Align, Table};
use super::{Line, Sheet, format, lines, three_digits};

/// What a table's numbers are, from the rate of a workload.
#[derive(Clone, Copy)]
enum Scale {
    /// Of time per operation: how many of the unit make a second.
    Time(f64),
    Bandwidth,
}

/// A column, and the workloads of weigh that it is the mean of. Its own title, or the title with what
/// follows, is how an import of lmbench calls it.
type Column = (&'static str, &'static [&'static str]);

struct Section {
    title: &'static str,
    scale: Scale,
    /// What an import adds to the titles, as two tables have a `Pipe`.
    suffix: &'static str,
    columns: &'static [Column],
}

const MICRO: Scale = Scale::Time(1e6);

const SECTIONS: [Section; 6] = [
    Section {
        title: "Processor, Processes - times in microseconds - smaller is better",
        scale: MICRO,
        suffix: "",
        columns: &[
            ("null call", &["getppid"]),
            ("null I/O", &["read", "write"]),
            ("stat", &["stat"]),
            ("open clos", &["open-close"]),
            ("slct TCP", &["lat-select-tcp-100"]),
            ("sig inst", &["lat-sig-install"]),
            ("sig hndl", &["lat-sig-catch"]),
            ("fork proc", &["fork"]),
            ("exec proc", &["exec"]),
            ("sh proc", &["lat-shell"]),
        ],
    },
    Section {
        title: "Context switching - times in microseconds - smaller is better",
        scale: MICRO,
        suffix: "",
        columns: &[
            ("2p/0K ctxsw", &["lat-ctx-2p-0k"]),
            ("2p/16K ctxsw", &["lat-ctx-2p-16k"]),
            ("2p/64K ctxsw", &["lat-ctx-2p-64k"]),
            ("8p/16K ctxsw", &["lat-ctx-8p-16k"]),
            ("8p/64K ctxsw", &["lat-ctx-8p-64k"]),
            ("16p/16K ctxsw", &["lat-ctx-16p-16k"]),
            ("16p/64K ctxsw", &["lat-ctx-16p-64k"]),
        ],
    },
    Section {
        title: "*Local* Communication latencies in microseconds - smaller is better",
        scale: MICRO,
        suffix: " latency",
        columns: &[
            ("Pipe", &["lat-pipe"]),
            ("AF UNIX", &["lat-unix"]),
            ("UDP", &["lat-udp"]),
            ("TCP", &["lat-tcp"]),
            ("TCP conn", &["lat-connect"]),
        ],
    },
    Section {
        title: "File & VM system latencies in microseconds - smaller is better",
        scale: MICRO,
        suffix: "",
        columns: &[
            ("Mmap Latency", &["lat-mmap-8m"]),
            ("Prot Fault", &["lat-sig-prot"]),
            ("Page Fault", &["lat-pagefault"]),
            ("100fd selct", &["lat-select-file-100"]),
        ],
    },
    Section {
        title: "*Local* Communication bandwidths in MB/s - bigger is better",
        scale: Scale::Bandwidth,
        suffix: " bandwidth",
        columns: &[
            ("Pipe", &["bw-pipe"]),
            ("AF UNIX", &["bw-unix"]),
            ("TCP", &["bw-tcp"]),
            ("File reread", &["bw-file-rd-8m"]),
            ("Mmap reread", &["bw-mmap-rd-8m"]),
            ("Bcopy (libc)", &["bw-mem-bcopy-64m"]),
            ("Bcopy (hand)", &["bw-mem-cp-64m"]),
            ("Mem read", &["bw-mem-rd-64m"]),
            ("Mem write", &["bw-mem-wr-64m"]),
        ],
    },
    Section {
        title: "Memory latencies in nanoseconds - smaller is better",
        scale: Scale::Time(1e9),
        suffix: "",
        columns: &[
            ("L1 $", &["lat-mem-rd-64-16k"]),
            ("L2 $", &["lat-mem-rd-256-128k"]),
            ("Main mem", &["lat-mem-rd-256-64m"]),
            ("Rand mem", &["lat-mem-rd-random-64m"]),
        ],
    },
];

pub fn render(sheet: &Sheet) -> Result<String, String> {
    let parts: Vec<String> = SECTIONS.iter().filter_map(|section| section.render(sheet)).collect();
    if parts.is_empty() {
        return Err("none of its workloads is a column of lmbench's summary".into());
    }
    let mut text = parts.join("\n");
    if sheet.head.is_none() {
        text.push_str(
            "\nCompatible with lmbench's summary, from workloads of our own. Nothing is subtracted: context\n\
             switches, sig hndl and Prot Fault include what lmbench takes off.\n",
        );
    }
    Ok(text)
}

impl Section {
    /// `None` where no column has a workload.
    fn render(&self, sheet: &Sheet) -> Option<String> {
        let titles = std::iter::once(("", Align::Left));
        let columns = titles.chain(self.columns.iter().map(|(title, _)| (*title, Align::Right)));
        let row = |(number, arm): (usize, &String)| {
            let cells = self.columns.iter().map(|column| {
                let value = self.value(sheet, column, number);
                value.map(three_digits).unwrap_or_default()
            });
            std::iter::once(format::label(arm)).chain(cells).collect::<Vec<String>>()
        };
        let rows: Vec<Vec<String>> = sheet.arms.iter().enumerate().map(row).collect();
        let is_there = rows.iter().any(|row| row[1..].iter().any(|cell| !cell.is_empty()));
        is_there.then(|| format!("{}\n{}", self.title, lines(&Table::new(columns.collect(), rows))))
    }

    /// The mean over the workloads of a column, as lmbench's null I/O is that of read and write.
    fn value(&self, sheet: &Sheet, (title, names): &Column, arm: usize) -> Option<f64> {
        let of = |line: &Line| {
            let rate = line.rates[arm]?;
            Some(match self.scale {
                Scale::Time(per_second) => per_second / rate,
                Scale::Bandwidth => rate,
            })
        };
        let imported = format!("{title}{}", self.suffix);
        let lines = || sheet.lines.iter().filter(|line| line.copies.is_none());
        if let Some(line) = lines().find(|line| line.name == imported) {
            return of(line);
        }
        let values: Vec<f64> = names
            .iter()
            .map(|name| {
                // Two runs shall show the same, whichever placements they have.
                let on_one = format!("{name}@same-cpu");
                let line = lines().find(|line| line.name == on_one);
                line.or_else(|| lines().find(|line| is_of(&line.name, name))).and_then(of)
            })
            .collect::<Option<_>>()?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// Whether a row is of a workload, wherever its processes were placed.
fn is_of(row: &str, workload: &str) -> bool {
    row.split('@').next() == Some(workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::catalogue;
    use crate::workload::kernels::Kernels;

    /// A column of a workload that was renamed would be empty for ever.
    #[test]
    fn every_column_has_its_workloads() {
        let directory = tempfile::tempdir().unwrap();
        let workloads = catalogue::read(&Kernels::unpack(directory.path()).unwrap()).unwrap();
        for (title, names) in SECTIONS.iter().flat_map(|section| section.columns) {
            for name in *names {
                assert!(workloads.iter().any(|w| is_of(&w.name, name)), "{title}: {name}");
            }
        }
    }
}
