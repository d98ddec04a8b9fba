//! The one place where commands are made. It says which variables of the caller a program gets, and that it
//! gets none of the caller's files: `PERL5LIB`, `APT_CONFIG` or `BASH_ENV` make a program of the system
//! execute what another user wrote, and a file that root's shell has open is nobody else's to read.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::geteuid;

use super::path::trusted;
use super::program::search_path;

/// Variables of the caller that programs of the system get, beside `PATH`.
const KEPT: &str = "\
    LANG LC_ALL TERM TMPDIR http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY \
    HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY";
const LAST_STANDARD: libc::c_int = libc::STDERR_FILENO;

/// Which variables a program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    /// `PATH` as [`super::program::find`] searches, language, terminal, `TMPDIR` and proxies: for every
    /// program that the user did not write on a command line.
    Fixed,
    /// All of the caller's: for commands and workloads of the user, and for `weigh`, which starts them.
    Callers,
}

/// A command that has these variables.
#[allow(clippy::disallowed_methods)]
pub fn command(program: impl AsRef<OsStr>, inherited: Inherited) -> Command {
    let mut command = Command::new(program);
    if inherited == Inherited::Fixed {
        let kept = KEPT.split(' ').filter_map(|name| Some((name, std::env::var_os(name)?)));
        let kept = kept.filter(|(name, value)| *name != "TMPDIR" || is_safe(Path::new(value)));
        command.env_clear().env("PATH", search_path()).envs(kept);
    }
    command
}

/// Has the program that this command starts inherit these files, which stay open until then.
pub fn hand_over(command: &mut Command, files: Vec<RawFd>) {
    // SAFETY: between fork and exec there is one system call per file, and no allocation.
    unsafe {
        command.pre_exec(move || {
            let mut files = files.iter().map(|&file| BorrowedFd::borrow_raw(file));
            files.try_for_each(|file| Ok(fcntl_setfd(file, FdFlags::empty())?))
        });
    }
}

/// Scripts of root's make files below `TMPDIR`, and believe what is in them.
fn is_safe(directory: &Path) -> bool {
    !geteuid().is_root() || trusted(directory).is_ok()
}

/// Keeps all files above stderr that the caller left open from the programs that this process starts. The
/// process itself can still use them, as `--json /dev/fd/3` does. To be called before anything is opened.
pub fn keep_open_files() {
    let first = LAST_STANDARD + 1;
    // SAFETY: it takes numbers.
    let kept = unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_int::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if kept == 0 {
        return;
    }
    // Before Linux 5.11.
    for file in open_files().filter(|file| *file >= first) {
        // SAFETY: it takes numbers; one that is not open is refused.
        unsafe { libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Lists the open files, as far as that can be seen; else as many numbers as shells use.
fn open_files() -> Box<dyn Iterator<Item = libc::c_int>> {
    const MOST: libc::c_int = 1 << 16;
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => {
            let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
            let found: Vec<libc::c_int> = entries.flatten().filter_map(number).collect();
            Box::new(found.into_iter())
        }
        Err(_) => Box::new(0..MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a process of its own, as the environment belongs to all threads.
    #[test]
    fn a_program_of_the_system_gets_nothing_else_of_the_caller() {
        const INSIDE: &str = "WEIGH_TEST_OF_VARIABLES";
        if std::env::var_os(INSIDE).is_none() {
            let own = std::env::current_exe().unwrap();
            let name = "start::tests::a_program_of_the_system_gets_nothing_else_of_the_caller";
            let mut again = command(own, Inherited::Callers);
            again.args(["--exact", name]).env(INSIDE, "1").env("PERL5LIB", "/x").env("LANG", "C");
            assert!(again.status().unwrap().success());
            return;
        }
        let of = |inherited| {
            let said = command("/usr/bin/env", inherited).output().unwrap().stdout;
            let said = String::from_utf8(said).unwrap();
            let names = said.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
            names.collect::<Vec<_>>()
        };
        assert!(of(Inherited::Callers).contains(&"PERL5LIB".to_owned()));
        let fixed = of(Inherited::Fixed);
        assert!(["PATH", "LANG"].iter().all(|name| fixed.iter().any(|found| found == name)));
        let is_kept = |name: &String| name == "PATH" || KEPT.split(' ').any(|kept| kept == name);
        assert!(fixed.iter().all(is_kept), "{fixed:?}");
    }
}
