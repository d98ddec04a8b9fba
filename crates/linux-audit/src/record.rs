//! Reading an audit record's text, as far as counting and proving need it:
//! `audit(1700000000.123:456): arch=c000003e syscall=110 … pid=42 auid=1000 … key="k"`.

/// The serial number that all records of one event share; `None` for text of another form.
pub fn serial(text: &[u8]) -> Option<u64> {
    let head = text.strip_prefix(b"audit(")?;
    let close = head.iter().position(|&byte| byte == b')')?;
    let stamp = std::str::from_utf8(&head[..close]).ok()?;
    stamp.rsplit_once(':')?.1.parse().ok()
}

/// The value of `name=value`, without quotes; `None` where the record has no such field.
pub fn field<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let start = text.windows(name.len() + 2).position(|window| {
        window[0] == b' '
            && &window[1..=name.len()] == name.as_bytes()
            && window[name.len() + 1] == b'='
    })? + name.len()
        + 2;
    let value = &text[start..];
    if let Some(quoted) = value.strip_prefix(b"\"") {
        return quoted.iter().position(|&byte| byte == b'"').map(|end| &quoted[..end]);
    }
    let end = value.iter().position(|&byte| matches!(byte, b' ' | b'\0' | b'\n'));
    Some(&value[..end.unwrap_or(value.len())])
}

/// A numeric field.
pub fn number(text: &[u8], name: &str) -> Option<u64> {
    std::str::from_utf8(field(text, name)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SYSCALL: &[u8] = b"audit(1732222222.519:8431): arch=c000003e syscall=110 success=yes \
        exit=1 a0=0 items=0 ppid=7 pid=42 auid=4244 uid=0 comm=\"weigh x\" key=\"weigh\"";

    #[test]
    fn fields_are_found_by_their_whole_name() {
        assert_eq!(serial(SYSCALL), Some(8431));
        assert_eq!(number(SYSCALL, "pid"), Some(42));
        assert_eq!(number(SYSCALL, "auid"), Some(4244));
        assert_eq!(number(SYSCALL, "uid"), Some(0));
        assert_eq!(field(SYSCALL, "comm"), Some(&b"weigh x"[..]));
        assert_eq!(field(SYSCALL, "tty"), None);
    }

    #[test]
    fn a_value_ends_with_its_quotes_its_word_its_line_or_the_record() {
        for end in ["", " uid=0", "\n", "\0"] {
            let text = format!("audit(1.2:3): auid=7{end}");
            assert_eq!(field(text.as_bytes(), "auid"), Some(&b"7"[..]), "{end:?}");
        }
        assert_eq!(field(b"audit(1.2:3): a=", "a"), Some(&b""[..]));
        assert_eq!(field(b"audit(1.2:3): key=\"open", "key"), None);
        assert_eq!(number(SYSCALL, "comm"), None);
        assert_eq!(serial(b"type=SYSCALL msg=audit(1.2:3): "), None);
        assert_eq!(serial(b"audit(1.2): "), None);
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (serial(&bytes), field(&bytes, "pid"), number(&bytes, "auid"));
        }
    }
}
