//! Facts that a root file system states about itself.
//!
//! The launcher that is in it reads them, so that links do not lead outside.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::setup::Act;
use weigh_model::facts::LONGEST_FACT;

/// Names under which the facts are recorded.
pub const DISTRIBUTION: &str = "distribution";
pub const LIBC: &str = "libc";

/// Takes a few milliseconds: for a launcher that measures nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RootFacts {}

impl Act for RootFacts {
    fn look(&self, _: u32, seen: &mut BTreeMap<String, String>) -> io::Result<()> {
        let facts = weigh_host::machine::facts::read();
        let found = [(DISTRIBUTION, facts.distribution), (LIBC, facts.libc)];
        // Whoever made the root chose its words.
        let short = |value: String| value.chars().take(LONGEST_FACT).collect();
        let told = |(name, value): (&str, Option<String>)| Some((name.to_owned(), short(value?)));
        seen.extend(found.into_iter().filter_map(told));
        Ok(())
    }
}
