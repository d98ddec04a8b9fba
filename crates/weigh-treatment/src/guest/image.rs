//! The root file system of guests: built from the distribution's packages or from what the user names, with
//! the labels of its SELinux policy, as an image that is never written to.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::builder::{BuildStep, Workshop, output_of, unavailable, within};
use super::program;
use crate::digest::hex;
use crate::rootfs::{RootForm, RootSource, fill_tree};
use crate::{ApplyContext, TreatmentError};
use trust::user_file;

/// Version of the recipe: another version may make a different image of the same things.
const VERSION: &str = "1";
/// Beside what a Debian system cannot be without: a policy, and what UnixBench executes.
const PACKAGES: &str = "selinux-policy-default,policycoreutils,apparmor,dc";
/// Documentation and translations are nothing that a workload reads.
const LEFT_OUT: [&str; 4] = [
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--aptopt=Acquire::Languages \"none\"",
];
const FILE: &str = "root.ext4";
/// There where its files have labels.
const LABELLED: &str = "labelled";
/// The configuration of a policy is no longer.
const MOST_BYTES: u64 = 1 << 20;
/// Room for the file system itself, and for files that processes write.
const ROOM_MIB: u64 = 256;

#[derive(Clone)]
pub struct Image {
    pub file: PathBuf,
    /// Digest of the material of the image.
    pub digest: String,
    pub is_labelled: bool,
    /// As a person knows it.
    pub shown: String,
}

impl Image {
    /// The image of this root file system, or of the distribution's.
    pub fn find(
        root: Option<&str>,
        context: &ApplyContext,
        workshop: &mut Workshop,
    ) -> Result<Image, TreatmentError> {
        let (digest, shown, directory) = match root {
            None => {
                let suite = suite().map_err(TreatmentError::Unavailable)?;
                let digest = digest_of_suite(&suite).map_err(TreatmentError::Unavailable)?;
                let shown = format!("Debian {suite} with {PACKAGES}");
                let built = workshop.have(&format!("root-{digest}"), |step, whole| {
                    debootstrap(step, &suite)?;
                    finish(step, whole)
                })?;
                (digest, shown, built)
            }
            Some(path) => {
                let source = RootSource::look(path).map_err(TreatmentError::Unavailable)?;
                let digest = digest_of_root(&source).map_err(TreatmentError::Unavailable)?;
                let built = workshop.have(&format!("root-{digest}"), |step, whole| {
                    copy(&source, step, context)?;
                    finish(step, whole)
                })?;
                (digest, path.to_owned(), built)
            }
        };
        let is_labelled = directory.join(LABELLED).exists();
        Ok(Image { file: directory.join(FILE), digest, is_labelled, shown })
    }

    /// Looks whether there is what it is built from.
    pub fn check(root: Option<&str>) -> Result<(), String> {
        match root {
            None => suite().map(drop),
            Some(path) => RootSource::look(path).map(drop),
        }
    }

    /// Returns the identity of an image without building it; a different image has another.
    pub fn identity(root: Option<&str>) -> Result<String, String> {
        match root {
            None => digest_of_suite(&suite()?),
            Some(path) => digest_of_root(&RootSource::look(path)?),
        }
    }
}

fn digest_of(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in [VERSION, std::env::consts::ARCH].iter().chain(parts) {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hex(&hash.finalize())[..16].to_owned()
}

fn digest_of_suite(suite: &str) -> Result<String, String> {
    Ok(digest_of(&["debian", suite, PACKAGES, &candidates()?]))
}

fn digest_of_root(source: &RootSource) -> Result<String, String> {
    Ok(digest_of(&["given", source.digest()?]))
}

/// The release of the distribution that this machine runs.
fn suite() -> Result<String, String> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.map(|value| value.trim_matches('"').to_owned()).unwrap_or_default()
    };
    match (field("ID").as_str(), field("VERSION_CODENAME")) {
        ("debian", suite) if !suite.is_empty() => Ok(suite),
        (other, _) => Err(format!(
            "guests are built from Debian's packages, but this system is `{other}`: use a local root \
             file system and kernel (vm:root=PATH,kernel=PATH)"
        )),
    }
}

/// Which versions of the packages there are now: others make another image.
fn candidates() -> Result<String, String> {
    let Some(apt) = trust::program::find("apt-cache")? else { return Ok(String::new()) };
    let words: Vec<&OsStr> =
        ["policy"].into_iter().chain(PACKAGES.split(',')).map(OsStr::new).collect();
    let (printed, has_succeeded) = output_of(&apt, &words)?;
    if !has_succeeded {
        return Err("`apt-cache policy` failed, so the versions of the guest's packages are not known: run \
                    `apt-get update`"
            .into());
    }
    let text = String::from_utf8_lossy(&printed).into_owned();
    Ok(text.lines().filter(|line| line.contains("Candidate:")).collect())
}

fn tree(step: &BuildStep) -> PathBuf {
    step.beside.join("tree")
}

fn debootstrap(step: &BuildStep, suite: &str) -> Result<(), TreatmentError> {
    let tool = program("mmdebstrap").map_err(TreatmentError::Unavailable)?;
    let (tool, tree) = (tool.display().to_string(), tree(step).display().to_string());
    let include = format!("--include={PACKAGES}");
    let mut words = vec![tool.as_str(), "--mode=root", "--variant=minbase", &include];
    words.extend(LEFT_OUT);
    words.extend([suite, &tree]);
    step.run(&format!("Building a guest of Debian {suite} (once)"), &words).map(drop)
}

fn copy(
    source: &RootSource,
    step: &BuildStep,
    context: &ApplyContext,
) -> Result<(), TreatmentError> {
    let tree = tree(step);
    match source.form {
        RootForm::Directory => {
            let (from, to) = (source.file.display().to_string(), tree.display().to_string());
            let words = ["cp", "-a", "--one-file-system", "--", &from, &to];
            step.run(&format!("Copying {from}"), &words).map(drop)
        }
        RootForm::Host => Err(TreatmentError::Unavailable(
            "a guest cannot use this machine's own root: give a directory or an archive".into(),
        )),
        RootForm::Squashfs => {
            let (from, to) = (source.file.display().to_string(), tree.display().to_string());
            step.run(&format!("Unpacking {from}"), &["unsquashfs", "-q", "-n", "-d", &to, &from])
                .map(drop)
        }
        RootForm::ImageDirectory | RootForm::Tar => fill_tree(source, step.beside, context),
    }
}

/// Labels the tree, and makes an image of it.
fn finish(step: &BuildStep, whole: &Path) -> Result<(), TreatmentError> {
    step.goes_on()?;
    let tree = tree(step);
    for name in ["proc", "sys", "dev", "run", "tmp"] {
        let path = tree.join(name);
        if !path.is_dir() {
            fs::create_dir(&path).map_err(|error| within(&path, &error))?;
        }
    }
    if let Some(contexts) = contexts(&tree) {
        // It looks for its own descriptors in /proc, which is mounted for it alone.
        let script = "mount -t proc proc tree/proc && exec chroot tree setfiles -F -e /proc -e /sys \"$0\" /";
        step.run("Labelling the guest's files", &["sh", "-c", script, &contexts])?;
        fs::write(whole.join(LABELLED), contexts).map_err(unavailable)?;
    }
    let size =
        format!("{}M", mib(&tree).map_err(|error| within(&tree, &error))? * 5 / 4 + ROOM_MIB);
    let tool = program("mke2fs").map_err(TreatmentError::Unavailable)?.display().to_string();
    let (from, to) = (tree.display().to_string(), whole.join(FILE).display().to_string());
    let words = [&*tool, "-q", "-t", "ext4", "-m", "0", "-d", &from, &to, &size];
    step.run("Writing the guest's image", &words).map(drop)
}

/// The file of its policy that says how files are labelled, as it sees it.
fn contexts(tree: &Path) -> Option<String> {
    let config = tree.join("etc/selinux/config");
    let config = user_file::read_text(&config, MOST_BYTES).ok()?;
    let policy = config.lines().find_map(|line| line.strip_prefix("SELINUXTYPE="))?.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let file = format!("/etc/selinux/{policy}/contexts/files/file_contexts");
    let has = |path: &str| tree.join(path).exists();
    let is_there = has(&file[1..]) && (has("usr/sbin/setfiles") || has("sbin/setfiles"));
    (policy.chars().all(is_plain) && is_there).then_some(file)
}

/// Returns the room that the files in a tree take, in MiB.
fn mib(tree: &Path) -> std::io::Result<u64> {
    let (mut blocks, mut open) = (0, vec![tree.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let metadata = entry.as_ref().map_err(|error| error.kind()).map(fs::DirEntry::metadata);
            let (entry, metadata) = (entry?, metadata.map_err(std::io::Error::from)??);
            blocks += metadata.blocks() + 1;
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok((blocks * 512) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_content_has_another_name() {
        assert_ne!(digest_of(&["debian", "a", "bc"]), digest_of(&["debian", "ab", "c"]));
        assert_eq!(digest_of(&["given", "x"]).len(), 16);
    }

    #[test]
    fn only_a_policy_that_is_there_labels_files() {
        let home = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(contexts(home.path()), None);
        put("etc/selinux/config", "# x\nSELINUX=permissive\nSELINUXTYPE=default\n");
        put("etc/selinux/default/contexts/files/file_contexts", "");
        assert_eq!(contexts(home.path()), None, "without setfiles");
        put("usr/sbin/setfiles", "");
        let found = contexts(home.path());
        assert_eq!(found.as_deref(), Some("/etc/selinux/default/contexts/files/file_contexts"));
        put("etc/selinux/config", "SELINUXTYPE=../x\n");
        assert_eq!(contexts(home.path()), None);
        assert!(mib(home.path()).unwrap() < 2);
    }
}
