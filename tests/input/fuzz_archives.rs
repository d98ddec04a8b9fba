//! Whatever bytes an archive or an image has: it is unpacked or refused, never with a panic, and nothing is
//! written outside of its directory. See `tests/input/fuzz.rs`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::fuzzing::{fuzz, texts};
use weigh_archive::{RootedDir, Unpacking, unpack, unpack_image};

/// Files that root unpacks, and files beside them.
struct Unpacked(tempfile::TempDir);

impl Unpacked {
    fn new() -> Unpacked {
        let shared = Path::new("/dev/shm");
        let place = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let unpacked = Unpacked(tempfile::tempdir_in(place).unwrap());
        fs::create_dir(unpacked.0.path().join("victim")).unwrap();
        fs::write(unpacked.0.path().join("victim/file"), "precious").unwrap();
        unpacked
    }

    /// An empty tree.
    fn tree(&self) -> PathBuf {
        let tree = self.0.path().join("tree");
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir(&tree).unwrap();
        tree
    }

    /// Nothing was written elsewhere, nor more than allowed.
    fn assert_contained(&self) {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert!(names.iter().all(|name| ["image", "tree", "victim"].iter().any(|it| name == it)));
        let victim = self.0.path().join("victim");
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
        let file = fs::symlink_metadata(victim.join("file")).unwrap();
        let (links, mode) = (file.nlink(), file.mode() & 0o7777);
        assert_eq!((links, mode), (1, 0o644), "a link to it, or another mode");
        assert_eq!(fs::read(victim.join("file")).unwrap(), b"precious");
    }
}

const MOST_UNPACKED: u64 = 1 << 20;

fn unpack_some(input: &[u8], tree: &Path, is_layer: bool) {
    let mut goes_on = |_| true;
    let mut unpacking = Unpacking::new(MOST_UNPACKED, 1000, &mut goes_on);
    let _ = unpack(input, &RootedDir::open(tree).unwrap(), is_layer, &mut unpacking);
}

/// Nearly all that is changed would be refused for the sum in its header alone.
fn with_sums(input: &[u8]) -> Vec<u8> {
    let mut input = input.to_vec();
    for block in input.chunks_exact_mut(512).filter(|block| &block[257..262] == b"ustar") {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    input
}

/// Archives with every kind of entry, hostile ones too.
fn tars() -> Vec<Vec<u8>> {
    let of = |entries: &[(tar::EntryType, &str, &str, &str)]| {
        let mut bytes = Vec::new();
        for (kind, path, target, content) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(1);
            header.set_size(content.len() as u64);
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(content.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes
    };
    use tar::EntryType as Is;
    vec![
        of(&[
            (Is::Directory, "./", "", ""),
            (Is::Directory, "a/", "", ""),
            (Is::Regular, "a/b", "", "content"),
            (Is::Link, "a/c", "a/b", ""),
            (Is::Symlink, "d", "a", ""),
            (Is::Fifo, "e", "", ""),
            (Is::Char, "f", "", ""),
        ]),
        of(&[
            (Is::Symlink, "out", "../victim", ""),
            (Is::Regular, "out/file", "", "gone"),
            (Is::Link, "h", "out/file", ""),
            (Is::Regular, "h", "", "gone"),
            (Is::Regular, "../victim/new", "", "x"),
            (Is::Directory, "out/file", "", ""),
        ]),
        of(&[
            (Is::Regular, "a/.wh.b", "", ""),
            (Is::Regular, "a/.wh..wh..opq", "", ""),
            (Is::Symlink, "v", "../victim", ""),
            (Is::Regular, "v/.wh.file", "", ""),
            (Is::Regular, ".wh...", "", ""),
        ]),
        of(&[
            (
                Is::XHeader,
                "pax",
                "",
                "26 path=../victim/another\n18 linkpath=/etc\n14 size=99999\n",
            ),
            (Is::Regular, "x", "", "content"),
            (Is::GNULongName, "././@LongLink", "", "../victim/file\0"),
            (Is::Regular, "y", "", "content"),
            (Is::GNULongLink, "././@LongLink", "", "../victim/file\0"),
            (Is::Link, "z", "", ""),
            (Is::GNUSparse, "s", "", "content"),
        ]),
    ]
}

#[test]
fn archives_of_root_file_systems() {
    let place = Unpacked::new();
    fuzz("archives", &tars(), |input| {
        let tree = place.tree();
        unpack_some(input, &tree, false);
        unpack_some(&with_sums(input), &tree, true);
        place.assert_contained();
    });
}

#[test]
fn images_of_containers() {
    let place = Unpacked::new();
    let digest = "a".repeat(64);
    let index = format!(
        r#"{{"manifests":[{{"mediaType":"m","digest":"sha256:{digest}","size":3,
        "platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#
    );
    let inputs = texts(&[
        &index,
        r#"[{"Config":"c","RepoTags":["a:b"],"Layers":["../victim/file","/etc/passwd","0/layer.tar"]}]"#,
        &format!(
            r#"{{"layers":[{{"digest":"sha256:{digest}"}},{{"digest":"sha256:../../victim/file"}}]}}"#
        ),
    ]);
    let image = place.0.path().join("image");
    fs::create_dir_all(image.join("blobs/sha256")).unwrap();
    fs::create_dir(image.join("0")).unwrap();
    fs::write(image.join("0/layer.tar"), &tars()[1]).unwrap();
    fuzz("images", &inputs, |input| {
        for files in [&["index.json", "oci-layout"][..], &["manifest.json"]] {
            files.iter().for_each(|name| fs::write(image.join(name), input).unwrap());
            fs::write(image.join("blobs/sha256").join(&digest), input).unwrap();
            let tree = place.tree();
            fs::remove_dir(&tree).unwrap();
            let mut goes_on = |_| true;
            let mut unpacking = Unpacking::new(MOST_UNPACKED, 1000, &mut goes_on);
            let _ = unpack_image(&image, &tree, &mut unpacking);
            files.iter().for_each(|name| fs::remove_file(image.join(name)).unwrap());
        }
        place.assert_contained();
    });
}
