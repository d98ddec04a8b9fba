//! A compiler of this machine and what it is told.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::jobs::Jobs;
use trust::allowed::executable_or_absent;
use trust::program;
use weigh_model::shell::{command_line, words};

/// Default compiler, which the build of `weigh` uses, too.
const DEFAULT: &str = "cc";

/// Programs that a compiler starts to do its work, if they are separate.
const PARTS: [&str; 3] = ["cc1", "as", "ld"];

/// Ctrl-C has no effect meanwhile.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// A program, and the words of its command line that the user wrote.
#[derive(Clone, Debug)]
pub struct Compiler {
    pub file: PathBuf,
    pub cflags: Vec<String>,
    pub ldflags: Vec<String>,
}

impl Compiler {
    /// By its name or path, as on a command line.
    pub fn named(
        name: Option<&str>,
        cflags: &str,
        ldflags: Option<&str>,
    ) -> Result<Compiler, String> {
        let named = name.unwrap_or(DEFAULT);
        let file = program::named(named).map_err(|problem| {
            format!("cc={named}: {problem}. Install a C compiler, or write the path of a compiler")
        })?;
        let split = |key: &str, text: &str| {
            let flags = words(text).and_then(|flags| {
                flags.iter().try_for_each(|flag| check_flag(flag))?;
                Ok(flags)
            });
            flags.map_err(|problem| format!("{key}={text}: {problem}"))
        };
        let ldflags = ldflags.unwrap_or_default();
        Ok(Compiler { file, cflags: split("cflags", cflags)?, ldflags: split("ldflags", ldflags)? })
    }

    /// The flags, as they are typed.
    pub fn flags(&self) -> String {
        let line = |words: &[String]| command_line(words.iter().map(String::as_str));
        match self.ldflags.is_empty() {
            true => line(&self.cflags),
            false => format!("{}, linked with {}", line(&self.cflags), line(&self.ldflags)),
        }
    }

    pub fn version(&self) -> Result<String, String> {
        let said = self.said("--version")?;
        if said.is_empty() { Err("of an unknown version".into()) } else { Ok(said) }
    }

    /// SHA-256 of its file and of the programs that it starts: an update, or a plain edit of a script that is
    /// called as a compiler, may keep the version.
    pub fn sha256(&self) -> io::Result<String> {
        let mut hash = Sha256::new();
        hash.update(fs::read(&self.file)?);
        let begun = Instant::now();
        for part in PARTS {
            // One that hangs is not asked again.
            let found = match begun.elapsed() < VERSION_LIMIT {
                true => self.said(&format!("-print-prog-name={part}")).unwrap_or_default(),
                false => String::new(),
            };
            let found = match found.contains('/') {
                true => Some(PathBuf::from(found)),
                false => program::find(part).ok().flatten(),
            };
            // What has none does it itself.
            hash.update(found.map_or(Vec::new(), |file: PathBuf| read_or_nothing(&file)));
        }
        Ok(format!("{:x}", hash.finalize()))
    }

    /// The first line of what it says to this.
    fn said(&self, option: &str) -> Result<String, String> {
        let never = AtomicBool::new(false);
        let jobs = Jobs { directory: "/".as_ref(), interrupted: &never, limit: VERSION_LIMIT };
        let command = vec![self.file.display().to_string(), option.to_owned()];
        let said = jobs.run_all(&[command]).map_err(|error| error.to_string())?.concat();
        Ok(said.lines().next().unwrap_or_default().trim().to_owned())
    }
}

/// Checks the files that a flag names, because root executes them.
///
/// The compiler loads them (`-fplugin=`), executes them in place of its parts (`-B`, `-specs=`), or
/// links them into the workloads.
fn check_flag(flag: &str) -> Result<(), String> {
    // A macro is text, and so is what debug information calls a directory.
    if flag.starts_with("-D") || flag.starts_with("-f") && flag.contains("-prefix-map=") {
        return Ok(());
    }
    for part in flag.split([',', '=', ':']) {
        if part.starts_with('@') {
            return Err(format!(
                "{flag} stands for more flags: write them out, as the label names what is built"
            ));
        }
        // The compiler runs in a directory of ours: no other relative name leads out of that.
        if geteuid().is_root() && (part.contains("../") || part.ends_with("..")) {
            return Err(format!(
                "{flag}: write the whole path, as the compiler runs in a different directory"
            ));
        }
        if let Some(slash) = part.find('/').filter(|_| geteuid().is_root()) {
            executable_or_absent(Path::new(&part[slash..]))
                .map_err(|error| format!("{flag}: {error}"))?;
        }
    }
    Ok(())
}

fn read_or_nothing(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn root_executes_nothing_of_others_that_a_flag_names() {
        let with = |flags: &str| Compiler::named(None, flags, Some(flags)).err();
        for flags in ["-O2 -march=native", "-DPATH=/absent", "-isystem /usr -Wl,-rpath,/usr"] {
            assert_eq!(with(flags), None, "{flags}");
        }
        for flags in ["@/etc/shadow", "-O2 -Wl,@/etc/shadow"] {
            let problem = with(flags).unwrap();
            assert!(problem.contains("stands for more flags"), "{problem}");
        }
        assert!(with("-B../x").unwrap().contains("write the whole path"));
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(&directory, Some(1001), Some(1001)).unwrap();
        let theirs = directory.path().display();
        for flag in ["-B", "-fplugin=", "-specs=", "-L", "-Wl,-rpath,", "-wrapper "] {
            let problem = with(&format!("-O2 {flag}{theirs}")).unwrap();
            assert!(problem.contains("belongs to another user (uid 1001)"), "{problem}");
        }
    }

    #[test]
    fn a_compiler_of_the_same_version_with_another_content_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cc");
        let with = |line: &str| {
            fs::write(&file, format!("#!/bin/sh\n{line}\nexec cc \"$@\"\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            let compiler = Compiler { file: file.clone(), cflags: Vec::new(), ldflags: Vec::new() };
            (compiler.version().unwrap(), compiler.sha256().unwrap())
        };
        let (one, other) = (with("# one"), with("# other"));
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
        assert_eq!(one, with("# one"));
    }
}
