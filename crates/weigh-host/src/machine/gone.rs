//! Checks that a file of the kernel is really gone. A missing name proves nothing by itself. A
//! rescue shell, a chroot or a container may lack `/sys` or `/proc`, although the setting is in
//! force.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fstatfs, statat};
use rustix::io::Errno;

/// `SYSFS_MAGIC` and `PROC_SUPER_MAGIC` of `include/uapi/linux/magic.h`.
pub const SETTING_FILES: [u32; 2] = [0x6265_6572, 0x9fa0];
/// `CGROUP_SUPER_MAGIC` and `CGROUP2_SUPER_MAGIC`.
pub const GROUP_FILES: [u32; 2] = [0x0027_e0eb, 0x6367_7270];

/// Checks that the kernel has nothing of this path: the nearest directory above that exists is held, is of
/// one of these kinds of file system, and does not have the next name.
pub fn check_gone(path: &Path, kinds: &[u32]) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for above in path.ancestors().skip(1) {
        let held = match rustix::fs::open(above, flags, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        if !kinds.contains(&(fstatfs(&held)?.f_type as u32)) {
            let problem = format!(
                "{} is not the kernel's file system here, so weigh cannot look for it there: mount that file \
                 system, and run `weigh restore`",
                above.display()
            );
            return Err(io::Error::other(problem));
        }
        let below = path.strip_prefix(above).ok().and_then(|rest| rest.iter().next());
        let Some(next) = below else { break };
        return match statat(&held, next, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => {
                Err(io::Error::other("it appeared during the check: run `weigh restore` again"))
            }
        };
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_gone_only_where_the_kernel_would_have_it() {
        let gone = |path: &str, kinds: &[u32]| check_gone(Path::new(path), kinds);
        assert!(gone("/proc/sys/kernel/no-such-setting", &SETTING_FILES).is_ok());
        assert!(gone("/proc/sys/no-such/group/setting", &SETTING_FILES).is_ok());
        assert!(gone("/proc/sys/kernel/no-such-setting", &GROUP_FILES).is_err());
        assert!(gone("/proc/sys/kernel/ostype", &SETTING_FILES).is_err(), "it is there");
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("sys/kernel/setting");
        let problem = check_gone(&path, &SETTING_FILES).unwrap_err().to_string();
        assert!(problem.contains("not the kernel's file system"), "{problem}");
    }
}
