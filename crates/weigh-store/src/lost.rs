//! A database that is lost while it is open. If it is removed or moved away, SQLite goes on writing into a
//! file without a name, which would vanish with this process. If its log is cut, SQLite goes on writing at
//! its old position. The gap reads as zeros, and SQLite later copies these zeros into the database.

use std::cell::{Cell, OnceCell};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{Error, Store};
use weigh_host::chance;

/// Sizes of SQLite's format: of the log's header, of that of each frame, and of either copy of the index's.
const LOG_HEADER: usize = 32;
const LOG_BEGINS: [u8; 3] = [0x37, 0x7f, 0x06];
const FRAME_HEADER: u64 = 24;
const INDEX_HEADER: usize = 48;

/// Which file was opened, and what became of it.
#[derive(Default)]
pub(super) struct OpenedFile {
    /// Its device and inode; nothing of one that is only read.
    known: Option<(u64, u64)>,
    /// Its log after the last commit.
    log: Cell<Option<DatabaseLog>>,
    /// Message that was given when the file was lost.
    lost: OnceCell<String>,
}

/// Which file the log is, and how long.
#[derive(Clone, Copy)]
struct DatabaseLog {
    known: (u64, u64),
    length: u64,
    /// It begins as logs do; one that was emptied and written on has a hole there.
    has_header: bool,
}

impl DatabaseLog {
    /// The one beside this database; `None` without one. SQLite has no lock on it that would go when it is
    /// closed.
    fn of(path: &Path) -> io::Result<Option<DatabaseLog>> {
        let log = match File::open(beside(path, "-wal")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            log => log?,
        };
        let metadata = log.metadata()?;
        let mut start = [0; 3];
        let has_header = log.read_exact_at(&mut start, 0).is_ok() && start == LOG_BEGINS;
        let known = (metadata.dev(), metadata.ino());
        Ok(Some(DatabaseLog { known, length: metadata.len(), has_header }))
    }

    /// Tells if this log may be a later state of the log `before`: a commit neither shortens nor replaces it.
    fn may_follow(&self, before: Option<DatabaseLog>) -> bool {
        let follows =
            |before: DatabaseLog| self.known == before.known && self.length >= before.length;
        before.is_none_or(follows) && (self.has_header || self.length == 0)
    }
}

impl OpenedFile {
    /// The one that is there now.
    pub(super) fn at(path: &Path) -> io::Result<OpenedFile> {
        let metadata = fs::metadata(path)?;
        let known = Some((metadata.dev(), metadata.ino()));
        let log = Cell::new(DatabaseLog::of(path)?);
        Ok(OpenedFile { known, log, lost: OnceCell::new() })
    }
}

impl Store {
    /// Checks that the file that is written to still has its name. Called after each commit.
    ///
    /// # Errors
    /// Where the file is another by now, or gone: with the place of a copy.
    pub(super) fn check_place(&self) -> Result<(), Error> {
        let Some(known) = self.file.known else { return Ok(()) };
        // As who opened it: root may not enter that user's directories on another machine.
        let _as_user = self.connection();
        let what = match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == known => {
                // One that cannot be seen now must not be shorter later than it was before.
                if let Ok(log) = DatabaseLog::of(&self.path) {
                    self.file.log.set(log);
                }
                return Ok(());
            }
            Ok(_) => "was replaced by a different file".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                "was removed or moved away".to_owned()
            }
            Err(error) => format!("is no longer accessible ({error})"),
        };
        Err(self.lost(&what))
    }

    /// Checks that the log holds all that SQLite believes to be in it. Called before each commit, which would
    /// be written behind a gap.
    pub(super) fn check_log(&self) -> Result<(), Error> {
        if let Some(told) = self.file.lost.get() {
            return Err(Error(told.clone()));
        }
        let _as_user = self.connection();
        let before = self.file.log.get();
        let follows = match DatabaseLog::of(&self.path) {
            Ok(Some(now)) => now.may_follow(before),
            Ok(None) => before.is_none(),
            Err(_) => false,
        };
        // Another program may have emptied it in good order (`PRAGMA wal_checkpoint(TRUNCATE)`).
        match follows || is_log_whole(&self.path) {
            true => Ok(()),
            false => Err(self.lost("has a log (`-wal`) that was truncated or replaced")),
        }
    }

    /// Saves what can be, once.
    fn lost(&self, what: &str) -> Error {
        let path = self.path.display();
        let told = self.file.lost.get_or_init(|| {
            let connection = self.connection();
            // What is missing in a log would become pages of zeros in the database.
            let stays = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let copied = match connection.set_db_config(stays, true) {
                Ok(_) => rescue(&connection, &self.path),
                Err(error) => Err(error.to_string()),
            };
            match copied {
                Ok(copy) => format!(
                    "the database {path} {what} while weigh wrote to it. All stored data was copied to {0}; \
                     `weigh --database {0} show` reads the copy",
                    copy.display()
                ),
                Err(problem) => format!(
                    "the database {path} {what} while weigh wrote to it. The data stored since then is lost, \
                     because it cannot be copied ({problem})"
                ),
            }
        });
        Error(told.clone())
    }
}

/// A file that SQLite takes for a part of the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Tells if the log beside a database holds what its index (`-shm`) says (walformat, "The WAL-Index File
/// Format"). The index may be between two states; without one, or without a log in it, there is nothing to
/// miss.
fn is_log_whole(path: &Path) -> bool {
    let open = |suffix| File::open(beside(path, suffix));
    let mut copies = [0; 2 * INDEX_HEADER];
    // Never closed: closing it would drop the locks that SQLite in this process holds on the index
    // (fcntl_locking(2)). Another program would then believe that it is the first, and empty the index.
    let index = open("-shm").map(ManuallyDrop::new);
    let index = index.and_then(|index| index.read_exact_at(&mut copies, 0));
    let (first, second) = copies.split_at(INDEX_HEADER);
    let number =
        |at: usize| u32::from_ne_bytes([first[at], first[at + 1], first[at + 2], first[at + 3]]);
    let frames = u64::from(number(16));
    match index {
        // Without an index, or with an empty one.
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof].contains(&error.kind()) =>
        {
            return true;
        }
        Err(_) => return false,
        Ok(()) if first != second || frames == 0 => return true,
        Ok(()) => {}
    }
    let page = match u16::from_ne_bytes([first[14], first[15]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let mut header = [0; LOG_HEADER];
    let log = open("-wal").and_then(|log| {
        log.read_exact_at(&mut header, 0)?;
        Ok(log.metadata()?.len())
    });
    // The salt of both, by which SQLite knows which frames are of this log.
    log.is_ok_and(|length| {
        length >= LOG_HEADER as u64 + frames * (page + FRAME_HEADER)
            && header[16..24] == first[32..40]
    })
}

/// Writes all that the connection still reads into a new file beside the old one; or where its directory is
/// gone too, into the one for temporary files.
fn rescue(connection: &Connection, path: &Path) -> Result<PathBuf, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = chance::small().map_err(|error| error.to_string())?;
    let name = format!("{name}.rescued-{number:08x}");
    let create = |directory: &Path| {
        let copy = directory.join(&name);
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy);
        created.map(|_| copy)
    };
    let beside = std::path::absolute(path).map_err(|error| error.to_string())?;
    let copy = create(beside.parent().unwrap_or(&beside))
        .or_else(|_| create(&trust::path::trusted(&std::env::temp_dir())?))
        .map_err(|error| error.to_string())?;
    let written = connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]);
    written.map_err(|error| {
        let _ = fs::remove_file(&copy);
        format!("{}: {error}", copy.display())
    })?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{header, measured};
    use super::*;
    use weigh_model::result::warning::Warning;

    const WARNING: Warning = Warning::ArmElsewhere;

    fn copies(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().contains(".rescued-")).collect()
    }

    #[test]
    fn what_was_stored_in_a_database_that_is_lost_is_in_a_copy_beside_it() {
        for is_moved in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("weigh.db");
            let store = Store::open(&path).unwrap();
            let id = store.begin(&header()).unwrap();
            store.add_sample(&id, &measured(0, 0)).unwrap();
            match is_moved {
                true => fs::rename(&path, directory.path().join("elsewhere")).unwrap(),
                false => fs::remove_file(&path).unwrap(),
            }
            let problem = store.add_sample(&id, &measured(0, 1)).unwrap_err().to_string();
            assert!(problem.contains("was removed or moved away"), "{problem}");
            assert_eq!(
                store.add_warning(&id, &WARNING).unwrap_err().to_string(),
                problem,
                "one copy"
            );
            let [copy] = &copies(directory.path())[..] else { panic!("{problem}") };
            assert!(problem.contains(&*copy.to_string_lossy()), "{problem}");
            let samples = Store::open(copy).unwrap().load(&id).unwrap().samples;
            assert_eq!(samples.values().map(|row| row.points.len()).sum::<usize>(), 2);
        }
    }

    #[test]
    fn what_is_committed_as_the_database_is_lost_is_in_the_copy_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let store = Store::open(&path).unwrap();
        let id = store.begin(&header()).unwrap();
        let pair = store.in_one_commit(|| {
            store.add_sample(&id, &measured(0, 0))?;
            fs::remove_file(&path).unwrap();
            store.add_sample(&id, &measured(0, 1))
        });
        let problem = pair.unwrap_err().to_string();
        let [copy] = &copies(directory.path())[..] else { panic!("{problem}") };
        let samples = Store::open(copy).unwrap().load(&id).unwrap().samples;
        assert_eq!(samples.values().map(|row| row.points.len()).sum::<usize>(), 2);
    }

    #[test]
    fn another_file_of_that_name_is_not_the_database() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let store = Store::open(&path).unwrap();
        let id = store.begin(&header()).unwrap();
        fs::rename(&path, directory.path().join("elsewhere")).unwrap();
        fs::write(&path, "").unwrap();
        let problem = store.add_warning(&id, &WARNING).unwrap_err().to_string();
        assert!(problem.contains("was replaced by a different file"), "{problem}");
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    /// The database was destroyed when it was closed.
    #[test]
    fn a_log_that_is_cut_is_noticed_before_the_next_commit() {
        for (length, is_removed) in [(0, false), (32, false), (9000, false), (0, true)] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("weigh.db");
            let before = Store::open(&path).unwrap().begin(&header()).unwrap();
            let store = Store::open(&path).unwrap();
            let id = store.begin(&header()).unwrap();
            store.add_sample(&id, &measured(0, 0)).unwrap();
            let log = beside(&path, "-wal");
            match is_removed {
                true => fs::remove_file(&log).unwrap(),
                false => {
                    OpenOptions::new().write(true).open(&log).unwrap().set_len(length).unwrap()
                }
            }
            let problem = store.add_sample(&id, &measured(0, 1)).unwrap_err().to_string();
            assert!(problem.contains("log (`-wal`) that was truncated or replaced"), "{problem}");
            assert_eq!(
                store.add_warning(&id, &WARNING).unwrap_err().to_string(),
                problem,
                "one copy"
            );
            drop(store);
            let [copy] = &copies(directory.path())[..] else { panic!("{problem}") };
            let samples = Store::open(copy).unwrap().load(&id).unwrap().samples;
            assert_eq!(samples.values().map(|row| row.points.len()).sum::<usize>(), 1);
            // What was there before the log is whole.
            let store = Store::read(&path).unwrap().unwrap();
            let check = "PRAGMA integrity_check";
            let found: String = store.connection().query_row(check, [], |row| row.get(0)).unwrap();
            assert_eq!(found, "ok");
            store.load(&before).unwrap();
        }
    }

    #[test]
    fn a_log_that_is_copied_into_the_database_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        let store = Store::open(&path).unwrap();
        let id = store.begin(&header()).unwrap();
        for how in ["PASSIVE", "RESTART", "TRUNCATE"] {
            let checkpoint = format!("PRAGMA wal_checkpoint({how})");
            let other = Connection::open(&path).unwrap();
            other.query_row(&checkpoint, [], |_| Ok(())).unwrap();
            store.add_warning(&id, &WARNING).unwrap();
            store.add_warning(&id, &WARNING).unwrap();
        }
    }
}
