//! `struct audit_features` of `include/uapi/linux/audit.h`: what a host forbids of login uids.

use serde::{Deserialize, Serialize};

const ONLY_UNSET_LOGINUID: u32 = 1 << 0;
const LOGINUID_IMMUTABLE: u32 = 1 << 1;

/// The features that are switched on, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features(u32);

impl Features {
    /// Reads the kernel's answer; `None` where it is too short.
    pub fn parse(bytes: &[u8]) -> Option<Features> {
        // The version, then which features there are, then which are on.
        bytes.get(8..)?.first_chunk().map(|word| Features(u32::from_ne_bytes(*word)))
    }

    /// The message that sets all features that this version knows, and locks none.
    pub fn encode(self) -> [u8; 16] {
        let words = [1, ONLY_UNSET_LOGINUID | LOGINUID_IMMUTABLE, self.0, 0];
        let mut bytes = [0; 16];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&u32::to_ne_bytes(word));
        }
        bytes
    }

    /// Returns true if a login uid, once set, is set for ever, or can only be unset.
    pub fn forbid_another_loginuid(self) -> bool {
        self.0 & (ONLY_UNSET_LOGINUID | LOGINUID_IMMUTABLE) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_word_says_what_is_on() {
        let answer = |on: u32| {
            let words = [1, LOGINUID_IMMUTABLE | ONLY_UNSET_LOGINUID, on, 0];
            words.map(u32::to_ne_bytes).concat()
        };
        let forbids = |on| Features::parse(&answer(on)).unwrap().forbid_another_loginuid();
        assert!(forbids(LOGINUID_IMMUTABLE) && forbids(ONLY_UNSET_LOGINUID) && !forbids(0));
        assert_eq!(Features::parse(&answer(0)[..11]), None);
        let both = Features(ONLY_UNSET_LOGINUID | LOGINUID_IMMUTABLE);
        assert_eq!(both.encode()[4..8], 3_u32.to_ne_bytes(), "which features there are");
        assert_eq!(Features::parse(&both.encode()), Some(both));
    }
}
