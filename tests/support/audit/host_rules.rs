//! Rules that a host had before `weigh` came, and who changed what while it was there.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linux_audit::message;
use linux_audit::netlink::{Client, join_readlog, receive};
use linux_audit::rule::Rule;
use linux_audit::status::AuditSetting;
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};

/// Loaded by the test itself, and unloaded with this; auditing is then as it was, too.
pub struct HostRules {
    /// All that is loaded, as the kernel lists it.
    pub listed: Vec<Rule>,
    before: Vec<Rule>,
    enabled: u32,
}

impl HostRules {
    /// Loads these lines with `auditctl`, in order, and switches auditing on or off.
    pub fn load(lines: &[&str], enabled: u32) -> HostRules {
        let mut client = Client::open().unwrap();
        let mut rules = HostRules {
            listed: Vec::new(),
            before: client.rules().unwrap(),
            enabled: client.status().unwrap().enabled,
        };
        for line in lines {
            let output = Command::new("auditctl").args(line.split(' ')).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
        }
        rules.listed = client.rules().unwrap();
        client.set(AuditSetting::Enabled(enabled)).unwrap();
        rules
    }

    /// Byte for byte, and in order.
    #[track_caller]
    pub fn assert_untouched(&self) {
        let now = Client::open().unwrap().rules().unwrap();
        assert!(now == self.listed, "{} rules, now {}", self.listed.len(), now.len());
    }
}

impl Drop for HostRules {
    fn drop(&mut self) {
        let mut client = Client::open().unwrap();
        for rule in client.rules().unwrap().iter().filter(|rule| !self.before.contains(rule)) {
            let _ = client.delete_rule(rule);
        }
        let _ = client.set(AuditSetting::Enabled(self.enabled));
    }
}

/// Listens to all audit records, and keeps those that tell of a change of the configuration.
pub struct Changes(Listener);

impl Changes {
    pub fn watch() -> Changes {
        Changes(Listener::of(|kind| kind == message::CONFIG_CHANGE))
    }

    /// All changes from [`Changes::watch`] until now.
    pub fn finish(self) -> Vec<String> {
        self.0.finish()
    }
}

/// Keeps the audit records of all processes, as text.
pub struct Listener {
    is_over: Arc<AtomicBool>,
    listener: JoinHandle<Vec<String>>,
}

impl Listener {
    pub fn start() -> Listener {
        Listener::of(|_| true)
    }

    fn of(is_wanted: fn(u16) -> bool) -> Listener {
        let socket = Client::open().unwrap().into_socket();
        join_readlog(&socket).unwrap();
        set_socket_recv_buffer_size_force(&socket, 64 << 20).unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_millis(100))).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let listener = std::thread::spawn(move || {
            let mut records = Vec::new();
            // Until it was told to stop and nothing more comes.
            loop {
                match receive(&socket) {
                    Ok(record) if is_wanted(record.kind) => {
                        records.push(String::from_utf8_lossy(&record.payload).into_owned());
                    }
                    Ok(_) => {}
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                        panic!("records were missed");
                    }
                    Err(_) if stop.load(Ordering::Relaxed) => return records,
                    Err(_) => {}
                }
            }
        });
        Listener { is_over, listener }
    }

    /// All records from the start until now.
    pub fn finish(self) -> Vec<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.listener.join().unwrap()
    }
}

/// As `auditctl --loginuid-immutable` makes a host, but not for ever: switched off again with this.
pub struct ImmutableLoginuid;

impl ImmutableLoginuid {
    pub fn switch_on() -> ImmutableLoginuid {
        set_feature(true);
        ImmutableLoginuid
    }
}

impl Drop for ImmutableLoginuid {
    fn drop(&mut self) {
        set_feature(false);
    }
}

/// `AUDIT_SET_FEATURE` with a `struct audit_features` that locks nothing.
fn set_feature(is_on: bool) {
    const SET_FEATURE: u16 = 1018;
    const REQUEST: u16 = 0x01;
    const LOGINUID_IMMUTABLE: u32 = 1 << 1;
    let on = if is_on { LOGINUID_IMMUTABLE } else { 0 };
    let words = [1, LOGINUID_IMMUTABLE, on, 0];
    let mut bytes = Vec::new();
    bytes.extend(32u32.to_ne_bytes());
    bytes.extend(SET_FEATURE.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(words.map(u32::to_ne_bytes).concat());
    let socket = Client::open().unwrap().into_socket();
    rustix::net::send(&socket, &bytes, rustix::net::SendFlags::empty()).unwrap();
    let now = Client::open().unwrap().features().unwrap();
    assert_eq!(now.forbid_another_loginuid(), is_on);
}
