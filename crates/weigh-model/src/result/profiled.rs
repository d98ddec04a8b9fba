//! Reports of a profiler about a workload. It runs in one launch of each arm, which is not a
//! sample.

use serde::{Deserialize, Serialize};

use crate::result::work_name::WorkName;

/// One workload, in all arms in which it was profiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    #[serde(flatten)]
    pub workload: WorkName,
    pub arms: Vec<ProfiledArm>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfiledArm {
    pub arm: String,
    /// Launched work, where it is not the row itself: the load point of a peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The functions of the kernel that took the most, where the profiler was `perf record`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<HotSymbol>,
    /// Other output of the profiler: the end of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub printed: String,
}

/// A function of the kernel, and its share of all samples of the profiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotSymbol {
    pub symbol: String,
    pub share_pct: f64,
}

impl Profiled {
    /// The functions of all arms with the share that each has there; what takes the most anywhere is first.
    pub fn side_by_side(&self) -> Vec<(&str, Vec<Option<f64>>)> {
        let share = |arm: &ProfiledArm, name: &str| {
            let found = arm.symbols.iter().find(|one| one.symbol == name);
            found.map(|one| one.share_pct)
        };
        let mut names: Vec<&str> = Vec::new();
        for one in self.arms.iter().flat_map(|arm| &arm.symbols) {
            if !names.contains(&one.symbol.as_str()) {
                names.push(&one.symbol);
            }
        }
        let of_all = |name: &str| self.arms.iter().map(|arm| share(arm, name)).collect();
        let mut rows: Vec<(&str, Vec<Option<f64>>)> =
            names.into_iter().map(|name| (name, of_all(name))).collect();
        let most = |shares: &[Option<f64>]| shares.iter().flatten().fold(0.0_f64, |a, b| a.max(*b));
        rows.sort_by(|(_, a), (_, b)| most(b).total_cmp(&most(a)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_the_most_in_any_arm_comes_first_and_is_missing_where_it_was_not_seen() {
        let arm = |arm: &str, symbols: &[(&str, f64)]| ProfiledArm {
            arm: arm.into(),
            at: None,
            symbols: symbols
                .iter()
                .map(|(symbol, share_pct)| HotSymbol {
                    symbol: (*symbol).into(),
                    share_pct: *share_pct,
                })
                .collect(),
            printed: String::new(),
        };
        let profiled = Profiled {
            workload: "stat".into(),
            arms: vec![
                arm("none", &[("path_lookup", 9.0), ("copy", 4.0)]),
                arm("audit", &[("audit_log", 30.0), ("path_lookup", 6.0)]),
            ],
        };
        assert_eq!(
            profiled.side_by_side(),
            [
                ("audit_log", vec![None, Some(30.0)]),
                ("path_lookup", vec![Some(9.0), Some(6.0)]),
                ("copy", vec![Some(4.0), None]),
            ]
        );
    }
}
