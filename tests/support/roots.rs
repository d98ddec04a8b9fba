//! Root file systems of this host's own files, small and without the network: a shell with its libraries, in
//! every form that `rootfs:` takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Home, NOBODY, is_root};

/// A system of this name with a shell, and in `/only-there` its name again.
pub fn tiny(home: &Home, name: &str) -> PathBuf {
    let root = home.path(name);
    for directory in ["bin", "etc", "tmp"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    bring(&root, Path::new("/bin/sh"));
    // The workloads need it too.
    let libc = libraries(Path::new("/bin/sh")).into_iter().find(|path| path.ends_with("libc.so.6"));
    if let Some(mathematics) = libc.map(|path| path.with_file_name("libm.so.6")) {
        copy_in(&root, &mathematics);
    }
    named(&root, name);
    root
}

/// Copies a program of this host with its libraries.
pub fn bring(root: &Path, program: &Path) {
    copy_in(root, program);
    libraries(program).iter().for_each(|library| copy_in(root, library));
}

fn copy_in(root: &Path, file: &Path) {
    let inside = root.join(file.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(file, inside).unwrap();
}

fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// One without a loader or any program.
pub fn bare(home: &Home, name: &str) -> PathBuf {
    let root = home.path(name);
    fs::create_dir_all(root.join("etc")).unwrap();
    named(&root, name);
    root
}

fn named(root: &Path, name: &str) {
    fs::write(root.join("etc/os-release"), format!("PRETTY_NAME=\"{name} 1.0\"\n")).unwrap();
    fs::write(root.join("only-there"), format!("{name}\n")).unwrap();
}

/// The directory as a tar archive beside it, which this option compresses.
pub fn tar(directory: &Path, ending: &str, option: &str) -> PathBuf {
    let file = directory.with_extension(ending);
    let mut command = Command::new("tar");
    command.arg("-C").arg(directory).arg("-cf").arg(&file);
    if !option.is_empty() {
        command.arg(option);
    }
    assert!(command.arg(".").status().unwrap().success());
    file
}

/// The directory as the lower of two layers; the upper one replaces `/only-there` and takes `/etc/gone` away.
fn layers(home: &Home, directory: &Path, text: &str) -> [PathBuf; 2] {
    fs::write(directory.join("etc/gone"), "").unwrap();
    let lower = tar(directory, "lower", "");
    let upper = home.path("upper");
    fs::create_dir_all(upper.join("etc")).unwrap();
    fs::write(upper.join("only-there"), format!("{text}\n")).unwrap();
    fs::write(upper.join("etc/.wh.gone"), "").unwrap();
    let file = tar(&upper, "layer", "--gzip");
    fs::remove_dir_all(upper).unwrap();
    [lower, file]
}

/// Writes an image with these two layers in the form of `docker save`.
pub fn docker_save(home: &Home, directory: &Path, text: &str) -> PathBuf {
    let image = home.path("saved");
    for (number, layer) in layers(home, directory, text).into_iter().enumerate() {
        fs::create_dir_all(image.join(number.to_string())).unwrap();
        fs::rename(layer, image.join(format!("{number}/layer.tar"))).unwrap();
    }
    let layers = ["0/layer.tar", "1/layer.tar"];
    let manifest = json!([{"Config": "c.json", "RepoTags": ["x:1"], "Layers": layers}]);
    fs::write(image.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(image.join("c.json"), "{}").unwrap();
    tar(&image, "tar", "")
}

/// An OCI layout of the same, as a directory.
pub fn oci_layout(home: &Home, directory: &Path, text: &str) -> PathBuf {
    let image = home.path("layout");
    let blobs = image.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let blob = |bytes: &[u8]| -> Value {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(blobs.join(&hex), bytes).unwrap();
        json!({"mediaType": "x", "digest": format!("sha256:{hex}"), "size": bytes.len()})
    };
    let layers = layers(home, directory, text).map(|layer| blob(&fs::read(layer).unwrap()));
    let manifest = blob(json!({"schemaVersion": 2, "layers": layers}).to_string().as_bytes());
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(image.join("index.json"), index.to_string()).unwrap();
    fs::write(image.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    image
}

/// The directory as a squashfs; `None` where its tools are not installed.
pub fn squashfs(directory: &Path) -> Option<PathBuf> {
    let file = directory.with_extension("squashfs");
    let made = Command::new("mksquashfs").arg(directory).arg(&file).args(["-quiet"]).output();
    match made {
        Ok(made) if made.status.success() => Some(file),
        _ => {
            super::skip("squashfs", "needs squashfs-tools");
            None
        }
    }
}

/// All of it as `nobody`'s own, where the tests are root.
pub fn give_to_nobody(path: &Path) {
    if is_root() {
        std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let is_directory = fs::symlink_metadata(path).unwrap().is_dir();
    for entry in fs::read_dir(path).into_iter().flatten().filter(|_| is_directory) {
        give_to_nobody(&entry.unwrap().path());
    }
}

/// Mounts and loop devices that have to do with this home.
pub fn mounts(home: &Home) -> Vec<String> {
    let own = home.directory.path().display().to_string();
    let mounted = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found: Vec<String> =
        mounted.lines().filter(|line| line.contains(&own)).map(str::to_owned).collect();
    for device in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = device.path().join("loop/backing_file");
        found.extend(fs::read_to_string(backing).ok().filter(|file| file.contains(&own)));
    }
    found
}
