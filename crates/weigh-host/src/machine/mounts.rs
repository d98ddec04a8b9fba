//! Lines of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Lists the places where file systems of these kinds are mounted, and may be written.
///
/// `mounts` has the form of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
pub fn writable_mounts(kinds: &[&str], mounts: &[u8]) -> Vec<PathBuf> {
    let points = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (point, options) = (fields.nth(4)?, fields.next()?);
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let is_wanted = kinds.iter().any(|wanted| wanted.as_bytes() == kind);
        let is_writable = options.split(|byte| *byte == b',').any(|option| option == b"rw");
        (is_wanted && is_writable).then(|| PathBuf::from(OsString::from_vec(unescaped(point))))
    });
    points.collect()
}

/// Blanks and the like are written there as `\040`.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), field);
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            octal.filter(|_| *first == b'\\').and_then(|it| u8::from_str_radix(it, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &behind[3..] } else { behind };
    }
    bytes
}
