//! Which network interface has an address.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ptr;

/// The interface of this machine that has this address; `None` where none has.
pub fn interface_of(address: IpAddr) -> io::Result<Option<String>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: it is given a place for a pointer, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut at) = (None, first);
    // SAFETY: each is null or one of the list, which lives until it is freed.
    while let Some(one) = unsafe { at.as_ref() } {
        // SAFETY: null or an address of the family that it begins with.
        if unsafe { ip_of(one.ifa_addr) } == Some(address) {
            // SAFETY: the name ends with a zero.
            found = Some(unsafe { CStr::from_ptr(one.ifa_name) }.to_string_lossy().into_owned());
            break;
        }
        at = one.ifa_next;
    }
    // SAFETY: it is what getifaddrs gave, and freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The address of this machine from which packets to that one leave. Nothing is sent.
pub fn own_address_towards(address: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Any port but 0.
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip().to_canonical())
}

/// # Safety
/// It is null or points to an address of the family that it begins with.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller says.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: it is of this family.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: it is of this family.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_interface_that_it_was_given_to() {
        let local: IpAddr = Ipv4Addr::LOCALHOST.into();
        let up = interface_of(local).unwrap();
        assert!(up.is_none() || up.as_deref() == Some("lo"), "{up:?}");
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 1).into()).unwrap(), None);
    }
}
