//! The columns of lmbench's summary, the workloads that each is made of, and those that lmbench would
//! subtract.

/// Conversion from a workload's rate to the numbers of a table.
#[derive(Clone, Copy)]
pub enum ColumnScale {
    /// Time per operation; the value is the number of its units in a second.
    Time(f64),
    Bandwidth,
    Millions,
}

/// A column. Its own title, or the title with what follows, is how an import of lmbench calls it.
pub struct LmbenchColumn {
    pub title: &'static str,
    /// The workloads of weigh that it is the mean of; none where only an import has it.
    pub names: &'static [&'static str],
    /// Workloads whose times lmbench subtracts. It adds back the times of workloads that these
    /// include.
    pub less: &'static [&'static str],
    pub more: &'static [&'static str],
    /// Part of the workload's operations whose median time it shows, in the section's unit.
    pub part: Option<&'static str>,
    /// Its scale, if it is not the section's.
    pub own_scale: Option<ColumnScale>,
}

/// As measured.
const fn column(title: &'static str, names: &'static [&'static str]) -> LmbenchColumn {
    LmbenchColumn { title, names, less: &[], more: &[], part: None, own_scale: None }
}

/// Less what lmbench measures for that.
const fn net(
    title: &'static str,
    names: &'static [&'static str],
    less: &'static [&'static str],
) -> LmbenchColumn {
    LmbenchColumn { less, ..column(title, names) }
}

/// The time of one part of a workload's operations.
const fn part(
    title: &'static str,
    names: &'static [&'static str],
    part: &'static str,
) -> LmbenchColumn {
    LmbenchColumn { part: Some(part), ..column(title, names) }
}

pub struct Section {
    pub title: &'static str,
    pub scale: ColumnScale,
    /// Suffix that an import adds to the titles, as two tables have a `Pipe`.
    pub suffix: &'static str,
    pub columns: &'static [LmbenchColumn],
}

const OVERHEAD_0K: &[&str] = &["lat-ctx-overhead-0k"];
const OVERHEAD_16K: &[&str] = &["lat-ctx-overhead-16k"];
const OVERHEAD_64K: &[&str] = &["lat-ctx-overhead-64k"];

const MICRO: ColumnScale = ColumnScale::Time(1e6);

pub const SECTIONS: [Section; 6] = [
    Section {
        title: "Processor, Processes - times in microseconds - smaller is better",
        scale: MICRO,
        suffix: "",
        columns: &[
            // A chain of exclusive ors: each takes one cycle, and the next one waits for it.
            LmbenchColumn {
                own_scale: Some(ColumnScale::Millions),
                ..column("Mhz", &["lat-ops-uint64-bit"])
            },
            column("null call", &["getppid"]),
            column("null I/O", &["read", "write"]),
            column("stat", &["stat"]),
            column("open clos", &["open-close"]),
            column("slct TCP", &["lat-select-tcp-100"]),
            column("sig inst", &["lat-sig-install"]),
            net("sig hndl", &["lat-sig-catch"], &["lat-sig-overhead"]),
            column("sig ovr", &["lat-sig-overhead"]),
            column("fork proc", &["fork"]),
            column("exec proc", &["exec"]),
            column("sh proc", &["lat-shell"]),
        ],
    },
    Section {
        title: "Context switching - times in microseconds - smaller is better",
        scale: MICRO,
        suffix: "",
        columns: &[
            net("2p/0K ctxsw", &["lat-ctx-2p-0k"], OVERHEAD_0K),
            net("2p/16K ctxsw", &["lat-ctx-2p-16k"], OVERHEAD_16K),
            net("2p/64K ctxsw", &["lat-ctx-2p-64k"], OVERHEAD_64K),
            net("8p/16K ctxsw", &["lat-ctx-8p-16k"], OVERHEAD_16K),
            net("8p/64K ctxsw", &["lat-ctx-8p-64k"], OVERHEAD_64K),
            net("16p/16K ctxsw", &["lat-ctx-16p-16k"], OVERHEAD_16K),
            net("16p/64K ctxsw", &["lat-ctx-16p-64k"], OVERHEAD_64K),
            column("ovr 0K", OVERHEAD_0K),
            column("ovr 16K", OVERHEAD_16K),
            column("ovr 64K", OVERHEAD_64K),
        ],
    },
    Section {
        title: "*Local* Communication latencies in microseconds - smaller is better",
        scale: MICRO,
        suffix: " latency",
        columns: &[
            net("2p/0K ctxsw", &["lat-ctx-2p-0k"], OVERHEAD_0K),
            column("Pipe", &["lat-pipe"]),
            column("AF UNIX", &["lat-unix"]),
            column("UDP", &["lat-udp"]),
            column("TCP", &["lat-tcp"]),
            column("TCP conn", &["lat-connect"]),
        ],
    },
    Section {
        title: "File & VM system latencies in microseconds - smaller is better",
        scale: MICRO,
        suffix: "",
        columns: &[
            part("0K File Create", &["lat-fs-0k"], "create"),
            part("0K File Delete", &["lat-fs-0k"], "delete"),
            column("0K create+delete", &["create-unlink"]),
            part("10K File Create", &["lat-fs-10k"], "create"),
            part("10K File Delete", &["lat-fs-10k"], "delete"),
            column("10K create+delete", &["lat-fs-10k"]),
            column("Mmap Latency", &["lat-mmap-8m"]),
            LmbenchColumn {
                less: &["lat-sig-catch"],
                more: &["lat-sig-overhead"],
                ..column("Prot Fault", &["lat-sig-prot"])
            },
            column("Page Fault", &["lat-pagefault"]),
            column("100fd selct", &["lat-select-file-100"]),
        ],
    },
    Section {
        title: "*Local* Communication bandwidths in MB/s - bigger is better",
        scale: ColumnScale::Bandwidth,
        suffix: " bandwidth",
        columns: &[
            column("Pipe", &["bw-pipe"]),
            column("AF UNIX", &["bw-unix"]),
            column("TCP", &["bw-tcp"]),
            column("File reread", &["bw-file-rd-8m"]),
            column("Mmap reread", &["bw-mmap-rd-8m"]),
            column("Bcopy (libc)", &["bw-mem-bcopy-64m"]),
            column("Bcopy (hand)", &["bw-mem-cp-64m"]),
            column("Mem read", &["bw-mem-rd-64m"]),
            column("Mem write", &["bw-mem-wr-64m"]),
        ],
    },
    Section {
        title: "Memory latencies in nanoseconds - smaller is better",
        scale: ColumnScale::Time(1e9),
        suffix: "",
        columns: &[
            column("L1 $", &["lat-mem-rd-64-16k"]),
            column("L2 $", &["lat-mem-rd-256-128k"]),
            column("Main mem", &["lat-mem-rd-256-64m"]),
            column("Rand mem", &["lat-mem-rd-random-64m"]),
        ],
    },
];

impl ColumnScale {
    /// Converts a rate per second.
    pub fn of(self, rate: f64) -> f64 {
        match self {
            ColumnScale::Time(per_second) => per_second / rate,
            ColumnScale::Bandwidth => rate,
            ColumnScale::Millions => rate / 1e6,
        }
    }
}
