//! System calls that do nothing, of every worker just before it executes, and of its launcher when the worker
//! has ended: a sensor of system calls must see both.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::setup::Act;

/// A kernel may skip a sensor for an event during which it runs already on this CPU.
const TIMES: usize = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProofCalls {
    /// Number of a call that fails with [`ProofCalls::token`] as its first argument.
    pub call: u32,
    pub token: u32,
}

impl ProofCalls {
    /// Second argument of the worker's calls.
    pub const OF_WORKER: u64 = 0;
    /// Second argument of the launcher's calls.
    pub const OF_LAUNCHER: u64 = 1;

    fn make(&self, second: u64) {
        for _ in 0..TIMES {
            // SAFETY: the kernel has no such call, or refuses this first argument before it looks at others.
            unsafe {
                libc::syscall(libc::c_long::from(self.call), u64::from(self.token), second, 0, 0)
            };
        }
    }
}

impl Act for ProofCalls {
    fn in_worker(&self) -> io::Result<()> {
        self.make(ProofCalls::OF_WORKER);
        Ok(())
    }

    fn after_worker(&self, _: &mut BTreeMap<String, String>) -> io::Result<Option<u32>> {
        self.make(ProofCalls::OF_LAUNCHER);
        Ok(None)
    }
}
