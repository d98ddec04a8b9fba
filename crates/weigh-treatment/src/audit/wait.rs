//! Waiting for records to come out of the kernel's queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::TreatmentError;

/// A receiver that does not read for a tenth of a second, as on a disk that stalls, has what waits put
/// aside (`kauditd_send_queue` and `kauditd_retry_skb` in kernel/audit.c), the marker among it. The
/// kernel sends that again when the next record is made; and may have dropped the marker.
pub(super) const SEND_AGAIN_EVERY: Duration = Duration::from_secs(1);

const AFTER_INTERRUPT: Duration = Duration::from_secs(2);

/// How long something is waited for, which the user may cut short.
pub(super) struct Wait<'a> {
    interrupted: &'a AtomicBool,
    deadline: Instant,
    is_cut_short: bool,
}

impl Wait<'_> {
    pub(super) fn new(interrupted: &AtomicBool, limit: Duration) -> Wait<'_> {
        Wait { interrupted, deadline: Instant::now() + limit, is_cut_short: false }
    }

    /// Returns true if the wait goes on.
    ///
    /// After an interrupt it goes on for a moment, because a drain takes only moments.
    ///
    /// # Errors
    /// [`TreatmentError::Interrupted`] when that moment is over.
    pub(super) fn goes_on(&mut self) -> Result<bool, TreatmentError> {
        if !self.is_cut_short && self.interrupted.load(Ordering::Relaxed) {
            self.is_cut_short = true;
            self.deadline = self.deadline.min(Instant::now() + AFTER_INTERRUPT);
        }
        let is_over = Instant::now() > self.deadline;
        if is_over && self.is_cut_short { Err(TreatmentError::Interrupted) } else { Ok(!is_over) }
    }
}
