//! Packets on W_test's interfaces, written to a file that tcpdump and Wireshark read (pcap with
//! nanoseconds). The file has the first bytes of each packet, from its IP header on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes kept of a packet: its headers, with all options.
const SNAP_BYTES: usize = 128;
/// For what comes while the thread does not run.
const BUFFER_BYTES: libc::c_int = 64 << 20;
const LOOK_UP: Duration = Duration::from_millis(20);
/// Looks that must find nothing before a trace ends, so that packets on the way are recorded. The
/// next constant limits the wait.
const LINGER_LOOKS: u32 = 2;
const LINGERS_WITHIN: Duration = Duration::from_secs(5);

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
/// `LINKTYPE_RAW`: packets begin with their IP header.
const RAW: u32 = 101;

/// A thread that writes down packets, until it is ended.
pub struct Sniffer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<(u64, u64)>>,
}

impl Sniffer {
    /// In the network namespace of the calling thread.
    pub fn start(path: &Path) -> io::Result<Sniffer> {
        let socket = open()?;
        let mut file = BufWriter::new(File::create(path)?);
        for word in [NANOSECOND_MAGIC, 2 | 4 << 16, 0, 0, SNAP_BYTES as u32, RAW] {
            file.write_all(&word.to_ne_bytes())?;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let thread = thread::Builder::new().spawn(move || write_down(&socket, file, &told))?;
        Ok(Sniffer { is_over, thread })
    }

    /// How many packets are in the file, and how many the thread missed.
    pub fn end(self) -> io::Result<(u64, u64)> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("a thread panicked"))?
    }
}

fn open() -> io::Result<OwnedFd> {
    let every = i32::from((libc::ETH_P_ALL as u16).to_be());
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, every) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let timeout = libc::timeval { tv_sec: 0, tv_usec: LOOK_UP.as_micros() as libc::suseconds_t };
    set(&socket, libc::SO_TIMESTAMPNS, &1_i32)?;
    set(&socket, libc::SO_RCVTIMEO, &timeout)?;
    // Without the right to it, the usual limit is what there is; what is missed is counted.
    let forced = set(&socket, libc::SO_RCVBUFFORCE, &BUFFER_BYTES);
    forced.or_else(|_| set(&socket, libc::SO_RCVBUF, &BUFFER_BYTES))?;
    Ok(socket)
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let (value, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value lives as long as the call, which is told its length.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn write_down(
    socket: &OwnedFd,
    mut file: BufWriter<File>,
    is_over: &AtomicBool,
) -> io::Result<(u64, u64)> {
    let (mut packets, mut looks) = (0, 0);
    let mut deadline = None;
    while looks < LINGER_LOOKS && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        if deadline.is_none() && is_over.load(Ordering::Relaxed) {
            deadline = Some(Instant::now() + LINGERS_WITHIN);
        }
        let mut data = [0; SNAP_BYTES];
        match receive(socket, &mut data) {
            // What is no IP, as the search for a hardware address, has no place in such a file.
            Ok(_) if !matches!(data[0] >> 4, 4 | 6) => {}
            Ok((length, at)) => {
                let kept = length.min(SNAP_BYTES);
                let head = [at.tv_sec as u32, at.tv_nsec as u32, kept as u32, length as u32];
                for word in head {
                    file.write_all(&word.to_ne_bytes())?;
                }
                file.write_all(&data[..kept])?;
                packets += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                looks += u32::from(deadline.is_some());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    file.flush()?;
    Ok((packets, missed(socket)?))
}

/// How long a packet was, and when the kernel saw it.
fn receive(socket: &OwnedFd, data: &mut [u8; SNAP_BYTES]) -> io::Result<(usize, libc::timespec)> {
    #[repr(align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: SNAP_BYTES };
    // SAFETY: all zeros are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: what the message points to lives as long as the call.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled the control message, and says how much of it.
    let head = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a head that there is lies in `control`; its data is read byte by byte.
    unsafe {
        if !head.is_null() && (*head).cmsg_type == libc::SCM_TIMESTAMPNS {
            at = std::ptr::read_unaligned(libc::CMSG_DATA(head).cast());
        }
    }
    Ok((got as usize, at))
}

/// Packets that found no room.
fn missed(socket: &OwnedFd) -> io::Result<u64> {
    // SAFETY: all zeros are a valid `tpacket_stats`.
    let mut counts: libc::tpacket_stats = unsafe { zeroed() };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes as much as there is room.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut counts).cast(),
            &raw mut length,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(counts.tp_drops.into()) }
}
