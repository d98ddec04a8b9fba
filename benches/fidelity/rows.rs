//! Which program of which suite does the same as which workload of ours, how it is started, and
//! where the two differ on purpose.

use crate::read::Form;

/// Where a program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Programs of our own after UnixBench's definitions, in `reference/`, for where it is not there.
    Definitions,
    UnixBench,
    Lmbench,
    Perf,
}

impl Suite {
    pub const ALL: [Suite; 4] = [Suite::Definitions, Suite::UnixBench, Suite::Lmbench, Suite::Perf];

    pub fn name(self) -> &'static str {
        match self {
            Suite::Definitions => "UnixBench's definitions",
            Suite::UnixBench => "UnixBench",
            Suite::Lmbench => "lmbench",
            Suite::Perf => "perf bench",
        }
    }
}

/// A pair of programs.
#[derive(Clone, Copy, Debug)]
pub struct Counterpart {
    pub suite: Suite,
    /// Program and arguments. `{n}` is the number of operations, `{dir}` a directory for files, `{bin}`
    /// where the program is.
    pub theirs: &'static str,
    pub form: Form,
    pub ours: &'static str,
    /// Meaning of one operation.
    pub operation: &'static str,
    /// How many operations of ours one of theirs is.
    pub scale: f64,
    /// Why the rates need not agree.
    pub differs: Option<&'static str>,
}

impl Counterpart {
    const fn because(self, reason: &'static str) -> Counterpart {
        Counterpart { differs: Some(reason), ..self }
    }
}

const fn unixbench(
    theirs: &'static str,
    ours: &'static str,
    operation: &'static str,
) -> Counterpart {
    let (suite, form) = (Suite::UnixBench, Form::UnixBench);
    Counterpart { suite, theirs, form, ours, operation, scale: 1.0, differs: None }
}

const fn definition(
    theirs: &'static str,
    ours: &'static str,
    operation: &'static str,
) -> Counterpart {
    Counterpart { suite: Suite::Definitions, ..unixbench(theirs, ours, operation) }
}

const fn lmbench(
    theirs: &'static str,
    form: Form,
    ours: &'static str,
    operation: &'static str,
) -> Counterpart {
    let suite = Suite::Lmbench;
    Counterpart { suite, theirs, form, ours, operation, scale: 1.0, differs: None }
}

const fn latency(
    theirs: &'static str,
    name: &'static str,
    ours: &'static str,
    operation: &'static str,
) -> Counterpart {
    lmbench(theirs, Form::LmbenchLatency(name), ours, operation)
}

const fn perf(
    theirs: &'static str,
    form: Form,
    ours: &'static str,
    operation: &'static str,
) -> Counterpart {
    let suite = Suite::Perf;
    Counterpart { suite, theirs, form, ours, operation, scale: 1.0, differs: None }
}

const ARITHMETIC: &str = "here every i is kept from the optimiser";

/// Counterparts. Of UnixBench they are the programs that need neither a compiler nor a text of
/// their own. If a program uses `time(2)` to decide when to end, it runs for long.
pub const COUNTERPARTS: &[Counterpart] = &[
    definition("spawn {n}", "spawn", "fork, exit, wait"),
    definition("execl {n}", "execl", "exec of itself"),
    definition("pipe {n}", "pipe", "write and read of 512 bytes"),
    definition("context1 {n}", "context1@same-cpu", "8 bytes there and back"),
    definition("fstime -c {n} 1024 2000", "fstime", "read and write of 1024 bytes"),
    definition("fstime -c {n} 256 500", "fsbuffer", "read and write of 256 bytes"),
    definition("fstime -c {n} 4096 8000", "fsdisk", "read and write of 4096 bytes"),
    definition("fstime -r {n} 1024 2000", "fstime-r", "read of 1024 bytes"),
    definition("fstime -w {n} 1024 2000", "fstime-w", "write of 1024 bytes"),
    unixbench("dhry2reg 1", "dhry2reg", "a pass of the main loop")
        .because("here no procedure is merged into another"),
    unixbench("whetstone-double", "whetstone-double", "10 million Whetstone instructions")
        .because("here section 4 is not optimised away"),
    unixbench("short 1", "arith-short", "a sum of a hundred terms").because(ARITHMETIC),
    unixbench("int 1", "arith-int", "a sum of a hundred terms").because(ARITHMETIC),
    unixbench("long 1", "arith-long", "a sum of a hundred terms").because(ARITHMETIC),
    unixbench("float 1", "arith-float", "a sum of a hundred terms").because(ARITHMETIC),
    unixbench("double 1", "arith-double", "a sum of a hundred terms").because(ARITHMETIC),
    unixbench("arithoh 1", "arithoh", "a call of an empty loop")
        .because("here the loop is not optimised away"),
    unixbench("hanoi 1", "hanoi", "10 disks moved").because("here every call is a call"),
    unixbench("syscall 1", "syscall", "dup, close, getpid, getuid, umask"),
    unixbench("syscall 1 close", "syscall-close", "dup, close"),
    unixbench("syscall 1 getpid", "syscall-getpid", "getpid"),
    unixbench("syscall 1 exec", "sysexec", "fork, exec of true, wait"),
    unixbench("pipe 1", "pipe", "write and read of 512 bytes"),
    unixbench("context1 1", "context1@same-cpu", "8 bytes there and back"),
    unixbench("spawn 1", "spawn", "fork, exit, wait"),
    unixbench("execl 10", "execl", "exec of itself"),
    unixbench("fstime -c -t 3 -d {dir} -b 1024 -m 2000", "fstime", "read and write of 1024 bytes"),
    unixbench("fstime -c -t 3 -d {dir} -b 256 -m 500", "fsbuffer", "read and write of 256 bytes"),
    unixbench("fstime -c -t 3 -d {dir} -b 4096 -m 8000", "fsdisk", "read and write of 4096 bytes"),
    unixbench("looper 5 {bin}/multi.sh 1", "shell1", "a script with sort, od, grep, tee, wc, rm")
        .because("here LC_ALL=C, and an own text"),
    latency("lat_syscall null", "Simple syscall", "getppid", "getppid"),
    latency("lat_syscall read", "Simple read", "read", "read of 1 byte of /dev/zero"),
    latency("lat_syscall stat file", "Simple stat", "stat", "stat of a path of one component"),
    latency("lat_syscall fstat file", "Simple fstat", "fstat", "fstat of an open file"),
    latency("lat_syscall open file", "Simple open/close", "open-close", "open and close of it"),
    latency("lat_select -n 100 file", "fd's", "lat-select-file-100", "select of 100 files"),
    latency("lat_sig install", "Signal handler installation", "lat-sig-install", "sigaction"),
    latency("lat_pipe", "Pipe latency", "lat-pipe@same-cpu", "a byte there and back"),
    latency(
        "lat_unix",
        "AF_UNIX sock stream latency",
        "lat-unix@same-cpu",
        "a byte there and back",
    ),
    Counterpart {
        scale: 0.5,
        ..latency("lat_sem", "Semaphore latency", "lat-sem@same-cpu", "a turn there and back")
    },
    latency("lat_proc fork", "Process fork+exit", "fork", "fork, exit, wait")
        .because("a process of another size is copied"),
    lmbench("bw_mem 8m bcopy", Form::LmbenchBandwidth, "bw-mem-bcopy-8m", "memcpy of 8 MiB"),
    lmbench("bw_mem 8m bzero", Form::LmbenchBandwidth, "bw-mem-bzero-8m", "memset of 8 MiB"),
    perf("perf bench syscall basic --loop {n}", Form::PerfMicroseconds, "getppid", "getppid"),
    perf(
        "perf bench futex hash -t 1 -f 1 -r 1",
        Form::PerfOperations,
        "futex-wait",
        "futex(FUTEX_WAIT) that returns EAGAIN at once",
    ),
    perf(
        "perf bench sched pipe --loop {n}",
        Form::PerfMicroseconds,
        "lat-pipe@same-cpu",
        "there and back through two pipes: theirs 4 bytes, ours 1",
    ),
    perf(
        "perf bench --format simple mem memcpy -f default -s 8MB -l {n}",
        Form::PerfBytes,
        "bw-mem-bcopy-8m",
        "memcpy of 8 MiB",
    ),
    perf(
        "perf bench --format simple mem memset -f default -s 8MB -l {n}",
        Form::PerfBytes,
        "bw-mem-bzero-8m",
        "memset of 8 MiB",
    ),
];
