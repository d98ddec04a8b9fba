//! The prober itself: born under a login uid of ours, on one CPU, it does operations and says what
//! they took.
//!
//! Protocol: the first line of stdin is a [`ProberSetup`], every other an [`Order`]; each answer is a line of
//! JSON on stdout. It is single-threaded, and ends at the end of its input.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use super::operation::{INODE_BUCKETS, Operation};
use weigh_host::lines::say;
use weigh_host::machine::counter::Counter;
use weigh_workload::setup::kind::login_uid::{become_a_child, set_login_uid};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProberSetup {
    pub loginuid: u32,
    pub cpu: Option<usize>,
    /// A private directory of this prober's.
    pub directory: PathBuf,
    /// The file that it creates and removes: alone in its directory.
    pub new: PathBuf,
    pub program: PathBuf,
    /// The file whose opening tells whether this process is audited.
    pub canary: PathBuf,
    /// Count instructions of the kernel instead of taking the time.
    pub counts_instructions: bool,
}

/// Some operations in a row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OperationBatch {
    pub operation: Operation,
    pub operations: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    Measure(Vec<OperationBatch>),
    /// Open the canary once; the answer has no amounts.
    Canary,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    Ready(u32),
    Error(String),
    /// Nanoseconds, or instructions, of each batch.
    Amounts(Vec<u64>),
}

/// Runs the prober on stdin and stdout until end of input.
pub fn run() -> io::Result<()> {
    let mut requests = io::stdin().lock();
    let mut line = String::new();
    requests.read_line(&mut line)?;
    let setup: ProberSetup = serde_json::from_str(&line)?;
    let mut worker = match be_born(&setup) {
        Ok(worker) => worker,
        Err(problem) => return say(&Reply::Error(problem)),
    };
    say(&Reply::Ready(std::process::id()))?;
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let amounts: io::Result<Vec<u64>> = match serde_json::from_str(&line)? {
            Order::Measure(batches) => batches.iter().map(|batch| worker.measure(*batch)).collect(),
            Order::Canary => File::open(&setup.canary).map(|_| Vec::new()),
        };
        match amounts {
            Ok(amounts) => say(&Reply::Amounts(amounts))?,
            Err(error) => say(&Reply::Error(format!("an operation failed: {error}")))?,
        }
    }
}

/// Creates a prober's worker. The login uid of the parent decides at the fork whether the process
/// has an audit context.
fn be_born(setup: &ProberSetup) -> Result<Worker, String> {
    set_login_uid(setup.loginuid)?;
    become_a_child().map_err(|error| format!("cannot fork: {error}"))?;
    if let Some(cpu) = setup.cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)
            .map_err(|error| format!("cannot stay on CPU {cpu}: {error}"))?;
    }
    let _ = mount_over(setup.new.parent().unwrap_or(&setup.directory));
    Worker::new(setup).map_err(|error| format!("{}: {error}", setup.directory.display()))
}

/// Mounts a tmpfs over a directory, for this process alone: it goes with it. An ext4 without a journal looks
/// at every inode that was freed within the last minute before it uses one again (`fs/ext4/ialloc.c`,
/// `recently_deleted`), so that each file created there makes the next one cost more. Where it cannot be
/// mounted, files are created on what there is.
fn mount_over(directory: &Path) -> io::Result<()> {
    let directory = CString::new(directory.as_os_str().as_bytes())?;
    let (none, nothing) = (c"none".as_ptr(), std::ptr::null());
    // SAFETY: takes a number.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into())?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all strings end with a zero, and there is no data.
    check(unsafe { libc::mount(none, c"/".as_ptr(), nothing, private, nothing.cast()) }.into())?;
    let kind = c"tmpfs".as_ptr();
    // SAFETY: the same.
    check(unsafe { libc::mount(none, directory.as_ptr(), kind, 0, nothing.cast()) }.into())
}

struct Worker {
    zeros: File,
    files: Vec<CString>,
    /// Operations on them so far.
    done: usize,
    new: CString,
    program: CString,
    counter: Option<Counter>,
}

const READ_BYTES: usize = 256;
/// Inode numbers mostly come one after the other; no file system needs nearly as many.
const MOST_TRIES: usize = 1024;

impl Worker {
    fn new(setup: &ProberSetup) -> io::Result<Worker> {
        std::fs::create_dir_all(&setup.directory)?;
        Ok(Worker {
            zeros: File::open("/dev/zero")?,
            files: files_in_every_bucket(&setup.directory)?,
            done: 0,
            new: CString::new(setup.new.as_os_str().as_bytes())?,
            program: CString::new(setup.program.as_os_str().as_bytes())?,
            counter: setup.counts_instructions.then(Counter::of_kernel).transpose()?,
        })
    }

    fn measure(&mut self, batch: OperationBatch) -> io::Result<u64> {
        if let Some(mut counter) = self.counter.take() {
            counter.start()?;
            let result = self.run(batch);
            let counted = counter.stop();
            self.counter = Some(counter);
            return result.and(counted);
        }
        if batch.operation.is_of_processes() {
            let before = cpu_ns()?;
            self.run(batch)?;
            return Ok(cpu_ns()? - before);
        }
        let start = Instant::now();
        self.run(batch)?;
        Ok(start.elapsed().as_nanos() as u64)
    }

    fn run(&mut self, batch: OperationBatch) -> io::Result<()> {
        let step = match batch.operation {
            Operation::Getppid => Worker::getppid,
            Operation::Read => Worker::read,
            Operation::Stat => Worker::stat,
            Operation::OpenClose => Worker::open_close,
            Operation::CreateUnlink => Worker::create_unlink,
            Operation::Fork => Worker::fork,
            Operation::Exec => Worker::exec,
        };
        (0..batch.operations).try_for_each(|_| step(self))
    }

    fn getppid(&mut self) -> io::Result<()> {
        // SAFETY: takes nothing, and cannot fail. The C library may remember what it gave.
        unsafe { libc::syscall(libc::SYS_getppid) };
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0_u8; READ_BYTES];
        // SAFETY: the buffer has the length that is given.
        let got =
            unsafe { libc::read(self.zeros.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        check(got as i64)
    }

    fn next_file(&mut self) -> &CString {
        self.done += 1;
        &self.files[self.done % self.files.len()]
    }

    fn stat(&mut self) -> io::Result<()> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
        let (at, path) = (libc::AT_FDCWD, self.next_file().as_ptr());
        // SAFETY: the path ends with a zero, and the structure is the kernel's.
        check(unsafe { libc::syscall(libc::SYS_newfstatat, at, path, stat.as_mut_ptr(), 0) })
    }

    fn open_close(&mut self) -> io::Result<()> {
        open_and_close(self.next_file(), libc::O_RDONLY)
    }

    fn create_unlink(&mut self) -> io::Result<()> {
        open_and_close(&self.new, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
        // SAFETY: the path ends with a zero.
        check(unsafe { libc::unlink(self.new.as_ptr()) }.into())
    }

    /// Without the C library, which has calls of its own to make in the child.
    fn fork(&mut self) -> io::Result<()> {
        // SAFETY: as fork(2) of a process with one thread; the child does nothing but end.
        let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        check(child)?;
        if child == 0 {
            // SAFETY: takes a number, and does not come back.
            unsafe { libc::syscall(libc::SYS_exit_group, 0) };
        }
        wait_for(child as libc::pid_t)
    }

    /// The workloads' executable ends at once where it is called by this name.
    fn exec(&mut self) -> io::Result<()> {
        let mut child = 0;
        let arguments = [c"@exec".as_ptr().cast_mut(), std::ptr::null_mut()];
        let environment = [std::ptr::null_mut()];
        // SAFETY: both lists end with a null, all strings with a zero, and nothing is asked for besides.
        let status = unsafe {
            libc::posix_spawn(
                &raw mut child,
                self.program.as_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                arguments.as_ptr(),
                environment.as_ptr(),
            )
        };
        if status != 0 {
            return Err(io::Error::from_raw_os_error(status));
        }
        wait_for(child)
    }
}

/// CPU time of this process and of its children that have ended. Starting a process takes so long that
/// other programs come in between, whose time this leaves out.
fn cpu_ns() -> io::Result<u64> {
    let mut own = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live structure of the kernel's kind.
    check(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut own) }.into())?;
    let mut children = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the same.
    check(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, children.as_mut_ptr()) }.into())?;
    // SAFETY: all zeros are a valid structure, and the kernel has filled it in.
    let children = unsafe { children.assume_init() };
    let us = |time: libc::timeval| 1_000_000 * time.tv_sec + time.tv_usec;
    let children_us = us(children.ru_utime) + us(children.ru_stime);
    Ok((1_000_000_000 * own.tv_sec + own.tv_nsec + 1000 * children_us) as u64)
}

fn wait_for(child: libc::pid_t) -> io::Result<()> {
    let mut ended = 0;
    // SAFETY: the pointer is to a live variable.
    check(unsafe { libc::waitpid(child, &raw mut ended, 0) }.into())
}

fn open_and_close(path: &CString, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the path ends with a zero.
    let fd = unsafe { libc::openat(libc::AT_FDCWD, path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) };
    check(fd.into())?;
    // SAFETY: it was opened just now, and nobody else knows it.
    check(unsafe { libc::close(fd) }.into())
}

/// The error of a call that gave −1.
fn check(result: i64) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The names of files that are no luckier than others: one for each of the places in which the kernel keeps
/// the watches of files by their inode numbers; fewer only where the file system gives no such numbers.
///
/// The kernel goes through all that it finds in the place of whatever file is used (`kernel/audit.h`,
/// `audit_hash_ino`; `auditfilter.c`). Of one file, a watch costs a hundred instructions or none, by chance.
/// Over a file in each place it costs what it costs on average.
fn files_in_every_bucket(directory: &Path) -> io::Result<Vec<CString>> {
    let mut by_bucket: BTreeMap<u64, PathBuf> = BTreeMap::new();
    for number in 0..MOST_TRIES {
        if by_bucket.len() as u64 == INODE_BUCKETS {
            break;
        }
        let file = directory.join(number.to_string());
        std::fs::write(&file, "")?;
        by_bucket.entry(std::fs::metadata(&file)?.ino() % INODE_BUCKETS).or_insert(file);
    }
    let name = |file: PathBuf| Ok(CString::new(file.into_os_string().into_vec())?);
    by_bucket.into_values().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_file_for_every_place_of_the_table() {
        let directory = tempfile::tempdir().unwrap();
        let files = files_in_every_bucket(directory.path()).unwrap();
        let mut buckets: Vec<u64> = files
            .iter()
            .map(|file| std::fs::metadata(file.to_str().unwrap()).unwrap().ino() % INODE_BUCKETS)
            .collect();
        buckets.sort_unstable();
        assert_eq!(buckets, (0..INODE_BUCKETS).collect::<Vec<_>>());
    }
}
