//! The few requests of rtnetlink(7) that a namespace needs to be a host.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::set_socket_timeout;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send};

const HEADER: usize = 16;
const ALIGNMENT: usize = 4;
const REPLY_BYTES: usize = 1 << 15;
/// The kernel answers within the call; another kernel's bug must not hold us.
const LIMIT: Duration = Duration::from_secs(10);

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Together: make it, and only if it is not there.
pub(crate) const CREATE: u16 = 0x600;

/// A message that is being written: its header, and what is put behind it.
pub(crate) struct NetlinkRequest {
    bytes: Vec<u8>,
}

impl NetlinkRequest {
    /// Creates a request of this type, with its fixed part.
    pub(crate) fn new(kind: u16, flags: u16, fixed: &[u8]) -> NetlinkRequest {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        bytes.extend(fixed);
        NetlinkRequest { bytes }
    }

    pub(crate) fn with(mut self, attribute: u16, value: &[u8]) -> NetlinkRequest {
        self.begin(attribute);
        self.bytes.extend(value);
        self.end(HEADER_OF_ATTRIBUTE + value.len())
    }

    /// An attribute that holds others, which `inside` puts there.
    pub(crate) fn nested(
        mut self,
        attribute: u16,
        inside: impl FnOnce(NetlinkRequest) -> NetlinkRequest,
    ) -> NetlinkRequest {
        let start = self.begin(attribute);
        let mut message = inside(self);
        let length = message.bytes.len() - start;
        message.bytes[start..start + 2].copy_from_slice(&(length as u16).to_ne_bytes());
        message
    }

    /// Bytes as they are: the fixed part of a message within this one.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> NetlinkRequest {
        self.bytes.extend(bytes);
        self
    }

    fn begin(&mut self, attribute: u16) -> usize {
        let start = self.bytes.len();
        self.bytes.extend([0, 0]);
        self.bytes.extend(attribute.to_ne_bytes());
        start
    }

    fn end(mut self, length: usize) -> NetlinkRequest {
        let start = self.bytes.len() - length;
        self.bytes[start..start + 2].copy_from_slice(&(length as u16).to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    fn finished(mut self) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

const HEADER_OF_ATTRIBUTE: usize = 4;

/// A socket in the network namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None, // NETLINK_ROUTE is 0
        )?;
        set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(LIMIT))?;
        Ok(Netlink { socket })
    }

    /// Sends it, and gives what the kernel answered before it acknowledged, without the header.
    pub(crate) fn ask(&self, message: NetlinkRequest) -> io::Result<Option<Vec<u8>>> {
        send(&self.socket, &message.finished(), SendFlags::empty())?;
        let mut answer = None;
        loop {
            let mut reply = vec![0; REPLY_BYTES];
            let (length, _) = recv(&self.socket, reply.as_mut_slice(), RecvFlags::empty())?;
            reply.truncate(length);
            for (kind, content) in messages(&reply) {
                if kind != libc::NLMSG_ERROR as u16 {
                    answer = Some(content.to_owned());
                    continue;
                }
                let code =
                    content.first_chunk().map_or(-libc::EBADMSG, |code| i32::from_ne_bytes(*code));
                return match code {
                    0 => Ok(answer),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }
}

/// The messages in what was received: type, and what is behind the header.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let message = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((u16::from_ne_bytes([header[4], header[5]]), message))
    })
}

/// The attribute of this type among those in `bytes`.
pub(crate) fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let header: &[u8; HEADER_OF_ATTRIBUTE] = bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = bytes.get(HEADER_OF_ATTRIBUTE..length)?;
        if u16::from_ne_bytes([header[2], header[3]]) == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(ALIGNMENT)..)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_as_the_kernel_wants_it() {
        let message = NetlinkRequest::new(16, CREATE, &[1, 2, 3, 4])
            .with(3, b"lo\0")
            .nested(18, |message| message.with(1, b"veth"));
        let bytes = message.finished();
        assert_eq!(
            bytes.len() as u32,
            u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        );
        let attributes = &bytes[HEADER + 4..];
        assert_eq!(attribute(attributes, 3), Some(&b"lo\0"[..]));
        assert_eq!(attribute(attribute(attributes, 18).unwrap(), 1), Some(&b"veth"[..]));
        assert_eq!(attribute(attributes, 4), None);
    }

    proptest! {
        #[test]
        fn foreign_bytes_are_no_messages_or_short_ones(
            bytes in prop::collection::vec(prop_oneof![0_u8..24, any::<u8>()], 0..120), wanted in 0_u16..30,
        ) {
            let taken: usize = messages(&bytes).map(|(_, message)| message.len()).sum();
            prop_assert!(taken <= bytes.len());
            prop_assert!(attribute(&bytes, wanted).is_none_or(|value| value.len() < bytes.len()));
        }
    }
}
