//! Measures the speed of the device below a directory. Several threads at a time read and write
//! without the page cache, for a second each. Faster I/O than that did not come from the device.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use trust::{owner, user_file};
use weigh_model::disk_speed::DiskSpeed;

/// Each measurement lasts so long, and no longer than the second where a region has to be filled.
const TIME: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(20);
const THREADS: u64 = 4;
const REGION: u64 = 32 << 20;
const LARGE: usize = 1 << 20;
const SMALL: usize = 4096;
/// In the data directory: what was found, by the number of the device.
const FILE: &str = "disks.json";
const LONGEST_FILE: u64 = 1 << 20;

/// Measures the device of a directory with a file there that is gone afterwards.
pub fn measure(directory: &Path) -> Result<DiskSpeed, String> {
    let why = |error: io::Error| format!("{}: {error}", directory.display());
    let device = device_of(directory).map_err(why)?;
    let file = open(directory, 0).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::EOPNOTSUPP) => format!(
            "{}: its file system does not support O_DIRECT, so the speed of the disk cannot be measured",
            directory.display()
        ),
        _ => why(error),
    })?;
    let all =
        |block, is_random, writes| rate(&file, block, is_random, writes, THREADS).map_err(why);
    // First of all: what was not written cannot be read.
    let write_bytes_per_s = all(LARGE, false, true)? * LARGE as f64;
    let read_bytes_per_s = all(LARGE, false, false)? * LARGE as f64;
    let random_reads_per_s = all(SMALL, true, false)?;
    let random_writes_per_s = all(SMALL, true, true)?;
    let synced = open(directory, libc::O_DSYNC).map_err(why)?;
    let synced_writes_per_s = rate(&synced, SMALL, true, true, 1).map_err(why)?;
    Ok(DiskSpeed {
        device,
        read_bytes_per_s,
        write_bytes_per_s,
        random_reads_per_s,
        random_writes_per_s,
        synced_writes_per_s,
    })
}

/// Returns the stored speed of a directory's device; `None` if it was not measured before.
pub fn known(data_directory: &Path, directory: &Path) -> Option<DiskSpeed> {
    all(data_directory).remove(&device_of(directory).ok()?)
}

pub fn keep(found: &DiskSpeed, data_directory: &Path) -> io::Result<()> {
    let mut all = all(data_directory);
    all.insert(found.device.clone(), found.clone());
    owner::create_directory(data_directory, 0o700)?;
    // Root's file would be in its owner's way. In one step: a part of it is read as none.
    owner::replace(&data_directory.join(FILE), &serde_json::to_vec_pretty(&all)?)
}

fn all(data_directory: &Path) -> BTreeMap<String, DiskSpeed> {
    let text = user_file::read_text(&data_directory.join(FILE), LONGEST_FILE);
    text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn device_of(directory: &Path) -> io::Result<String> {
    let device = fs::metadata(directory)?.dev();
    Ok(format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device)))
}

/// A file without a name, so that nothing is left of it.
fn open(directory: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(libc::O_TMPFILE | libc::O_DIRECT | flags).open(directory)
}

/// Blocks per second of so many threads, each in a region of its own.
fn rate(file: &File, block: usize, is_random: bool, writes: bool, threads: u64) -> io::Result<f64> {
    let began = Instant::now();
    let of_thread = |thread| use_region(file, thread, block, is_random, writes);
    let counts: Vec<io::Result<u64>> = thread::scope(|scope| {
        let start = |n| thread::Builder::new().spawn_scoped(scope, move || of_thread(n));
        let all: Vec<_> = (0..threads).map(start).collect();
        all.into_iter().map(|one| one?.join().expect("it does not panic")).collect()
    });
    let elapsed_s = began.elapsed().as_secs_f64();
    let blocks = counts.into_iter().sum::<io::Result<u64>>()?;
    Ok(blocks as f64 / elapsed_s)
}

fn use_region(
    file: &File,
    region: u64,
    block: usize,
    is_random: bool,
    writes: bool,
) -> io::Result<u64> {
    let mut buffer = Aligned::new(block);
    let blocks = REGION / block as u64;
    let (began, mut done, mut state) = (Instant::now(), 0u64, region + 1);
    // A region is written as a whole at least once: a hole is read from no device.
    let is_filling = |done| writes && !is_random && done < blocks && began.elapsed() < LONGEST;
    while began.elapsed() < TIME || is_filling(done) {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = if is_random { (state >> 33) % blocks } else { done % blocks };
        let at = region * REGION + number * block as u64;
        match writes {
            true => file.write_all_at(buffer.bytes(), at)?,
            false => file.read_exact_at(buffer.bytes(), at)?,
        }
        done += 1;
    }
    Ok(done)
}

/// Memory as O_DIRECT wants it.
struct Aligned {
    start: *mut u8,
    layout: Layout,
}

impl Aligned {
    fn new(size: usize) -> Aligned {
        let layout = Layout::from_size_align(size, SMALL).expect("a power of two");
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Aligned { start, layout }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: it was allocated with this size, and set to zero.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.start, self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    fn of(device: &str) -> DiskSpeed {
        DiskSpeed {
            device: device.into(),
            read_bytes_per_s: 2.0,
            write_bytes_per_s: 3.0,
            random_reads_per_s: 4.0,
            random_writes_per_s: 5.0,
            synced_writes_per_s: 6.0,
        }
    }

    #[test]
    fn what_is_in_a_users_directory_is_his() {
        const NOBODY: u32 = 65534;
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        if chown(&theirs, Some(NOBODY), Some(NOBODY)).is_err() {
            needs::skip("root", "needs root");
            return;
        }
        fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        keep(&of("0:0"), &theirs.join("data")).unwrap();
        let files: Vec<_> = fs::read_dir(theirs.join("data")).unwrap().flatten().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(files[0].metadata().unwrap().uid(), NOBODY);
        // Nor does root write where he may not.
        let before = fs::read(theirs.join("data").join(FILE)).unwrap();
        chown(theirs.join("data"), Some(0), Some(0)).unwrap();
        keep(&of("0:1"), &theirs.join("data")).unwrap_err();
        assert_eq!(fs::read(theirs.join("data").join(FILE)).unwrap(), before);
    }

    #[test]
    fn what_was_found_is_kept_by_device() {
        let home = tempfile::tempdir().unwrap();
        let device = device_of(home.path()).unwrap();
        assert_eq!(known(home.path(), home.path()), None);
        keep(&of("0:0"), home.path()).unwrap();
        keep(&of(&device), home.path()).unwrap();
        let found = known(home.path(), home.path()).unwrap();
        assert_eq!((found.device, all(home.path()).len()), (device, 2));
        fs::write(home.path().join(FILE), "{").unwrap();
        assert_eq!(known(home.path(), home.path()), None);
    }
}
