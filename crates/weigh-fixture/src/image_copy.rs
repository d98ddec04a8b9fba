//! A copy of an image that has no more than was written to the image. The image itself has all of its room
//! reserved, which is much more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{SeekFrom, ioctl_ficlone, seek};
use rustix::io::Errno;

const AT_ONCE: usize = 1 << 20;

/// Makes the copy, for as long as `goes_on` says so.
///
/// # Errors
/// `Interrupted` where it is not to go on; part of the copy may be there.
pub fn copy(from: &Path, to: &Path, goes_on: impl Fn() -> bool) -> io::Result<()> {
    let from = File::open(from)?;
    let to = OpenOptions::new().write(true).create_new(true).open(to)?;
    if !goes_on() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    // Btrfs and XFS let both files share all blocks.
    if ioctl_ficlone(&to, &from).is_ok() {
        return Ok(());
    }
    copy_data(&from, &to, goes_on)
}

fn copy_data(from: &File, to: &File, goes_on: impl Fn() -> bool) -> io::Result<()> {
    to.set_len(from.metadata()?.len())?;
    let (mut buffer, mut end) = (vec![0; AT_ONCE], 0);
    loop {
        let mut at = match seek(from, SeekFrom::Data(end)) {
            Err(Errno::NXIO) => return Ok(()),
            found => found?,
        };
        end = seek(from, SeekFrom::Hole(at))?;
        while at < end {
            if !goes_on() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let part = &mut buffer[..AT_ONCE.min(usize::try_from(end - at).unwrap_or(AT_ONCE))];
            from.read_exact_at(part, at)?;
            to.write_all_at(part, at)?;
            at += part.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const BYTES: u64 = 64 << 20;

    /// An image with some data, all of whose room is reserved.
    fn image(directory: &Path) -> File {
        let path = directory.join("image");
        let image = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        image.set_len(BYTES).unwrap();
        for at in [0, 5 << 20, (3 << 20) + 4096, BYTES - 3] {
            image.write_all_at(b"xyz", at).unwrap();
        }
        fallocate(&image, FallocateFlags::empty(), 0, BYTES).unwrap();
        image
    }

    #[test]
    fn a_copy_has_all_that_was_written_and_takes_no_more_room() {
        let home = tempfile::tempdir().unwrap();
        let (original, path) = (image(home.path()), home.path().join("copy"));
        copy(&home.path().join("image"), &path, || true).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes == std::fs::read(home.path().join("image")).unwrap());
        assert!(original.metadata().unwrap().blocks() * 512 >= BYTES);
        let room = File::open(&path).unwrap().metadata().unwrap().blocks() * 512;
        assert!(room < BYTES / 2, "{room}");
    }

    #[test]
    fn a_copy_ends_when_it_is_not_to_go_on() {
        let home = tempfile::tempdir().unwrap();
        image(home.path());
        let [from, to] = ["image", "copy"].map(|name| home.path().join(name));
        let stopped = copy(&from, &to, || false);
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
        // Where blocks are shared, `copy` is done before it asks again.
        let asked = std::cell::Cell::new(0);
        let goes_on = || asked.replace(asked.get() + 1) == 0;
        let (from, to) = (File::open(&from).unwrap(), File::create(&to).unwrap());
        let later = copy_data(&from, &to, goes_on);
        assert_eq!(later.unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert_eq!(asked.get(), 2);
    }
}
