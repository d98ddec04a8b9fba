//! GRUB's one-shot entry: an entry of ours in `custom.cfg`, which the usual `grub.cfg` reads if it is there,
//! and its name in GRUB's environment as the next one (grub-reboot(8)). GRUB forgets the name before it boots
//! the entry, so what fails there is not booted again. Where GRUB cannot write its environment, the name
//! would stay, and the entry with it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::kernel::BootKernel;
use trust::program;
use trust::start::{self, Inherited};
use weigh_host::said;

const ENTRY: &str = "weigh-boot";
/// The file systems on which GRUB writes its environment, as `grub-probe` names them: ext2 is ext4, too.
const WRITABLE: [&str; 3] = ["ext2", "xfs", "fat"];
/// So that it is known as ours.
const HEAD: &str = "# Written by weigh for an experiment of boots; `weigh restore` removes it.\n";

/// Where it is, and how its programs begin: Debian's and others' names.
const INSTALLED: [(&str, &str); 2] = [("/boot/grub", "grub"), ("/boot/grub2", "grub2")];

struct Grub {
    directory: &'static Path,
    name: &'static str,
}

impl Grub {
    fn find() -> Result<Grub, String> {
        let is_there =
            |(directory, _): &&(&str, &str)| Path::new(directory).join("grub.cfg").is_file();
        let (directory, name) = INSTALLED.iter().find(is_there).ok_or(
            "cannot find GRUB (/boot/grub/grub.cfg, /boot/grub2/grub.cfg): leave out --reboot-by grub, \
             to boot by kexec",
        )?;
        Ok(Grub { directory: Path::new(directory), name })
    }

    fn custom(&self) -> PathBuf {
        self.directory.join("custom.cfg")
    }

    fn run(&self, what: &str, arguments: &[&OsStr]) -> Result<String, String> {
        let name = format!("{}-{what}", self.name);
        let program = program::find(&name)?
            .ok_or_else(|| format!("{name} is missing: install GRUB's tools"))?;
        let mut command = start::command(program, Inherited::Fixed);
        command.args(arguments);
        let done = said::output(command).map_err(|error| format!("{name}: {error}"))?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
            false => Err(format!("{name}: {}", said::words(&done.stderr))),
        }
    }

    /// Checks that GRUB can remove the name from its environment, and so boots the entry once.
    fn can_forget(&self) -> Result<(), String> {
        let file = self.directory.join("grubenv");
        // Where it is a link to the partition of the firmware, GRUB follows that.
        let file =
            fs::canonicalize(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let directory = file.parent().unwrap_or(&file);
        let probe = |what: &str| self.run("probe", &[what.as_ref(), directory.as_os_str()]);
        can_write(directory, &probe("--target=fs")?, &probe("--target=abstraction")?)
    }

    /// The entry as `grub.cfg` has others.
    fn text(&self, kernel: &BootKernel, line: &str) -> Result<String, String> {
        let uuid = self.run("probe", &["--target=fs_uuid".as_ref(), kernel.image.as_os_str()])?;
        let within = |file: &PathBuf| quoted(&self.run("mkrelpath", &[file.as_os_str()])?);
        let words = line.split_whitespace().map(quoted).collect::<Result<Vec<_>, _>>()?.join(" ");
        let image = within(&kernel.image)?;
        let initramfs = kernel.initramfs.as_ref().map(within).transpose()?;
        let initramfs = initramfs.map_or_else(String::new, |file| format!("\tinitrd {file}\n"));
        Ok(format!(
            "{HEAD}menuentry 'weigh' --id {ENTRY} --unrestricted {{\n\
             \tsearch --no-floppy --fs-uuid --set=root {}\n\tlinux {image} {words}\n{initramfs}}}\n",
            quoted(&uuid)?
        ))
    }
}

/// Checks that GRUB can write on this file system, and through the layers below it.
///
/// `between` names the layers between the file system and its partition.
fn can_write(directory: &Path, file_system: &str, between: &str) -> Result<(), String> {
    let what = match between {
        "" if WRITABLE.contains(&file_system) => return Ok(()),
        "" => file_system.to_owned(),
        _ => between.split_whitespace().collect::<Vec<_>>().join(", "),
    };
    Err(format!(
        "GRUB may be unable to write {} ({what}): it could not clear the one-shot entry and would boot \
         it for ever, even if it panics",
        directory.display()
    ))
}

/// A word that GRUB's shell takes as it is.
fn quoted(word: &str) -> Result<String, String> {
    match word.contains('\'') || word.is_empty() {
        true => Err(format!("`{word}` cannot be quoted in a GRUB entry")),
        false => Ok(format!("'{word}'")),
    }
}

/// Returns true if we wrote the file.
///
/// # Errors
/// If the file cannot be read: then it may be ours.
fn is_ours(file: &Path) -> Result<bool, String> {
    match fs::read(file) {
        Ok(text) => Ok(text.starts_with(HEAD.as_bytes())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// Checks that GRUB would boot this kernel.
pub fn try_out(kernel: &BootKernel, line: &str) -> Result<(), String> {
    let grub = Grub::find()?;
    let file = grub.directory.join("grub.cfg");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    if let Some(word) = ["custom.cfg", "next_entry"].iter().find(|word| !text.contains(**word)) {
        return Err(format!(
            "{} does not read {word}, so GRUB cannot boot a one-shot entry: leave out --reboot-by grub",
            file.display()
        ));
    }
    if grub.custom().exists() && !is_ours(&grub.custom())? {
        return Err(format!(
            "{} exists, and weigh did not write it: move it away, or leave out --reboot-by grub",
            grub.custom().display()
        ));
    }
    grub.run("editenv", &["-".as_ref(), "list".as_ref()])?;
    let by_kexec = |problem| format!("{problem}; leave out --reboot-by grub, to boot by kexec");
    grub.can_forget().map_err(by_kexec)?;
    grub.text(kernel, line).map(drop)
}

/// Makes this the entry that is booted next, once.
pub fn load(kernel: &BootKernel, line: &str) -> Result<(), String> {
    let grub = Grub::find()?;
    let text = grub.text(kernel, line)?;
    unload()?;
    let write = || -> std::io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o644).open(grub.custom())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        File::open(grub.directory)?.sync_all()
    };
    write().map_err(|error| format!("{}: {error}", grub.custom().display()))?;
    grub.run("reboot", &[ENTRY.as_ref()]).map(drop)
}

/// Takes the entry away, and its name as the next one.
pub fn unload() -> Result<(), String> {
    let grub = Grub::find()?;
    if is_ours(&grub.custom())? {
        match fs::remove_file(grub.custom()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(format!(
                    "cannot remove {}: {error}; remove it by hand",
                    grub.custom().display()
                ));
            }
            _ => {}
        }
    }
    let environment = grub.run("editenv", &["-".as_ref(), "list".as_ref()])?;
    let is_next = environment.lines().any(|line| line == format!("next_entry={ENTRY}"));
    match is_next {
        true => grub.run("editenv", &["-", "unset", "next_entry"].map(OsStr::new)).map(drop),
        false => Ok(()),
    }
}

/// Takes away an entry that is left over from an experiment that nobody knows any more.
pub fn unload_what_is_left() -> Result<(), String> {
    // Without GRUB there is nothing of it.
    let Ok(grub) = Grub::find() else { return Ok(()) };
    if is_ours(&grub.custom())? { unload() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grubs_shell_would_take_apart_is_quoted_or_refused() {
        assert_eq!(quoted("a=$b;{c}").unwrap(), "'a=$b;{c}'");
        assert!(quoted("it's").is_err() && quoted("").is_err());
    }

    /// As `grub-probe` prints them.
    #[test]
    fn an_environment_that_grub_cannot_write_is_refused() {
        let tried = |file_system, between| can_write(Path::new("/boot/grub"), file_system, between);
        for file_system in ["ext2", "xfs", "fat"] {
            assert_eq!(tried(file_system, ""), Ok(()));
        }
        for (file_system, between, named) in [
            ("btrfs", "", "(btrfs)"),
            ("zfs", "", "(zfs)"),
            ("", "", "()"),
            ("ext2", "lvm", "(lvm)"),
            ("xfs", "diskfilter mdraid1x", "(diskfilter, mdraid1x)"),
        ] {
            let refused = tried(file_system, between).unwrap_err();
            assert!(refused.contains(named), "{refused}");
        }
    }
}
