//! The boot that the machine is in when nothing is measured, which its normal entry makes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux_audit::netlink::Client;
use serde::{Deserialize, Serialize};

use super::kernel::BootKernel;

/// Mount point of the normal root file system in the other system (`boot:root=DEVICE`).
pub const NORMAL: &str = "/run/weigh-normal";

/// Boot of all arms, unless an arm changes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NormalBoot {
    pub kernel: BootKernel,
    /// `/proc/version`.
    pub version: String,
    /// Without what a boot loader adds.
    pub command_line: String,
    /// Security modules in force.
    pub modules: Vec<String>,
    /// True if SELinux enforces; `None` without SELinux.
    pub enforces: Option<bool>,
    pub audits: bool,
}

impl NormalBoot {
    pub fn read() -> Result<NormalBoot, String> {
        let read = |path: &str| {
            let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
            text.map(|text| text.trim().to_owned())
        };
        let facts = weigh_host::machine::facts::read();
        let audit = Client::open().and_then(|mut client| client.status()).ok();
        Ok(NormalBoot {
            kernel: BootKernel::running(&facts.kernel)?,
            version: read("/proc/version")?,
            command_line: of_kernel(&read("/proc/cmdline")?),
            modules: facts.lsm,
            enforces: read("/sys/fs/selinux/enforce").ok().map(|text| text == "1"),
            audits: audit.is_some_and(|status| status.enabled != 0),
        })
    }
}

/// Path of a file of the normal system, as it is in this boot.
pub fn here(file: &Path) -> PathBuf {
    let is_elsewhere = Path::new(NORMAL).join("proc").is_dir();
    match file.strip_prefix("/") {
        Ok(below) if is_elsewhere && !file.starts_with(NORMAL) => Path::new(NORMAL).join(below),
        _ => file.to_owned(),
    }
}

/// Device number of the normal root file system, where another system has mounted it below its own.
pub fn normal_root() -> Result<Option<u64>, String> {
    let device = |path: &str| {
        let status = fs::metadata(path).map_err(|error| format!("{path}: {error}"));
        status.map(|status| status.dev())
    };
    if here(Path::new("/")) == Path::new("/") {
        return Ok(None);
    }
    let found = device(NORMAL)?;
    // The device of its parent directory: nothing is mounted there.
    Ok((found != device("/run")?).then_some(found))
}

/// A command line without the words that a boot loader adds for itself.
pub fn of_kernel(line: &str) -> String {
    let is_loaders =
        |word: &&str| ["BOOT_IMAGE=", "initrd="].iter().any(|own| word.starts_with(own));
    line.split_whitespace().filter(|word| !is_loaders(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_boot_loader_adds_is_none_of_the_kernels() {
        let line = "BOOT_IMAGE=/vmlinuz-6.1 root=/dev/vda1  ro initrd=\\initrd quiet";
        assert_eq!(of_kernel(line), "root=/dev/vda1 ro quiet");
    }
}
