//! `--copies` of `weigh run`: a number, or several to see how a workload scales.

use super::ask::ask;
use super::value;
use weigh_model::result::work_name::{MOST_COPIES, WorkName};
use weigh_model::workload::suite;
use weigh_model::workload::suite::{FromFile, Suite};

/// A range of more numbers than this is measured at its powers of two: beyond, a curve gains points but
/// no shape.
const WHOLE_RANGE: usize = 8;
/// More than so many per CPU say nothing that fewer do not, and may bring a machine down.
const MANY_PER_CPU: usize = 16;

/// Asks before very many copies, as an option says or the label of a workload, unless `is_meant`.
pub fn confirm(wanted: &[usize], workloads: &[String], is_meant: bool) -> Result<(), String> {
    match too_many(wanted, workloads) {
        Some(what) if !is_meant => ask(&what, "--yes"),
        _ => Ok(()),
    }
}

/// Refuses very many copies where nobody can be asked for them.
pub fn refuse_many(workloads: &[String]) -> Result<(), String> {
    let refused =
        |what| Err(format!("{what}: `weigh run --yes` and `weigh compare --yes` take that many"));
    too_many(&[], workloads).map_or(Ok(()), refused)
}

/// Writes a warning if an option or a label asks for very many copies.
fn too_many(wanted: &[usize], workloads: &[String]) -> Option<String> {
    let labelled = workloads.iter().filter_map(|label| WorkName::parse(label).ok()).flatten();
    let wanted = wanted.iter().copied().chain(labelled.map(|name| name.copies()));
    let (most, cpus) = (wanted.max().unwrap_or(1), value::cpus());
    let plural = if cpus == 1 { "" } else { "s" };
    (most > MANY_PER_CPU * cpus)
        .then(|| format!("this runs {most} copies of each workload at once, on {cpus} CPU{plural}"))
}

/// How many copies to run at the same time, ascending, none twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies(pub Vec<usize>);

impl Copies {
    /// Returns the numbers of copies to measure by default: one copy, as that is the cost of a
    /// workload. With an index, or as the original measures, it adds one copy per CPU, as UnixBench
    /// does. `files` are the names that are files.
    pub fn default_of(
        names: &[String],
        files: &[FromFile],
        is_classic: bool,
    ) -> Result<Copies, String> {
        let suites = suite::embedded()?;
        let ours = suites.iter().filter(|suite| names.contains(&suite.name));
        let mut asked_for = ours.chain(files.iter().map(|own| &own.suite));
        let gives_index = |suite: &Suite| suite::gives_index(&suites, suite);
        let mut numbers = vec![1];
        if is_classic || asked_for.any(gives_index) {
            numbers.push(value::cpus().min(MOST_COPIES));
        }
        numbers.dedup();
        Ok(Copies(numbers))
    }

    /// `4`, `all`, `1,2,4`, `1..all`.
    pub fn parse(text: &str) -> Result<Copies, String> {
        let mut numbers = Vec::new();
        for item in text.split(',') {
            let Some((from, to)) = item.split_once("..") else {
                numbers.push(value::copies(item).map_err(|problem| match item.contains('@') {
                    true => problem,
                    false => {
                        format!("{problem}, a list or a range of them such as 1,2,4 or 1..all")
                    }
                })?);
                continue;
            };
            let (from, to) = (value::copies(from)?, value::copies(to)?);
            if from > to {
                return Err(format!("ends at {to}, before it begins at {from}"));
            }
            numbers.extend(range(from, to));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Copies(numbers))
    }
}

/// As one would write it.
impl std::fmt::Display for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

fn range(from: usize, to: usize) -> Vec<usize> {
    let is_short = to - from < WHOLE_RANGE;
    (from..=to).filter(|n| is_short || n.is_power_of_two() || *n == from || *n == to).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Vec<usize> {
        Copies::parse(text).unwrap().0
    }

    #[test]
    fn short_ranges_are_whole_and_long_ones_have_powers_of_two() {
        assert_eq!(parsed("4"), [4]);
        assert_eq!(parsed("4,1,2,1"), [1, 2, 4]);
        assert_eq!(parsed("1..8"), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(parsed("1..12"), [1, 2, 4, 8, 12]);
        assert_eq!(parsed("3..33,5"), [3, 4, 5, 8, 16, 32, 33]);
        assert_eq!(parsed("1..all").last(), parsed("all").last());
    }

    #[test]
    fn very_many_copies_have_to_be_meant() {
        let many = MANY_PER_CPU * value::cpus();
        assert_eq!(confirm(&[1, many], &["pipe:copies=2".into()], false), Ok(()));
        assert_eq!(confirm(&[many + 1], &[], true), Ok(()));
        let labelled = [format!("pipe:copies={}", many + 1)];
        assert_eq!(confirm(&[1], &labelled, true), Ok(()));
        assert!(too_many(&[1], &labelled).is_some() && refuse_many(&labelled).is_err());
        assert_eq!(refuse_many(&[format!("pipe:copies={many}")]), Ok(()));
    }

    #[test]
    fn an_index_is_of_one_copy_and_of_one_per_cpu() {
        let default = |names: &[&str], is_classic| {
            let names: Vec<String> = names.iter().map(|name| (*name).into()).collect();
            Copies::default_of(&names, &[], is_classic).unwrap().0
        };
        for suite in ["unixbench", "unixbench-all", "unixbench-4.1", "unixbench-3.11"] {
            assert_eq!(default(&["getppid", suite], false), parsed("1,all"), "{suite}");
        }
        assert_eq!(default(&["quick", "syscall", "lmbench"], false), [1]);
        assert_eq!(default(&["quick"], true), parsed("1,all"));
    }

    #[test]
    fn what_is_no_number_of_copies_is_said() {
        for bad in ["", ",", "0", "1..", "..4", "1...4", "1..2000", "-1..2", "some", "1;2"] {
            assert!(Copies::parse(bad).unwrap_err().contains("takes a number"), "{bad}");
        }
        assert!(Copies::parse("4..2").unwrap_err().contains("before it begins"));
        assert!(Copies::parse("me@host").unwrap_err().ends_with("--client me@host"));
    }

    proptest! {
        #[test]
        fn any_list_ascends_within_the_limits_and_is_read_back(
            items in prop::collection::vec((1_usize..=1024, 0_usize..=1024), 1..5)
        ) {
            let items = items.iter().map(|&(from, more)| format!("{from}..{}", (from + more).min(1024)));
            let copies = Copies::parse(&items.collect::<Vec<_>>().join(",")).unwrap();
            prop_assert!(copies.0.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(copies.0.iter().all(|n| (1..=1024).contains(n)));
            prop_assert_eq!(Copies::parse(&copies.to_string()), Ok(copies));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-l.,]{0,12}") {
            let _ = Copies::parse(&text);
        }
    }
}
