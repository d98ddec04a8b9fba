//! Quantities that auditing produces.

use QuantityKind::{Arrived, Lost, Made, Spent, Waited};
use QuantityUnit::{Bytes, Count, Seconds};
use weigh_model::result::quantity::{EvidenceQuantity, QuantityKind, QuantityUnit};

/// Audit records of the worker and its descendants.
pub const RECORDS: EvidenceQuantity =
    EvidenceQuantity::new("records", "records", Count, Made, None);
/// Bytes that these take in the log.
pub const LOG_BYTES: EvidenceQuantity =
    EvidenceQuantity::new("log_bytes", "log", Bytes, Made, Some("records"));
/// Records that the kernel dropped, of anybody.
pub const LOST: EvidenceQuantity =
    EvidenceQuantity::new("lost", "records", Count, Lost, Some("received"));
/// Records that came out of the kernel's queue meanwhile, of anybody.
pub const RECEIVED: EvidenceQuantity =
    EvidenceQuantity::new("received", "records", Count, Arrived, None);
/// Time that processes waited for room in the backlog.
pub const BACKLOG_WAIT: EvidenceQuantity =
    EvidenceQuantity::new("backlog_wait_s", "wait", Seconds, Waited, None);
/// CPU time of the processes that receive the records, until all of this launch were written.
pub const SINK_CPU: EvidenceQuantity =
    EvidenceQuantity::new("sink_cpu_s", "receiver", Seconds, Spent, Some("records"));
/// CPU time of the kernel's thread that sends them the records, as long.
pub const KAUDITD_CPU: EvidenceQuantity =
    EvidenceQuantity::new("kauditd_cpu_s", "kauditd", Seconds, Spent, Some("records"));

/// Records, of anybody, that W_passive wrote down meanwhile: where they are shipped to it.
pub const SHIPPED: EvidenceQuantity =
    EvidenceQuantity::new("shipped", "records at W_passive", Count, Made, None);

/// All of them, wherever the records go.
pub static ALL: [EvidenceQuantity; 7] =
    [RECORDS, LOG_BYTES, LOST, RECEIVED, BACKLOG_WAIT, SINK_CPU, KAUDITD_CPU];

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::quantity::of_before;

    /// So the samples of before are shown as those of now.
    #[test]
    fn they_are_what_was_counted_before_they_were_declared() {
        assert_eq!(of_before(), ALL);
    }
}
