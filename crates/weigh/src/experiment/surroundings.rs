//! What arms have around their samples that a workload can need.

use std::collections::BTreeSet;

use crate::fixture::{FIXTURES, FixtureKind};
use crate::treatment::read_label;

/// The kinds of server that each arm has for all its workloads.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    arms: Vec<(String, BTreeSet<&'static str>)>,
}

impl Surroundings {
    /// Of arms with these labels, all with these fixtures.
    pub fn of(arms: &[String], fixtures: &[String]) -> Surroundings {
        let names = |label: &String| -> Vec<String> {
            let arm = read_label(label).unwrap_or_default();
            arm.treatments.into_iter().map(|term| term.name).collect()
        };
        let common: Vec<String> = fixtures.iter().flat_map(names).collect();
        let found = |label: &String| {
            let names = names(label).into_iter().chain(common.iter().cloned());
            (label.clone(), names.flat_map(|name| needs_met(&name)).collect())
        };
        Surroundings { arms: arms.iter().map(found).collect() }
    }

    /// Whether all arms have this, or none has.
    ///
    /// # Errors
    /// Where some have it.
    pub fn have(&self, need: &str) -> Result<bool, String> {
        let lacking = self.arms.iter().find(|(_, met)| !met.contains(need));
        let having = self.arms.iter().find(|(_, met)| met.contains(need));
        match (having, lacking) {
            (Some((having, _)), Some((lacking, _))) => Err(format!(
                "`{having}` has a {need} and `{lacking}` has none: give one to each arm, or to none and each \
                 workload starts its own"
            )),
            (having, _) => Ok(having.is_some()),
        }
    }
}

fn needs_met(fixture: &str) -> Vec<&'static str> {
    let kind = FIXTURES.iter().find(|kind| FixtureKind::name(**kind) == fixture);
    kind.map_or(Vec::new(), |kind| kind.services().iter().map(|service| service.need).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_arms_have_is_there_and_what_some_have_is_refused() {
        let of = |arms: &[&str], fixtures: &[&str]| {
            let owned = |labels: &[&str]| {
                labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>()
            };
            Surroundings::of(&owned(arms), &owned(fixtures)).have("database")
        };
        assert_eq!(of(&["mariadb", "mariadb:relaxed"], &[]), Ok(true));
        assert_eq!(of(&["none", "audit"], &["postgres"]), Ok(true));
        assert_eq!(of(&["none", "nginx"], &[]), Ok(false));
        assert!(of(&["none", "mariadb+audit"], &[]).unwrap_err().contains("`none` has none"));
    }
}
