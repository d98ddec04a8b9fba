//! A connection to SQLite that works as the user whose the database is, on each thread that uses it and until
//! it is closed: SQLite opens, makes and removes files beside the database whenever it likes.

use std::ops::Deref;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use trust::user::{Acting, User};

use super::BUSY_TIMEOUT;

/// The largest document that is stored is an import, whose file may have 64 MiB.
const LONGEST_VALUE: i32 = 128 << 20;

pub struct Database {
    /// `None` only while it is closed.
    connection: Option<Connection>,
    user: Option<User>,
}

impl Database {
    /// Opens a file that is no more trusted than who made it: of what is in its schema, nothing is executed.
    pub fn open(path: &Path, flags: OpenFlags, user: Option<User>) -> rusqlite::Result<Database> {
        let _acting = acting(user);
        // As no other thread uses a connection, it needs no lock.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        let database = Database { connection: Some(connection), user };
        let connection = database.used();
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
        for (setting, is_on) in [
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        ] {
            connection.set_db_config(setting, is_on)?;
        }
        drop(connection);
        Ok(database)
    }

    pub fn user(&self) -> Option<User> {
        self.user
    }

    /// While this lives, this thread works as the user whose the database is.
    pub fn used(&self) -> UsedDatabase<'_> {
        let connection = self.connection.as_ref().expect("it is closed only when it is dropped");
        UsedDatabase { _acting: acting(self.user), connection }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Who closes a database last removes its log.
        let _acting = acting(self.user);
        drop(self.connection.take());
    }
}

pub struct UsedDatabase<'a> {
    connection: &'a Connection,
    _acting: Option<Acting>,
}

impl Deref for UsedDatabase<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// Whoever opens a store has tried this: root can work as any user.
fn acting(user: Option<User>) -> Option<Acting> {
    user.map(|user| user.enter().expect("root could become this user when the store was opened"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use super::*;

    #[test]
    fn whatever_sqlite_makes_or_opens_it_makes_and_opens_as_the_user_on_each_thread() {
        if !needs::root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| home.path().join(name));
        for directory in [&theirs, &ours] {
            fs::create_dir(directory).unwrap();
        }
        chown(&theirs, Some(1001), Some(1001)).unwrap();
        let user = Some(User { uid: 1001, gid: 1001 });
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let open = move |path: &Path| Database::open(path, flags, user);
        let database = open(&theirs.join("w.db")).unwrap();
        database.used().pragma_update(None, "journal_mode", "wal").unwrap();
        database.used().execute_batch("CREATE TABLE t (x)").unwrap();
        let made: Vec<_> = fs::read_dir(&theirs).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(made.len(), 3, "{made:?}");
        assert!(made.iter().all(|file| fs::metadata(file).unwrap().uid() == 1001), "{made:?}");
        // A name that leads to root's directory by now, as the user could not go there.
        let exchanged = ours.join("w.db");
        let elsewhere = std::thread::spawn(move || open(&exchanged).is_err()).join().unwrap();
        assert!(elsewhere);
        drop(database);
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&ours).unwrap().count(), 0);
        // And root is root again.
        fs::write(ours.join("file"), "").unwrap();
    }
}
