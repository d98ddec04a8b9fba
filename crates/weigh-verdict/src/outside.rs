//! Checks that both processes of interleaved pairs leave their partner's slices alone.
//!
//! Only one thread of each process hands over the CPU. Other parts of a process (a thread, a timer,
//! a child) may work in its partner's slices. They make the partner slower, and their own process's
//! slices do not show it. So each process reports the CPU time that it used during its partner's
//! turns ([`Outside`]). If the two differ, interleaved pairs cannot show the treatment's cost. The
//! row then goes on with sequential pairs.
//!
//! Load from other processes can also make a few pairs differ. So a difference in CPU time withholds
//! verdicts at once, but a row leaves only after further pairs have confirmed it.

use std::fmt::{Display, Formatter, Result as FmtResult};

use paired::estimate::median;
use weigh_model::format;
use weigh_model::workload::sample::Outside;

/// Two equal processes differ by less in 44 of 45 pairs, at a load of 10
/// (docs/evidence/statistics-interleaving.md).
const MOST_POINTS: f64 = 3.0;
/// One pair alone may have had a bad moment.
const LEAST_PAIRS: usize = 3;
/// Several pairs may have had one too. So many more pairs must be beyond the limit than within it. If load
/// puts one pair in six beyond it, chance alone achieves this in 1 of 3125 rows, however long they are.
const CONFIRMED_BY: usize = 5;

/// How the processes of a row's interleaved pairs differ by now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutsideUse {
    /// Per pair, how much more the treated process used outside its slices, as a share of a slice.
    excesses: Vec<f64>,
    tasks: Option<[u32; 2]>,
}

/// How they differ too much: the baseline's process first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// Points of a slice that the treated process used more in its partner's slices.
    CpuTime(f64),
    Tasks([u32; 2]),
    /// Tasks cannot be counted in one arm or both.
    Unknown,
}

impl OutsideUse {
    /// Adds a pair, the baseline first. Pairs without this reading are ignored.
    pub fn add(&mut self, pair: [Option<Outside>; 2]) {
        let [Some(baseline), Some(treated)] = pair else { return };
        let slice_ns = f64::midpoint(baseline.slice_cpu_ns, treated.slice_cpu_ns);
        self.excesses.push((treated.ns_per_slice - baseline.ns_per_slice) / slice_ns.max(1.0));
        let tasks = [baseline.tasks, treated.tasks];
        let differs = |tasks: [u32; 2]| tasks[0] != tasks[1] || tasks[0] == 0;
        if self.tasks.is_none_or(|known| !differs(known)) {
            self.tasks = Some(tasks);
        }
    }

    /// Why the row must leave interleaved pairs. CPU time must differ in a clear majority of them; tasks
    /// do not differ by chance.
    pub fn confirmed_difference(&self) -> Option<Difference> {
        self.difference().filter(|_| self.unconfirmed().is_none())
    }

    /// How many more pairs may confirm a difference that is not confirmed yet.
    pub fn unconfirmed(&self) -> Option<usize> {
        let Some(Difference::CpuTime(points)) = self.difference() else { return None };
        let is_beyond = |excess: &&f64| 100.0 * **excess * points.signum() > MOST_POINTS;
        let beyond = self.excesses.iter().filter(is_beyond).count();
        let within = self.excesses.len() - beyond;
        (within + CONFIRMED_BY).checked_sub(beyond).filter(|pairs| *pairs > 0)
    }

    /// By how much more of a slice the treated process uses outside its own: the median pair.
    pub fn excess(&self) -> f64 {
        median(&self.excesses).unwrap_or(0.0)
    }

    /// Why the pairs are not valid; `None` if nothing is wrong.
    pub fn difference(&self) -> Option<Difference> {
        let points = 100.0 * self.excess();
        match self.tasks? {
            [0, _] | [_, 0] => Some(Difference::Unknown),
            [baseline, treated] if baseline != treated => {
                Some(Difference::Tasks([baseline, treated]))
            }
            _ if self.excesses.len() >= LEAST_PAIRS && points.abs() > MOST_POINTS => {
                Some(Difference::CpuTime(points))
            }
            _ => None,
        }
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match self {
            Difference::CpuTime(points) => {
                let (more, less) = match *points > 0.0 {
                    true => ("treated", "baseline"),
                    false => ("baseline", "treated"),
                };
                write!(
                    f,
                    "outside its own slices, the {more} process used more CPU time than the {less} process \
                     (by {:.1} % of a slice). The likely cause is a timer, a thread or a child; load from \
                     other processes is also possible",
                    points.abs()
                )
            }
            Difference::Tasks([baseline, treated]) => write!(
                f,
                "the treated process has {} (threads and children), the baseline process has {baseline}; an \
                 extra task may run in the slices of the other process",
                format::plural(*treated as usize, "task")
            ),
            Difference::Unknown => f.write_str(
                "the tasks of a process could not be counted (is /proc mounted in both arms?)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[[(f64, u32); 2]]) -> Option<Difference> {
        let mut comparison = OutsideUse::default();
        for pair in pairs {
            comparison.add(pair.map(|(ns_per_slice, tasks)| {
                Some(Outside { ns_per_slice, slice_cpu_ns: 100_000.0, tasks })
            }));
        }
        comparison.difference()
    }

    #[test]
    fn equal_processes_are_believed_whatever_handing_over_takes() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[[(12_000.0, 1), (14_000.0, 1)], [(30_000.0, 1), (28_000.0, 1)]]), None);
        // One bad moment.
        assert_eq!(of(&[[(12_000.0, 1), (90_000.0, 1)]; 2]), None);
    }

    #[test]
    fn work_in_the_partners_slices_is_found_in_either_arm() {
        let Some(Difference::CpuTime(points)) = of(&[[(5_000.0, 1), (9_000.0, 1)]; 3]) else {
            panic!("4 points are too many")
        };
        assert!((points - 4.0).abs() < 1e-9, "{points}");
        assert_eq!(of(&[[(9_000.0, 1), (5_000.0, 1)]; 3]), Some(Difference::CpuTime(-4.0)));
        assert_eq!(of(&[[(5_000.0, 1), (7_900.0, 1)]; 3]), None);
    }

    /// Returns, after each pair with so many points of excess, if the row leaves.
    fn leaves(points: &[f64]) -> Vec<bool> {
        let mut comparison = OutsideUse::default();
        let leaves = points.iter().map(|points| {
            comparison.add(excess(*points));
            comparison.confirmed_difference().is_some()
        });
        leaves.collect()
    }

    fn excess(points: f64) -> [Option<Outside>; 2] {
        [0.0, points].map(|points| {
            Some(Outside { ns_per_slice: 1000.0 * points, slice_cpu_ns: 100_000.0, tasks: 1 })
        })
    }

    #[test]
    fn a_row_leaves_when_further_pairs_confirm_the_cpu_time() {
        for points in [3.1, -3.1, 12.0] {
            let left = leaves(&[points; 7]);
            assert_eq!(left, [false, false, false, false, true, true, true], "{points}");
        }
        // A moment of load, at the beginning or later.
        assert_eq!(leaves(&[9.0, 9.0, 9.0, 0.1, 0.2, 0.1, 0.2, 9.0, 9.0]), [false; 9]);
        assert_eq!(leaves(&[0.1, 0.2, 0.1, 9.0, 9.0, 9.0, 9.0]), [false; 7]);
        assert_eq!(leaves(&[9.0, 9.0, 9.0, 9.0, -9.0, -9.0, -9.0]), [false; 7]);
        // Work in two of three pairs is found as well.
        let often: Vec<f64> = (0..15).map(|pair| if pair % 3 == 0 { 0.0 } else { 9.0 }).collect();
        assert_eq!(leaves(&often).iter().position(|leaves| *leaves), Some(14));
        let mut three = OutsideUse::default();
        (0..3).for_each(|_| three.add(excess(9.0)));
        assert_eq!(three.unconfirmed(), Some(2));
        // One task more needs no confirmation.
        let mut comparison = OutsideUse::default();
        comparison.add([1, 2].map(|tasks| Some(Outside { tasks, ..Outside::default() })));
        assert_eq!(comparison.confirmed_difference(), Some(Difference::Tasks([1, 2])));
    }

    /// By the median of all pairs, 92 of these 1000 rows would leave: as often as at a load of 15.
    #[test]
    fn load_in_one_pair_of_six_makes_hardly_a_row_leave() {
        let mut random = 1_u64;
        let mut points = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (random >> 33).is_multiple_of(6) { 5.0 } else { 0.0 }
        };
        let mut row = || (0..40).map(|_| points()).collect::<Vec<f64>>();
        let left = (0..1000).filter(|_| leaves(&row()).contains(&true)).count();
        assert_eq!(left, 2);
    }

    #[test]
    fn the_reason_names_no_cause_as_certain() {
        let said = Difference::CpuTime(-3.7).to_string();
        let head = "outside its own slices, the baseline process used more CPU time than the treated process \
                    (by 3.7 % of a slice). The likely cause";
        assert!(said.starts_with(head) && said.ends_with("is also possible"), "{said}");
    }

    #[test]
    fn one_task_more_in_one_pair_is_enough_and_tasks_must_be_known() {
        let equal = [(5_000.0, 2), (5_000.0, 2)];
        let unequal = [(5_000.0, 1), (5_000.0, 2)];
        assert_eq!(of(&[unequal, equal]), Some(Difference::Tasks([1, 2])));
        assert_eq!(of(&[equal, unequal]), Some(Difference::Tasks([1, 2])));
        assert_eq!(of(&[equal, equal]), None);
        assert_eq!(of(&[[(0.0, 0), (0.0, 0)]]), Some(Difference::Unknown));
    }

    #[test]
    fn samples_of_an_earlier_weigh_say_nothing() {
        let mut comparison = OutsideUse::default();
        comparison.add([None, None]);
        assert_eq!((comparison.difference(), comparison.excess()), (None, 0.0));
    }
}
