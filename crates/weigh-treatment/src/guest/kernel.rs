//! A kernel for guests: from a package of the distribution, or a file; and those of its modules that a guest
//! needs before it has a root file system.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sha2::{Digest, Sha256};

use super::builder::{BuildStep, Workshop, output_of, unavailable};
use crate::TreatmentError;
use crate::digest::{digest_of_file, hex};
use trust::allowed::executable;
use trust::{program, user_file};

/// Where nobody says otherwise.
#[cfg(target_arch = "x86_64")]
const PACKAGE: &str = "linux-image-cloud-amd64";
#[cfg(not(target_arch = "x86_64"))]
const PACKAGE: &str = "linux-image-cloud-arm64";
/// The drivers of all that a guest has, and of its root file system.
const NEEDED: [&str; 4] = ["virtio_pci", "virtio_console", "virtio_blk", "ext4"];
/// Modules that these ask for by another name, if it is a module.
const ASKED_FOR: [&str; 2] = ["crc32c_generic", "crc32c_cryptoapi"];
/// A package that is only a name for another leads to one such.
const MOST_NAMES: usize = 3;
/// Where the files of a kernel are not in the package of the image, but in others that it depends on.
const PARTS: [&str; 3] = ["linux-base-", "linux-binary-", "linux-modules-"];
/// Where apt keeps what `apt-get update` fetched.
const LISTS: &str = "/var/lib/apt/lists";
/// No module of a kernel is as large.
const MOST_BYTES: u64 = 256 << 20;
/// Where the header of an image for x86 has its magic number, and the place of the release.
const HEADER: usize = 0x202;
const MAGIC: &[u8] = b"HdrS";
const RELEASE_AT: usize = 0x20e;
const HEADER_GAP: usize = 0x200;
const LONGEST_RELEASE: usize = 100;

/// One that is on disk.
#[derive(Clone)]
pub struct GuestKernel {
    pub image: PathBuf,
    pub release: String,
    /// By name, in the order in which they are loaded.
    pub modules: Vec<(String, Vec<u8>)>,
    pub digest: String,
}

impl GuestKernel {
    /// The one that is named: a path, a package, or by nothing the distribution's.
    pub fn find(
        named: Option<&str>,
        workshop: &mut Workshop,
    ) -> Result<GuestKernel, TreatmentError> {
        let name = named.unwrap_or(PACKAGE);
        let found = match named {
            Some(path) if path.contains('/') => GuestKernel::of_file(Path::new(path)),
            _ => GuestKernel::unpacked(&of_package(name, workshop)?),
        };
        found.map_err(|problem| TreatmentError::Unavailable(about(name, problem)))
    }

    /// Looks whether there is one to be found, without fetching it.
    pub fn check(named: Option<&str>) -> Result<(), String> {
        let name = named.unwrap_or(PACKAGE);
        let found = match named {
            Some(path) if path.contains('/') => GuestKernel::of_file(Path::new(path)).map(drop),
            _ => package(name).map(drop),
        };
        found.map_err(|problem| about(name, problem))
    }

    fn unpacked(directory: &Path) -> Result<GuestKernel, String> {
        let within = |path: &Path| {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let roots = ["lib/modules", "usr/lib/modules"].map(|path| directory.join(path));
        let trees = roots.iter().flat_map(|path| within(path));
        let tree = trees.min().ok_or("its package contains no modules")?;
        let is_image = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinu"))
        };
        let places = [directory.join("boot"), tree.clone()];
        let image = places.iter().flat_map(|path| within(path)).filter(is_image).min();
        let image = image
            .ok_or("its package contains no kernel image, neither in /boot nor with its modules")?;
        GuestKernel::with(image, &tree)
    }

    /// Returns the identity of a kernel without fetching it; a different kernel has another.
    pub fn identity(named: Option<&str>) -> Result<String, String> {
        match named {
            Some(path) if path.contains('/') => match GuestKernel::of_file(Path::new(path)) {
                Ok(kernel) => Ok(kernel.digest),
                // No guest boots it; what it is, is told all the same.
                Err(_) => digest_of_file(Path::new(path)).map_err(|error| error.to_string()),
            },
            _ => Ok(real_package(named.unwrap_or(PACKAGE), &shown)?.kept_as()),
        }
    }

    fn of_file(image: &Path) -> Result<GuestKernel, String> {
        let image = &executable(image).map_err(|error| error.to_string())?;
        let release = release_of(image)?;
        let beside = image.parent().unwrap_or(Path::new("/"));
        let trees = [
            beside.join("../lib/modules"),
            beside.join("lib/modules"),
            beside.join("modules"),
            beside.join(".."),
            PathBuf::from("/lib/modules"),
        ];
        let tree = trees.iter().map(|tree| tree.join(&release)).find(|tree| tree.is_dir());
        let tree = tree.ok_or_else(|| {
            format!(
                "cannot find its modules ({release}) in ../lib/modules, lib/modules or modules next to \
                 it, in its own directory, or in /lib/modules"
            )
        })?;
        let tree = executable(&tree).map_err(|error| error.to_string())?;
        GuestKernel::with(image.to_owned(), &tree)
    }

    fn with(image: PathBuf, tree: &Path) -> Result<GuestKernel, String> {
        let release = tree.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let modules = Modules::in_tree(tree)?.needed(&release)?;
        let image_digest = digest_of_file(&image).map_err(|error| error.to_string())?;
        let digest = digest_of(&image_digest, &modules);
        Ok(GuestKernel { image, release, modules, digest })
    }
}

/// Digests the image and the loaded modules, because modules may be rebuilt without the image.
fn digest_of(image_digest: &str, modules: &[(String, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    hash.update(image_digest);
    for (name, bytes) in modules {
        hash.update(name);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    hex(&hash.finalize())
}

/// Reads the release from an image for x86.
pub fn release_of(image: &Path) -> Result<String, String> {
    let mut head = vec![0; 1 << 16];
    let mut file = user_file::open(image).map_err(|error| error.to_string())?;
    let length = read_up_to(&mut file, &mut head).map_err(|error| error.to_string())?;
    let none = "not a bootable kernel image: give a vmlinuz (bzImage)";
    release_in(&head[..length]).ok_or_else(|| none.to_owned())
}

fn read_up_to(file: &mut fs::File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

fn release_in(head: &[u8]) -> Option<String> {
    let at = |offset: usize| head.get(offset).copied().map(usize::from);
    (head.get(HEADER..HEADER + MAGIC.len())? == MAGIC).then_some(())?;
    let begin = at(RELEASE_AT)? + (at(RELEASE_AT + 1)? << 8) + HEADER_GAP;
    let text = head.get(begin..(begin + LONGEST_RELEASE).min(head.len()))?;
    let end = text.iter().position(|byte| *byte == 0 || *byte == b' ')?;
    let release = std::str::from_utf8(&text[..end]).ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    (!release.is_empty() && release.chars().all(is_plain)).then(|| release.to_owned())
}

/// The package of a kernel, and those that have files of it.
#[derive(Debug, PartialEq)]
struct KernelPackage {
    name: String,
    version: String,
    /// As `apt-get download` takes them.
    parts: Vec<String>,
}

impl KernelPackage {
    fn kept_as(&self) -> String {
        format!("kernel-{}_{}", self.name, self.version.replace(['/', ':'], "-"))
    }
}

/// A package's files, unpacked once.
fn of_package(name: &str, workshop: &mut Workshop) -> Result<PathBuf, TreatmentError> {
    let refused = |problem: String| TreatmentError::Unavailable(about(name, problem));
    let package = package(name).map_err(refused)?;
    workshop.have(&package.kept_as(), |step, whole| {
        let what = format!("Fetching the kernel {}", package.name);
        let mut words = vec!["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download"];
        words.extend(package.parts.iter().map(String::as_str));
        step.run(&what, &words)?;
        let files = fs::read_dir(step.beside).map_err(unavailable)?.flatten();
        let is_package = |path: &PathBuf| path.extension().is_some_and(|end| end == "deb");
        let debs: Vec<PathBuf> = files.map(|entry| entry.path()).filter(is_package).collect();
        if debs.len() < package.parts.len() {
            return Err(refused("apt-get did not fetch all of its packages".into()));
        }
        debs.iter().try_for_each(|deb| unpack(step, deb, whole))
    })
}

fn package(name: &str) -> Result<KernelPackage, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(is_plain) {
        return Err("neither a path nor a package name: write kernel=PATH or kernel=PACKAGE".into());
    }
    real_package(name, &shown)
}

/// Says why apt does not know a package, and what to type.
fn unknown(name: &str, lists: &Path) -> String {
    let is_list = |entry: fs::DirEntry| entry.file_name().to_string_lossy().contains("_Packages");
    let has_lists = fs::read_dir(lists).is_ok_and(|entries| entries.flatten().any(is_list));
    match has_lists {
        true => format!(
            "apt does not know the package {name}: `apt-cache search --names-only '^linux-image'` lists \
             kernels, `apt-get update` renews apt's lists; or give a file (kernel=PATH)"
        ),
        false => format!(
            "apt has no lists of packages here, so it does not know the package {name}: run `apt-get \
             update`, or give a file (kernel=PATH)"
        ),
    }
}

fn about(name: &str, problem: String) -> String {
    format!("the kernel {name}: {problem}")
}

fn unpack(step: &BuildStep, deb: &Path, whole: &Path) -> Result<(), TreatmentError> {
    let (deb, whole) = (deb.to_string_lossy(), whole.to_string_lossy());
    step.run("Unpacking the kernel", &["dpkg-deb", "-x", &deb, &whole]).map(drop)
}

/// The package of this name, or the one that it leads to: what is called by a series leads to the newest of
/// it. `shown` is what apt says of one.
fn real_package(
    name: &str,
    shown: &dyn Fn(&str) -> Result<String, String>,
) -> Result<KernelPackage, String> {
    let mut name = name.to_owned();
    for _ in 0..MOST_NAMES {
        let told = shown(&name)?;
        let version = version_in(&told).ok_or_else(|| unknown(&name, Path::new(LISTS)))?;
        if let Some(other) = needs(&told, &["linux-image-"]).into_iter().next() {
            name = other;
            continue;
        }
        let mut open = needs(&told, &PARTS);
        let mut parts = vec![(name.clone(), told)];
        while let Some(part) = open.pop() {
            if parts.iter().all(|(known, _)| *known != part) {
                let told = shown(&part)?;
                open.extend(needs(&told, &PARTS));
                parts.push((part, told));
            }
        }
        let with_version = |(part, told): (String, String)| match version_in(&told) {
            Some(version) => format!("{part}={version}"),
            // It is a name for another one.
            None => part,
        };
        let parts = parts.into_iter().map(with_version).collect();
        return Ok(KernelPackage { name, version, parts });
    }
    Err("its package only refers to other packages: name the package that contains the kernel"
        .into())
}

fn field<'a>(shown: &'a str, key: &str) -> Option<&'a str> {
    shown.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

fn version_in(shown: &str) -> Option<String> {
    field(shown, "Version").map(str::to_owned)
}

/// Which packages it depends on, of those that begin so.
fn needs(shown: &str, beginnings: &[&str]) -> Vec<String> {
    let all = field(shown, "Depends").unwrap_or_default().split([',', '|']);
    let names = all.filter_map(|one| one.split_whitespace().next());
    let is_wanted = |name: &&str| beginnings.iter().any(|begin| name.starts_with(begin));
    names.filter(is_wanted).map(str::to_owned).collect()
}

/// Reads the description that apt has of a package, asked once per process: without its cache, as in a
/// container, apt reads all of its lists for each answer, which takes a second of CPU time.
fn shown(name: &str) -> Result<String, String> {
    static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().map_err(|_| "a thread that asked apt ended early")?;
    if let Some(told) = known.get(name) {
        return Ok(told.clone());
    }
    let told = ask_apt(name)?;
    known.insert(name.to_owned(), told.clone());
    Ok(told)
}

fn ask_apt(name: &str) -> Result<String, String> {
    let apt = program::find("apt-cache")?
        .ok_or("apt is missing, so weigh cannot fetch it: give a local file (kernel=PATH)")?;
    let words = ["show", "--no-all-versions", "--", name];
    // What it does not know, it prints nothing of.
    let (printed, _) = output_of(&apt, &words.map(OsStr::new))?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

struct Modules {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

impl Modules {
    fn in_tree(tree: &Path) -> Result<Modules, String> {
        let mut files = BTreeMap::new();
        let mut open = vec![tree.join("kernel")];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(path),
                    _ => drop(module_name(&path).map(|name| files.insert(name, path))),
                }
            }
        }
        let listed = tree.join("modules.builtin");
        let listed = user_file::read_text(&listed, MOST_BYTES).unwrap_or_default();
        let built_in = listed.lines().filter_map(|line| module_name(Path::new(line))).collect();
        Ok(Modules { files, built_in })
    }

    /// Returns the modules that a guest needs, each after the modules that it needs itself.
    fn needed(&self, release: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let lacks =
            |name: &&&str| !self.files.contains_key(**name) && !self.built_in.contains(**name);
        let lacking: Vec<&str> = NEEDED.iter().filter(lacks).copied().collect();
        if !lacking.is_empty() {
            return Err(format!(
                "{release} has {} neither built in nor as modules, but a guest needs them",
                lacking.join(", ")
            ));
        }
        let mut chosen = Vec::new();
        for name in ASKED_FOR.iter().chain(&NEEDED) {
            self.add(name, &mut chosen)?;
        }
        Ok(chosen)
    }

    fn add(&self, name: &str, chosen: &mut Vec<(String, Vec<u8>)>) -> Result<(), String> {
        let Some(file) = self.files.get(name) else { return Ok(()) };
        if chosen.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        let bytes = content(file)?;
        for other in depends(&bytes) {
            self.add(&other, chosen)?;
        }
        chosen.push((name.to_owned(), bytes));
        Ok(())
    }
}

/// `virtio_ring` of `…/virtio-ring.ko.xz`.
fn module_name(file: &Path) -> Option<String> {
    let (name, _) = file.file_name()?.to_str()?.split_once(".ko")?;
    Some(name.replace('-', "_"))
}

/// A module as the kernel takes it.
fn content(file: &Path) -> Result<Vec<u8>, String> {
    let say = |error: io::Error| format!("{}: {error}", file.display());
    let tool = match file.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return user_file::read(file, MOST_BYTES).map_err(say),
    };
    let found = program::find(tool)?
        .ok_or_else(|| format!("{tool} is missing: install it to unpack the kernel's modules"))?;
    // It would wait for a writer.
    user_file::open(file).map_err(say)?;
    let words = ["-dc", "--"].map(OsStr::new).into_iter().chain([file.as_os_str()]);
    match output_of(&found, &words.collect::<Vec<_>>())? {
        (bytes, true) => Ok(bytes),
        (_, false) => Err(format!("{}: {tool} cannot unpack this module", file.display())),
    }
}

/// Reads the dependencies of a module from its `.modinfo`.
fn depends(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let text = &module[at + KEY.len()..];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
    let names = String::from_utf8_lossy(&text[..end]).into_owned();
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &[u8])], built_in: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = home.path().join("kernel").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        fs::write(home.path().join("modules.builtin"), built_in).unwrap();
        home
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it_and_what_is_missing_is_named() {
        let files: [(&str, &[u8]); 4] = [
            ("drivers/virtio/virtio_pci.ko", b"x\0depends=virtio-ring,virtio\0y"),
            ("drivers/virtio/virtio_ring.ko", b"x\0depends=\0"),
            ("drivers/virtio/virtio.ko", b"x\0depends=virtio_ring\0"),
            ("drivers/block/virtio_blk.ko", b"nothing"),
        ];
        let home = tree(&files, "kernel/fs/ext4/ext4.ko\nkernel/drivers/char/virtio_console.ko\n");
        let chosen = Modules::in_tree(home.path()).unwrap().needed("6.1").unwrap();
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["virtio_ring", "virtio", "virtio_pci", "virtio_blk"]);
        let home = tree(&files, "kernel/fs/ext4/ext4.ko\n");
        let problem = Modules::in_tree(home.path()).unwrap().needed("6.1").unwrap_err();
        assert!(problem.starts_with("6.1 has virtio_console neither built in"), "{problem}");
    }

    #[test]
    fn a_series_leads_to_its_newest_kernel_and_that_to_all_packages_that_have_its_files() {
        let shown = |name: &str| {
            let depends = match name {
                "linux-image-cloud-amd64" => {
                    "linux-base-cloud-amd64 (= 7.2-1), linux-image-7.2-cloud-amd64 (= 7.2-1)"
                }
                "linux-image-7.2-cloud-amd64" => {
                    "linux-base (>= 4.12), linux-binary-7.2-cloud-amd64 (= 7.2-1), \
                     linux-modules-7.2-cloud-amd64 (= 7.2-1), kmod, initramfs-tools | dracut"
                }
                "linux-binary-7.2-cloud-amd64" => "linux-base-7.2-cloud-amd64 (= 7.2-1)",
                "linux-base-7.2-cloud-amd64"
                | "linux-modules-7.2-cloud-amd64"
                | "linux-image-6.1-cloud-amd64" => "kmod",
                _ => return Ok(String::new()),
            };
            Ok(format!("Package: {name}\nVersion: 7.2-1\nDepends: {depends}\n"))
        };
        let found = real_package("linux-image-cloud-amd64", &shown).unwrap();
        assert_eq!(found.kept_as(), "kernel-linux-image-7.2-cloud-amd64_7.2-1");
        let mut parts = found.parts;
        parts.sort();
        let all = ["base", "binary", "image", "modules"];
        assert_eq!(parts, all.map(|what| format!("linux-{what}-7.2-cloud-amd64=7.2-1")));
        let one = real_package("linux-image-6.1-cloud-amd64", &shown).unwrap();
        assert_eq!(one.parts, ["linux-image-6.1-cloud-amd64=7.2-1"]);
        let unknown = real_package("linux-image-x", &shown).unwrap_err();
        assert!(unknown.contains("not know the package linux-image-x"), "{unknown}");
    }

    #[test]
    fn an_unknown_package_is_a_wrong_name_or_a_lack_of_lists() {
        let lists = tempfile::tempdir().unwrap();
        let absent = "apt has no lists of packages here";
        assert!(unknown("x", &lists.path().join("none")).starts_with(absent));
        fs::write(lists.path().join("lock"), "").unwrap();
        assert!(unknown("x", lists.path()).starts_with(absent));
        fs::write(lists.path().join("mirror_main_binary-amd64_Packages.lz4"), "").unwrap();
        let wrong = unknown("x", lists.path());
        assert!(wrong.starts_with("apt does not know the package x: `apt-cache search"), "{wrong}");
    }

    #[test]
    fn what_is_no_file_or_is_unpacked_by_nobody_is_refused_without_waiting() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let home = tempfile::tempdir().unwrap();
        for name in ["vmlinuz", "x.ko", "x.ko.gz"] {
            mkfifoat(CWD, home.path().join(name), Mode::RUSR | Mode::WUSR).unwrap();
        }
        let refused = |problem: String| assert!(problem.contains("regular file"), "{problem}");
        refused(GuestKernel::of_file(&home.path().join("vmlinuz")).err().unwrap());
        refused(content(&home.path().join("x.ko")).unwrap_err());
        refused(content(&home.path().join("x.ko.gz")).unwrap_err());
        fs::write(home.path().join("y.ko.gz"), "no archive").unwrap();
        let problem = content(&home.path().join("y.ko.gz")).unwrap_err();
        assert!(problem.ends_with("gzip cannot unpack this module"), "{problem}");
    }

    #[test]
    fn an_image_says_its_release_and_foreign_bytes_say_none() {
        let mut image = vec![0; 0x400];
        image[HEADER..HEADER + 4].copy_from_slice(MAGIC);
        image[RELEASE_AT + 1] = 1;
        image[0x300..0x311].copy_from_slice(b"6.1.0-50 (a@b) #1");
        assert_eq!(release_in(&image).as_deref(), Some("6.1.0-50"));
        image[0x300] = b'/';
        assert_eq!(release_in(&image), None);
        image[RELEASE_AT + 1] = 0xff;
        assert_eq!(release_in(&image), None);
        assert_eq!(release_in(b"ELF"), None);
    }
}
