//! A user namespace of one's own, in which an ordinary user may make namespaces of other kinds.

use std::fs;
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Has this process enter one that knows its own user and group alone, as what they are outside, together
/// with new namespaces of these kinds. It must have one thread.
pub fn enter_new(with: UnshareFlags) -> Result<(), String> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: it closes no file descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | with) }
        .map_err(|error| forbidden(&error.into()))?;
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
        .map_err(|error| forbidden(&error))
}

/// Names the setting that forbids user namespaces to ordinary users.
pub fn forbidden(error: &io::Error) -> String {
    let switches = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user/max_user_namespaces", "0", "10000"),
    ];
    let forbids = |(file, forbidding, _): &(&str, &str, &str)| {
        fs::read_to_string(format!("/proc/sys/{file}")).is_ok_and(|text| text.trim() == *forbidding)
    };
    let how = switches.into_iter().find(forbids).map_or_else(
        || "a security module or this container forbids them".to_owned(),
        |(file, _, allowing)| format!("`sysctl {}={allowing}` allows them", file.replace('/', ".")),
    );
    format!(
        "user namespaces are not permitted to ordinary users here ({error}): {how}, or run weigh as root"
    )
}
