//! The order of file names that `ls -v` shows, and so `augenrules` loads: numbers by their value.

use std::cmp::Ordering;

/// Compares as `filevercmp` of gnulib does: without the suffix, and by the whole name only where that
/// makes no difference.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a_stem, b_stem) = (stem(a), stem(b));
    compare_parts(a_stem, b_stem).then_with(|| compare_parts(a, b)).then_with(|| a.cmp(b))
}

/// The name without `.rules`, and without what looks like another suffix before that.
fn stem(name: &[u8]) -> &[u8] {
    let mut stem = name;
    while let Some(dot) = stem.iter().rposition(|byte| *byte == b'.') {
        let is_suffix = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'~';
        let suffix = &stem[dot + 1..];
        let starts = suffix.first().is_some_and(|byte| is_suffix(byte) && !byte.is_ascii_digit());
        if dot == 0 || !starts || !suffix.iter().all(is_suffix) {
            break;
        }
        stem = &stem[..dot];
    }
    stem
}

fn compare_parts(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !(a.is_empty() && b.is_empty()) {
        let text_of = |name: &[u8]| name.iter().take_while(|byte| !byte.is_ascii_digit()).count();
        let (a_text, b_text) = (text_of(a), text_of(b));
        for index in 0..a_text.max(b_text) {
            let rank_at = |name: &[u8], end: usize| {
                if index < end { rank(name[index]) } else { 0 }
            };
            match rank_at(a, a_text).cmp(&rank_at(b, b_text)) {
                Ordering::Equal => {}
                other => return other,
            }
        }
        (a, b) = (&a[a_text..], &b[b_text..]);
        let (a_number, a_rest) = number(a);
        let (b_number, b_rest) = number(b);
        match a_number.len().cmp(&b_number.len()).then_with(|| a_number.cmp(b_number)) {
            Ordering::Equal => (a, b) = (a_rest, b_rest),
            other => return other,
        }
    }
    Ordering::Equal
}

/// `~` before the end of the name or a digit, these before letters, letters before all else.
fn rank(byte: u8) -> i32 {
    match byte {
        b'~' => -1,
        letter if letter.is_ascii_alphabetic() => i32::from(letter),
        other => i32::from(other) + 256,
    }
}

/// The digits at the beginning, without leading zeros, and what follows them.
fn number(name: &[u8]) -> (&[u8], &[u8]) {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zeros = name[..digits].iter().take_while(|byte| **byte == b'0').count();
    (&name[zeros..digits], &name[digits..])
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_order_is_that_of_ls() {
        let directory = tempfile::tempdir().unwrap();
        let names = "10-base 9-x a a-b a10 a9 a09 a~ B 30-ospp-v42-1 30-ospp-v42 30-ospp-v42-10 1.2 1.10 \
            x_y xy 007 07 1-x 1.1x a-x a.b-c a.b~ a.1x";
        let names: Vec<String> = names.split(' ').map(|name| format!("{name}.rules")).collect();
        names.iter().for_each(|name| std::fs::write(directory.path().join(name), "").unwrap());
        let listed =
            Command::new("ls").arg("-1v").arg(directory.path()).env("LC_ALL", "C").output();
        let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
        let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
        sorted.sort_by(|a, b| compare(a.as_bytes(), b.as_bytes()));
        assert_eq!(sorted, listed.lines().collect::<Vec<_>>());
    }
}
