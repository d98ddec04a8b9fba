//! A kernel that this machine can boot, with the initramfs that lies beside it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::guest::kernel::release_of;
use trust::allowed::executable;

/// One that this machine can boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootKernel {
    pub image: PathBuf,
    pub initramfs: Option<PathBuf>,
    pub release: String,
}

impl BootKernel {
    /// The file of the kernel that runs.
    pub fn running(release: &str) -> Result<BootKernel, String> {
        let places = [
            format!("/boot/vmlinuz-{release}"),
            format!("/boot/vmlinux-{release}"),
            format!("/lib/modules/{release}/vmlinuz"),
        ];
        let found = places.iter().map(PathBuf::from).find(|path| path.is_file());
        let image = found.ok_or_else(|| {
            format!("cannot find the image of the running kernel; looked for {}", places.join(", "))
        })?;
        BootKernel::with(&image, release)
    }

    pub fn named(path: &str) -> Result<BootKernel, String> {
        let image = executable(Path::new(path)).map_err(|error| error.to_string())?;
        let release = release_of(&image).map_err(|error| format!("the kernel {path}: {error}"))?;
        BootKernel::with(&image, &release)
    }

    /// One whose initramfs is known.
    pub fn at(image: PathBuf, initramfs: Option<PathBuf>) -> Result<BootKernel, String> {
        let release = release_of(&image);
        let release =
            release.map_err(|error| format!("the kernel {}: {error}", image.display()))?;
        Ok(BootKernel { image, initramfs, release })
    }

    fn with(image: &Path, release: &str) -> Result<BootKernel, String> {
        let image = executable(image).map_err(|error| error.to_string())?;
        let beside = image.parent().unwrap_or(Path::new("/"));
        let names = [
            format!("initrd.img-{release}"),
            format!("initramfs-{release}.img"),
            format!("initrd-{release}"),
            format!("initramfs-{release}"),
        ];
        let initramfs = names.iter().map(|name| beside.join(name)).find(|path| path.is_file());
        let initramfs = initramfs.map(|path| executable(&path)).transpose();
        let initramfs = initramfs.map_err(|error| error.to_string())?;
        Ok(BootKernel { image, initramfs, release: release.to_owned() })
    }
}
