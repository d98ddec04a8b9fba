//! Random numbers of the kernel, by its system call: that needs no file, and what fails is an error.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// So many bytes that nobody can guess.
fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let cannot = |error: io::Error| {
            io::Error::new(error.kind(), format!("the kernel returned no random numbers: {error}"))
        };
        filled += match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Err(rustix::io::Errno::INTR) => 0,
            other => other.map_err(|error| cannot(error.into()))?,
        };
    }
    Ok(bytes)
}

/// A number from 0 to 2³²−1.
pub fn small() -> io::Result<u32> {
    Ok(u32::from_ne_bytes(bytes()?))
}

/// A number from 0 to 2⁶⁴−1.
pub fn number() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(bytes()?))
}

/// A number from 0 to 2¹²⁸−1.
pub fn large() -> io::Result<u128> {
    Ok(u128::from_ne_bytes(bytes()?))
}

/// The seed of an experiment for which none was asked: short enough to be typed again.
pub fn seed() -> Result<u64, String> {
    small().map(u64::from).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ() {
        assert_ne!(large().unwrap(), large().unwrap());
        assert_ne!(number().unwrap(), number().unwrap());
    }
}
