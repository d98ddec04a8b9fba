//! The peer that a black box runs, here or on another machine: how it is started, and where it is found.

use std::path::{Path, PathBuf};

use weigh_workload::member::{Readiness, StartServer};

/// Name of a peer to its launcher.
pub const PEER: &str = "peer";
/// Variable that both of COMM's ends have, so that FTP serves nobody else.
pub const NONCE: &str = "WEIGH_NONCE";
const STARTS_WITHIN_MS: u64 = 10_000;

/// Its socket in a private directory of another machine.
pub fn peer_socket(directory: &Path) -> PathBuf {
    directory.join("peer.sock")
}

/// Where what it prints is kept.
pub fn peer_log(socket: &Path) -> PathBuf {
    socket.with_extension("log")
}

/// Its command line; with an address and a port, it serves FTP besides.
pub fn peer_argv(executable: &Path, socket: &Path, ftp: Option<(&str, &str)>) -> Vec<String> {
    let paths = [executable, socket].map(|path| path.display().to_string());
    let [executable, socket] = paths;
    let mut argv = vec![executable, "comm-peer".into(), socket];
    argv.extend(ftp.into_iter().flat_map(|(address, port)| [address.into(), port.into()]));
    argv
}

pub fn raise_peer(
    executable: &Path,
    directory: &Path,
    socket: PathBuf,
    ftp: Option<(&str, &str)>,
    nonce: &str,
) -> StartServer {
    StartServer {
        name: PEER.into(),
        argv: peer_argv(executable, &socket, ftp),
        environment: vec![(NONCE.into(), nonce.into())],
        is_users_own: false,
        directory: directory.to_owned(),
        log: peer_log(&socket),
        ready: Readiness::Exists(socket),
        timeout_ms: STARTS_WITHIN_MS,
        is_disposable: true,
        is_asked: false,
        user: None,
        has_own_pids: false,
        progress: None,
        is_away: false,
    }
}
