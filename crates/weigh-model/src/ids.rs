//! Ids of experiments and numbers of their parts. Each has its own type, so that two cannot be swapped.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::ops::{Deref, Index, IndexMut};

use serde::{Deserialize, Serialize};

/// Makes a number a type.
macro_rules! id {
    ($(#[$about:meta])* $id:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $id(pub usize);

        impl Display for $id {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
                self.0.fmt(formatter)
            }
        }
    };
}

/// Lets a number choose its part of a list.
macro_rules! indexes {
    ($id:ident) => {
        impl<T> Index<$id> for [T] {
            type Output = T;

            fn index(&self, id: $id) -> &T {
                &self[id.0]
            }
        }

        impl<T> IndexMut<$id> for [T] {
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.0]
            }
        }

        impl<T> Index<$id> for Vec<T> {
            type Output = T;

            fn index(&self, id: $id) -> &T {
                &self[id.0]
            }
        }

        impl<T> IndexMut<$id> for Vec<T> {
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.0]
            }
        }
    };
}

id! {
    /// Which of [`Header::arms`](crate::record::Header::arms).
    ArmId
}

id! {
    /// Which of [`Header::works`](crate::record::Header::works).
    WorkId
}

id! {
    /// Which set of `--sets`, from 0.
    SetId
}

id! {
    /// Which pair of a row, from 0; in a run, which sample.
    PairId
}

id! {
    /// Which of the two arms of a comparison, whatever the number of the treated one is.
    Side
}

indexes!(ArmId);
indexes!(WorkId);
indexes!(Side);

impl ArmId {
    pub const BASELINE: ArmId = ArmId(0);

    pub fn is_baseline(self) -> bool {
        self == ArmId::BASELINE
    }

    /// Which arm it is in a comparison with another.
    pub fn side(self) -> Side {
        Side(usize::from(!self.is_baseline()))
    }
}

impl Side {
    pub const BASELINE: Side = Side(0);
    pub const TREATED: Side = Side(1);
    pub const BOTH: [Side; 2] = [Side::BASELINE, Side::TREATED];
}

impl PairId {
    /// The pair after it.
    pub fn next(self) -> PairId {
        PairId(self.0 + 1)
    }
}

/// A row: which of the works, under the treatment of which arm; in a run, of the baseline's.
pub type RowId = (WorkId, ArmId);

/// The id of an experiment in the store. It becomes the name of a report, and a part of SQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ExperimentId(String);

impl ExperimentId {
    /// An id has so many characters.
    pub const LENGTH: usize = 6;
}

/// As much of a text that is no id is shown.
const SHOWN: usize = 40;

impl TryFrom<String> for ExperimentId {
    type Error = String;

    fn try_from(text: String) -> Result<ExperimentId, String> {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        match text.len() == ExperimentId::LENGTH && text.bytes().all(is_part) {
            true => Ok(ExperimentId(text)),
            false => Err(format!(
                "`{}` is not an id of weigh: a different program wrote it",
                text.chars().take(SHOWN).collect::<String>()
            )),
        }
    }
}

impl Deref for ExperimentId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Display for ExperimentId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        formatter.pad(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_wrote_is_no_id() {
        assert_eq!(&*ExperimentId::try_from("k3f9qx".to_owned()).unwrap(), "k3f9qx");
        for foreign in ["../../x", "a'b", "abcdefg", "ABCDEF", ""] {
            let problem = ExperimentId::try_from(foreign.to_owned()).unwrap_err();
            assert!(problem.contains("not an id of weigh"), "{foreign}: {problem}");
        }
    }
}
