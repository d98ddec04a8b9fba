//! Which layers an image has: of an OCI layout by its index and manifest, of a `docker save` archive by
//! `manifest.json`. All names in them are foreign.

use serde::Deserialize;

use super::ArchiveError;
use super::rooted_dir::RootedDir;

/// Most bytes of an index or a manifest.
const MOST_JSON_BYTES: u64 = 4 << 20;
/// Docker allows 127.
const MOST_LAYERS: usize = 1024;
/// An index may name another.
const DEEPEST_INDEX: usize = 4;

const LAYOUT: &str = "oci-layout";
const INDEX: &str = "index.json";
const MANIFEST: &str = "manifest.json";

/// A layer in its file, the lowest first.
#[derive(Debug, PartialEq)]
pub(super) struct ImageLayer {
    pub file: String,
    /// SHA-256 of the file, in hexadecimal, where the image tells.
    pub digest: Option<String>,
}

/// Returns true if a directory is an image, not a root file system.
pub(super) fn is_image(directory: &RootedDir) -> bool {
    let is_layout = directory.has(LAYOUT) && directory.has(INDEX);
    let is_saved =
        directory.has(MANIFEST) && !["bin", "usr", "etc"].iter().any(|name| directory.has(name));
    is_layout || is_saved
}

#[derive(Deserialize)]
struct ImageIndex {
    manifests: Vec<BlobNamed>,
}

#[derive(Deserialize)]
struct ImageManifest {
    layers: Vec<BlobNamed>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlobNamed {
    #[serde(default)]
    media_type: String,
    digest: String,
    platform: Option<ForMachine>,
}

#[derive(Clone, Deserialize)]
struct ForMachine {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SavedImage {
    layers: Vec<String>,
}

/// The layers of the one image for this machine that a directory has.
pub(super) fn layers(directory: &RootedDir) -> Result<Vec<ImageLayer>, ArchiveError> {
    let layers = match directory.has(LAYOUT) && directory.has(INDEX) {
        true => of_layout(directory)?,
        false => of_saved(directory)?,
    };
    match layers.len() {
        0 => unusable("the image has no layers"),
        1..=MOST_LAYERS => Ok(layers),
        number => unusable(format!("the image has {number} layers, more than {MOST_LAYERS}")),
    }
}

fn unusable<T>(problem: impl Into<String>) -> Result<T, ArchiveError> {
    Err(ArchiveError::Unusable(problem.into()))
}

fn read<'a, T: Deserialize<'a>>(name: &str, bytes: &'a [u8]) -> Result<T, ArchiveError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ArchiveError::Unusable(format!("cannot read its {name}: {error}")))
}

fn of_saved(directory: &RootedDir) -> Result<Vec<ImageLayer>, ArchiveError> {
    let bytes = directory.read(MANIFEST, MOST_JSON_BYTES)?;
    let mut images: Vec<SavedImage> = read(MANIFEST, &bytes)?;
    match images.len() {
        1 => {}
        0 => return unusable("it contains no image"),
        number => {
            return unusable(format!(
                "it has {number} images: save one of them with `docker save NAME:TAG`"
            ));
        }
    }
    let layer = |file| ImageLayer { file, digest: None };
    Ok(images.remove(0).layers.into_iter().map(layer).collect())
}

fn of_layout(directory: &RootedDir) -> Result<Vec<ImageLayer>, ArchiveError> {
    let mut name = INDEX.to_owned();
    for _ in 0..DEEPEST_INDEX {
        let bytes = directory.read(&name, MOST_JSON_BYTES)?;
        let index: ImageIndex = read(&name, &bytes)?;
        let chosen = for_this_machine(index.manifests)?;
        let (file, _) = blob(&chosen.digest)?;
        if is_index(&chosen.media_type) {
            name = file;
            continue;
        }
        let bytes = directory.read(&file, MOST_JSON_BYTES)?;
        let manifest: ImageManifest = read(&file, &bytes)?;
        let layer = |layer: BlobNamed| {
            let (file, digest) = blob(&layer.digest)?;
            Ok(ImageLayer { file, digest: Some(digest) })
        };
        return manifest.layers.into_iter().map(layer).collect();
    }
    unusable(format!("its indexes are nested more than {DEEPEST_INDEX} deep"))
}

fn is_index(media_type: &str) -> bool {
    media_type.ends_with(".image.index.v1+json") || media_type.ends_with(".manifest.list.v2+json")
}

/// The one manifest that is not for other machines.
fn for_this_machine(manifests: Vec<BlobNamed>) -> Result<BlobNamed, ArchiveError> {
    let own = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let fits = |descriptor: &BlobNamed| match &descriptor.platform {
        None => true,
        Some(platform) => platform.os == "linux" && platform.architecture == own,
    };
    let all = manifests.len();
    let mut fitting: Vec<BlobNamed> = manifests.into_iter().filter(fits).collect();
    fitting.dedup_by(|one, other| one.digest == other.digest);
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        0 => unusable(format!("none of its {all} manifests is for linux/{own}")),
        number => unusable(format!(
            "it has {number} images: copy one of them with `skopeo copy oci:DIR:TAG oci:OTHER`"
        )),
    }
}

/// The file that has what a digest names, and the digest in hexadecimal.
fn blob(digest: &str) -> Result<(String, String), ArchiveError> {
    let hex = digest.strip_prefix("sha256:").filter(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    });
    match hex {
        Some(hex) => Ok((format!("blobs/sha256/{hex}"), hex.to_owned())),
        None => unusable(format!(
            "its digest `{}` is not a SHA-256",
            digest.chars().take(80).collect::<String>()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)]) -> (tempfile::TempDir, RootedDir) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let below = RootedDir::open(directory.path()).unwrap();
        (directory, below)
    }

    fn refused(files: &[(&str, &str)]) -> String {
        layers(&with(files).1).unwrap_err().to_string()
    }

    #[test]
    fn the_manifest_for_this_machine_tells_the_layers() {
        let [index, manifest, layer] = ["1", "2", "3"].map(|digit| digit.repeat(64));
        let own = if std::env::consts::ARCH == "x86_64" { "amd64" } else { "arm64" };
        let top = format!(
            r#"{{"manifests":[{{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:{index}"}}]}}"#
        );
        let inner = format!(
            r#"{{"manifests":[{{"digest":"sha256:{manifest}","platform":{{"os":"linux","architecture":"{own}"}}}},
                {{"digest":"sha256:{layer}","platform":{{"os":"unknown","architecture":"unknown"}}}}]}}"#
        );
        let last = format!(r#"{{"layers":[{{"digest":"sha256:{layer}"}}]}}"#);
        let (blob_1, blob_2) =
            (format!("blobs/sha256/{index}"), format!("blobs/sha256/{manifest}"));
        let files =
            [("oci-layout", "{}"), ("index.json", &*top), (&blob_1, &*inner), (&blob_2, &*last)];
        let (_directory, below) = with(&files);
        assert!(is_image(&below));
        let file = format!("blobs/sha256/{layer}");
        assert_eq!(layers(&below).unwrap(), [ImageLayer { file, digest: Some(layer) }]);
    }

    #[test]
    fn what_docker_saved_names_its_layers_in_order() {
        let manifest =
            r#"[{"Config":"c.json","RepoTags":null,"Layers":["a/layer.tar","b/layer.tar"]}]"#;
        let (_directory, below) = with(&[("manifest.json", manifest)]);
        assert!(is_image(&below));
        let files: Vec<String> =
            layers(&below).unwrap().into_iter().map(|layer| layer.file).collect();
        assert_eq!(files, ["a/layer.tar", "b/layer.tar"]);
        assert!(!is_image(&with(&[("manifest.json", "[]"), ("etc/passwd", "")]).1));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert!(refused(&[("manifest.json", "[]")]).contains("no image"));
        assert!(refused(&[("manifest.json", "{")]).contains("cannot read its manifest.json"));
        let layout = |index: &str| refused(&[("oci-layout", "{}"), ("index.json", index)]);
        assert!(layout(r#"{"manifests":[]}"#).contains("none of its 0 manifests"));
        let digest = r#"{"manifests":[{"digest":"sha256:../../etc/shadow"}]}"#;
        assert!(layout(digest).contains("is not a SHA-256"));
    }
}
