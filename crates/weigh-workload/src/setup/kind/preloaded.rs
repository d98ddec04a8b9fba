//! A library that the dynamic loader maps into every worker before all others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::setup::kind::variables::Variables;
use crate::setup::{Act, look};

/// The loader is done with it within moments of its start, in seconds where many others want the CPU.
const LIMIT: Duration = Duration::from_secs(20);
const VARIABLE: &str = "LD_PRELOAD";
/// Entries of the auxiliary vector (getauxval(3)): where the loader is, and whether it heeds no variables.
const AT_BASE: usize = 7;
const AT_SECURE: usize = 23;
const PAUSE: Duration = Duration::from_micros(50);

/// This one; with none, it is only looked which there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preloaded {
    /// Its path without links.
    pub library: Option<PathBuf>,
}

impl Preloaded {
    /// Name of the observation of the libraries to preload, taken when the program was executed.
    ///
    /// Its value is [`Preloaded::NO_LOADER`], [`Preloaded::SECURE`], or the libraries of the
    /// variable.
    pub const SEEN_TOLD: &str = "preloading";
    pub const NO_LOADER: &str = "no dynamic loader";
    pub const SECURE: &str = "as for set-user-ID programs";
    /// The files that were mapped when the loader had begun with libraries, a line each; absent where the
    /// program ended before anybody could look.
    pub const SEEN_MAPPED: &str = "libraries";

    fn is_done(&self, mapped: &[String]) -> bool {
        match self.library.as_ref().and_then(|library| library.to_str()) {
            Some(library) => mapped.iter().any(|file| file == library),
            // The program, the loader, and the first library.
            None => mapped.len() > 2,
        }
    }
}

impl Act for Preloaded {
    fn holds(&self) -> bool {
        true
    }

    fn environment(&self) -> Vec<(String, String)> {
        let Some(library) = &self.library else { return Vec::new() };
        let inherited = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty());
        let inherited = inherited.map(|value| format!(":{value}")).unwrap_or_default();
        vec![(VARIABLE.into(), format!("{}{inherited}", library.display()))]
    }

    fn look(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let auxiliary = look::of_program(worker, "auxv")?;
        let environment = look::of_program(worker, "environ")?;
        let (Some(auxiliary), Some(environment)) = (auxiliary, environment) else { return Ok(()) };
        let environment = String::from_utf8_lossy(&environment);
        let told = match (is_set(&auxiliary, AT_BASE), is_set(&auxiliary, AT_SECURE)) {
            (false, _) => Preloaded::NO_LOADER,
            (true, true) => Preloaded::SECURE,
            (true, false) => Variables::value(&environment, VARIABLE).unwrap_or_default(),
        };
        seen.insert(Preloaded::SEEN_TOLD.into(), told.to_owned());
        Ok(())
    }

    /// Waits for the loader, in all arms alike.
    fn look_on(&self, worker: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let told = seen.get(Preloaded::SEEN_TOLD).map(String::as_str);
        if [None, Some(Preloaded::NO_LOADER), Some(Preloaded::SECURE)].contains(&told) {
            return Ok(());
        }
        let deadline = Instant::now() + LIMIT;
        let mut mapped = mapped_files(worker)?;
        while !self.is_done(&mapped) && !look::has_ended(worker) && Instant::now() < deadline {
            sleep(PAUSE);
            mapped = mapped_files(worker)?;
        }
        // Of one that ended meanwhile nothing was read, or a part.
        if self.is_done(&mapped) || !look::has_ended(worker) {
            seen.insert(Preloaded::SEEN_MAPPED.into(), mapped.join("\n"));
        }
        Ok(())
    }
}

/// Returns true if an entry of the auxiliary vector, which is pairs of words, is not 0.
fn is_set(auxiliary: &[u8], entry: usize) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).unwrap_or(0);
    let size = size_of::<usize>();
    let mut pairs = auxiliary.chunks_exact(2 * size).map(|pair| pair.split_at(size));
    pairs.any(|(kind, value)| word(kind) == entry && word(value) != 0)
}

/// The files behind a process's memory, each once; none of one that has ended.
fn mapped_files(process: u32) -> io::Result<Vec<String>> {
    let maps = match fs::read_to_string(format!("/proc/{process}/maps")) {
        // Its memory is gone before it counts as ended (proc_mem_open() in fs/proc/base.c).
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(Vec::new()),
        Err(_) if look::has_ended(process) => return Ok(Vec::new()),
        maps => maps?,
    };
    let mut files: Vec<String> = Vec::new();
    for line in maps.lines() {
        let file = line.find('/').map(|at| &line[at..]);
        if let Some(file) = file.filter(|file| files.iter().all(|other| other != file)) {
            files.push(file.to_owned());
        }
    }
    Ok(files)
}
