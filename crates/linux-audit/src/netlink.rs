//! A request/reply client of the audit netlink socket.
//!
//! Messages go to the kernel (port 0), which is where an unconnected netlink socket sends.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_socket_timeout,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::features::Features;
use super::message;
use super::rule::Rule;
use super::status::{AuditSetting, Status};

const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x01;
const NLM_F_ACK: u16 = 0x04;
/// `MAX_AUDIT_MESSAGE_LENGTH` of libaudit: no record is longer.
const MAX_MESSAGE_BYTES: usize = 8970;
/// The kernel answers at once; a silence this long means that it will not.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// A list of rules has a KiB for each. The kernel drops what has no room within 100 ms (`sk_sndtimeo` in
/// kernel/audit.c), which is less than a busy machine may keep us waiting for a CPU.
const BUFFER_BYTES: usize = 8 << 20;
/// Number of times that a question is asked whose answer was dropped.
const TRIES: u32 = 10;

/// One message from the kernel.
#[derive(Debug)]
pub struct Message {
    /// Its type: one of [`message`], or another of the kernel's header.
    pub kind: u16,
    /// The number of the request that it answers; 0 of a record.
    pub sequence: u32,
    /// Bytes after the netlink header; for a record, its text.
    pub payload: Vec<u8>,
}

/// A socket to the kernel's audit system.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    sequence: u32,
}

impl Client {
    /// Opens a socket; needs no privilege yet.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT` on a kernel without `CONFIG_AUDIT`.
    pub fn open() -> io::Result<Client> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::AUDIT),
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(REPLY_TIMEOUT))?;
        Ok(Client { socket, sequence: 0 })
    }

    /// The current status.
    ///
    /// # Errors
    /// `EPERM` without `CAP_AUDIT_CONTROL`, `ECONNREFUSED` outside the first user or pid namespace.
    pub fn status(&mut self) -> io::Result<Status> {
        let replies = self.request(message::GET, &[])?;
        replies
            .iter()
            .find(|reply| reply.kind == message::GET)
            .and_then(|reply| Status::parse(&reply.payload))
            .ok_or_else(|| io::Error::other("the kernel sent no audit status"))
    }

    /// Returns this host's restrictions on login uids.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn features(&mut self) -> io::Result<Features> {
        let replies = self.request(message::GET_FEATURE, &[])?;
        replies
            .iter()
            .find(|reply| reply.kind == message::GET_FEATURE)
            .and_then(|reply| Features::parse(&reply.payload))
            .ok_or_else(|| io::Error::other("the kernel sent no audit features"))
    }

    /// Switches features on and off.
    ///
    /// # Errors
    /// `EPERM` where one that would change is locked.
    pub fn set_features(&mut self, features: Features) -> io::Result<()> {
        self.request(message::SET_FEATURE, &features.encode()).map(drop)
    }

    /// Changes one field of the status.
    ///
    /// # Errors
    /// `EPERM` without `CAP_AUDIT_CONTROL` or where the configuration is locked; `EEXIST` for the
    /// pid where a healthy audit daemon holds the socket.
    pub fn set(&mut self, setting: AuditSetting) -> io::Result<()> {
        self.request(message::SET, &setting.encode()).map(drop)
    }

    /// All loaded rules, in the order in which the kernel lists them.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub fn rules(&mut self) -> io::Result<Vec<Rule>> {
        self.make_room_for_a_list()?;
        let replies = self.request(message::LIST_RULES, &[])?;
        Ok(replies
            .into_iter()
            .filter(|reply| reply.kind == message::LIST_RULES)
            .map(|reply| Rule::from_bytes(reply.payload))
            .collect())
    }

    /// Not when it is opened: a receiver of records keeps the buffer that it has on every system.
    fn make_room_for_a_list(&self) -> io::Result<()> {
        // Beyond the limit of the system only with CAP_NET_ADMIN; otherwise as much as that allows.
        set_socket_recv_buffer_size_force(&self.socket, BUFFER_BYTES)
            .or_else(|_| set_socket_recv_buffer_size(&self.socket, BUFFER_BYTES))?;
        Ok(())
    }

    /// Loads a rule.
    ///
    /// # Errors
    /// `EEXIST` where it is loaded already, `EINVAL` where the kernel does not know a field.
    pub fn add_rule(&mut self, rule: &Rule) -> io::Result<()> {
        self.request(message::ADD_RULE, rule.as_bytes()).map(drop)
    }

    /// Unloads a rule, given as it was loaded or as the kernel lists it.
    ///
    /// # Errors
    /// `ENOENT` where no such rule is loaded.
    pub fn delete_rule(&mut self, rule: &Rule) -> io::Result<()> {
        self.request(message::DEL_RULE, rule.as_bytes()).map(drop)
    }

    /// Sends a line through the kernel's record queue, so that it arrives behind all that was
    /// queued before. Ignored by the kernel while auditing is disabled.
    ///
    /// # Errors
    /// `EPERM` without `CAP_AUDIT_WRITE`.
    pub fn send_text(&mut self, text: &str) -> io::Result<()> {
        let mut payload = text.as_bytes().to_vec();
        payload.push(0);
        self.request(message::TRUSTED_APP, &payload).map(drop)
    }

    /// The socket, for a reader of records.
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Sends a request and gathers the replies up to its acknowledgement and, for a list, its end. A question
    /// is asked again if a part of the answer was dropped.
    fn request(&mut self, kind: u16, payload: &[u8]) -> io::Result<Vec<Message>> {
        let is_question = matches!(kind, message::GET | message::GET_FEATURE | message::LIST_RULES);
        for _ in 1..TRIES {
            match self.request_once(kind, payload) {
                Err(error) if is_question && error.raw_os_error() == Some(libc::ENOBUFS) => {}
                other => return other,
            }
        }
        self.request_once(kind, payload)
    }

    fn request_once(&mut self, kind: u16, payload: &[u8]) -> io::Result<Vec<Message>> {
        self.sequence += 1;
        send(&self.socket, &encode(kind, self.sequence, payload), SendFlags::empty())?;
        let mut replies = Vec::new();
        let mut acknowledged = false;
        // The kernel acknowledges a request before a list's or a status's content arrives.
        let mut complete =
            !matches!(kind, message::GET | message::GET_FEATURE | message::LIST_RULES);
        while !(acknowledged && complete) {
            let reply = receive(&self.socket)?;
            if reply.sequence != self.sequence {
                // To a question that was given up.
                continue;
            }
            match reply.kind {
                NLMSG_ERROR => {
                    acknowledged = true;
                    let code = reply.payload.first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
                    if code != 0 {
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                }
                NLMSG_DONE => complete = true,
                _ => {
                    let is_single = matches!(kind, message::GET | message::GET_FEATURE);
                    complete |= is_single && reply.kind == kind;
                    replies.push(reply);
                }
            }
        }
        Ok(replies)
    }
}

/// Joins the multicast group that every audit record is also sent to (`AUDIT_NLGRP_READLOG`), for
/// counting beside an audit daemon.
///
/// # Errors
/// `EPERM` without `CAP_AUDIT_READ`.
pub fn join_readlog(socket: &OwnedFd) -> io::Result<()> {
    // The kernel multicasts in the name of port 0, and to nobody who has that port himself: a socket
    // without an address.
    rustix::net::bind(socket, &netlink::SocketAddrNetlink::new(0, 0))?;
    let group: libc::c_int = 1;
    // SAFETY: the option takes an int, and gets the address and size of one that lives.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_ADD_MEMBERSHIP,
            (&raw const group).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How often the kernel tried to give this socket a message and found no room in its buffer, since it
/// was opened (`sk_drops`). A failed try is not yet a message lost: see [`super::sink::MISSED_TRIES`].
///
/// # Errors
/// As `getsockopt(2)`.
pub fn failed_tries(socket: &OwnedFd) -> io::Result<u32> {
    let mut memory = [0u32; libc::SK_MEMINFO_DROPS as usize + 1];
    let mut bytes = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: the option fills as many bytes as it is told, and those are of an array that lives.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    match status {
        0 => Ok(memory[libc::SK_MEMINFO_DROPS as usize]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives one message.
///
/// # Errors
/// `EAGAIN` on a timeout, `ENOBUFS` where the kernel dropped messages for want of socket buffer.
pub fn receive(socket: &OwnedFd) -> io::Result<Message> {
    let mut buffer = [0u8; MAX_MESSAGE_BYTES + HEADER_BYTES];
    let (_, received_bytes) = recv(socket, &mut buffer[..], RecvFlags::empty())?;
    decode(&buffer[..received_bytes.min(buffer.len())])
        .ok_or_else(|| io::Error::other("the kernel sent a truncated audit message"))
}

fn encode(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let total_bytes = (HEADER_BYTES + payload.len()) as u32;
    let mut bytes = Vec::with_capacity(total_bytes as usize);
    bytes.extend(total_bytes.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(payload);
    bytes
}

/// The type and payload of a message. Audit records state a length in the header that leaves the
/// header out, so the datagram's own length is what counts.
fn decode(bytes: &[u8]) -> Option<Message> {
    let kind = u16::from_ne_bytes(*bytes.get(4..6)?.first_chunk()?);
    let sequence = u32::from_ne_bytes(*bytes.get(8..12)?.first_chunk()?);
    Some(Message { kind, sequence, payload: bytes.get(HEADER_BYTES..)?.to_vec() })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;
    use std::sync::{Arc, Mutex};

    use rustix::net::sockopt::socket_recv_buffer_size;

    use super::*;

    /// Rules in the order of the lists of a kernel that is made up for a test.
    #[derive(Clone, Default)]
    pub(crate) struct MadeUpKernel {
        rules: Arc<Mutex<Vec<Rule>>>,
    }

    impl MadeUpKernel {
        pub(crate) fn rules(&self) -> Vec<Rule> {
            self.rules.lock().unwrap().clone()
        }

        /// Adds a rule as `AUDIT_ADD_RULE` does; 0 or the number of an error.
        pub(crate) fn add(&self, rule: &Rule) -> i32 {
            let (mut rules, listed) = (self.rules.lock().unwrap(), rule.clone().listed());
            if rules.contains(&listed) {
                return libc::EEXIST;
            }
            let place = if *rule == listed { rules.len() } else { 0 };
            rules.insert(place, listed);
            0
        }

        fn delete(&self, rule: &Rule) -> i32 {
            let mut rules = self.rules.lock().unwrap();
            let place = rules.iter().position(|one| one == rule);
            let Some(place) = place else { return libc::ENOENT };
            rules.remove(place);
            0
        }

        /// A client of this kernel, which answers it until the test program ends.
        pub(crate) fn client(&self) -> Client {
            let (client, socket) = client();
            let kernel = self.clone();
            std::thread::spawn(move || kernel.answer_requests(&socket));
            client
        }

        fn answer_requests(&self, socket: &UnixDatagram) {
            let mut bytes = vec![0; 4096];
            while let Ok(received_bytes @ 1..) = socket.recv(&mut bytes) {
                let Message { kind, sequence, payload } = decode(&bytes[..received_bytes]).unwrap();
                let rule = Rule::from_bytes(payload);
                let error = match kind {
                    message::ADD_RULE => self.add(&rule),
                    message::DEL_RULE => self.delete(&rule),
                    _ => 0,
                };
                answer(socket, NLMSG_ERROR, sequence, &(-error).to_ne_bytes());
                if kind == message::LIST_RULES {
                    for rule in self.rules() {
                        answer(socket, kind, sequence, rule.as_bytes());
                    }
                    answer(socket, NLMSG_DONE, sequence, &DONE);
                }
            }
        }
    }

    #[test]
    fn a_message_survives_encoding() {
        let message = decode(&encode(message::TRUSTED_APP, 7, b"mark")).unwrap();
        assert_eq!((message.kind, &message.payload[..]), (message::TRUSTED_APP, &b"mark"[..]));
        assert_eq!(message.sequence, 7);
    }

    #[test]
    fn truncated_bytes_are_refused_at_every_length() {
        let bytes = encode(message::GET, 1, &[]);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_none(), "{length} bytes were taken for a message");
        }
    }

    #[test]
    fn a_request_states_its_length_and_asks_for_an_acknowledgement() {
        let bytes = encode(message::GET, 7, b"mark");
        assert_eq!(bytes[..4], 20_u32.to_ne_bytes());
        assert_eq!(bytes[6..8], 5_u16.to_ne_bytes(), "NLM_F_REQUEST and NLM_F_ACK");
    }

    const DONE: [u8; 4] = [0; 4];

    /// A client, and the end of its socket where the kernel would be.
    pub(crate) fn client() -> (Client, UnixDatagram) {
        let (here, kernel) = UnixDatagram::pair().unwrap();
        here.set_read_timeout(Some(REPLY_TIMEOUT)).unwrap();
        (Client { socket: here.into(), sequence: 0 }, kernel)
    }

    pub(crate) fn answer(kernel: &UnixDatagram, kind: u16, sequence: u32, payload: &[u8]) {
        kernel.send(&encode(kind, sequence, payload)).unwrap();
    }

    /// The next request.
    fn asked(kernel: &UnixDatagram) -> Message {
        let mut bytes = vec![0; 4096];
        let received_bytes = kernel.recv(&mut bytes).unwrap();
        decode(&bytes[..received_bytes]).unwrap()
    }

    #[test]
    fn an_answer_is_whole_once_it_is_there_and_acknowledged() {
        let (mut client, kernel) = client();
        let status: Vec<u8> = (0_u32..11).flat_map(u32::to_ne_bytes).collect();
        // To a question that was given up.
        answer(&kernel, NLMSG_ERROR, 0, &(-libc::EPERM).to_ne_bytes());
        answer(&kernel, NLMSG_ERROR, 1, &DONE);
        answer(&kernel, message::GET, 1, &status);
        assert_eq!(client.status().unwrap().pid, 3);
        answer(&kernel, message::GET, 2, &status);
        answer(&kernel, NLMSG_ERROR, 2, &DONE);
        assert_eq!(client.status().unwrap().pid, 3);
        assert_eq!([asked(&kernel), asked(&kernel)].map(|request| request.sequence), [1, 2]);
        answer(&kernel, NLMSG_ERROR, 3, &DONE);
        answer(&kernel, message::GET_FEATURE, 3, &status[..16]);
        assert_eq!(client.features().unwrap(), Features::parse(&status[..16]).unwrap());
        assert_eq!(asked(&kernel).kind, message::GET_FEATURE);
        answer(&kernel, NLMSG_ERROR, 4, &DONE);
        answer(&kernel, message::GET, 4, &status[..8]);
        assert!(client.status().unwrap_err().to_string().contains("no audit status"));
    }

    #[test]
    fn a_list_has_all_up_to_its_end() {
        let (mut client, kernel) = client();
        let rules = [7, 8].map(|loginuid| Rule::always_exit(loginuid, "k"));
        answer(&kernel, NLMSG_ERROR, 1, &DONE);
        for (kind, rule) in [message::LIST_RULES, message::SYSCALL, message::LIST_RULES]
            .into_iter()
            .zip([&rules[0], &rules[0], &rules[1]])
        {
            answer(&kernel, kind, 1, rule.as_bytes());
        }
        answer(&kernel, NLMSG_DONE, 1, &DONE);
        let before = socket_recv_buffer_size(&client.socket).unwrap();
        assert_eq!(client.rules().unwrap(), rules);
        assert!(socket_recv_buffer_size(&client.socket).unwrap() > before, "a list needs room");
        assert_eq!(asked(&kernel).kind, message::LIST_RULES);
    }

    #[test]
    fn only_a_question_is_asked_again_and_only_where_the_answer_found_no_room() {
        let (mut client, kernel) = client();
        let full = (-libc::ENOBUFS).to_ne_bytes();
        answer(&kernel, NLMSG_ERROR, 1, &full);
        answer(&kernel, NLMSG_ERROR, 2, &DONE);
        answer(&kernel, message::GET, 2, &[0; 44]);
        assert_eq!(client.status().unwrap().pid, 0);
        answer(&kernel, NLMSG_ERROR, 3, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(client.status().unwrap_err().raw_os_error(), Some(libc::EPERM));
        answer(&kernel, NLMSG_ERROR, 4, &full);
        let changed = client.add_rule(&Rule::always_exit(7, "k"));
        assert_eq!(changed.unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
    }

    #[test]
    fn what_found_no_room_in_a_socket_is_counted() {
        const SENT: u32 = 2000;
        let [here, there] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for _ in 0..SENT {
            there.send_to(&[0; 1000], here.local_addr().unwrap()).unwrap();
        }
        here.set_nonblocking(true).unwrap();
        let received = (0..SENT).take_while(|_| here.recv(&mut [0; 1000]).is_ok()).count() as u32;
        assert!(received < SENT, "the buffer holds them all");
        assert_eq!(failed_tries(&here.into()).unwrap(), SENT - received);
    }

    #[test]
    fn a_change_is_sent_as_it_was_asked_for_and_a_refusal_is_an_error() {
        let (mut client, kernel) = client();
        let rule = Rule::always_exit(7, "k");
        let features = Features::parse(&[0; 12]).unwrap();
        let on = AuditSetting::Enabled(1);
        type Change<'a> = Box<dyn Fn(&mut Client) -> io::Result<()> + 'a>;
        let changes: [(Change, u16, &[u8]); 5] = [
            (Box::new(|to| to.set_features(features)), message::SET_FEATURE, &features.encode()),
            (Box::new(|to| to.set(on)), message::SET, &on.encode()),
            (Box::new(|to| to.add_rule(&rule)), message::ADD_RULE, rule.as_bytes()),
            (Box::new(|to| to.delete_rule(&rule)), message::DEL_RULE, rule.as_bytes()),
            (Box::new(|to| to.send_text("mark")), message::TRUSTED_APP, b"mark\0"),
        ];
        for (number, (change, kind, payload)) in (0..).zip(changes) {
            answer(&kernel, NLMSG_ERROR, 2 * number + 1, &DONE);
            change(&mut client).unwrap();
            let request = asked(&kernel);
            assert_eq!((request.kind, &request.payload[..]), (kind, payload));
            answer(&kernel, NLMSG_ERROR, 2 * number + 2, &(-libc::EEXIST).to_ne_bytes());
            let refused = change(&mut client).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EEXIST));
            asked(&kernel);
        }
    }

    #[test]
    fn the_longest_record_is_received_whole_and_finds_room() {
        let (client, kernel) = client();
        answer(&kernel, message::SYSCALL, 0, &[b'x'; 8970]);
        assert_eq!(receive(&client.socket).unwrap().payload.len(), 8970);
        assert_eq!(failed_tries(&client.socket).unwrap(), 0);
    }
}
