//! Hook that starts `weigh` again after a boot: units of systemd, or scripts without systemd.
//!
//! It starts a copy of this program, which nothing replaces meanwhile. The copy runs early, to set
//! the watchdog, and again when everything else is up.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::normal::{NORMAL, here};
use trust::start::{self, Inherited};
use weigh_host::machine::watchdog;
use weigh_host::said;
use weigh_host::undo::state_dir::StateDir;
use weigh_model::shell::command_line;

/// The hidden subcommand that goes on.
const GOES_ON: &[&str] = &["__boot"];
/// The hidden subcommand for a machine that has only just mounted its file systems.
const GUARDS: &[&str] = &["__boot", "--early"];
pub const PROGRAM: &str = "boot-weigh";
const UNITS: &str = "/etc/systemd/system";
const UNIT: SystemdUnit = SystemdUnit {
    name: "weigh-boot.service",
    target: "multi-user.target",
    words: GOES_ON,
    // While services still start, nothing is measured.
    more: "After=multi-user.target graphical.target\n",
};
const EARLY_UNIT: SystemdUnit = SystemdUnit {
    name: "weigh-boot-early.service",
    target: "sysinit.target",
    words: GUARDS,
    more: "DefaultDependencies=no\n",
};
const SCRIPTS: [&str; 5] = [
    "/etc/rc2.d/S99weigh-boot",
    "/etc/rc3.d/S99weigh-boot",
    "/etc/rc4.d/S99weigh-boot",
    "/etc/rc5.d/S99weigh-boot",
    "/etc/local.d/weigh-boot.start",
];
/// Before all of these, when file systems are mounted.
const EARLY_SCRIPT: &str = "/etc/rcS.d/S99weigh-boot";

/// Script of the other system, which finds the normal root file system, and `weigh` there.
const ELSEWHERE: &str = "/etc/weigh-boot";

/// One of systemd's.
struct SystemdUnit {
    name: &'static str,
    /// Which wants it.
    target: &'static str,
    /// Arguments of the program that it starts.
    words: &'static [&'static str],
    /// Further lines in its `[Unit]` section.
    more: &'static str,
}

/// Mechanism that can start `weigh` here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    Units,
    Scripts(Vec<PathBuf>),
}

/// Returns true if systemd is the first process.
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

fn is_possible(script: &Path) -> bool {
    script.parent().is_some_and(Path::is_dir)
}

impl Hook {
    pub fn find() -> Result<Hook, String> {
        if has_systemd() {
            return Ok(Hook::Units);
        }
        let scripts = SCRIPTS.iter().map(PathBuf::from).filter(|path| is_possible(path));
        let scripts: Vec<PathBuf> = scripts.collect();
        match scripts.is_empty() {
            false => Ok(Hook::Scripts(scripts)),
            true => Err(
                "weigh cannot start again after a boot: this machine has neither systemd nor /etc/rc2.d \
                 nor /etc/local.d"
                    .into(),
            ),
        }
    }

    /// Returns true if the hook also starts it early, which only a watchdog needs.
    pub fn is_early(&self) -> bool {
        watchdog::is_here() && (*self == Hook::Units || is_possible(Path::new(EARLY_SCRIPT)))
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Hook::Units => format!("the unit {}", UNIT.file().display()),
            Hook::Scripts(files) => {
                let files: Vec<String> =
                    files.iter().map(|file| file.display().to_string()).collect();
                format!("the script {}", files.join(" and "))
            }
        }
    }

    /// Has what starts this program after a boot start it now: systemd may be forbidden what we may.
    fn try_out(&self, program: &Path) -> Result<(), String> {
        let (who, mut command) = match self {
            Hook::Units => {
                let systemd = trust::program::find("systemd-run")?;
                let mut run =
                    start::command(systemd.ok_or("systemd-run is missing")?, Inherited::Fixed);
                run.args(["--wait", "--quiet", "--collect"]).arg(program);
                ("systemd", run)
            }
            Hook::Scripts(_) => ("a script", start::command(program, Inherited::Fixed)),
        };
        command.arg("--version");
        let problem = match said::output(command) {
            Ok(done) if done.status.success() => return Ok(()),
            Ok(done) => format!("{} {}", done.status, said::words(&done.stderr)),
            Err(error) => error.to_string(),
        };
        Err(format!(
            "{who} cannot start {}, so weigh could not go on after a boot ({}). SELinux may forbid it, \
             or the file system is mounted noexec: set XDG_STATE_HOME to a different directory",
            program.display(),
            problem.trim()
        ))
    }

    /// Puts it there, for an experiment in this database; when this returns, it is on disk.
    pub fn install(&self, database: &Path) -> Result<(), String> {
        let state = StateDir::open()
            .map_err(|error| format!("cannot open the state directory: {error}"))?;
        let program = state.path(PROGRAM);
        let own = fs::read("/proc/self/exe").map_err(|error| error.to_string());
        own.and_then(|own| {
            written(&program, &own, 0o700).map_err(|error| problem(&program, &error))
        })?;
        self.try_out(&program)?;
        let home = std::env::var("XDG_STATE_HOME").ok().filter(|home| !home.is_empty());
        let put = |file: &Path, text: String, mode: u32| {
            written(file, text.as_bytes(), mode).map_err(|error| problem(file, &error))
        };
        match self {
            Hook::Units => {
                let early = self.is_early().then_some(&EARLY_UNIT);
                [&UNIT].into_iter().chain(early).try_for_each(|unit| {
                    put(&unit.file(), unit.text(&program, database, home.as_deref()), 0o644)?;
                    let link = unit.link();
                    linked(&link, &unit.file()).map_err(|error| problem(&link, &error))
                })
            }
            Hook::Scripts(files) => {
                let text = |words| script_text(&program, home.as_deref(), words);
                if self.is_early() {
                    put(Path::new(EARLY_SCRIPT), text(GUARDS), 0o755)?;
                }
                files.iter().try_for_each(|file| put(file, text(GOES_ON), 0o755))
            }
        }
    }
}

/// Removes all that any of them puts there; in the other system, also from the normal one.
pub fn remove() -> Result<(), String> {
    let state =
        StateDir::open().map_err(|error| format!("cannot open the state directory: {error}"))?;
    let normal = here(Path::new("/"));
    if normal == Path::new(NORMAL) {
        remove_below(Path::new("/"))?;
    }
    remove_all(&normal, Some(state.path(PROGRAM)))
}

/// Removes it from the system with this root.
pub fn remove_below(root: &Path) -> Result<(), String> {
    remove_all(root, None)
}

fn remove_all(root: &Path, program: Option<PathBuf>) -> Result<(), String> {
    let units = [&UNIT, &EARLY_UNIT].into_iter().flat_map(|unit| [unit.link(), unit.file()]);
    let scripts = SCRIPTS.iter().chain([&EARLY_SCRIPT, &ELSEWHERE]).map(PathBuf::from);
    let mut files: Vec<PathBuf> = units.chain(scripts).collect();
    files.iter_mut().for_each(|file| *file = below(root, file));
    files.extend(program);
    let left: Vec<String> = files
        .iter()
        .filter_map(|file| {
            gone(file).err().map(|error| problem(file, &error) + "; remove it by hand")
        })
        .collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
}

/// Path of a file in the system with this root.
fn below(root: &Path, file: &Path) -> PathBuf {
    root.join(file.strip_prefix("/").unwrap_or(file))
}

/// Puts what starts the copy into the other system, which is at `root`. It does nothing in a boot without the
/// mark of an experiment.
pub fn install_elsewhere(root: &Path, device: &str, state: &Path) -> Result<(), String> {
    let put = |file: &Path, text: &str, mode: u32| {
        let file = below(root, file);
        written(&file, text.as_bytes(), mode).map_err(|error| problem(&file, &error))
    };
    let text = elsewhere_text(device, state);
    let has_systemd = ["usr/lib/systemd/systemd", "lib/systemd/systemd"];
    if has_systemd.iter().any(|file| root.join(file).exists()) {
        put(Path::new(ELSEWHERE), &text, 0o755)?;
        put(&UNIT.file(), &UNIT.text_elsewhere(), 0o644)?;
        let link = below(root, &UNIT.link());
        return linked(&link, &UNIT.file()).map_err(|error| problem(&link, &error));
    }
    let scripts = SCRIPTS.iter().map(Path::new);
    let scripts: Vec<&Path> = scripts.filter(|file| is_possible(&below(root, file))).collect();
    match scripts.is_empty() {
        false => scripts.into_iter().try_for_each(|file| put(file, &text, 0o755)),
        true => {
            Err("it has neither systemd nor /etc/rc2.d nor /etc/local.d, to start weigh".into())
        }
    }
}

fn linked(link: &Path, unit: &Path) -> io::Result<()> {
    let directory = link.parent().unwrap_or(link);
    fs::create_dir_all(directory)?;
    gone(link)?;
    symlink(unit, link)?;
    File::open(directory)?.sync_all()
}

fn problem(file: &Path, error: &io::Error) -> String {
    format!("{}: {error}", file.display())
}

pub fn gone(file: &Path) -> io::Result<()> {
    let is_absent =
        || fs::symlink_metadata(file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    match fs::remove_file(file) {
        // On a read-only file system that is another error.
        Err(_) if is_absent() => Ok(()),
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

impl SystemdUnit {
    fn file(&self) -> PathBuf {
        Path::new(UNITS).join(self.name)
    }

    /// By which its target wants it.
    fn link(&self) -> PathBuf {
        Path::new(UNITS).join(format!("{}.wants", self.target)).join(self.name)
    }

    /// For the other system, whose script ends before `weigh` does.
    fn text_elsewhere(&self) -> String {
        format!(
            "[Unit]\nDescription=weigh goes on with an experiment of boots (weigh restore ends it)\n{}\n\
             [Service]\nType=forking\nExecStart=/bin/sh {ELSEWHERE}\n",
            self.more
        )
    }

    /// No boot waits for it (`Type=simple`).
    fn text(&self, program: &Path, database: &Path, state_home: Option<&str>) -> String {
        let quoted =
            |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
        let environment = state_home.map_or_else(String::new, |home| {
            format!("Environment=\"XDG_STATE_HOME={}\"\n", quoted(home))
        });
        let program = quoted(&program.display().to_string());
        // The watchdog is set whether or not that can be mounted.
        let database = match self.words {
            GOES_ON => format!(" \"{}\"", quoted(&database.display().to_string())),
            _ => String::new(),
        };
        format!(
            "[Unit]\nDescription=weigh goes on with an experiment of boots (weigh restore ends it)\n\
             RequiresMountsFor=\"{program}\"{database}\n{}\n\
             [Service]\nType=simple\n{environment}ExecStart=\"{program}\" {}\n",
            self.more,
            self.words.join(" ")
        )
    }
}

/// Text of that script. It resets the machine without `weigh`, as nothing else would bring it back.
fn elsewhere_text(device: &str, state: &Path) -> String {
    let state = below(Path::new(NORMAL), state);
    let home = state.parent().unwrap_or(&state);
    let (program, home) = (state.join(PROGRAM).display().to_string(), home.display());
    let (home, goes_on) = (format!("XDG_STATE_HOME={home}"), GOES_ON.join(" "));
    format!(
        "#!/bin/sh\n# weigh goes on with an experiment of boots; `weigh restore` ends it and removes this.\n\
         [ \"${{1-start}}\" = start ] || exit 0\ngrep -q ' weigh[.]boot=' /proc/cmdline || exit 0\n\
         reset() {{ sync; echo b >/proc/sysrq-trigger; }}\n\
         {{ mkdir -p {NORMAL} && {} || reset\n  {} {goes_on}\n  [ $? -lt 126 ] || reset\n\
         }} </dev/null >/dev/console 2>&1 &\n",
        command_line(["mount", device, NORMAL]),
        command_line(["env", &*home, &*program]),
    )
}

fn script_text(program: &Path, state_home: Option<&str>, words: &[&str]) -> String {
    let home = state_home.map(|home| format!("XDG_STATE_HOME={home}"));
    let program = program.display().to_string();
    let all = ["env"].into_iter().chain(home.as_deref()).chain([&*program]);
    format!(
        "#!/bin/sh\n# weigh goes on with an experiment of boots; `weigh restore` ends it and removes this.\n\
         [ \"${{1-start}}\" = start ] || exit 0\n{} </dev/null >/dev/console 2>&1 &\n",
        command_line(all.chain(words.iter().copied()))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_cannot_be_started_is_found_before_the_machine_goes_down() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join(PROGRAM);
        let tried = |text: &str, mode| {
            written(&program, text.as_bytes(), mode).unwrap();
            // Whom the thread of another test forked holds the written file until it executes (ETXTBSY).
            let is_busy = |tried: &Result<(), String>| {
                tried.as_ref().is_err_and(|problem| problem.contains("Text file busy"))
            };
            let mut tries = (0..10_000).map(|_| Hook::Scripts(Vec::new()).try_out(&program));
            tries.find(|tried| !is_busy(tried)).expect("the file is free again")
        };
        // As a file system mounted noexec has it.
        let refused = tried("#!/bin/sh\n", 0o600).unwrap_err();
        assert!(refused.contains("Permission denied") && refused.contains("noexec"), "{refused}");
        let refused = tried("#!/bin/sh\necho no libraries >&2; exit 127\n", 0o700).unwrap_err();
        assert!(refused.contains("(exit status: 127 no libraries)"), "{refused}");
        assert_eq!(tried("#!/bin/sh\n[ \"$*\" = --version ]\n", 0o700), Ok(()));
        if !has_systemd() {
            assert!(Hook::Units.try_out(&program).is_err(), "nobody is asked for it");
        }
    }

    #[test]
    fn it_starts_the_copy_with_the_state_directory_of_the_experiment() {
        let program = Path::new("/var/lib/w/boot-weigh");
        let script = script_text(program, Some("/a b"), GUARDS);
        let command = "env 'XDG_STATE_HOME=/a b' /var/lib/w/boot-weigh __boot --early <";
        assert!(script.contains(command), "{script}");
        let unit = UNIT.text(program, Path::new("/srv/100%/w.db"), Some("/a \"b"));
        let mounts = "\nRequiresMountsFor=\"/var/lib/w/boot-weigh\" \"/srv/100%%/w.db\"\nAfter=";
        assert!(unit.contains(mounts), "{unit}");
        let early = EARLY_UNIT.text(program, Path::new("/srv/w.db"), None);
        assert!(early.contains("RequiresMountsFor=\"/var/lib/w/boot-weigh\"\nDef"), "{early}");
        let service = "After=multi-user.target graphical.target\n\n[Service]\nType=simple\n\
                       Environment=\"XDG_STATE_HOME=/a \\\"b\"\n\
                       ExecStart=\"/var/lib/w/boot-weigh\" __boot\n";
        assert!(unit.ends_with(service), "{unit}");
    }
}
