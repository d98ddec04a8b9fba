//! What starts `weigh` again after a boot: a unit of systemd, or a script where there is none. It starts a
//! copy of this program, which nothing replaces meanwhile.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::shell::command_line;
use crate::treatment::state_dir::StateDir;

/// The hidden subcommand that goes on.
pub const SUBCOMMAND: &str = "__boot";
const PROGRAM: &str = "boot-weigh";
const UNIT: &str = "/etc/systemd/system/weigh-boot.service";
const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/weigh-boot.service";
const SCRIPTS: [&str; 5] = [
    "/etc/rc2.d/S99weigh-boot",
    "/etc/rc3.d/S99weigh-boot",
    "/etc/rc4.d/S99weigh-boot",
    "/etc/rc5.d/S99weigh-boot",
    "/etc/local.d/weigh-boot.start",
];

/// What can start it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    Unit,
    Scripts(Vec<PathBuf>),
}

/// Whether systemd is the first process.
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

impl Hook {
    /// # Errors
    /// A sentence, where nothing here would start it.
    pub fn find() -> Result<Hook, String> {
        if has_systemd() {
            return Ok(Hook::Unit);
        }
        let is_there = |path: &PathBuf| path.parent().is_some_and(Path::is_dir);
        let scripts: Vec<PathBuf> = SCRIPTS.iter().map(PathBuf::from).filter(is_there).collect();
        match scripts.is_empty() {
            false => Ok(Hook::Scripts(scripts)),
            true => Err(
                "nothing here would start weigh again after a boot: there is neither systemd, nor \
                         /etc/rc2.d, nor /etc/local.d"
                    .into(),
            ),
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Hook::Unit => format!("the unit {UNIT}"),
            Hook::Scripts(files) => {
                let files: Vec<String> =
                    files.iter().map(|file| file.display().to_string()).collect();
                format!("the script {}", files.join(" and "))
            }
        }
    }

    /// Puts it there; when this returns, it is on disk.
    ///
    /// # Errors
    /// A sentence.
    pub fn install(&self) -> Result<(), String> {
        let state = StateDir::open().map_err(|error| format!("the state directory: {error}"))?;
        let program = state.path(PROGRAM);
        let own = fs::read("/proc/self/exe").map_err(|error| error.to_string());
        own.and_then(|own| written(&program, &own, 0o700).map_err(|error| said(&program, &error)))?;
        let state_home = std::env::var("XDG_STATE_HOME").ok().filter(|home| !home.is_empty());
        match self {
            Hook::Unit => {
                let unit = Path::new(UNIT);
                let text = unit_text(&program, state_home.as_deref());
                written(unit, text.as_bytes(), 0o644).map_err(|error| said(unit, &error))?;
                let wanted = Path::new(WANTED);
                let directory = wanted.parent().unwrap_or(wanted);
                let linked = fs::create_dir_all(directory).and_then(|()| gone(wanted));
                let linked = linked.and_then(|()| symlink(UNIT, wanted));
                linked
                    .and_then(|()| File::open(directory)?.sync_all())
                    .map_err(|error| said(wanted, &error))
            }
            Hook::Scripts(files) => {
                let text = script_text(&program, state_home.as_deref());
                files.iter().try_for_each(|file| {
                    written(file, text.as_bytes(), 0o755).map_err(|error| said(file, &error))
                })
            }
        }
    }
}

/// Removes all that any of them puts there.
///
/// # Errors
/// A sentence that names what is left.
pub fn remove() -> Result<(), String> {
    let state = StateDir::open().map_err(|error| format!("the state directory: {error}"))?;
    let files = [WANTED, UNIT].iter().chain(&SCRIPTS).map(PathBuf::from);
    files.chain([state.path(PROGRAM)]).try_for_each(|file| {
        gone(&file).map_err(|error| format!("{}: remove it", said(&file, &error)))
    })
}

fn said(file: &Path, error: &io::Error) -> String {
    format!("{}: {error}", file.display())
}

fn gone(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// In place of what is there, never through a link.
fn written(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    gone(file)?;
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(mode).open(file)?;
    open.write_all(bytes)?;
    open.sync_all()?;
    file.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

fn unit_text(program: &Path, state_home: Option<&str>) -> String {
    let environment = state_home.map_or_else(String::new, |home| {
        format!(
            "Environment=\"XDG_STATE_HOME={}\"\n",
            home.replace('\\', "\\\\").replace('"', "\\\"")
        )
    });
    format!(
        "[Unit]\nDescription=weigh goes on with an experiment of boots (weigh restore ends it)\n\n\
         [Service]\nType=idle\n{environment}ExecStart={} {SUBCOMMAND}\n",
        program.display()
    )
}

fn script_text(program: &Path, state_home: Option<&str>) -> String {
    let home = state_home.map(|home| format!("XDG_STATE_HOME={home}"));
    let program = program.display().to_string();
    let words = ["env"].into_iter().chain(home.as_deref()).chain([&*program, SUBCOMMAND]);
    format!(
        "#!/bin/sh\n# weigh goes on with an experiment of boots; `weigh restore` ends it and removes this.\n\
         [ \"${{1-start}}\" = start ] || exit 0\n{} </dev/null >/dev/console 2>&1 &\n",
        command_line(words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_the_copy_with_the_state_directory_of_the_experiment() {
        let script = script_text(Path::new("/var/lib/w/boot-weigh"), Some("/a b"));
        assert!(
            script.contains("env 'XDG_STATE_HOME=/a b' /var/lib/w/boot-weigh __boot <"),
            "{script}"
        );
        let unit = unit_text(Path::new("/var/lib/w/boot-weigh"), None);
        assert!(unit.ends_with("Type=idle\nExecStart=/var/lib/w/boot-weigh __boot\n"), "{unit}");
    }
}
