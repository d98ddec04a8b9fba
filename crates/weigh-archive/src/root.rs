//! The root file system in an archive: a tar archive may hold the root itself, or an image whose layers make
//! one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::compressed::open_tar;
use super::image::{self, layers};
use super::rooted_dir::RootedDir;
use super::unpack::unpack;
use super::{ArchiveError, Unpacking};

/// Kind of content that an archive turned out to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    Root,
    Image,
}

/// Returns true if a directory is an image, not a root file system.
pub fn is_image(directory: &Path) -> io::Result<bool> {
    Ok(image::is_image(&RootedDir::open(directory)?))
}

/// Unpacks a tar archive into `root`, which is made. That of an image is unpacked to `aside` first, which is
/// removed again.
pub fn unpack_tar(
    file: File,
    root: &Path,
    aside: &Path,
    unpacking: &mut Unpacking,
) -> Result<Packed, ArchiveError> {
    fs::create_dir(root)?;
    unpack(open_tar(file)?, &RootedDir::open(root)?, false, unpacking)?;
    if fs::read_dir(root)?.next().is_none() {
        return Err(ArchiveError::Unusable("it is empty".into()));
    }
    if !is_image(root)? {
        return Ok(Packed::Root);
    }
    fs::rename(root, aside)?;
    unpack_image(aside, root, unpacking)?;
    fs::remove_dir_all(aside)?;
    Ok(Packed::Image)
}

/// Unpacks the layers of an image, one above the other, into `root`, which is made.
pub fn unpack_image(
    directory: &Path,
    root: &Path,
    unpacking: &mut Unpacking,
) -> Result<(), ArchiveError> {
    fs::create_dir(root)?;
    let (directory, root) = (RootedDir::open(directory)?, RootedDir::open(root)?);
    for layer in layers(&directory)? {
        let say = |error: ArchiveError| match error {
            ArchiveError::Unusable(problem) => {
                ArchiveError::Unusable(format!("its layer {}: {problem}", layer.file))
            }
            other => other,
        };
        if let Some(digest) = &layer.digest {
            let found = sha256(directory.file(&layer.file)?, unpacking).map_err(say)?;
            if found != *digest {
                return Err(say(ArchiveError::Unusable(
                    "it is damaged: its SHA-256 differs".into(),
                )));
            }
        }
        let tar = open_tar(directory.file(&layer.file)?).map_err(say)?;
        unpack(tar, &root, true, unpacking).map_err(say)?;
    }
    Ok(())
}

fn sha256(mut file: File, unpacking: &mut Unpacking) -> Result<String, ArchiveError> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            length => hash.update(&chunk[..length]),
        }
        // No more than there was: only whether it is to go on.
        unpacking.add_bytes(0)?;
    }
}
