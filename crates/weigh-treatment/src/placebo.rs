//! The baseline that treatments are compared with if the user names none: nothing, or their placebo.
//!
//! Applying a treatment can have an effect of its own: a new build is also a new link, and a process in a
//! control group was also moved there. So the baseline goes through the same procedure, without the effect.

use super::kind::none;
use super::{canonical, find_treatment, is_name, read_label};
use weigh_model::label::{ArmLabel, Parameters, Term};
use weigh_model::result::warning::Warning;

/// Baseline that a kind of treatment offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placebo {
    /// Nothing: applying it has no effect of its own, or a placebo would not be free of cost.
    Nothing,
    /// Itself with these parameters: the same procedure, without the effect.
    Of(Parameters),
    /// Not on this machine, as the clause says.
    Impossible(String),
}

/// The baseline of an experiment whose user named none.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultBaseline {
    pub label: String,
    /// Why it is no placebo, where one was to be expected.
    pub warning: Option<Warning>,
}

impl DefaultBaseline {
    /// The baseline that all these arms share: a placebo only if it is the placebo of each of them.
    pub fn of(arms: &[String]) -> Result<DefaultBaseline, String> {
        let placebos = arms.iter().map(|arm| of_arm(arm)).collect::<Result<Vec<_>, _>>()?;
        let nothing = |warning| DefaultBaseline { label: none::KIND.kind.name.into(), warning };
        if let Some(reason) = placebos.iter().find_map(|placebo| placebo.as_ref().err()) {
            return Ok(nothing(Some(Warning::NoPlacebo { reason: reason.clone() })));
        }
        let mut labels: Vec<Option<&str>> =
            placebos.iter().flatten().map(Option::as_deref).collect();
        labels.sort_unstable();
        labels.dedup();
        Ok(match labels.as_slice() {
            [Some(label)] => DefaultBaseline { label: (*label).to_owned(), warning: None },
            [] | [None] => nothing(None),
            several => {
                let placebos = several.iter().copied().flatten().map(str::to_owned).collect();
                nothing(Some(Warning::NoCommonPlacebo { placebos }))
            }
        })
    }
}

/// The placebo of an arm, which is those of all that it combines; `Err` says why it is not to be had.
fn of_arm(text: &str) -> Result<Result<Option<String>, String>, String> {
    let ArmLabel { places, treatments } = read_label(text)?;
    let placebo = |term: &Term| {
        let kind = find_treatment(&term.name);
        kind.map_or(Placebo::Nothing, |kind| (kind.placebo)(&term.parameters))
    };
    let (mut ours, mut lacks_place) = (ArmLabel::default(), false);
    let terms = places.into_iter().map(|term| (term, true));
    for (term, is_place) in terms.chain(treatments.into_iter().map(|term| (term, false))) {
        match placebo(&term) {
            Placebo::Impossible(why) => return Ok(Err(why)),
            Placebo::Nothing => lacks_place |= is_place,
            Placebo::Of(parameters) => {
                let list = if is_place { &mut ours.places } else { &mut ours.treatments };
                list.push(Term { parameters, ..term });
            }
        }
    }
    // Somewhere else it would be another baseline.
    if lacks_place {
        return Ok(Ok(None));
    }
    if ours.treatments.is_empty() {
        ours.treatments.extend(ours.places.pop());
    }
    let label = (!ours.treatments.is_empty()).then(|| ours.written(is_name));
    // A placebo itself is compared with nothing.
    let own = canonical(text)?;
    Ok(Ok(label.filter(|label| *label != own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn baseline(arms: &[&str]) -> DefaultBaseline {
        let arms: Vec<String> = arms.iter().map(|arm| (*arm).to_owned()).collect();
        DefaultBaseline::of(&arms).unwrap()
    }

    #[test]
    fn arms_with_one_placebo_are_compared_with_it() {
        let label = |arms: &[&str]| {
            let DefaultBaseline { label, warning } = baseline(arms);
            assert_eq!(warning, None, "{arms:?}");
            label
        };
        assert_eq!(label(&["build:cflags=-O3"]), "build");
        assert_eq!(label(&["build:cflags=-O3", "build:cc=clang"]), "build");
        assert_eq!(label(&["cgroup:pids.max=50,memory.max=9M"]), "cgroup:pids,memory");
        assert_eq!(label(&["cgroup:memory.max=9M,memory.high=1M+nice:5"]), "cgroup:memory");
        assert_eq!(label(&["nice:5", "seccomp", "env:A=b"]), "none");
        assert_eq!(label(&["build"]), "none", "what building here changes");
        assert_eq!(label(&["cgroup:pids"]), "none", "what being moved changes");
        assert_eq!(label(&["host:a@b::build:cflags=-O3"]), "none", "elsewhere");
    }

    #[test]
    fn arms_without_a_common_placebo_are_compared_with_nothing_and_that_is_said() {
        for (arms, placebos) in [
            (["build:cflags=-O3", "nice:5"], &["build"][..]),
            (["build:cc=clang", "cgroup:pids.max=9"], &["build", "cgroup:pids"]),
        ] {
            let placebos = placebos.iter().map(|label| (*label).to_owned()).collect();
            let warning = Some(Warning::NoCommonPlacebo { placebos });
            assert_eq!(baseline(&arms), DefaultBaseline { label: "none".into(), warning });
        }
    }

    /// Checks that the table of preparations of a process and placebos has a line for each kind.
    #[test]
    fn each_kind_is_in_the_table_of_what_is_done_to_a_process() {
        const PAGE: &str = concat!(env!("WORKSPACE"), "/docs/before-a-sample.md");
        let page = std::fs::read_to_string(PAGE).unwrap();
        let columns = |line: &str| line.trim_matches('|').split(" | ").count();
        let row = |name: &str| {
            let begin = format!("| `{name}` | ");
            let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(&begin)).collect();
            assert!(rows.len() == 1 && columns(rows[0]) == 4, "`{name}`: {rows:?}");
            rows[0]
        };
        let names: Vec<&str> = kinds().map(|kind| kind.name).collect();
        assert!(names.len() >= 33, "{}", names.len());
        for name in names {
            let placebo = find_treatment(name).map(|kind| (kind.placebo)(&Parameters::default()));
            let offers = placebo.is_some_and(|placebo| placebo != Placebo::Nothing);
            assert_eq!(offers, row(name).contains("**Default**"), "the placebo of `{name}`");
        }
    }

    #[test]
    fn each_placebo_is_a_treatment_that_can_be_named() {
        for arm in ["build:cflags=-O3", "cgroup:cpu.max=\"5000 10000\",io.max=x", "rootfs:/tmp"] {
            let DefaultBaseline { label, warning } = baseline(&[arm]);
            assert!(label != "none" || warning.is_some(), "{arm}");
            assert_eq!(canonical(&label).unwrap(), label);
            crate::parse(&label).unwrap();
        }
    }
}
