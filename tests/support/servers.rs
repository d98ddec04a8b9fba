//! Servers that are installed here, and what is left of them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Home, NOBODY, is_root, wait_until};

/// Each change of the system is on disk before it is made, and a disk may be busy for a minute.
pub const LONG: Duration = Duration::from_secs(180);

/// Each with its program, by which one knows whether it is installed.
pub const SERVERS: [(&str, &str); 9] = [
    ("mariadb", "/usr/sbin/mariadbd"),
    ("postgres", "/usr/lib/postgresql"),
    ("nginx", "/usr/sbin/nginx"),
    ("redis", "/usr/bin/redis-server"),
    ("php-site", "/usr/sbin/php-fpm"),
    ("apache", "/usr/sbin/apache2"),
    ("apache-mod-php", "/usr/lib/apache2/modules/libphp"),
    ("apache-fpm", "/usr/sbin/php-fpm"),
    ("sqlite", "/usr/lib/ARCH-linux-gnu/libsqlite3.so.0"),
];

/// Returns true if the server is installed, and the test runs as root: a server is started as
/// another user.
pub fn has(server: &str) -> bool {
    let program = SERVERS.iter().find(|(name, _)| *name == server).unwrap().1;
    let program = program.replace("ARCH", std::env::consts::ARCH);
    let program = Path::new(&program);
    let (place, name) = (program.parent().unwrap(), program.file_name().unwrap().to_str().unwrap());
    // Debian's php-fpm has its version in the name.
    let mut files = fs::read_dir(place).into_iter().flatten().flatten();
    let is_it = |file: fs::DirEntry| file.file_name().to_string_lossy().starts_with(name);
    let has = is_root() && files.any(is_it);
    if !has {
        super::skip(server, &format!("needs root and {}", program.display()));
    }
    has
}

/// A home that the user of servers can enter.
pub fn open_home() -> Home {
    let home = Home::new();
    for directory in [home.directory.path().to_owned(), home.path("tmp")] {
        fs::set_permissions(directory, Permissions::from_mode(0o711)).unwrap();
    }
    home
}

pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Servers have the `TMPDIR` of the test, so they are found by it; what prepares them has the test's
/// directory on its command line alone.
#[track_caller]
pub fn assert_nothing_is_left(home: &Home) {
    let here = home.directory.path().display().to_string();
    // PostgreSQL writes its title where its environment was.
    let all = || -> Vec<String> {
        let of_server = running_in(&here).into_iter().chain(of_nobody_with(&here));
        home.describe_processes().into_iter().chain(of_server).collect()
    };
    assert!(wait_until(LONG, || all().is_empty()), "{:?}", all());
    assert_eq!(home.leftovers(), Vec::<std::path::PathBuf>::new());
    // Servers of other tests are attached to theirs.
    let is_orphan = |line: &&str| line.split_whitespace().nth(6) == Some("0");
    let orphans = || -> Vec<String> {
        let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments.lines().skip(1).filter(is_orphan).map(str::to_owned).collect()
    };
    assert!(wait_until(LONG, || orphans().is_empty()), "{:?}", orphans());
}

/// The processes whose current directory is or was below this one.
pub fn running_in(place: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter_map(|entry| {
        let directory = fs::read_link(entry.path().join("cwd")).ok()?;
        let is_ours = directory.to_str()?.starts_with(place);
        is_ours.then(|| format!("{} in {}", entry.path().display(), directory.display()))
    });
    found.collect()
}

/// The command lines of processes of `nobody` that name this directory.
fn of_nobody_with(place: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let of_nobody =
        processes.filter(|process| process.metadata().is_ok_and(|it| it.uid() == NOBODY));
    let words =
        of_nobody.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    words.filter(|words| words.contains(place)).map(|words| words.replace('\0', " ")).collect()
}

pub fn servers_of(home: &Home, program: &str) -> Vec<i32> {
    let is_it = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == program)
    };
    home.processes().into_iter().filter(is_it).collect()
}
