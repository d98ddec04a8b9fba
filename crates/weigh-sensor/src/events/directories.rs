//! Events of files in directories: inotify(7).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::source::{Seen, Source};

/// The directories that a listener watches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WatchedDirectories {
    pub directories: Vec<WatchedDirectory>,
    /// True if reads, opens and closes after reading have no event.
    pub has_changes_only: bool,
    /// A file whose opens are counted, in [`Seen::by_process`] under [`CANARY`].
    pub canary: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedDirectory {
    pub path: PathBuf,
    /// True if all directories below it are watched too.
    pub is_recursive: bool,
}

/// Number of no process.
pub const CANARY: u32 = 0;

const BUFFER_BYTES: usize = 16 << 10;
/// With `PATH`, opening and closing a directory has no event.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Events of changed files.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE);

/// An instance of inotify with its watches.
pub struct Directories {
    watched: WatchedDirectories,
    queue: OwnedFd,
    /// Directory of each watch.
    places: HashMap<i32, Place>,
    /// Number of directories below the roots that could not be watched.
    skipped: u64,
    canary: Option<i32>,
    is_on: bool,
}

/// A directory that was asked for.
struct Root {
    path: PathBuf,
    /// Device and inode when it was first opened.
    identity: (u64, u64),
    is_recursive: bool,
}

/// A root, or a directory below one.
#[derive(Clone)]
struct Place {
    root: Rc<Root>,
    /// Empty for the root.
    below: PathBuf,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.root.path.join(&self.below)
    }

    fn join(&self, name: &OsStr) -> Place {
        Place { root: Rc::clone(&self.root), below: self.below.join(name) }
    }

    /// Opens a directory below the root. Its owner may replace it by a link, and the listener may be root: so
    /// no link is followed, and no mount entered.
    fn open(&self) -> Result<OwnedFd, Errno> {
        let root = rustix::fs::open(&self.root.path, DIRECTORY, Mode::empty())?;
        let found = fstat(&root)?;
        if (found.st_dev, found.st_ino) != self.root.identity {
            return Err(Errno::NOENT);
        }
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        openat2(&root, &self.below, DIRECTORY, Mode::empty(), within)
    }
}

fn open_root(path: &Path) -> io::Result<OwnedFd> {
    rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(|error| {
        let problem = format!("cannot watch {} with inotify: {error}", path.display());
        io::Error::new(error.kind(), problem)
    })
}

/// An event of a watch, and the file's name in its directory.
type Event = (i32, ReadFlags, Option<PathBuf>);

/// Opens an instance of inotify, which watches nothing yet.
pub fn open_queue() -> io::Result<OwnedFd> {
    Ok(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?)
}

impl Directories {
    pub fn open(watched: WatchedDirectories) -> io::Result<Directories> {
        let queue = open_queue()?;
        let places = HashMap::new();
        Ok(Directories { watched, queue, places, skipped: 0, canary: None, is_on: false })
    }

    fn add(&self, opened: &Path, place: &Path, events: WatchFlags) -> io::Result<i32> {
        inotify::add_watch(&self.queue, opened, events).map_err(|error| {
            let place = place.display();
            let what_to_do = match error {
                Errno::NOSPC => "; raise the setting fs.inotify.max_user_watches",
                _ => "",
            };
            let problem = format!("cannot watch {place} with inotify: {error}{what_to_do}");
            io::Error::new(error.kind(), problem)
        })
    }

    /// Watches a root, and all directories below it where that was asked for.
    fn watch_root(&mut self, path: &Path, is_recursive: bool) -> io::Result<()> {
        let directory = open_root(path)?;
        let found = fstat(&directory)?;
        let root =
            Root { path: path.to_owned(), identity: (found.st_dev, found.st_ino), is_recursive };
        let place = Place { root: Rc::new(root), below: PathBuf::new() };
        let below = self.watch(&place, &directory)?;
        self.watch_all(below)
    }

    /// Watches these directories and those below, any of which may be removed or replaced at any time.
    fn watch_all(&mut self, mut places: Vec<Place>) -> io::Result<()> {
        while let Some(place) = places.pop() {
            match place.open() {
                Ok(directory) => match self.watch(&place, &directory) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        self.skipped += 1;
                    }
                    below => places.extend(below?),
                },
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::NAMETOOLONG) => {
                    self.skipped += 1;
                }
                Err(error) => {
                    let path = place.path();
                    let problem = format!("cannot watch {} with inotify: {error}", path.display());
                    return Err(io::Error::new(error.kind(), problem));
                }
            }
        }
        Ok(())
    }

    /// Watches an open directory. Returns those in it, where they are to be watched too.
    fn watch(&mut self, place: &Place, directory: &OwnedFd) -> io::Result<Vec<Place>> {
        let events = if self.watched.has_changes_only { CHANGES } else { WatchFlags::ALL_EVENTS };
        // Its path may lead elsewhere by now.
        let opened = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let watch = self.add(&opened, &place.path(), events | WatchFlags::ONLYDIR)?;
        self.places.insert(watch, place.clone());
        let mut below = Vec::new();
        if place.root.is_recursive {
            for entry in Dir::new(openat(directory, ".", LISTED, Mode::empty())?)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                // Some file systems do not say what it is.
                let may_be_directory =
                    matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                if may_be_directory && name != b"." && name != b".." {
                    below.push(place.join(OsStr::from_bytes(name)));
                }
            }
        }
        Ok(below)
    }

    /// Counts an event. Returns the directory that came with it, if that is to be watched.
    fn take(&mut self, event: Event, seen: &mut Seen) -> io::Result<Option<Place>> {
        let (watch, kinds, name) = event;
        if kinds.contains(ReadFlags::QUEUE_OVERFLOW) {
            seen.lost += 1;
            return Ok(None);
        }
        if kinds.contains(ReadFlags::IGNORED) {
            // Nobody knows it any more where the listener removed the watch itself.
            let place = self.places.remove(&watch);
            return match place.filter(|place| place.below.as_os_str().is_empty()) {
                Some(place) => Err(io::Error::other(format!(
                    "{} was removed or unmounted while inotify watched it",
                    place.root.path.display()
                ))),
                None => Ok(None),
            };
        }
        seen.events += 1;
        if self.canary == Some(watch) && kinds.contains(ReadFlags::OPEN) {
            *seen.by_process.entry(CANARY).or_default() += 1;
        }
        let is_new = kinds.contains(ReadFlags::ISDIR)
            && kinds.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let place = self.places.get(&watch).filter(|place| is_new && place.root.is_recursive);
        Ok(place.zip(name).map(|(place, name)| place.join(name.as_os_str())))
    }
}

impl Source for Directories {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    fn begin(&mut self, is_on: bool) -> io::Result<()> {
        self.skipped = 0;
        if !is_on {
            return Ok(());
        }
        self.is_on = true;
        // The close between two opens keeps the kernel from merging their events.
        let events = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
        let canary = &self.watched.canary;
        self.canary = Some(self.add(canary, canary, events)?);
        for WatchedDirectory { path, is_recursive } in self.watched.directories.clone() {
            self.watch_root(&path, is_recursive)?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_on) {
            return Ok(());
        }
        for watch in std::mem::take(&mut self.places).into_keys().chain(self.canary) {
            match inotify::remove_watch(&self.queue, watch) {
                // Its directory was removed, and the watch with it.
                Err(Errno::INVAL) => {}
                done => done?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, seen: &mut Seen) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        let mut events: Vec<Event> = Vec::new();
        loop {
            match reader.next() {
                Err(Errno::AGAIN) => {
                    seen.skipped = self.skipped;
                    return Ok(false);
                }
                Err(Errno::INTR) => return Ok(true),
                event => {
                    let event = event?;
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    events.push((event.wd(), event.events(), name.map(PathBuf::from)));
                }
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        for event in events {
            let directory = self.take(event, seen)?;
            self.watch_all(Vec::from_iter(directory))?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::mkdirat;

    fn watching(root: &Path, is_recursive: bool, has_changes_only: bool) -> Directories {
        let canary = root.join("canary");
        let directories = vec![WatchedDirectory { path: root.to_owned(), is_recursive }];
        fs::write(&canary, "").unwrap();
        let watched = WatchedDirectories { directories, has_changes_only, canary };
        let mut watching = Directories::open(watched).unwrap();
        watching.begin(true).unwrap();
        watching
    }

    fn received(watching: &mut Directories) -> Seen {
        let mut seen = Seen::default();
        while watching.receive(&mut seen).unwrap() {}
        seen
    }

    #[test]
    fn a_directory_that_is_made_meanwhile_is_watched_where_all_below_are() {
        for (is_recursive, events) in [(false, 0), (true, 3)] {
            let root = tempfile::tempdir().unwrap();
            let mut watching = watching(root.path(), is_recursive, true);
            fs::create_dir(root.path().join("new")).unwrap();
            assert_eq!(received(&mut watching).events, 1);
            fs::write(root.path().join("new/file"), "x").unwrap();
            assert_eq!(received(&mut watching).events, events, "create, modify and close");
        }
    }

    #[test]
    fn the_listener_hears_nothing_of_itself_where_it_lists_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(received(&mut watching(root.path(), false, false)).events, 0);
    }

    #[test]
    fn no_link_leads_out_of_the_watched_tree() {
        let [root, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut watching = watching(root.path(), true, true);
        fs::create_dir(root.path().join("new")).unwrap();
        fs::remove_dir(root.path().join("new")).unwrap();
        symlink(outside.path(), root.path().join("new")).unwrap();
        assert_eq!(received(&mut watching).events, 3);
        fs::write(outside.path().join("file"), "x").unwrap();
        assert_eq!(received(&mut watching).events, 0);
    }

    #[test]
    fn a_directory_whose_path_is_too_long_is_skipped() {
        let root = tempfile::tempdir().unwrap();
        let mut directory = open_root(root.path()).unwrap();
        let name = "x".repeat(255);
        // The longest path has 16 names and the dashes between them.
        for _ in 0..17 {
            mkdirat(&directory, &name, Mode::RWXU).unwrap();
            directory = openat(&directory, &name, DIRECTORY, Mode::empty()).unwrap();
        }
        let mut watching = watching(root.path(), true, true);
        assert_eq!(received(&mut watching).skipped, 1);
    }

    #[test]
    fn the_canary_is_counted_also_where_reads_have_no_event() {
        let root = tempfile::tempdir().unwrap();
        let mut watching = watching(root.path(), false, true);
        fs::read(root.path().join("canary")).unwrap();
        fs::read(root.path().join("canary")).unwrap();
        watching.end().unwrap();
        let seen = received(&mut watching);
        assert_eq!((seen.events, seen.by_process[&CANARY]), (4, 2), "with the closes");
        fs::read(root.path().join("canary")).unwrap();
        assert_eq!(received(&mut watching).events, 0, "it has ended");
    }

    #[test]
    fn a_watched_directory_that_is_removed_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let mut watching = watching(root.path(), false, false);
        drop(root);
        let mut seen = Seen::default();
        let problem = loop {
            if let Err(problem) = watching.receive(&mut seen) {
                break problem;
            }
        };
        assert!(problem.to_string().contains("was removed or unmounted while inotify watched it"));
    }
}
