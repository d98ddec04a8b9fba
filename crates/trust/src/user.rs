//! Working as another user: what a thread opens and makes meanwhile, it opens and makes as that user, and the
//! kernel checks every name as his.

use std::fs;
use std::io;
use std::marker::PhantomData;

use rustix::process::{geteuid, getgroups};

/// A user other than root, with the group of what he makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// Returns true if we are root with rights that other users lack. In a user namespace where groups
/// are fixed (user_namespaces(7)), root is an ordinary user's and has no more rights than that
/// user.
pub(crate) fn is_root_for_others() -> bool {
    let are_fixed =
        || fs::read_to_string("/proc/self/setgroups").is_ok_and(|it| it.trim() == "deny");
    geteuid().is_root() && !are_fixed()
}

impl User {
    /// This thread opens and makes files as this user until the result is dropped. It can then do with files
    /// no more than he may: the kernel takes the capabilities for that as well (capabilities(7)).
    ///
    /// # Errors
    /// A sentence, where the kernel does not permit it.
    pub fn enter(self) -> io::Result<Acting> {
        let groups = getgroups()?.into_iter().map(|group| group.as_raw()).collect();
        let acting = Acting { before: file_ids(), groups, _thread: PhantomData };
        let entered = set_groups(&[]).and_then(|()| set_file_ids(self));
        entered.map_err(|error| {
            let problem = format!(
                "root cannot act as the owner of the file or directory (uid {}): {error}; run weigh with \
                 CAP_SETGID and CAP_SETUID",
                self.uid
            );
            io::Error::new(error.kind(), problem)
        })?;
        Ok(acting)
    }
}

/// While it lives, this thread works as another user.
pub struct Acting {
    before: User,
    groups: Vec<u32>,
    /// These are a thread's own: it stays where it was made.
    _thread: PhantomData<*const ()>,
}

impl Drop for Acting {
    fn drop(&mut self) {
        // Whoever stays another user would fail at the next thing that needs root, and say so.
        let _ = set_file_ids(self.before);
        let _ = set_groups(&self.groups);
    }
}

/// The calls themselves: those of the C library change all threads.
fn set_file_ids(user: User) -> io::Result<()> {
    // SAFETY: both take a number, and change only what this thread may do with files.
    unsafe {
        libc::syscall(libc::SYS_setfsgid, user.gid);
        libc::syscall(libc::SYS_setfsuid, user.uid);
    }
    if file_ids() == user { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// An id that is none changes nothing and tells the one in force (setfsuid(2)).
fn file_ids() -> User {
    // SAFETY: as above.
    let [uid, gid] = [libc::SYS_setfsuid, libc::SYS_setfsgid]
        .map(|call| unsafe { libc::syscall(call, u32::MAX) as u32 });
    User { uid, gid }
}

fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the kernel reads so many numbers from where they are.
    let status = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_a_capability_is_told_which_it_lacks() {
        if !is_root_for_others() {
            needs::skip("root", "needs root");
            return;
        }
        // Capabilities are a thread's own.
        let enter = || {
            let mut sets = rustix::thread::capabilities(None).unwrap();
            sets.effective -= rustix::thread::CapabilitySet::SETGID;
            rustix::thread::set_capabilities(None, sets).unwrap();
            User { uid: 1001, gid: 1001 }.enter().err().unwrap().to_string()
        };
        let problem = std::thread::spawn(enter).join().unwrap();
        assert!(problem.contains("uid 1001") && problem.contains("CAP_SETGID"), "{problem}");
    }

    #[test]
    fn who_works_as_two_users_is_the_first_again_and_then_root() {
        if !is_root_for_others() {
            needs::skip("root", "needs root");
            return;
        }
        let root = file_ids();
        let [first, second] = [1001, 1002].map(|id| User { uid: id, gid: id });
        let outer = first.enter().unwrap();
        let inner = second.enter().unwrap();
        assert_eq!(file_ids(), second);
        drop(inner);
        assert_eq!(file_ids(), first);
        drop(outer);
        assert_eq!(file_ids(), root);
    }
}
