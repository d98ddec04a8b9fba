//! Opening a database: ours and no other program's, and without leaving a trace where it is only read.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use trust::user::User;
use trust::{allowed, owner};

use super::database::Database;
use super::lost::{OpenedFile, beside};
use super::schema::{self, APPLICATION_ID};
use super::{Error, Store, explain};

/// How a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Creates it, where there is none.
    Create,
    Write,
    /// Beside others who write.
    Read,
    /// Where nobody writes and not even a lock can be had: on read-only file systems.
    Immutable,
}

/// Content of a file that was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Ours,
}

impl Access {
    /// How another thread reads what this one has opened.
    pub fn of_a_reader(self) -> Access {
        match self {
            Access::Create | Access::Write => Access::Read,
            other => other,
        }
    }

    pub fn connect(self, path: &Path, user: Option<User>) -> rusqlite::Result<Database> {
        let (read, write) = (OpenFlags::SQLITE_OPEN_READ_ONLY, OpenFlags::SQLITE_OPEN_READ_WRITE);
        match self {
            Access::Create => Database::open(path, write | OpenFlags::SQLITE_OPEN_CREATE, user),
            Access::Write => Database::open(path, write, user),
            Access::Read => Database::open(path, read, user),
            Access::Immutable => {
                Database::open(immutable(path).as_ref(), read | OpenFlags::SQLITE_OPEN_URI, user)
            }
        }
    }
}

/// A database file that root may use, and as whom.
struct DatabasePlace {
    /// As the user named it, for what is said of it.
    written: PathBuf,
    /// Without links.
    path: PathBuf,
    user: Option<User>,
}

impl DatabasePlace {
    /// # Errors
    /// `NotFound` where its directory is not there; or a sentence with what is whose.
    fn of(path: &Path) -> io::Result<DatabasePlace> {
        let written = path.to_owned();
        let (path, user) = allowed::database(path)?;
        // What SQLite finds beside the file it takes for a part of it.
        let beside = ["-wal", "-shm", "-journal"].map(|suffix| beside(&path, suffix));
        for file in beside.iter().filter(|file| file.symlink_metadata().is_ok()) {
            allowed::database(file)?;
        }
        user.map(User::enter).transpose()?;
        Ok(DatabasePlace { written, path, user })
    }

    fn connect(&self, access: Access) -> rusqlite::Result<Database> {
        access.connect(&self.path, self.user)
    }
}

impl Store {
    /// Opens the database, and creates it where there is none.
    pub fn open(path: &Path) -> Result<Store, Error> {
        let cannot = |error: io::Error| cannot_use(path, &error);
        let place = match DatabasePlace::of(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let directory = path.parent().unwrap_or(path);
                // Command lines that were weighed may hold secrets.
                owner::create_directory(directory, 0o700).map_err(|error| {
                    Error(format!(
                        "cannot create {}: {error}; set XDG_DATA_HOME to a different directory, or choose a \
                         file with --database FILE",
                        directory.display()
                    ))
                })?;
                DatabasePlace::of(path)
            }
            other => other,
        };
        let place = place.map_err(cannot)?;
        let _acting = place.user.map(User::enter).transpose().map_err(cannot)?;
        if let Found::Nothing = recognise(&place)? {
            owner::create_private_file(&place.path).map_err(|error| {
                Error(format!(
                    "cannot create the database {}: {error}; choose a different file with --database FILE",
                    path.display()
                ))
            })?;
        }
        Store::write(&place, Access::Create)
    }

    /// Opens the database to read it; `None` if there is none. Nothing is created.
    pub fn read(path: &Path) -> Result<Option<Store>, Error> {
        let cannot = |error: io::Error| cannot_use(path, &error);
        let place = match DatabasePlace::of(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(cannot)?,
        };
        let _acting = place.user.map(User::enter).transpose().map_err(cannot)?;
        if let Found::Nothing = recognise(&place)? {
            return Ok(None);
        }
        let is_writable = place.connect(Access::Write).and_then(|it| it.used().is_readonly("main"));
        if is_writable == Ok(false) {
            match Store::write(&place, Access::Write) {
                // A directory in which SQLite's own files cannot be made.
                Err(_) if readable(&place, Access::Write).is_err() => {}
                other => return other.map(Some),
            }
        }
        let said = |error| explain(&place.written, &error);
        let access = reader(&place).map_err(said)?;
        let database = place.connect(access).map_err(said)?;
        schema::check(&database.used(), &place.written)?;
        Ok(Some(Store { database, path: place.path, access, file: OpenedFile::default() }))
    }

    fn write(place: &DatabasePlace, access: Access) -> Result<Store, Error> {
        let said = |error| explain(&place.written, &error);
        let database = place.connect(access).map_err(said)?;
        schema::prepare(&database.used(), &place.written)?;
        let file =
            OpenedFile::at(&place.path).map_err(|error| cannot_use(&place.written, &error))?;
        Ok(Store { database, path: place.path.clone(), access, file })
    }
}

fn cannot_use(path: &Path, error: &io::Error) -> Error {
    Error(format!("the database {}: {error}", path.display()))
}

/// Looks at a file without changing it.
fn recognise(place: &DatabasePlace) -> Result<Found, Error> {
    let path = place.written.as_path();
    let problem = |error: io::Error| cannot_use(path, &error);
    match fs::metadata(&place.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(problem(error)),
        Ok(metadata) if !metadata.is_file() => {
            return Err(problem(io::Error::other("it is not a file")));
        }
        Ok(metadata) if metadata.len() == 0 => return Ok(Found::Nothing),
        Ok(_) => {}
    }
    // SQLite does not say why it cannot open a file.
    if let Err(error) = fs::File::open(&place.path)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        return Err(Error(format!(
            "cannot read the database {}: {error}; choose a different file with --database FILE",
            path.display()
        )));
    }
    check_beside(&place.path)?;
    let said = |error| explain(path, &error);
    let access = reader(place).map_err(said)?;
    let database = place.connect(access).map_err(said)?;
    let connection = database.used();
    let found = is_ours(&connection).map_err(said)?.ok_or_else(|| {
        Error(format!(
            "{} is the database of a different program and was not changed: choose a different file with \
             --database FILE",
            path.display()
        ))
    })?;
    if found == Found::Ours {
        // A table of another version is nothing to remove.
        schema::check(&connection, path)?;
    }
    schema::check_objects(&connection, path)?;
    Ok(found)
}

/// SQLite opens the files beside a database by name, and would wait for the other end of a named pipe.
fn check_beside(database: &Path) -> Result<(), Error> {
    // SQLite resolves links before it adds the suffix.
    let real = database.canonicalize().map_err(|error| cannot_use(database, &error))?;
    for suffix in ["-journal", "-wal", "-shm"] {
        let path = beside(&real, suffix);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(metadata) if metadata.is_file() => {}
            Err(error) => return Err(cannot_use(&path, &error)),
            Ok(_) => {
                return Err(Error(format!(
                    "{} is not a regular file, and SQLite would open it with the database: remove it",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

/// `None` for a database of another program.
fn is_ours(connection: &Connection) -> rusqlite::Result<Option<Found>> {
    // Before the application_id: whoever creates it commits both at once.
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(match application_id(connection)? {
        APPLICATION_ID => Some(Found::Ours),
        // Whoever began it died at once.
        0 if objects == 0 && version == 0 => Some(Found::Nothing),
        _ => None,
    })
}

fn application_id(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// How a file is read that is not to be written: where no log of changes lies beside it, all is in the file
/// itself, and SQLite need make no file of its own.
fn reader(place: &DatabasePlace) -> rusqlite::Result<Access> {
    let has_log = |suffix| fs::metadata(beside(&place.path, suffix)).is_ok_and(|log| log.len() > 0);
    match has_log("-wal") || has_log("-journal") {
        true => readable(place, Access::Read),
        false => readable(place, Access::Immutable),
    }
}

/// Checks that the database can be read with this access, and returns the access.
fn readable(place: &DatabasePlace, access: Access) -> rusqlite::Result<Access> {
    let database = place.connect(access)?;
    database.used().query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(access)
}

/// The name of a file that nobody writes, as SQLite takes it.
fn immutable(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::super::tests::header;
    use super::*;

    /// A database of another program, in either of SQLite's ways to keep a log.
    fn foreign(path: &Path, log: &str) {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", log).unwrap();
        connection
            .execute_batch("CREATE TABLE experiment (id TEXT); PRAGMA user_version = 4")
            .unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn another_programs_database_is_refused_and_stays_as_it_is() {
        for log in ["wal", "delete"] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("theirs.db");
            foreign(&path, log);
            let before = fs::read(&path).unwrap();
            for problem in [Store::open(&path).err(), Store::read(&path).err()] {
                let problem = problem.unwrap().to_string();
                assert!(problem.contains("the database of a different program"), "{problem}");
            }
            assert_eq!(fs::read(&path).unwrap(), before, "{log}");
            assert_eq!(names(directory.path()), ["theirs.db"]);
        }
    }

    #[test]
    fn who_only_reads_creates_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Store::read(&directory.path().join("deep/weigh.db")).unwrap().is_none());
        assert_eq!(names(directory.path()), Vec::<String>::new());
        fs::write(directory.path().join("empty.db"), "").unwrap();
        assert!(Store::read(&directory.path().join("empty.db")).unwrap().is_none());
        assert_eq!(fs::read(directory.path().join("empty.db")).unwrap(), b"");
    }

    #[test]
    fn a_file_system_that_cannot_be_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b?c%d.db");
        let id = Store::open(&path).unwrap().begin(&header()).unwrap();
        let place = DatabasePlace::of(&path).unwrap();
        assert_eq!(reader(&place).unwrap(), Access::Immutable);
        let database = place.connect(Access::Immutable).unwrap();
        let (access, file) = (Access::Immutable, OpenedFile::default());
        let store = Store { database, path: path.clone(), access, file };
        assert_eq!(store.load(&id).unwrap().header, header());
        assert_eq!(names(directory.path()), ["a b?c%d.db"]);
        // While another writes, what it wrote last is in its log.
        let writer = Store::open(&path).unwrap();
        writer.begin(&header()).unwrap();
        assert_eq!(reader(&place).unwrap(), Access::Read);
    }

    #[test]
    fn a_pipe_or_a_directory_is_no_database() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Store::open(directory.path()).err().unwrap().to_string().contains("not a file"));
        assert!(Store::read(Path::new("/dev/null")).err().unwrap().to_string().contains("a file"));
    }

    #[test]
    fn a_database_is_its_owners_alone_wherever_it_is_made() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = directory.path().join("weigh.db");
        let _store = Store::open(&path).unwrap();
        for file in [&path, &beside(&path, "-wal"), &beside(&path, "-shm")] {
            let mode = fs::metadata(file).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", file.display());
        }
    }

    #[test]
    fn a_log_of_another_user_beside_it_is_not_believed() {
        if !needs::root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("weigh.db");
        drop(Store::open(&path).unwrap());
        for suffix in ["-wal", "-shm", "-journal"] {
            let log = beside(&path, suffix);
            fs::write(&log, "").unwrap();
            std::os::unix::fs::chown(&log, Some(1002), Some(1002)).unwrap();
            for problem in [Store::open(&path).err(), Store::read(&path).err()] {
                let problem = problem.unwrap().to_string();
                assert!(problem.contains("belongs to another user (uid 1002)"), "{problem}");
            }
            fs::remove_file(log).unwrap();
        }
        assert!(Store::open(&path).is_ok());
    }
}
