//! A TUN device: an interface whose packets a process reads and writes, with virtio-net headers.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const CLONE_DEVICE: &str = "/dev/net/tun";
/// Offload that the kernel may leave to us: checksums, and segmentation of TCP and UDP.
const TCP: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const UDP: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// Offload of packets that the kernel hands over in pieces, each of which stands for several
/// packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Nothing: packets are as they are on the wire, their checksums finished.
    Off,
    /// TCP; checksums are begun.
    Tcp,
    /// TCP and UDP; since Linux 6.2.
    TcpAndUdp,
}

/// An interface of the network namespace in which it was made. It is gone when this is.
#[derive(Debug)]
pub struct Tun {
    device: File,
    name: String,
}

impl Tun {
    /// Makes an interface of this name in the network namespace of this thread. It is down, and without
    /// offload.
    ///
    /// # Errors
    /// A sentence that says what is missing: the module, the permission.
    pub fn open(name: &str) -> io::Result<Tun> {
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(CLONE_DEVICE);
        let device = open.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::NotFound => "this kernel has no TUN devices (`modprobe tun`)",
                io::ErrorKind::PermissionDenied => {
                    "only its owner may open it; on most systems it has mode 0666 (`chmod 666 /dev/net/tun`)"
                }
                _ => "cannot open it",
            };
            io::Error::new(error.kind(), format!("{CLONE_DEVICE}: {why}: {error}"))
        })?;
        // SAFETY: all zeros are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.len() >= request.ifr_name.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name}: the name is too long"),
            ));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: the argument is an `ifreq`, as this request wants.
        if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &request) } < 0 {
            let error = io::Error::last_os_error();
            return Err(io::Error::new(error.kind(), format!("the interface {name}: {error}")));
        }
        Ok(Tun { device, name: name.to_owned() })
    }

    /// As it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for as much as this, and says what the kernel can: before Linux 6.2, no UDP.
    ///
    /// # Errors
    /// Where even less is refused.
    pub fn set_offload(&self, offload: Offload) -> io::Result<Offload> {
        let (bits, less) = match offload {
            Offload::Off => (0, None),
            Offload::Tcp => (TCP, Some(Offload::Off)),
            Offload::TcpAndUdp => (TCP | UDP, Some(Offload::Tcp)),
        };
        let bits = libc::c_ulong::from(bits);
        // SAFETY: the argument of this request is a number.
        if unsafe { libc::ioctl(self.device.as_raw_fd(), libc::TUNSETOFFLOAD, bits) } == 0 {
            return Ok(offload);
        }
        let error = io::Error::last_os_error();
        match less {
            Some(less) if error.kind() == io::ErrorKind::InvalidInput => self.set_offload(less),
            _ => Err(error),
        }
    }

    /// Reads one packet, with its header; `None` where there is none now.
    ///
    /// # Errors
    /// Where the interface is gone.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.device).read(bytes) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one packet, with its header, in two parts.
    ///
    /// # Errors
    /// Where the kernel does not take it.
    pub fn write(&self, head: &[u8], rest: &[u8]) -> io::Result<()> {
        let written = match head.is_empty() {
            true => (&self.device).write(rest)?,
            false => (&self.device).write_vectored(&[IoSlice::new(head), IoSlice::new(rest)])?,
        };
        match written == head.len() + rest.len() {
            true => Ok(()),
            false => Err(io::Error::other("the kernel took only a part of a packet")),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
