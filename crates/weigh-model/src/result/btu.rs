//! BTU and penalties, as equations 5 to 11 of Maly, Gupta and Mynam (1996) have them. A geometric mean of
//! times below a payload is the geometric mean of rates, so that payloads may differ from cell to cell.

use paired::estimate::median;
use paired::series::Typical;

/// A cell that is scored: COMM beside an activity, once.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredCell {
    /// Which application: y.
    pub class: usize,
    /// Which component: x.
    pub component: usize,
    /// Which of the component's links.
    pub link: usize,
    /// Which host activity: z.
    pub activity: usize,
    /// M over the time of COMM.
    pub rate: f64,
    /// How many times as long COMM takes as without the activity; `None` where it was not measured so.
    pub comm_slowdown: Option<f64>,
    /// How many times as long the activity takes as without COMM.
    pub activity_slowdown: f64,
}

/// Combined score of several cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Btu {
    /// In the unit of the rates.
    pub btu: f64,
    /// Slowdown of the host: how many times as long activities take.
    pub activity_slowdown: f64,
    /// Slowdown of the network: how many times as long COMM takes; `None` if it is unknown for a
    /// cell.
    pub comm_slowdown: Option<f64>,
    /// The paper's penalty, a geometric mean of percentages; `None` where one of them is not above 0.
    pub paper_penalty_pct: Option<f64>,
}

impl Btu {
    /// Scores all cells of a grid, or all cells of one class; `None` without cells.
    pub fn of(cells: &[ScoredCell]) -> Option<Btu> {
        Some(Btu {
            btu: geometric(cells, |cell| cell.rate)?,
            activity_slowdown: geometric(cells, |cell| cell.activity_slowdown)?,
            comm_slowdown: geometric(cells, |cell| cell.comm_slowdown.unwrap_or(f64::NAN))
                .filter(|mean| !mean.is_nan()),
            paper_penalty_pct: paper_penalty(cells),
        })
    }
}

/// The geometric mean over classes, of that over activities, of that over components, of that over links:
/// each component counts as much, however many links it has.
pub fn geometric(cells: &[ScoredCell], value: impl Fn(&ScoredCell) -> f64) -> Option<f64> {
    let key = |cell: &ScoredCell| [cell.class, cell.activity, cell.component, cell.link];
    let logs = cells.iter().map(|cell| (key(cell).to_vec(), value(cell).ln())).collect();
    nested(logs).map(f64::exp)
}

/// The mean within all that have a key but for its last part in common, and so on.
fn nested(mut values: Vec<(Vec<usize>, f64)>) -> Option<f64> {
    while values.iter().any(|(key, _)| !key.is_empty()) {
        let mut outer: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
        for (mut key, value) in values {
            key.pop();
            match outer.iter_mut().find(|(other, _)| *other == key) {
                Some((_, of_key)) => of_key.push(value),
                None => outer.push((key, vec![value])),
            }
        }
        values = outer.into_iter().map(|(key, all)| (key, arithmetic_mean(&all))).collect();
    }
    values.first().map(|(_, value)| *value)
}

/// Equations 9 to 11 to the letter.
fn paper_penalty(cells: &[ScoredCell]) -> Option<f64> {
    let mut penalties = Vec::new();
    for class in distinct(cells, |cell| cell.class) {
        for activity in distinct(cells, |cell| cell.activity) {
            let is_of = |cell: &&ScoredCell| cell.class == class && cell.activity == activity;
            let of_both: Vec<ScoredCell> = cells.iter().filter(is_of).cloned().collect();
            let percent = (geometric(&of_both, |cell| cell.activity_slowdown)? - 1.0) * 100.0;
            penalties.push((vec![class, activity], (percent > 0.0).then(|| percent.ln())?));
        }
    }
    nested(penalties).map(f64::exp)
}

fn distinct(cells: &[ScoredCell], of: impl Fn(&ScoredCell) -> usize) -> Vec<usize> {
    let mut found: Vec<usize> = cells.iter().map(of).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The three means that the paper prints below its tables.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Means {
    pub arithmetic: f64,
    pub geometric: f64,
    pub harmonic: f64,
}

impl Means {
    /// Computes the means of values above 0; `None` without values.
    pub fn of(values: &[f64]) -> Option<Means> {
        if values.is_empty() {
            return None;
        }
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let inverses: Vec<f64> = values.iter().map(|value| value.recip()).collect();
        Some(Means {
            arithmetic: arithmetic_mean(values),
            geometric: arithmetic_mean(&logs).exp(),
            harmonic: arithmetic_mean(&inverses).recip(),
        })
    }
}

fn arithmetic_mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A score and its interval, from complete sweeps over the grid.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ScoreInterval {
    pub value: f64,
    /// `None` of a single sweep.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl ScoreInterval {
    /// Computes the median score of several sweeps, and its interval from the series of sweeps.
    /// Each score is above 0, in the order measured. Whole sweeps are compared, because a
    /// disturbance of one cell also affects its neighbours in time. Returns `None` without scores.
    pub fn of(scores: &[f64]) -> Option<ScoreInterval> {
        let value = median(scores)?;
        let found = Typical::of(scores);
        Some(ScoreInterval {
            value,
            low: found.map(|found| found.low),
            high: found.map(|found| found.high),
        })
    }

    /// Half its width, as a share; `None` of a single sweep.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? / self.low?).sqrt() - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in seconds of COMM and of the activity, for two classes, two activities and two components, of
    /// 32 Mb each; alone COMM takes 8 s and the activity 10 s.
    fn cells() -> Vec<ScoredCell> {
        let comm = [[[16.0, 4.0], [32.0, 8.0]], [[2.0, 8.0], [1.0, 4.0]]];
        let host = [[[11.0, 11.0], [14.0, 14.0]], [[12.0, 12.0], [20.0, 20.0]]];
        let mut cells = Vec::new();
        for class in 0..2 {
            for activity in 0..2 {
                for component in 0..2 {
                    let time = comm[class][activity][component];
                    cells.push(ScoredCell {
                        class,
                        component,
                        link: 0,
                        activity,
                        rate: 32.0 / time,
                        comm_slowdown: Some(time / 8.0),
                        activity_slowdown: host[class][activity][component] / 10.0,
                    });
                }
            }
        }
        cells
    }

    fn near(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-12
    }

    #[test]
    fn equations_5_to_7_on_given_times() {
        // (5): M / GM of times: 32 / 8, 32 / 16; 32 / 4, 32 / 2. (6): GM of 4 and 2; of 8 and 16. (7): of
        // both.
        let of_class = |class| -> Vec<ScoredCell> {
            cells().into_iter().filter(|cell| cell.class == class).collect()
        };
        assert!(near(Btu::of(&of_class(0)).unwrap().btu, 8f64.sqrt()));
        assert!(near(Btu::of(&of_class(1)).unwrap().btu, 128f64.sqrt()));
        assert!(near(Btu::of(&cells()).unwrap().btu, 1024f64.powf(0.25)));
    }

    #[test]
    fn equations_9_to_11_and_the_ratios_that_are_always_defined() {
        let all = Btu::of(&cells()).unwrap();
        // (9): 10, 40, 20 and 100 %; (10), (11): their geometric means.
        let expected = (10.0f64 * 40.0 * 20.0 * 100.0).powf(0.25);
        assert!(near(all.paper_penalty_pct.unwrap(), expected));
        assert!(near(all.activity_slowdown, (1.1f64 * 1.4 * 1.2 * 2.0).powf(0.25)));
        assert!(near(all.comm_slowdown.unwrap(), 32.0 / 8.0 / 1024f64.powf(0.25)));
        let mut unknown = cells();
        unknown[3].comm_slowdown = None;
        let unknown = Btu::of(&unknown).unwrap();
        assert_eq!((unknown.btu, unknown.comm_slowdown), (all.btu, None));
        let mut faster = cells();
        faster.iter_mut().take(2).for_each(|cell| cell.activity_slowdown = 0.99);
        let faster = Btu::of(&faster).unwrap();
        assert_eq!(
            faster.paper_penalty_pct, None,
            "there is no such mean of a negative percentage"
        );
        assert!(faster.activity_slowdown < all.activity_slowdown);
    }

    #[test]
    fn a_component_with_many_links_counts_once() {
        let mut cells = cells();
        let once = Btu::of(&cells).unwrap().btu;
        let further: Vec<ScoredCell> = (cells.iter().filter(|cell| cell.component == 1))
            .map(|cell| ScoredCell { link: 1, ..cell.clone() })
            .collect();
        cells.extend(further);
        assert!(near(Btu::of(&cells).unwrap().btu, once));
        assert_eq!(Btu::of(&[]), None);
    }

    #[test]
    fn the_means_of_a_table_are_in_their_order() {
        let means = Means::of(&[1.0, 2.0, 4.0]).unwrap();
        assert!(near(means.geometric, 2.0) && near(means.arithmetic, 7.0 / 3.0));
        assert!(near(means.harmonic, 12.0 / 7.0));
    }

    #[test]
    fn a_score_is_the_median_sweep_with_what_the_series_tells_of_it() {
        let of = |scores: &[f64]| ScoreInterval::of(scores).unwrap();
        assert_eq!((of(&[5.0]).value, of(&[5.0]).low, of(&[5.0]).half_width()), (5.0, None, None));
        // Eight sweeps, one of which the machine disturbed: the typical one is not moved.
        let sweeps = [1070.0, 1100.0, 466.0, 1060.0, 1080.0, 1090.0, 1050.0, 1110.0];
        let found = of(&sweeps);
        assert_eq!(found.value, 1075.0);
        assert!(found.low <= Some(466.0) && found.high >= Some(1110.0), "{found:?}");
        assert_eq!(of(&[7.0, 7.0, 7.0]).half_width(), Some(0.0));
    }
}
