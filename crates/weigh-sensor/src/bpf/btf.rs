//! The kernel's types (BTF): numbers of its functions, which programs of some kinds are attached by, and
//! offsets in its structures.

use std::fs;
use std::io;

const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Name, kind with the number of parts, and size or another type.
const TYPE_BYTES: usize = 12;
const FUNCTION: u32 = 12;
const STRUCTURE: u32 = 4;
const MEMBER_BYTES: usize = 12;

/// Returns the number of a function that the kernel's own types have.
pub fn function(name: &str) -> io::Result<u32> {
    let found = search(&read()?, |one| one.is_named(FUNCTION, name).then_some(one.id));
    expect(found, || format!("this kernel has no function {name} to attach to"))
}

/// Returns the offset of a member of a structure of the kernel, in bytes.
pub fn member(structure: &str, name: &str) -> io::Result<i16> {
    let found = search(&read()?, |one| match one.is_named(STRUCTURE, structure) {
        true => one.member_bits(name),
        false => None,
    });
    let bits = expect(found, || format!("this kernel has no member {name} of struct {structure}"))?;
    i16::try_from(bits / 8)
        .map_err(|_| io::Error::other(format!("{name} of struct {structure} is too far away")))
}

fn read() -> io::Result<Vec<u8>> {
    match fs::read(FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::other(format!(
            "this kernel does not describe its types in {FILE} (CONFIG_DEBUG_INFO_BTF)"
        ))),
        other => other,
    }
}

fn expect<T>(found: Option<Option<T>>, missing: impl Fn() -> String) -> io::Result<T> {
    found
        .ok_or_else(|| io::Error::other(format!("{FILE} is damaged, or of an unknown form")))?
        .ok_or_else(|| io::Error::other(missing()))
}

struct Type<'a> {
    id: u32,
    kind: u32,
    name: u32,
    /// True if an offset of a member has its number of bits in the upper byte.
    has_bit_fields: bool,
    parts: &'a [u8],
    strings: &'a [u8],
}

impl Type<'_> {
    fn is_named(&self, kind: u32, name: &str) -> bool {
        self.kind == kind && self.is_text(self.name, name)
    }

    fn is_text(&self, at: u32, text: &str) -> bool {
        let found =
            self.strings.get(at as usize..).and_then(|found| found.strip_prefix(text.as_bytes()));
        found.is_some_and(|rest| rest.first() == Some(&0))
    }

    fn member_bits(&self, name: &str) -> Option<u32> {
        let mask = if self.has_bit_fields { 0xff_ffff } else { u32::MAX };
        let members = self.parts.chunks_exact(MEMBER_BYTES);
        let named =
            |member: &[u8]| self.is_text(word(member, 0)?, name).then(|| word(member, 8))?;
        members.filter_map(named).map(|bits| bits & mask).next()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns what is wanted of the first type that has it; the outer option is `None` if the bytes are not BTF.
fn search<T>(bytes: &[u8], wanted: impl Fn(&Type) -> Option<T>) -> Option<Option<T>> {
    if bytes.get(..2)? != MAGIC.to_ne_bytes() || word(bytes, 4)? as usize != HEADER_BYTES {
        return None;
    }
    let header = |at: usize| word(bytes, at).map(|it| it as usize);
    let [types, types_bytes, strings] = [header(8)?, header(12)?, header(16)?];
    let strings = bytes.get(HEADER_BYTES + strings..)?;
    let mut types = bytes.get(HEADER_BYTES + types..)?.get(..types_bytes)?;
    // Number 0 is `void`, which is not listed.
    let mut id = 1;
    while !types.is_empty() {
        let [name, info] = [word(types, 0)?, word(types, 4)?];
        let kind = info >> 24 & 0x1f;
        let end = TYPE_BYTES + parts_bytes(kind, (info & 0xffff) as usize)?;
        let parts = types.get(TYPE_BYTES..end)?;
        let one = Type { id, kind, name, has_bit_fields: info >> 31 == 1, parts, strings };
        if let Some(found) = wanted(&one) {
            return Some(Some(found));
        }
        types = &types[end..];
        id += 1;
    }
    Some(None)
}

/// Bytes that follow a type of this kind (`linux/btf.h`); `None` for an unknown kind.
fn parts_bytes(kind: u32, parts: usize) -> Option<usize> {
    Some(match kind {
        2 | 7..=12 | 16 | 18 => 0,
        1 | 14 | 17 => 4,
        3 => 12,
        6 | 13 => 8 * parts,
        4 | 5 | 15 | 19 => 12 * parts,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array, a structure with two members, and two functions.
    fn types() -> Vec<u8> {
        let strings = b"\0pair\0first\0second\0";
        let mut types: Vec<u32> = vec![0, 3 << 24, 0, 0, 0, 0];
        types.extend([1, 4 << 24 | 2, 8, 6, 1, 0, 12, 1, 32]);
        types.extend([6, 12 << 24, 0, 12, 12 << 24, 0]);
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let types_bytes = 4 * types.len() as u32;
        let header = [HEADER_BYTES as u32, 0, types_bytes, types_bytes, strings.len() as u32];
        bytes.extend(header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()));
        bytes.extend(strings);
        bytes
    }

    fn function_in(types: &[u8], name: &str) -> Option<Option<u32>> {
        search(types, |one| one.is_named(FUNCTION, name).then_some(one.id))
    }

    #[test]
    fn a_function_and_a_member_are_found_behind_types_of_other_lengths() {
        let types = types();
        assert_eq!(function_in(&types, "first"), Some(Some(3)));
        assert_eq!(function_in(&types, "second"), Some(Some(4)));
        assert_eq!(function_in(&types, "pair"), Some(None), "it is a structure");
        assert_eq!(function_in(&types, "firs"), Some(None));
        let of_pair =
            |one: &Type| one.is_named(STRUCTURE, "pair").then(|| one.member_bits("second"));
        assert_eq!(search(&types, of_pair), Some(Some(Some(32))));
    }

    #[test]
    fn other_bytes_are_not_searched() {
        let types = types();
        assert_eq!(function_in(&types[..40], "second"), None);
        assert_eq!(function_in(b"ELF", "first"), None);
        let mut unknown = types.clone();
        unknown[HEADER_BYTES + 7] = 20;
        assert_eq!(function_in(&unknown, "first"), None);
    }
}
