//! A file system of a few MiB that only we and our children see: in a mount namespace of our own, so that
//! nothing of it is left when we are gone, however that comes.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use trust::program;
use trust::start::{self, Inherited};
use weigh_host::said;

const IMAGE_BYTES: u64 = 8 << 20;
/// So much of it is full from the beginning: the log has 2 to 3 MiB.
const BALLAST_BYTES: usize = 4 << 20;

/// Mounted until this is dropped.
pub struct SmallDisk {
    pub directory: PathBuf,
    /// `ext4` on a loop device, or `tmpfs` where there is no loop device.
    pub file_system: &'static str,
    /// Absent where the socket of the system's log cannot be replaced.
    syslog: Option<Syslog>,
}

/// Messages of auditd to the system's log.
///
/// A thread receives at any time. The socket holds `net.unix.max_dgram_qlen` messages, 10 by
/// default; with more, auditd would wait in syslog(3), and the audited programs for auditd.
struct Syslog {
    socket: UnixDatagram,
    messages: Receiver<String>,
    /// Tells the end from an empty message.
    is_over: Arc<AtomicBool>,
    receiver: Option<JoinHandle<()>>,
}

impl Syslog {
    fn receive(socket: UnixDatagram) -> io::Result<Syslog> {
        let ours = socket.try_clone()?;
        let (sender, messages) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let receiver = thread::Builder::new().spawn(move || {
            let mut buffer = [0u8; 4096];
            loop {
                match ours.recv(&mut buffer) {
                    Ok(0) if ends.load(Ordering::SeqCst) => return,
                    Ok(0) => {}
                    Ok(length) => {
                        // The other end lives as long as this thread.
                        let _ = sender.send(text_of_message(&buffer[..length]));
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        let _ = sender.send(format!("no further message was received: {error}"));
                        return;
                    }
                }
            }
        })?;
        Ok(Syslog { socket, messages, is_over, receiver: Some(receiver) })
    }
}

impl Drop for Syslog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if self.socket.shutdown(Shutdown::Read).is_ok()
            && let Some(receiver) = self.receiver.take()
        {
            let _ = receiver.join();
        }
    }
}

/// `<29>Nov 22 03:39:43 auditd[123]: text`
fn text_of_message(datagram: &[u8]) -> String {
    let message = String::from_utf8_lossy(datagram);
    let message = message.split_once("]: ").map_or(&*message, |(_, text)| text);
    message.trim_matches(['\0', '\n', ' ']).to_owned()
}

impl SmallDisk {
    /// Makes it below a scratch directory. This process stays in its own mount namespace.
    pub fn mount(scratch: &Path) -> Result<SmallDisk, String> {
        let say = |what: &str, error: io::Error| {
            format!("cannot make a small file system: {what}: {error}")
        };
        // SAFETY: changes the namespace of this thread, and touches no memory.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(say("a mount namespace of our own", io::Error::last_os_error()));
        }
        run("mount", &["--make-rprivate", "/"])?;
        let directory = scratch.join("small-disk");
        fs::create_dir(&directory).map_err(|error| say("its directory", error))?;
        let file_system = match mount_ext4(scratch, &directory) {
            Ok(()) => "ext4",
            Err(_) => {
                let size = format!("size={IMAGE_BYTES}");
                run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &text(&directory)])?;
                "tmpfs"
            }
        };
        let syslog = replace_syslog(scratch);
        let disk = SmallDisk { directory, file_system, syslog };
        fs::write(disk.directory.join("ballast"), vec![0xa5; BALLAST_BYTES])
            .map_err(|error| say("its first file", error))?;
        Ok(disk)
    }

    /// Takes the log away, so that there is room again.
    pub fn clear(&self) -> io::Result<()> {
        for log in self.logs()? {
            fs::remove_file(log)?;
        }
        self.messages();
        Ok(())
    }

    pub fn logs(&self) -> io::Result<Vec<PathBuf>> {
        let mut logs = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("audit.log"))
            {
                logs.push(path);
            }
        }
        Ok(logs)
    }

    /// Returns the messages to the system's log since the last call, each message once.
    pub fn messages(&self) -> Vec<String> {
        let mut messages: Vec<String> = Vec::new();
        for message in self.syslog.iter().flat_map(|syslog| syslog.messages.try_iter()) {
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        messages
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = run("umount", &[&text(&self.directory)]);
    }
}

/// A loop device that `mount` makes goes with its mount.
fn mount_ext4(scratch: &Path, directory: &Path) -> Result<(), String> {
    let image = scratch.join("small-disk.img");
    fs::File::create(&image)
        .and_then(|file| file.set_len(IMAGE_BYTES))
        .map_err(|error| error.to_string())?;
    let image = text(&image);
    run("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", "-m", "0", "-b", "1024", &image])?;
    run("mount", &["-t", "ext4", "-o", "loop", &image, &text(directory)])
}

/// A copy of `/dev` that is written to elsewhere, with a socket of ours where syslog(3) sends to.
fn replace_syslog(scratch: &Path) -> Option<Syslog> {
    let [upper, work] = ["dev-upper", "dev-work"].map(|name| scratch.join(name));
    fs::create_dir(&upper).ok()?;
    fs::create_dir(&work).ok()?;
    let options = format!("lowerdir=/dev,upperdir={},workdir={}", upper.display(), work.display());
    run("mount", &["-t", "overlay", "-o", &options, "overlay", "/dev"]).ok()?;
    let _ = fs::remove_file("/dev/log");
    let socket = UnixDatagram::bind("/dev/log").ok()?;
    Syslog::receive(socket).ok()
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let path = program::find(program)?.ok_or_else(|| format!("`{program}` is not installed"))?;
    let mut command = start::command(path, Inherited::Fixed);
    command.args(arguments);
    let output =
        said::output(command).map_err(|error| format!("cannot run `{program}`: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let arguments = arguments.join(" ");
            Err(format!("`{program} {arguments}`: {}", said::words(&output.stderr)))
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_messages_than_the_socket_holds_block_nobody() {
        let (auditd, socket) = UnixDatagram::pair().unwrap();
        let syslog = Syslog::receive(socket).unwrap();
        auditd.set_write_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        for number in 0..500 {
            auditd.send(format!("<28>Nov 28 12:56:49 auditd[9]: {number}\n\0").as_bytes()).unwrap();
        }
        let received: Vec<String> = syslog.messages.iter().take(500).collect();
        assert_eq!(received, (0..500).map(|number| number.to_string()).collect::<Vec<_>>());
        auditd.send(b"").unwrap();
        auditd.send(b"<28>Nov 28 12:56:49 auditd[9]: last").unwrap();
        assert_eq!(syslog.messages.recv().unwrap(), "last");
        drop(syslog); // ends its thread
    }
}
