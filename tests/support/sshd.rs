//! An sshd of a test's own, which stands for another machine. Its directory for temporary files is `there`
//! in the home.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{Home, is_root, skip, wait_until};

pub const SSHD: &str = "/usr/sbin/sshd";
const LIMIT: Duration = Duration::from_secs(60);

/// It ends with this, with all of its connections.
pub struct Sshd {
    child: Child,
    address: String,
    port: u16,
}

/// Kills sshd and its children: a survivor keeps the tests' output open, and its reader waits for ever. Each
/// connection's process leads a session of its own, so killing the process group misses it.
impl Drop for Sshd {
    fn drop(&mut self) {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let children = children.unwrap_or_default();
        let children =
            children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Returns true if this host has an sshd that can become the user.
pub fn can_have_sshd() -> bool {
    let can = is_root() && Path::new(SSHD).exists();
    if !can {
        skip("sshd", "needs root and sshd");
    }
    can
}

impl Sshd {
    /// `command` is [`SSHD`], or what executes it elsewhere; `settings` are lines more of its configuration.
    pub fn start(
        home: &Home,
        (address, port): (&str, u16),
        mut command: Command,
        settings: &str,
    ) -> Sshd {
        // sshd's privilege separation directory: sshd refuses to start without it.
        fs::create_dir_all("/run/sshd").unwrap();
        fs::create_dir_all(home.path("there")).unwrap();
        let host_key = key(home, "host_key");
        home.file("authorized", key(home, "identity"));
        home.file("known_hosts", format!("[{address}]:{port} {host_key}{address} {host_key}"));
        let path = |name: &str| home.path(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             UsePAM no\nStrictModes no\nPermitRootLogin yes\nSetEnv TMPDIR={}\n{settings}",
            path("host_key"),
            path("authorized"),
            path("there")
        );
        let config = home.file("sshd_config", config);
        command
            .args(["-D", "-e", "-f"])
            .arg(config)
            .process_group(0)
            .stderr(fs::File::create(home.path("log")).unwrap());
        let sshd = Sshd { child: command.spawn().unwrap(), address: address.to_owned(), port };
        let said = || fs::read_to_string(home.path("log")).unwrap();
        let listening = format!("Server listening on {address} port {port}.");
        assert!(wait_until(LIMIT, || said().contains(&listening)), "{}", said());
        sshd
    }

    /// How it is named to `weigh`.
    pub fn destination(&self, home: &Home) -> String {
        self.destination_with(home, "identity", "known_hosts")
    }

    /// Returns the destination with other files.
    pub fn destination_with(&self, home: &Home, identity: &str, known_hosts: &str) -> String {
        let [identity, known_hosts] =
            [identity, known_hosts].map(|name| home.path(name).display().to_string());
        let Sshd { address, port, .. } = self;
        format!("root@{address},port={port},identity={identity},known_hosts={known_hosts}")
    }
}

/// The public half of a key, which is made where there is none.
pub fn key(home: &Home, name: &str) -> String {
    let file = home.path(name);
    if !file.exists() {
        let mut made = Command::new("ssh-keygen");
        made.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file);
        assert!(made.status().unwrap().success());
    }
    fs::read_to_string(file.with_extension("pub")).unwrap()
}

/// Returns true if nothing is left there, neither files nor processes.
pub fn is_clean(home: &Home) -> bool {
    let marker = format!("TMPDIR={}", home.path("there").display());
    let lives = || {
        let mut processes = fs::read_dir("/proc").unwrap().flatten();
        processes.any(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
        })
    };
    fs::read_dir(home.path("there")).unwrap().count() == 0 && !lives()
}
