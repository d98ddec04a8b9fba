//! The ring buffer through which a program hands events to the sensor (`BPF_MAP_TYPE_RINGBUF`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

use super::kernel;

/// Length of a record, and two flags.
const HEADER_BYTES: u64 = 8;
const IS_BUSY: u32 = 1 << 31;
const IS_DISCARDED: u32 = 1 << 30;

/// A ring buffer that is read here.
pub struct Ring {
    map: OwnedFd,
    /// A page with the position of the reader.
    read: Mapped,
    /// A page with the position of the writers, and the bytes twice, so that no record is cut in two.
    written: Mapped,
    bytes: u64,
}

struct Mapped {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapped {
    fn of(map: &OwnedFd, bytes: usize, protection: ProtFlags, offset: u64) -> io::Result<Mapped> {
        // SAFETY: a new mapping of a map that the kernel keeps as long as it is mapped.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, map, offset)
        }?;
        let start = NonNull::new(start.cast());
        Ok(Mapped { start: start.ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    fn position(&self) -> &AtomicU64 {
        // SAFETY: a page begins with the position, and lives as long as this.
        unsafe { self.start.cast().as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference into it outlives it. An error means that
        // it was not mapped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

impl Ring {
    /// Makes a buffer of so many bytes, a power of two and whole pages.
    pub fn new(bytes: u32) -> io::Result<Ring> {
        Ring::over(kernel::ring(bytes)?, bytes)
    }

    fn over(map: OwnedFd, bytes: u32) -> io::Result<Ring> {
        let page = page_size();
        let length = page + 2 * bytes as usize;
        Ok(Ring {
            read: Mapped::of(&map, page, ProtFlags::READ | ProtFlags::WRITE, 0)?,
            written: Mapped::of(&map, length, ProtFlags::READ, page as u64)?,
            bytes: bytes.into(),
            map,
        })
    }

    pub fn map(&self) -> &OwnedFd {
        &self.map
    }

    /// Takes all records that are complete, but none that is written meanwhile: others may write faster than
    /// this reads.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        // Nobody else moves this position.
        let mut position = self.read.position().load(Ordering::Relaxed);
        let end = self.written.position().load(Ordering::Acquire);
        while position < end {
            let at = page_size() + (position & (self.bytes - 1)) as usize;
            // SAFETY: records begin at multiples of 8 bytes within the mapping.
            let header: &AtomicU32 = unsafe { self.written.start.add(at).cast().as_ref() };
            let header = header.load(Ordering::Acquire);
            if header & IS_BUSY != 0 {
                return;
            }
            let length = header & !(IS_BUSY | IS_DISCARDED);
            if header & IS_DISCARDED == 0 {
                let start = self.written.start.as_ptr().cast_const();
                // SAFETY: a complete record is as long as its header says, and nobody writes to it until
                // the position is moved.
                take(unsafe {
                    std::slice::from_raw_parts(
                        start.add(at + HEADER_BYTES as usize),
                        length as usize,
                    )
                });
            }
            position += (u64::from(length) + HEADER_BYTES).next_multiple_of(8);
            self.read.position().store(position, Ordering::Release);
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, memfd_create};

    const RECORD_BYTES: u64 = 16;

    /// Writes the record at this position, as the kernel does, into a file in place of its map.
    fn write(file: &File, position: u64) {
        let page = page_size() as u64;
        file.write_all_at(&8u32.to_ne_bytes(), 2 * page + position).unwrap();
        file.write_all_at(&(position + RECORD_BYTES).to_ne_bytes(), page).unwrap();
    }

    #[test]
    fn records_that_are_written_meanwhile_wait_for_the_next_time() {
        let page = page_size();
        let file = File::from(memfd_create("ring", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(4 * page as u64).unwrap();
        let mut ring = Ring::over(file.try_clone().unwrap().into(), page as u32).unwrap();
        write(&file, 0);
        let mut taken = 0;
        for all in [1, 2] {
            ring.drain(|record| {
                assert_eq!(record.len(), 8);
                taken += 1;
                if taken < 10 {
                    write(&file, taken * RECORD_BYTES);
                }
            });
            assert_eq!(taken, all);
        }
    }
}
