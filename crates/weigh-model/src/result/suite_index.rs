//! A suite's index: its rates over those of a machine of the past, summed up in one figure, by the
//! formula of the suite's original.

use serde::Serialize;

use crate::workload::suite::{Index, Suite};
use paired::estimate::geometric_mean;

/// The index of a suite that was measured completely.
#[derive(Debug, PartialEq, Serialize)]
pub struct SuiteIndex {
    pub suite: String,
    /// Where the suite is the user's own: its name may be that of one of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// How many of each workload ran at the same time; the rates are their sums.
    pub copies: usize,
    /// Over copies: the index per copy over that of the fewest, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency_pct: Option<f64>,
    /// Whose formula it is.
    pub source: Option<String>,
    pub formula: Index,
    pub index: f64,
    /// The workloads that count.
    pub items: Vec<Item>,
}

/// A workload's share.
#[derive(Debug, PartialEq, Serialize)]
pub struct Item {
    pub workload: String,
    pub baseline: f64,
    pub index: f64,
}

impl SuiteIndex {
    /// `None` for a suite without an index, or where a rate that counts is missing: an index of eleven of
    /// twelve could not be held against others.
    pub fn new(
        suite: &Suite,
        copies: usize,
        rate: impl Fn(&str) -> Option<f64>,
    ) -> Option<SuiteIndex> {
        let formula = suite.index?;
        let mut scored = suite.members.iter().filter(|member| member.baseline.is_some());
        if scored.any(|member| rate(&member.name).is_none()) {
            return None;
        }
        let items = items(suite, rate);
        let values: Vec<f64> = items.iter().map(|item| item.index).collect();
        let index = match formula {
            Index::GeometricMean => geometric_mean(&values)?,
            Index::ArithmeticMean => values.iter().sum::<f64>() / values.len() as f64,
        };
        Some(SuiteIndex {
            suite: suite.name.clone(),
            file: None,
            copies,
            efficiency_pct: None,
            source: suite.source.clone(),
            formula,
            index,
            items,
        })
    }

    pub fn sentence(&self) -> String {
        let formula = match self.formula {
            Index::GeometricMean => "geometric mean".into(),
            Index::ArithmeticMean => {
                let sum: f64 = self.items.iter().map(|item| item.index).sum();
                format!("sum {sum:.1}, arithmetic mean")
            }
        };
        let copies = match (self.copies, self.efficiency_pct) {
            (1, None) => String::new(),
            (1, Some(_)) => " with 1 copy".into(),
            (copies, None) => format!(" with {copies} copies"),
            (copies, Some(pct)) => format!(" with {copies} copies, efficiency {pct:.0} %"),
        };
        let (index, suite, items) = (self.index, &self.suite, self.items.len());
        if let Some(file) = &self.file {
            return format!(
                "Index {index:.1} of {suite}{copies} ({formula} of {items}), as defined in {file}."
            );
        }
        let source = self.source.as_deref().and_then(|source| source.split(',').next());
        format!(
            "Index {index:.1} of {suite}{copies} ({formula} of {items}), compatible with the formula of \
             {}, from workloads of our own.",
            source.unwrap_or("its original")
        )
    }
}

/// An index that scales perfectly has 100 % with any number of copies.
pub fn add_efficiency(indices: &mut [SuiteIndex]) {
    let per_copy = |index: &SuiteIndex| index.index / index.copies as f64;
    let of_fewest: Vec<Option<f64>> = indices
        .iter()
        .map(|index| {
            let suite = |index: &SuiteIndex| (index.suite.clone(), index.file.clone());
            let of_suite = || indices.iter().filter(|other| suite(other) == suite(index));
            let fewest = of_suite().min_by_key(|other| other.copies)?;
            (of_suite().count() > 1).then(|| 100.0 * (per_copy(index) / per_copy(fewest)))
        })
        .collect();
    for (index, efficiency_pct) in indices.iter_mut().zip(of_fewest) {
        index.efficiency_pct = efficiency_pct;
    }
}

/// The workloads of a suite that count in its index and were measured.
pub fn items(suite: &Suite, rate: impl Fn(&str) -> Option<f64>) -> Vec<Item> {
    let item = |name: &str, baseline: Option<f64>| {
        let baseline = baseline?;
        let index = rate(name)? / baseline * suite.baseline_index?;
        Some(Item { workload: name.to_owned(), baseline, index })
    };
    suite.members.iter().filter_map(|member| item(&member.name, member.baseline)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::suite;

    /// Checks a published report: each workload's rate and printed index, and the printed figure.
    /// What does not count in the index gets any rate.
    fn assert_agrees(name: &str, published: &[(&str, f64, f64)], printed: f64) -> SuiteIndex {
        let suites = suite::embedded().unwrap();
        let suite = suites.iter().find(|suite| suite.name == name).unwrap();
        let found = |name: &str| published.iter().find(|(workload, ..)| *workload == name);
        let rate = |name: &str| Some(found(name).map_or(1.0, |(_, rate, _)| *rate));
        let index = SuiteIndex::new(suite, 1, rate).unwrap();
        assert_eq!(index.items.len(), published.len());
        for item in &index.items {
            let (_, _, printed) = found(&item.workload).unwrap();
            assert!((item.index - printed).abs() < 0.06, "{item:?} is not {printed}");
        }
        assert!((index.index - printed).abs() < 0.06, "{} is not {printed}", index.index);
        let last = suite.members.iter().rfind(|member| member.baseline.is_some()).unwrap();
        let without_last = |name: &str| rate(name).filter(|_| name != last.name);
        let all_but_one = SuiteIndex::new(suite, 1, without_last);
        assert_eq!(all_but_one, None, "an index of all but one is none");
        let scored_alone = |name: &str| rate(name).filter(|_| found(name).is_some());
        assert_eq!(SuiteIndex::new(suite, 1, scored_alone).as_ref(), Some(&index));
        index
    }

    /// UnixBench 6.0.0 itself, one copy, measured where this was written.
    #[test]
    fn six_is_the_geometric_mean_of_twelve() {
        let published = [
            ("dhry2reg", 35_433_786.2, 3036.3),
            ("whetstone-double", 6564.1, 1193.5),
            ("execl", 1485.5, 345.5),
            ("fstime", 376_612.0, 951.0),
            ("fsbuffer", 97_914.0, 591.6),
            ("fsdisk", 1_162_815.0, 2004.9),
            ("pipe", 748_958.0, 602.1),
            ("context1@same-cpu", 63_064.0, 157.7),
            ("spawn@same-cpu", 3209.7, 254.7),
            ("shell1", 4686.3, 1105.3),
            ("shell8", 1143.6, 1906.0),
            ("syscall", 500_028.0, 333.4),
        ];
        let index = assert_agrees("unixbench", &published, 732.8);
        let said = "Index 732.8 of unixbench (geometric mean of 12), compatible with the formula of \
                    UnixBench 6.0.0";
        assert!(index.sentence().starts_with(said), "{}", index.sentence());
    }

    /// Whitcher, "Lunar Linux vs. Red Hat" (2003), appendix: Lunar Linux, UnixBench 4.1.0.
    #[test]
    fn four_is_the_geometric_mean_of_eleven() {
        let published = [
            ("dhry2reg", 1_919_747.4, 164.5),
            ("whetstone-double", 504.2, 91.7),
            ("execl", 1702.7, 396.0),
            ("fstime", 119_486.0, 301.7),
            ("fsbuffer", 53_369.0, 322.5),
            ("fsdisk", 162_786.0, 280.7),
            ("pipe", 370_154.5, 297.6),
            ("context1@same-cpu", 111_631.5, 279.1),
            ("spawn@same-cpu", 4017.4, 318.8),
            ("shell8", 390.0, 650.0),
            ("syscall", 405_435.7, 270.3),
        ];
        assert_agrees("unixbench-4.1", &published, 277.7);
    }

    #[test]
    fn an_index_over_copies_says_what_each_of_them_is_worth() {
        let suites = suite::embedded().unwrap();
        let of = |name: &str, copies: usize, rate: f64| {
            let suite = suites.iter().find(|suite| suite.name == name).unwrap();
            SuiteIndex::new(suite, copies, |_| Some(rate)).unwrap()
        };
        let mut indices =
            [of("unixbench", 4, 300.0), of("unixbench", 1, 100.0), of("unixbench-4.1", 4, 1.0)];
        add_efficiency(&mut indices);
        let [four, one, alone] = &indices;
        assert!((four.efficiency_pct.unwrap() - 75.0).abs() < 1e-9, "{four:?}");
        assert_eq!((one.efficiency_pct, alone.efficiency_pct), (Some(100.0), None));
        assert!(four.sentence().contains("unixbench with 4 copies, efficiency 75 % ("));
        assert!(one.sentence().contains("unixbench with 1 copy ("));
        assert!(alone.sentence().contains("unixbench-4.1 with 4 copies ("));
    }

    /// Nitzberg (1994), appendix B, run 1; and P. Ciarrocchi on linux-kernel, 4 September 2002,
    /// Linux 2.4.19: sum 493.2.
    #[test]
    fn three_is_the_arithmetic_mean_of_six() {
        let nitzberg = [
            ("arith-double", 2951.1, 1.2),
            ("dhry2", 30_519.5, 1.4),
            ("execl", 37.8, 2.3),
            ("fstime", 139.0, 0.8),
            ("context1@same-cpu", 645.9, 0.5),
            ("shell8", 1.6, 0.4),
        ];
        let index = assert_agrees("unixbench-3.11", &nitzberg, 1.1);
        assert!(index.sentence().contains("(sum 6.5, arithmetic mean of 6)"));
        let ciarrocchi = [
            ("arith-double", 210_385.9, 82.8),
            ("dhry2", 1_499_020.6, 67.0),
            ("execl", 998.0, 60.5),
            ("fstime", 14_334.0, 80.1),
            ("context1@same-cpu", 218_969.9, 166.1),
            ("shell8", 147.0, 36.8),
        ];
        let index = assert_agrees("unixbench-3.11", &ciarrocchi, 82.2);
        assert!(index.sentence().contains("(sum 493.2, arithmetic mean of 6)"));
    }
}
