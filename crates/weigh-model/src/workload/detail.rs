//! Details of a launch of the detail pass besides a sample: the time of each operation, or the
//! counts of the PMU.

use serde::{Deserialize, Serialize};

/// A launch that was looked at more closely; its rate bears the cost of that, and is not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// In the timed part.
    pub operations: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<Latencies>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_instructions: Option<u64>,
    /// Cycles in user and kernel mode together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// TCP's behaviour in a cell of a network grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<TcpWatch>,
}

/// Observations of TCP while a cell was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpWatch {
    /// On `CLOCK_MONOTONIC`, when all began.
    pub opened_ns: u64,
    /// In the order of the cell's transfers.
    pub connections: Vec<WatchedConnection>,
}

/// One connection, as W_test's TCP said (`TCP_INFO`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedConnection {
    /// How long it was between two looks, at least.
    pub every_us: u32,
    pub looks: Vec<TcpLook>,
    /// When the wire dropped a packet of it, in microseconds since all began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops_us: Vec<u64>,
}

/// Values of one look at a connection, in this order: microseconds since the start; bytes sent
/// without retransmissions, or bytes received; bytes acknowledged; segments sent again; window in
/// segments; round trip in microseconds.
pub type TcpLook = (u32, u64, u64, u32, u32, u32);

/// Every operation timed by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Cost of reading the clock, which was subtracted from each.
    pub clock_ns: u64,
    /// The lower end of each bucket in nanoseconds, and its count.
    pub buckets: Vec<(u64, u64)>,
}

impl Detail {
    /// The last line of a workload's output; `None` where that is none.
    pub fn parse(output: &str) -> Option<Detail> {
        let line = output.lines().rev().find(|line| !line.trim().is_empty())?;
        let detail: Detail = serde_json::from_str(line.trim()).ok()?;
        (detail.operations > 0.0 && detail.operations.is_finite()).then_some(detail)
    }

    /// Refuses latencies of which no operations of a process that lived for `wall_ns` can be made.
    pub fn check(&self, wall_ns: u64) -> Result<(), String> {
        let Some(latencies) = &self.latencies else { return Ok(()) };
        let buckets = &latencies.buckets;
        let is_ordered = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let count: f64 = buckets.iter().map(|(_, count)| *count as f64).sum();
        if !is_ordered || count > self.operations {
            return Err(format!(
                "its latencies are not in order, or there are more latencies than its {} operations",
                self.operations
            ));
        }
        // The lower end of its bucket is what each took at least.
        let least_ns: f64 = buckets.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        if least_ns > 1.01 * wall_ns as f64 {
            return Err(format!(
                "its latencies add up to {least_ns} ns, but it ran for {wall_ns} ns only"
            ));
        }
        Ok(())
    }

    /// Refuses looks that are not in order.
    pub fn check_watch(&self) -> Result<(), String> {
        let connections = self.watch.iter().flat_map(|watch| &watch.connections);
        let is_ordered = |looks: &[TcpLook]| looks.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        match connections.into_iter().all(|one| is_ordered(&one.looks)) {
            true => Ok(()),
            false => Err("its reports on its connections are not in order".into()),
        }
    }

    /// Returns true if the PMU counted anything. Some virtual machines have a PMU that counts
    /// nothing.
    pub fn is_counted(&self) -> bool {
        let counts = [self.kernel_instructions, self.cycles];
        counts.into_iter().flatten().any(|count| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_workloads_line_is_read() {
        let line = r#"{"workload":"stat","operations":3,"elapsed_ns":9,"kernel_instructions":null,
            "cycles":null,"latencies":{"clock_ns":21,"buckets":[[64,2],[1024,1]]}}"#;
        let detail = Detail::parse(&line.replace('\n', "")).unwrap();
        assert_eq!(detail.latencies.as_ref().unwrap().buckets, [(64, 2), (1024, 1)]);
        assert!(!detail.is_counted());
        let counted = r#"{"operations":3,"kernel_instructions":9,"cycles":0}"#;
        assert!(Detail::parse(counted).unwrap().is_counted());
        let zero = r#"{"operations":3,"kernel_instructions":0,"cycles":0}"#;
        assert!(!Detail::parse(zero).unwrap().is_counted());
        assert_eq!(Detail::parse(r#"{"operations":0}"#), None);
    }

    #[test]
    fn latencies_that_cannot_be_are_refused() {
        let detail = |buckets: &[(u64, u64)]| Detail {
            operations: 10.0,
            latencies: Some(Latencies { clock_ns: 0, buckets: buckets.to_vec() }),
            kernel_instructions: None,
            cycles: None,
            watch: None,
        };
        assert!(detail(&[(64, 5), (128, 5)]).check(1000).is_ok());
        assert!(detail(&[(128, 5), (64, 5)]).check(1000).unwrap_err().contains("not in order"));
        assert!(
            detail(&[(64, 11)]).check(1000).unwrap_err().contains("more latencies than its 10")
        );
        assert!(detail(&[(512, 10)]).check(1000).unwrap_err().contains("add up to 5120 ns"));
    }

    proptest! {
        #[test]
        fn foreign_output_never_panics(output in ".{0,200}") {
            let _ = Detail::parse(&output);
        }

        #[test]
        fn what_is_written_is_read(buckets in prop::collection::vec(any::<(u64, u64)>(), 0..50)) {
            let latencies = Some(Latencies { clock_ns: 20, buckets });
            let (kernel_instructions, cycles, watch) = (Some(7), None, None);
            let detail = Detail { operations: 1.5, latencies, kernel_instructions, cycles, watch };
            let text = serde_json::to_string(&detail).unwrap();
            prop_assert_eq!(Detail::parse(&text), Some(detail));
            // A line that was cut is no detail.
            prop_assert_eq!(Detail::parse(&text[..text.len() - 1]), None);
        }
    }
}
