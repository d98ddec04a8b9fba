//! Root file systems that arms are launched in: made ready once for all arms that name the same one, and
//! entered by each launcher (`weigh-workload/setup/kind/enter_root.rs`).

mod source;
mod squashfs;
mod tried;

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::statvfs;

use super::{ApplyContext, TreatmentError};
pub use source::{RootForm, RootSource};
use squashfs::MountedImage;
use tried::TriedRoot;
use weigh_archive::{ArchiveError, Packed, Unpacking, unpack_image, unpack_tar};
use weigh_host::chance;
use weigh_host::interruption::has_come;
use weigh_model::printable;
use weigh_workload::executable::Executable;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::enter_root::{ABOVE, EnterRoot, MOUNTS, TREE};
use weigh_workload::setup::kind::root_seen::{MARK, RootSeen};

/// Room that has to stay free for the experiment's own files, and for others.
const RESERVED_BYTES: u64 = 256 << 20;
const RESERVED_FILES: u64 = 10_000;
/// Who waits longer is told what for.
const PATIENCE: Duration = Duration::from_secs(2);

/// All that the arms of an experiment are launched in.
#[derive(Default)]
pub struct Roots(RefCell<Vec<Rc<Root>>>);

/// One, made ready in the experiment's scratch directory.
pub struct Root {
    /// As the processes in it see.
    pub number: u64,
    pub tried: TriedRoot,
    /// Kind of archive that it was unpacked from, if it was.
    pub packed: Option<Packed>,
    /// How many it has; they are not counted in the host's own.
    pub files: Option<u64>,
    pub devices: u64,
    /// SHA-256, as of its source.
    pub digest: String,
    /// Other content of the source that the root lacks, and the reason.
    pub lacks: Option<String>,
    file: PathBuf,
    base: PathBuf,
    shared: PathBuf,
    /// Until it is lowered.
    mounted: RefCell<Option<MountedImage>>,
}

impl Roots {
    /// The root file system of this source, which is made ready where no other arm has.
    pub fn raise(
        &self,
        source: &RootSource,
        context: &ApplyContext,
    ) -> Result<Rc<Root>, TreatmentError> {
        let known = self.0.borrow().iter().find(|root| root.file == source.file).cloned();
        if let Some(root) = known {
            return Ok(root);
        }
        let root = Rc::new(Root::make(source, context)?);
        self.0.borrow_mut().push(Rc::clone(&root));
        Ok(root)
    }

    /// The static build of the workloads, where one of these takes no other: then all arms have it, as two
    /// builds would be one difference more.
    pub fn static_build(&self) -> Option<Executable> {
        self.0.borrow().iter().find_map(|root| Some(root.tried.needs_static.as_ref()?.0.clone()))
    }

    /// Which of them needs it, and why.
    pub fn why_static(&self) -> Option<(String, String)> {
        self.0.borrow().iter().find_map(|root| {
            let (_, why) = root.tried.needs_static.as_ref()?;
            Some((root.file.display().to_string(), why.clone()))
        })
    }

    /// The first that was made ready, which is the baseline's where that has one; `None` for itself.
    pub fn first_before(&self, root: &Root) -> Option<Rc<Root>> {
        self.0.borrow().first().filter(|first| first.number != root.number).cloned()
    }

    /// Removes what was unpacked.
    pub fn lower(&self) -> Result<(), TreatmentError> {
        for root in self.0.take() {
            drop(root.mounted.take());
            match fs::remove_dir_all(&root.base) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let problem = format!("cannot remove {}: {error}", root.base.display());
                    return Err(TreatmentError::Unavailable(problem));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Root {
    fn make(source: &RootSource, context: &ApplyContext) -> Result<Root, TreatmentError> {
        let number =
            chance::number().map_err(|error| TreatmentError::Unavailable(error.to_string()))?;
        let number = number | 1;
        let base = context.place.scratch.join(format!("root-{number:016x}"));
        let refused = |problem: &dyn std::fmt::Display| {
            TreatmentError::Unavailable(format!("{}: {problem}", source.shown()))
        };
        make_frame(&base, number).map_err(|error| refused(&error))?;
        let filled = fill(source, &base, context).map_err(|error| match error {
            ArchiveError::Interrupted => TreatmentError::Interrupted,
            ArchiveError::Unusable(problem) => refused(&problem),
        })?;
        source.check_unchanged().map_err(|problem| match has_come() {
            true => TreatmentError::Interrupted,
            false => refused(&problem),
        })?;
        let Filled { packed, devices, lacks, mounted } = filled;
        let files = match source.form {
            RootForm::Host => None,
            _ => Some(count(&base.join(TREE)).map_err(|error| refused(&error))?),
        };
        let digest = source.digest().map_err(|problem| refused(&problem))?.to_owned();
        let mut root = Root {
            number,
            tried: TriedRoot::default(),
            packed,
            files,
            devices,
            digest,
            lacks,
            file: source.file.clone(),
            base,
            shared: context.place.scratch.clone(),
            mounted: RefCell::new(mounted),
        };
        let setup = root.setup().with(RootSeen {});
        root.tried = TriedRoot::find_out(&setup, context, number).map_err(|error| match error {
            TreatmentError::Unavailable(problem) => refused(&problem),
            other => other,
        })?;
        Ok(root)
    }

    /// One that was never made, for tests of what is said of it.
    #[cfg(test)]
    pub fn made_up(number: u64, base: &str) -> Root {
        Root {
            number,
            tried: TriedRoot::default(),
            packed: None,
            files: None,
            devices: 0,
            digest: String::new(),
            lacks: None,
            file: base.into(),
            base: base.into(),
            shared: "/scratch".into(),
            mounted: RefCell::default(),
        }
    }

    /// Describes the known differences from `other`, and that an effect is due to all of them.
    pub fn beside(&self, other: &Root) -> String {
        let file = other.file.display();
        if self.digest == other.digest {
            return format!("{file} has the same content.");
        }
        let unknown = || "unknown".to_owned();
        let both = |of: fn(&Root) -> Option<String>| {
            [self, other].map(|root| of(root).unwrap_or_else(unknown))
        };
        let compared = [
            ("system", both(|root| root.tried.distribution.clone())),
            ("libc", both(|root| root.tried.libc.clone())),
            (
                "files",
                both(|root| Some(root.files.map_or("of this system".into(), |n| n.to_string()))),
            ),
        ];
        let differ = compared.iter().filter(|(_, [own, other])| own != other);
        let differ: Vec<String> = differ
            .map(|(what, [own, other])| format!("{what} {own} in place of {other}"))
            .collect();
        let known = if differ.is_empty() { "contents".into() } else { differ.join("; ") };
        format!("It differs from {file} in: {known}. The effect covers all differences together.")
    }

    /// How a launcher gets into it.
    pub fn setup(&self) -> Setup {
        let (base, shared) = (self.base.clone(), vec![self.shared.clone()]);
        Setup::default().with(EnterRoot { base, shared })
    }

    /// Returns true if this set-up leads into the root.
    pub fn is_entered_by(&self, setup: &Setup) -> bool {
        setup.get::<EnterRoot>().is_some_and(|step| step.base == self.base)
    }
}

/// Makes the directory above a root, with its mark, and the directory where it is entered.
fn make_frame(base: &Path, number: u64) -> io::Result<()> {
    for directory in [base.to_owned(), base.join(ABOVE), base.join(MOUNTS)] {
        fs::create_dir(directory)?;
    }
    fs::write(base.join(ABOVE).join(MARK), format!("{number:016x}\n"))
}

/// Facts about the content of a tree.
#[derive(Default)]
struct Filled {
    packed: Option<Packed>,
    devices: u64,
    lacks: Option<String>,
    mounted: Option<MountedImage>,
}

fn fill(source: &RootSource, base: &Path, context: &ApplyContext) -> Result<Filled, ArchiveError> {
    let tree = base.join(TREE);
    let room = Room::of(base)?;
    if matches!(source.form, RootForm::Directory | RootForm::Host) {
        symlink(&source.file, &tree)?;
        return Ok(Filled::default());
    }
    let began = Instant::now();
    let mut told = began;
    let shown = source.shown();
    let mut goes_on = |bytes: u64| {
        if told.elapsed() > PATIENCE {
            told = Instant::now();
            let line = printable::line(&format!("Unpacking {shown}: {} MiB", bytes >> 20));
            let _ = writeln!(io::stderr(), "{line}");
        }
        !context.interrupted.load(Ordering::Relaxed)
    };
    if source.form == RootForm::Squashfs {
        return squashfs::bring(&source.file, &tree, &mut goes_on);
    }
    let mut unpacking = Unpacking::new(room.bytes, room.files, &mut goes_on);
    let packed = match source.form {
        RootForm::ImageDirectory => {
            unpack_image(&source.file, &tree, &mut unpacking)?;
            Packed::Image
        }
        _ => unpack_tar(source.open()?, &tree, &base.join("image"), &mut unpacking)?,
    };
    Ok(Filled { packed: Some(packed), devices: unpacking.devices, ..Filled::default() })
}

/// Unpacks an archive or an image into `base`, as [`TREE`].
pub(super) fn fill_tree(
    source: &RootSource,
    base: &Path,
    context: &ApplyContext,
) -> Result<(), TreatmentError> {
    fill(source, base, context).map(drop).map_err(|error| match error {
        ArchiveError::Interrupted => TreatmentError::Interrupted,
        ArchiveError::Unusable(problem) => {
            TreatmentError::Unavailable(format!("{}: {problem}", source.shown()))
        }
    })
}

/// How many files, directories and links there are; not of what is mounted in it.
fn count(tree: &Path) -> io::Result<u64> {
    let own = fs::metadata(tree)?.dev();
    let (mut files, mut open) = (0, vec![tree.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            files += 1;
            if entry.file_type()?.is_dir() && entry.metadata()?.dev() == own {
                open.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// Free room of a file system.
struct Room {
    bytes: u64,
    files: u64,
}

impl Room {
    fn of(directory: &Path) -> io::Result<Room> {
        let status = statvfs(directory)?;
        let bytes = status.f_bavail.saturating_mul(status.f_frsize);
        // Some count no inodes.
        let files = if status.f_files == 0 {
            u64::MAX
        } else {
            status.f_favail.saturating_sub(RESERVED_FILES)
        };
        Ok(Room { bytes: bytes.saturating_sub(RESERVED_BYTES), files })
    }
}
