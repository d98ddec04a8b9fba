//! Process accounting (acct(2)): switches it, reads its records, and finds out whether it is on.
//!
//! The kernel has no call that says whether accounting is on, and a second file replaces the first without an
//! error. So a process is ended to see where the kernel writes then.

use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::events::files::{self, Events};
use crate::short_process;
use weigh_host::machine::mounts::writable_mounts;

/// Bytes of a record; it has the same length in all versions.
const RECORD: usize = 64;
/// `ac_version` without the bit of the byte order. Older records have no process numbers.
const VERSION: u8 = 3;

/// Files of Debian's package and Fedora's.
const USUAL_FILES: [&str; 2] = ["/var/log/account/pacct", "/var/account/pacct"];

/// Switches accounting on, into a file that exists, or off.
pub fn switch(file: Option<&Path>) -> io::Result<()> {
    let file = file.map(|file| CString::new(file.as_os_str().as_bytes())).transpose()?;
    let name = file.as_ref().map_or(std::ptr::null(), |file| file.as_ptr());
    // SAFETY: a null pointer, or a string that lives.
    match unsafe { libc::acct(name) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Fails like [`switch`] where accounting is not allowed or not there, and changes nothing.
pub fn may_switch() -> io::Result<()> {
    // An empty name is no file.
    match switch(Some(Path::new(""))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Process numbers of the records in a file.
///
/// # Errors
/// If the kernel writes records without process numbers.
pub fn processes(file: &Path) -> Result<Vec<u32>, String> {
    let content = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    content.chunks_exact(RECORD).map(process).collect()
}

fn process(record: &[u8]) -> Result<u32, String> {
    match (record[1] & 0x0f, record[16..20].try_into()) {
        (VERSION, Ok(number)) => Ok(u32::from_ne_bytes(number)),
        (version, _) => Err(format!(
            "the kernel writes accounting records of version {version}, which have no process numbers \
             (CONFIG_BSD_PROCESS_ACCT_V3)"
        )),
    }
}

/// Returns true if a file is open for writing, as that of accounting is.
pub fn is_written(file: &File) -> io::Result<bool> {
    // SAFETY: it takes numbers, and the file is open.
    let lease = |kind: libc::c_int| match unsafe {
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    match lease(libc::F_RDLCK) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
        Ok(()) => lease(libc::F_UNLCK).map(|()| false),
    }
}

/// The file into which accounting writes, also one that was removed; `None` if it is off.
///
/// Not found: a file on a file system that is mounted only elsewhere. Nor accounting that the kernel
/// suspended because that file system is full, unless it is into one of the usual files.
pub fn current_file() -> Result<Option<Metadata>, String> {
    let failed =
        |error: io::Error| format!("cannot find out whether process accounting is on: {error}");
    let group = files::open_group(Events::Notify).map_err(failed)?;
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    for place in places_of_files().map_err(failed)? {
        match files::mark(&group, flags, libc::FAN_MODIFY, &place) {
            // It is below another mount.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|error| {
                format!("cannot look for process accounting on {}: {error}", place.display())
            })?,
        }
    }
    let ended = short_process::end_one()?;
    match last_written(&group, ended).map_err(failed)? {
        None => suspended().map_err(failed),
        found => Ok(found),
    }
}

/// The last file that a process wrote.
///
/// Removes all marks before it reads the events: on a busy machine they may come without end.
fn last_written(group: &OwnedFd, pid: u32) -> io::Result<Option<Metadata>> {
    let flags = libc::FAN_MARK_FLUSH | libc::FAN_MARK_FILESYSTEM;
    files::mark(group, flags, 0, Path::new("/"))?;
    let mut found = None;
    while files::has_events(group)? {
        let mut own = files::events(group)?.into_iter().filter(|event| event.pid == pid as i32);
        if let Some(event) = own.next_back() {
            found = Some(File::from(event.file).metadata()?);
        }
    }
    Ok(found)
}

/// The usual file of accounting, if somebody writes it.
fn suspended() -> io::Result<Option<Metadata>> {
    for file in USUAL_FILES {
        match File::open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(opened) if is_written(&opened)? => return opened.metadata().map(Some),
            Ok(_) => {}
        }
    }
    Ok(None)
}

/// Where files of users can be; the kernel's own file systems have no regular files to write.
fn places_of_files() -> io::Result<Vec<PathBuf>> {
    let kinds = fs::read_to_string("/proc/filesystems")?;
    let on_devices = kinds.lines().filter_map(|line| line.strip_prefix('\t'));
    let kinds: Vec<&str> = on_devices.chain(["tmpfs", "overlay"]).collect();
    Ok(writable_mounts(&kinds, &fs::read("/proc/self/mountinfo")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn record(version: u8, number: u32) -> Vec<u8> {
        let mut record = vec![0; RECORD];
        record[1] = version;
        record[16..20].copy_from_slice(&number.to_ne_bytes());
        record
    }

    #[test]
    fn records_name_their_processes_or_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("records");
        fs::write(&file, [record(3, 7), record(0x83, 4_000_000)].concat()).unwrap();
        assert_eq!(processes(&file).unwrap(), [7, 4_000_000]);
        fs::write(&file, record(2, 7)).unwrap();
        assert!(processes(&file).unwrap_err().contains("version 2, which have no process numbers"));
    }

    #[test]
    fn events_are_read_once_no_more_can_come() {
        // Only root may mark file systems.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let group = files::open_group(Events::Notify).unwrap();
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        files::mark(&group, flags, libc::FAN_MODIFY, file.path()).unwrap();
        // A process of its own, as other tests of this one write files meanwhile.
        let writes = format!("echo x >>'{}'", file.path().display());
        let mut writer = std::process::Command::new("sh").args(["-c", &writes]).spawn().unwrap();
        assert!(writer.wait().unwrap().success());
        let found = last_written(&group, writer.id()).unwrap().unwrap();
        assert_eq!(found.ino(), file.as_file().metadata().unwrap().ino());
        fs::write(file.path(), "y").unwrap();
        assert!(files::events(&group).unwrap().is_empty(), "they may come without end");
    }

    #[test]
    fn a_file_that_somebody_may_write_is_known() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reading = File::open(file.path()).unwrap();
        assert!(is_written(&reading).unwrap());
        let path = file.into_temp_path();
        assert!(!is_written(&reading).unwrap());
        drop(path);
        assert!(!is_written(&reading).unwrap());
    }
}
