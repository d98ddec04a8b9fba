//! Numbers of the parts of an experiment. Each has its own type, so that two cannot be swapped.

use std::fmt::{Display, Formatter, Result};
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// Makes a number a type.
macro_rules! id {
    ($(#[$about:meta])* $id:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $id(pub usize);

        impl Display for $id {
            fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
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

indexes!(ArmId);
indexes!(WorkId);

impl ArmId {
    pub const BASELINE: ArmId = ArmId(0);

    pub fn is_baseline(self) -> bool {
        self == ArmId::BASELINE
    }

    /// Its place among the two arms of a comparison: 0 for the baseline, 1 for any treated arm.
    pub fn side(self) -> usize {
        usize::from(!self.is_baseline())
    }
}

impl PairId {
    /// The pair after it.
    pub fn next(self) -> PairId {
        PairId(self.0 + 1)
    }
}

/// A row: which of the works, under the treatment of which arm; in a run, of the baseline's.
pub type RowId = (WorkId, ArmId);
