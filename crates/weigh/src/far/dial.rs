//! Calling an agent: the connection, the greeting, and what is wanted. None of it takes longer than a limit.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use channel::{Channel, Secret};
use rustix::net::sockopt;

use super::{Hello, USUAL_PORT, Welcome};

/// For each address of a name, and then for all that is said.
const LIMIT: Duration = Duration::from_secs(10);
/// The other end is gone if it acknowledges nothing for so long.
const GONE_AFTER_MS: u32 = 20_000;
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A connection over which what was wanted is spoken.
pub struct Dialled {
    pub stream: TcpStream,
    pub channel: Channel,
    pub welcome: Welcome,
}

/// The addresses that `HOST` or `HOST:PORT` stands for.
///
/// # Errors
/// A sentence.
pub fn resolve(address: &str) -> Result<Vec<SocketAddr>, String> {
    let with_port = address.to_socket_addrs();
    let found = with_port.or_else(|_| {
        let host = address.trim_start_matches('[').trim_end_matches(']');
        (host, USUAL_PORT).to_socket_addrs()
    });
    match found.map(Iterator::collect::<Vec<_>>) {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(format!("{address} has no address")),
        Err(error) => Err(format!("{address}: {error}")),
    }
}

/// Calls the agent at `HOST` or `HOST:PORT`.
///
/// # Errors
/// A sentence that names it, and says what to do.
pub fn dial(address: &str, secret: &Secret, hello: &Hello) -> Result<Dialled, String> {
    let mut problem = String::new();
    for one in resolve(address)? {
        match TcpStream::connect_timeout(&one, LIMIT) {
            Ok(stream) => {
                return greet(stream, secret, hello).map_err(|why| format!("{address}: {why}"));
            }
            Err(error) => problem = error.to_string(),
        }
    }
    Err(format!(
        "{address}: {problem}; is `weigh agent --listen ADDRESS --token-file FILE` running there?"
    ))
}

fn greet(mut stream: TcpStream, secret: &Secret, hello: &Hello) -> Result<Dialled, String> {
    let system = |error: std::io::Error| error.to_string();
    set_up(&stream).map_err(system)?;
    let deadline = Instant::now() + LIMIT;
    let mut channel = Channel::call(secret);
    stream.write_all(&channel.unsent()).map_err(system)?;
    let mut said_hello = false;
    loop {
        if let Some(frame) = channel.next_frame().map_err(|error| error.to_string())? {
            let welcome = serde_json::from_slice(&frame)
                .map_err(|error| format!("its answer makes no sense ({error})"))?;
            channel.allow_long_frames();
            stream.set_read_timeout(None).map_err(system)?;
            stream.set_nonblocking(true).map_err(system)?;
            return Ok(Dialled { stream, channel, welcome });
        }
        if channel.is_open() && !said_hello {
            let words = serde_json::to_vec(hello).map_err(|error| error.to_string())?;
            channel.send(&words).map_err(|error| error.to_string())?;
            stream.write_all(&channel.unsent()).map_err(system)?;
            said_hello = true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("it does not answer".into());
        }
        stream.set_read_timeout(Some(left)).map_err(system)?;
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(0) => return Err(closed(said_hello)),
            Ok(count) => channel.take(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err("it does not answer".into());
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return Err(closed(said_hello));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn closed(said_hello: bool) -> String {
    match said_hello {
        true => "it closed the connection before it answered".into(),
        false => "it closed the connection, as an agent does to whoever has not its token: compare the token \
                  files, and the versions of weigh"
            .into(),
    }
}

/// What both ends of such a connection have: small messages leave at once, and who is gone is found out.
///
/// # Errors
/// As `setsockopt(2)`.
pub fn set_up(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(sockopt::set_tcp_user_timeout(stream, GONE_AFTER_MS)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_has_the_usual_one() {
        let of = |text: &str| resolve(text).unwrap()[0].to_string();
        assert_eq!(of("127.0.0.1"), "127.0.0.1:1996");
        assert_eq!(of("127.0.0.1:7"), "127.0.0.1:7");
        assert_eq!(of("::1"), "[::1]:1996");
        assert_eq!(of("[::1]:7"), "[::1]:7");
        assert!(resolve("nowhere.invalid").is_err());
    }
}
