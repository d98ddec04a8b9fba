//! The first file system of a guest, as a cpio archive (`newc`): `weigh`, the libraries that it has mapped
//! here, and the kernel's modules in the order in which they are loaded.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::GuestKernel;

/// Where the modules are in it.
pub const MODULES: &str = "/modules";

pub struct Initramfs {
    pub file: PathBuf,
}

impl Initramfs {
    /// Writes one for this kernel.
    pub fn write(kernel: &GuestKernel, file: PathBuf) -> io::Result<Initramfs> {
        let mut archive = Cpio::new(BufWriter::new(File::create(&file)?));
        for directory in ["/dev", "/proc", "/sys", "/root", MODULES] {
            archive.directory(directory)?;
        }
        // The kernel opens the one, and a program in Rust the other, before any of ours is executed.
        archive.device("/dev/console", (5, 1))?;
        archive.device("/dev/null", (1, 3))?;
        archive.file("/init", 0o755, &fs::read("/proc/self/exe")?)?;
        for library in mapped()? {
            let bytes = fs::read(&library)?;
            archive.below(&library)?;
            archive.file(&library.to_string_lossy(), 0o755, &bytes)?;
        }
        for (number, (name, bytes)) in kernel.modules.iter().enumerate() {
            archive.file(&format!("{MODULES}/{number:02}-{name}"), 0o644, bytes)?;
        }
        archive.finish()?;
        Ok(Initramfs { file })
    }
}

/// The files that this process has mapped to execute, but itself: its loader and its libraries, under the
/// paths by which the loader finds them.
fn mapped() -> io::Result<Vec<PathBuf>> {
    let own = fs::read_link("/proc/self/exe")?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let files = maps.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let access = fields.nth(1)?;
        let path = fields.nth(3).filter(|path| path.starts_with('/'))?;
        access.contains('x').then(|| PathBuf::from(path))
    });
    let files: BTreeSet<PathBuf> = files.filter(|path| *path != own).collect();
    let mut all: Vec<PathBuf> = files.iter().cloned().collect();
    // Where `/lib` is a link to `/usr/lib`, the program names the former, and there is no such link.
    for file in &files {
        let Some(name) = file.file_name() else { continue };
        for directory in ["/lib", "/lib64", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"] {
            let other = Path::new(directory).join(name);
            if !files.contains(&other) && other.exists() {
                all.push(other);
            }
        }
    }
    Ok(all)
}

/// Writes an archive; cpio(5) has the format.
struct Cpio<W: Write> {
    out: W,
    written: usize,
    inode: u32,
    directories: BTreeSet<String>,
}

impl<W: Write> Cpio<W> {
    fn new(out: W) -> Cpio<W> {
        Cpio { out, written: 0, inode: 0, directories: BTreeSet::new() }
    }

    fn directory(&mut self, path: &str) -> io::Result<()> {
        if self.directories.insert(path.to_owned()) {
            self.entry(path, 0o040_755, (0, 0), &[])?;
        }
        Ok(())
    }

    /// The directories above a file.
    fn below(&mut self, file: &Path) -> io::Result<()> {
        let mut above: Vec<&Path> = file.ancestors().skip(1).collect();
        above.pop();
        above.into_iter().rev().try_for_each(|path| self.directory(&path.to_string_lossy()))
    }

    fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.entry(path, 0o100_000 | mode, (0, 0), bytes)
    }

    fn device(&mut self, path: &str, number: (u32, u32)) -> io::Result<()> {
        self.entry(path, 0o020_600, number, &[])
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), bytes: &[u8]) -> io::Result<()> {
        let name = path.trim_start_matches('/');
        let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.inode += 1;
        let name_bytes = name.len() as u32 + 1;
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_bytes, 0];
        let head: String = fields.iter().map(|field| format!("{field:08x}")).collect();
        self.put(format!("070701{head}{name}\0").as_bytes())?;
        self.pad()?;
        self.put(bytes)?;
        self.pad()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len();
        self.out.write_all(bytes)
    }

    fn pad(&mut self) -> io::Result<()> {
        let missing = self.written.wrapping_neg() % 4;
        self.put(&[0; 4][..missing])
    }

    fn finish(mut self) -> io::Result<()> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_aligned_entries_and_an_end() {
        let mut bytes = Vec::new();
        let mut archive = Cpio::new(&mut bytes);
        archive.below(Path::new("/a/b/c")).unwrap();
        archive.file("/a/b/c", 0o755, b"12345").unwrap();
        archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let heads: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        assert_eq!(heads.len(), 4, "two directories, the file, the end: {text}");
        assert!(heads.iter().all(|at| at % 4 == 0));
        assert!(text.contains("a/b/c\0") && text.contains("12345") && text.contains("TRAILER!!!"));
    }

    #[test]
    fn the_libraries_of_this_process_have_its_libc() {
        let files = mapped().unwrap();
        let has = |part: &str| files.iter().any(|file| file.to_string_lossy().contains(part));
        assert!(has("libc") && has("ld-"), "{files:?}");
    }
}
