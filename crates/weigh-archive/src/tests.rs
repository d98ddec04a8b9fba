//! Archives as they are, and as somebody could make them who wants to write where he should not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tar::{Builder, EntryType, Header};

use super::*;

/// An entry as it stands in an archive, whatever it says.
pub(crate) fn entry(kind: EntryType, path: &str, target: &str, content: &str) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory { 0o750 } else { 0o640 });
    set_owner(&mut header);
    header.set_size(content.len() as u64);
    header.set_mtime(86_400);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn set_owner(header: &mut Header) {
    header.set_uid(u64::from(rustix::process::geteuid().as_raw()));
    header.set_gid(u64::from(rustix::process::getegid().as_raw()));
}

fn file(path: &str, content: &str) -> Vec<u8> {
    entry(EntryType::Regular, path, "", content)
}

fn directory(path: &str) -> Vec<u8> {
    entry(EntryType::Directory, path, "", "")
}

fn link(path: &str, target: &str) -> Vec<u8> {
    entry(EntryType::Symlink, path, target, "")
}

/// A tree of its own beside something that must stay as it is.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir(place.tree()).unwrap();
        fs::create_dir(place.0.path().join("victim")).unwrap();
        fs::write(place.0.path().join("victim/file"), "precious").unwrap();
        place
    }

    fn tree(&self) -> std::path::PathBuf {
        self.0.path().join("tree")
    }

    fn layer(&self, entries: &[Vec<u8>], is_layer: bool) -> Result<(u64, u64), ArchiveError> {
        let mut goes_on = |_| true;
        let mut unpacking = Unpacking::new(1 << 20, 100, &mut goes_on);
        let below = RootedDir::open(&self.tree())?;
        unpack(entries.concat().as_slice(), &below, is_layer, &mut unpacking)?;
        Ok((unpacking.files, unpacking.devices))
    }

    #[track_caller]
    fn refuses(&self, entries: &[Vec<u8>], why: &str) {
        let problem = self.layer(entries, false).unwrap_err().to_string();
        assert!(problem.contains(why), "{problem}");
        self.assert_untouched();
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(fs::read_dir(self.0.path()).unwrap().count(), 2);
        let victim = self.0.path().join("victim");
        assert_eq!(fs::read_to_string(victim.join("file")).unwrap(), "precious");
        assert_eq!(fs::read_dir(victim).unwrap().count(), 1);
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.tree().join(path)).ok()
    }
}

#[test]
fn files_directories_and_links_are_made_as_they_were() {
    let place = Place::new();
    let hard = entry(EntryType::Link, "./usr/hard", "usr/bin/x", "");
    let fifo = entry(EntryType::Fifo, "run/fifo", "", "");
    let device = entry(EntryType::Char, "dev/null", "", "");
    let parts = [
        directory("./"),
        directory("usr/"),
        file("./usr/bin/x", "hello"),
        link("bin", "usr/bin"),
        link("etc/away", "/nowhere/at/all"),
        hard,
        fifo,
        device,
    ];
    // Eight entries, and three directories that none of them lists.
    assert_eq!(place.layer(&parts, false).unwrap(), (11, 1));
    assert_eq!(place.read("usr/bin/x").as_deref(), Some("hello"));
    assert_eq!(place.read("bin/x").as_deref(), Some("hello"));
    let metadata = |path: &str| fs::symlink_metadata(place.tree().join(path)).unwrap();
    assert_eq!(metadata("usr/hard").ino(), metadata("usr/bin/x").ino());
    assert_eq!(metadata("usr/bin/x").permissions().mode() & 0o7777, 0o640);
    assert_eq!(metadata("usr/bin/x").mtime(), 86_400);
    assert_eq!(metadata("usr").permissions().mode() & 0o777 & 0o700, 0o700);
    assert!(metadata("etc/away").is_symlink() && metadata("run/fifo").file_type().is_fifo());
    assert!(!place.tree().join("dev/null").exists());
}

#[test]
fn names_longer_than_a_header_are_whole() {
    let place = Place::new();
    let long = format!("{}/{}", "d".repeat(150), "f".repeat(200));
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    set_owner(&mut header);
    header.set_size(2);
    header.set_mode(0o644);
    builder.append_data(&mut header, &long, &b"ok"[..]).unwrap();
    let bytes = builder.into_inner().unwrap();
    place.layer(&[bytes], false).unwrap();
    assert_eq!(place.read(&long).as_deref(), Some("ok"));
}

#[test]
fn no_path_leads_out() {
    let place = Place::new();
    place.refuses(&[file("../victim/file", "x")], "leads up");
    place.refuses(&[file("a/../../victim/file", "x")], "leads up");
    place.refuses(&[file("/etc/passwd-of-weigh", "x")], "is absolute");
    place.refuses(&[link("out", "../victim"), file("out/file", "x")], "leads through `out`");
    place.refuses(&[link("b", "/tmp"), directory("b/new")], "leads through `b`");
    let hard = |target: &str| entry(EntryType::Link, "h", target, "");
    place.refuses(&[hard("../victim/file")], "leads up");
    place.refuses(&[hard("/etc/passwd")], "is absolute");
    place.refuses(&[link("c", "../victim"), hard("c/file")], "leads through `c`");
    place.refuses(&[hard("./")], "points to the root");
    place.refuses(&[hard("no/such")], "No such file");
    place.refuses(&[file("f", ""), file("f/below", "")], "leads through `f`");
    place.refuses(&[file("./", "x")], "its root is not a directory");
}

/// A link that was there is replaced, not written through.
#[test]
fn what_comes_later_replaces_what_was() {
    let place = Place::new();
    let target = place.0.path().join("victim/file");
    let over = [link("x", target.to_str().unwrap()), file("x", "mine")];
    place.layer(&over, false).unwrap();
    assert_eq!(place.read("x").as_deref(), Some("mine"));
    place.layer(&[directory("x/"), file("x/y", "1")], false).unwrap();
    place.layer(&[directory("x/")], false).unwrap();
    assert_eq!(place.read("x/y").as_deref(), Some("1"), "a directory that is there stays");
    symlink("../victim", place.tree().join("v")).unwrap();
    place.layer(&[directory("v/"), file("v/file", "mine")], false).unwrap();
    place.assert_untouched();
    assert_eq!(place.read("v/file").as_deref(), Some("mine"));
}

#[test]
fn a_layer_takes_away_what_is_beneath_and_nothing_of_its_own() {
    let place = Place::new();
    let base = ["a/1", "a/2", "b/1", "b/sub/2", "c/1", "d"].map(|path| file(path, "base"));
    place.layer(&base, true).unwrap();
    let layer = [
        file("a/.wh.1", ""),
        file("b/new", "own"),
        file("b/sub/new", "own"),
        file("b/.wh..wh..opq", ""),
        file("c/2", "own"),
        file(".wh.c", ""),
        file(".wh.d", ""),
        file(".wh.missing", ""),
        file(".wh..wh.plnk", ""),
    ];
    place.layer(&layer, true).unwrap();
    let there = ["a/2", "b/new", "b/sub/new", "c/2"];
    let gone = ["a/1", "b/1", "b/sub/2", "c/1", "d", ".wh.d", "b/.wh..wh..opq"];
    assert!(there.iter().all(|path| place.read(path).is_some()));
    assert!(gone.iter().all(|path| place.read(path).is_none()));
    let problem = place.layer(&[file(".wh...", "")], true).unwrap_err().to_string();
    assert!(problem.contains("a whiteout without a file"), "{problem}");
    symlink("../victim", place.tree().join("out")).unwrap();
    assert!(place.layer(&[file("out/.wh.file", "")], true).is_err());
    assert!(place.layer(&[file("out/.wh..wh..opq", "")], true).is_err());
    place.assert_untouched();
}

#[test]
fn absurd_sizes_are_refused() {
    let place = Place::new();
    place.refuses(&[file("large", &"x".repeat(2 << 20))], "more than 1 MiB");
    let many: Vec<Vec<u8>> = (0..101).map(|number| file(&format!("{number}"), "")).collect();
    place.refuses(&many, "more than 100 files");
    let mut cut = file("cut", &"x".repeat(2000));
    cut.truncate(1024);
    place.refuses(&[cut], "in the middle of a file");
    let mut claims = Header::new_gnu();
    claims.as_old_mut().name[..1].copy_from_slice(b"h");
    claims.set_entry_type(EntryType::Regular);
    claims.as_old_mut().size.copy_from_slice(b"77777777777\0");
    claims.set_cksum();
    place.refuses(&[claims.as_bytes().to_vec()], "in the middle of a file");
    let deep = "d/".repeat(300);
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(0);
    builder.append_data(&mut header, deep, &b""[..]).unwrap();
    place.refuses(&[builder.into_inner().unwrap()], "too long");
}

/// A directory that no entry lists takes an inode as well as one that is listed.
#[test]
fn directories_that_are_only_implied_are_counted() {
    let place = Place::new();
    let deep: Vec<Vec<u8>> =
        (0..3).map(|n| file(&format!("{n}/{}x", "d/".repeat(30)), "")).collect();
    let mut goes_on = |_| true;
    let mut unpacking = Unpacking::new(1 << 20, 50, &mut goes_on);
    let below = RootedDir::open(&place.tree()).unwrap();
    let problem = unpack(deep.concat().as_slice(), &below, false, &mut unpacking).unwrap_err();
    assert!(problem.to_string().contains("more than 50 files"), "{problem}");
    // A whiteout where nothing is makes no directories.
    let place = Place::new();
    let whiteouts = [file("a/b/.wh.c", ""), file("d/e/.wh..wh..opq", "")].concat();
    let below = RootedDir::open(&place.tree()).unwrap();
    let mut unpacking = Unpacking::new(1 << 20, 50, &mut goes_on);
    unpack(whiteouts.as_slice(), &below, true, &mut unpacking).unwrap();
    assert_eq!(fs::read_dir(place.tree()).unwrap().count(), 0);
}

/// A name of gigabytes is not read to its end.
#[test]
fn a_header_that_does_not_end_is_given_up() {
    let place = Place::new();
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..13].copy_from_slice(b"././@LongLink");
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 30);
    header.set_cksum();
    let endless = header.as_bytes().as_slice().chain(std::io::repeat(b'x'));
    let mut goes_on = |_| true;
    let mut unpacking = Unpacking::new(1 << 20, 100, &mut goes_on);
    let below = RootedDir::open(&place.tree()).unwrap();
    let problem = unpack(endless, &below, false, &mut unpacking).unwrap_err().to_string();
    assert!(problem.contains("too long"), "{problem}");
}

#[test]
fn it_ends_when_it_is_told_to() {
    let place = Place::new();
    let mut goes_on = |bytes| bytes < 100_000;
    let mut unpacking = Unpacking::new(1 << 30, 100, &mut goes_on);
    let below = RootedDir::open(&place.tree()).unwrap();
    let tar = file("x", &"x".repeat(200_000));
    let ended = unpack(tar.as_slice(), &below, false, &mut unpacking);
    assert!(matches!(ended, Err(ArchiveError::Interrupted)));
}

/// A file with these bytes, as a source of an archive.
fn source(directory: &Path, bytes: &[u8]) -> std::fs::File {
    let path = directory.join("source");
    fs::write(&path, bytes).unwrap();
    fs::File::open(path).unwrap()
}

fn read_all(file: std::fs::File) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut open_tar(file)?, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn what_is_compressed_is_known_by_its_first_bytes() {
    let home = tempfile::tempdir().unwrap();
    let text = b"text ".repeat(100_000);
    assert_eq!(read_all(source(home.path(), &text)).unwrap(), text);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let mut gzip = gzip.finish().unwrap();
    assert_eq!(read_all(source(home.path(), &gzip)).unwrap(), text);
    gzip.truncate(gzip.len() / 2);
    assert!(read_all(source(home.path(), &gzip)).is_err());
    for program in ["xz", "zstd", "bzip2"] {
        if trust::program::find(program).unwrap().is_none() {
            needs::skip(program, "it is not installed");
            continue;
        }
        let plain = source(home.path(), &text);
        let output =
            std::process::Command::new(program).args(["-c"]).stdin(plain).output().unwrap();
        let mut packed = output.stdout;
        assert_eq!(read_all(source(home.path(), &packed)).unwrap(), text, "{program}");
        packed.truncate(packed.len() / 2);
        let problem = read_all(source(home.path(), &packed)).unwrap_err().to_string();
        assert!(problem.starts_with(program), "{problem}");
    }
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A layout of these layers, as the files of an archive.
fn layout(layers: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let blob = |bytes: &[u8]| (format!("blobs/sha256/{}", sha256(bytes)), bytes.to_vec());
    let named = |bytes: &[u8]| format!(r#"{{"digest":"sha256:{}"}}"#, sha256(bytes));
    let list: Vec<String> = layers.iter().map(|layer| named(layer)).collect();
    let manifest = format!(r#"{{"layers":[{}]}}"#, list.join(",")).into_bytes();
    let index = format!(r#"{{"manifests":[{}]}}"#, named(&manifest)).into_bytes();
    let mut files =
        vec![("oci-layout".to_owned(), b"{}".to_vec()), ("index.json".to_owned(), index)];
    files.push(blob(&manifest));
    files.extend(layers.iter().map(|layer| blob(layer)));
    files
}

#[test]
fn the_layers_of_an_image_make_a_root() {
    let home = tempfile::tempdir().unwrap();
    let lower = [file("etc/os-release", "old"), file("gone", "x")].concat();
    let upper = [file("etc/os-release", "new"), file(".wh.gone", "")].concat();
    let files = layout(&[lower, upper]);
    let mut builder = Builder::new(Vec::new());
    for (path, bytes) in &files {
        let mut header = Header::new_gnu();
        set_owner(&mut header);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, bytes.as_slice()).unwrap();
    }
    let tar = source(home.path(), &builder.into_inner().unwrap());
    let (root, aside) = (home.path().join("root"), home.path().join("aside"));
    let mut goes_on = |_| true;
    let mut unpacking = Unpacking::new(1 << 20, 100, &mut goes_on);
    assert_eq!(unpack_tar(tar, &root, &aside, &mut unpacking).unwrap(), Packed::Image);
    assert_eq!(fs::read_to_string(root.join("etc/os-release")).unwrap(), "new");
    assert!(!root.join("gone").exists() && !aside.exists());

    let image = home.path().join("image");
    for (path, bytes) in &files {
        fs::create_dir_all(image.join(path).parent().unwrap()).unwrap();
        fs::write(image.join(path), bytes).unwrap();
    }
    assert!(is_image(&image).unwrap() && !is_image(&root).unwrap());
    let damaged = image.join(&files.last().unwrap().0);
    let mut bytes = fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let problem = unpack_image(&image, &home.path().join("other"), &mut unpacking);
    assert!(problem.unwrap_err().to_string().contains("its SHA-256 differs"));
}

#[test]
fn what_is_no_archive_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let try_it = |name: &str, bytes: &[u8]| {
        let mut goes_on = |_| true;
        let mut unpacking = Unpacking::new(1 << 20, 100, &mut goes_on);
        let (root, aside) = (home.path().join(name), home.path().join("aside"));
        unpack_tar(source(home.path(), bytes), &root, &aside, &mut unpacking)
            .unwrap_err()
            .to_string()
    };
    let problem = try_it("a", &b"no\narchive ".repeat(100));
    assert!(problem.contains("not a valid tar archive") && !problem.contains('\n'), "{problem}");
    assert!(try_it("b", b"").contains("it is empty"));
    assert!(try_it("c", &[0; 4096]).contains("it is empty"));
}
