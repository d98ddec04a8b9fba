//! The FTP server of W_active: vsftpd where it is installed, or else one that COMM's peer has.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use trust::program;
use trust::start::{self, Inherited};
use weigh_host::said::{Heard, Keep, Said};
use weigh_workload::member::{Readiness, StartServer};

/// The activity that asks it.
pub const FTP_ACTIVITY: &str = "activity-ftp";
pub const FTP_PORT: u16 = 2121;
/// Size of the fetched file, in bytes: workloads/activity/ftp.c.
const PAYLOAD_BYTES: u32 = 1 << 20;
const STARTS_WITHIN_MS: u64 = 10_000;
const LONGEST_VERSION: usize = 200;
const SAYS_WITHIN: Duration = Duration::from_secs(10);

/// A program of the distribution's.
pub struct Vsftpd {
    program: PathBuf,
}

impl Vsftpd {
    pub fn find() -> Result<Vsftpd, String> {
        match program::find("vsftpd")? {
            Some(program) => Ok(Vsftpd { program }),
            None => Err("`vsftpd` is not installed (Debian: apt-get install vsftpd)".into()),
        }
    }

    /// Asks the server for its version: `version 3.0.3`. The server writes it to its standard
    /// input, as to a client.
    pub fn version(&self) -> String {
        let said = || -> io::Result<String> {
            let (said, writer) = Said::pipe(Keep::First(LONGEST_VERSION))?;
            let mut command = start::command(&self.program, Inherited::Fixed);
            command.arg("-v").stdin(writer).stdout(Stdio::null()).stderr(Stdio::null());
            let mut heard = Heard::over(command, said, None)?;
            heard.wait(SAYS_WITHIN, |_| true)?;
            let words = heard.stdout.last_words().unwrap_or_default();
            Ok(words.trim_start_matches("vsftpd: ").to_owned())
        };
        said().ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown version".into())
    }

    /// How it is started. Who knows the nonce gets one file of it, and nothing else.
    pub fn raise(&self, scratch: &Path, address: Ipv4Addr, nonce: &str) -> io::Result<StartServer> {
        let directory = scratch.join("ftp");
        let files = directory.join("files");
        fs::create_dir_all(&files)?;
        let payload = files.join(format!("payload-{PAYLOAD_BYTES}"));
        fs::write(&payload, content())?;
        // It gives away what everybody may read.
        fs::set_permissions(&payload, Permissions::from_mode(0o644))?;
        let passwords = directory.join("passwords");
        fs::write(&passwords, format!("{nonce}\n"))?;
        let configured = directory.join("vsftpd.conf");
        fs::write(&configured, configuration(address, &files, &passwords))?;
        let argv = [&self.program, &configured].map(|path| path.display().to_string());
        Ok(StartServer {
            name: "vsftpd".into(),
            argv: argv.into(),
            environment: Vec::new(),
            is_users_own: false,
            log: directory.join("vsftpd.log"),
            directory,
            ready: Readiness::AcceptsAt(SocketAddrV4::new(address, FTP_PORT)),
            timeout_ms: STARTS_WITHIN_MS,
            is_disposable: true,
            is_asked: false,
            user: None,
            has_own_pids: false,
            progress: None,
            is_away: false,
        })
    }
}

/// It runs as who started it, as that may be root of a user namespace that has no other user; so it is kept
/// to one directory by the commands and names that it knows.
fn configuration(address: Ipv4Addr, files: &Path, passwords: &Path) -> String {
    let (files, passwords) = (files.display(), passwords.display());
    format!(
        "listen=YES\n\
         listen_ipv6=NO\n\
         listen_address={address}\n\
         listen_port={FTP_PORT}\n\
         background=NO\n\
         run_as_launching_user=YES\n\
         ftp_username=nobody\n\
         isolate=NO\n\
         isolate_network=NO\n\
         seccomp_sandbox=NO\n\
         anonymous_enable=YES\n\
         local_enable=NO\n\
         anon_root={files}\n\
         secure_email_list_enable=YES\n\
         email_password_file={passwords}\n\
         cmds_allowed=USER,PASS,TYPE,PASV,EPSV,RETR,QUIT\n\
         deny_file={{*/*,..*}}\n\
         write_enable=NO\n\
         dirlist_enable=NO\n\
         port_enable=NO\n\
         connect_from_port_20=NO\n\
         xferlog_enable=NO\n\
         setproctitle_enable=NO\n"
    )
}

/// As workloads/shared/ftp.c makes it up.
fn content() -> Vec<u8> {
    let offsets = (0..PAYLOAD_BYTES).step_by(size_of::<u32>());
    offsets.flat_map(|offset| offset.wrapping_mul(2_246_822_519).to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_what_the_client_expects() {
        let client = include_str!("../../../workloads/activity/ftp.c");
        assert!(client.contains("SIZE = 1 << 20,"));
        assert!(client.contains("RETR payload-%d"));
        let server = include_str!("../../../workloads/shared/ftp.c");
        assert!(server.contains("(uint32_t)(offset + i) * 2246822519u;"));
        let content = content();
        assert_eq!(content.len(), 1 << 20);
        assert_eq!(content[4..8], 4_u32.wrapping_mul(2_246_822_519).to_ne_bytes());
    }

    #[test]
    fn it_is_kept_to_one_file_and_to_who_knows_the_nonce() {
        let scratch = tempfile::tempdir().unwrap();
        let server = Vsftpd { program: "/usr/sbin/vsftpd".into() };
        let raise = server.raise(scratch.path(), Ipv4Addr::LOCALHOST, "0123").unwrap();
        assert_eq!(raise.argv[0], "/usr/sbin/vsftpd");
        let text = fs::read_to_string(&raise.argv[1]).unwrap();
        for line in ["listen_address=127.0.0.1", "write_enable=NO", "deny_file={*/*,..*}"] {
            assert!(text.lines().any(|other| other == line), "{line}");
        }
        let passwords = text.lines().find_map(|line| line.strip_prefix("email_password_file="));
        assert_eq!(fs::read_to_string(passwords.unwrap()).unwrap(), "0123\n");
    }
}
