//! Surroundings that arms provide for their samples, and that a workload can need.

use std::collections::BTreeSet;

use weigh_fixture::{FIXTURES, FixtureKind, is_server};
use weigh_model::result::work_name::{APP, BESIDE};
use weigh_treatment::read_label;

/// The kinds of server that each arm has for all its workloads.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    arms: Vec<(String, BTreeSet<&'static str>)>,
    /// True if one of the arms' treatments or fixtures is a process that workloads send requests
    /// to.
    is_any_asked: bool,
}

impl Surroundings {
    /// Collects the surroundings of arms with these labels, all with these fixtures.
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
        let all = arms.iter().flat_map(names).chain(common.iter().cloned());
        let is_any_asked = all.into_iter().any(|name| is_server(&name));
        Surroundings { arms: arms.iter().map(found).collect(), is_any_asked }
    }

    /// Returns true if a workload, as a row names it, sends requests to another process.
    pub fn is_server_asked(&self, name: &str) -> bool {
        let Some(name) = name.strip_prefix(APP) else { return false };
        let name = name.split_once(BESIDE).map_or(name, |(name, _)| name);
        let Some((_, service)) = name.split_once('@') else { return self.is_any_asked };
        let is_it = |fixture: &&&FixtureKind| {
            fixture.services.iter().any(|offered| offered.name == service)
        };
        FIXTURES.iter().filter(is_it).any(|fixture| fixture.is_asked)
    }

    /// Returns true if all arms meet this need, and false if no arm does.
    pub fn have(&self, need: &str) -> Result<bool, String> {
        let lacking = self.arms.iter().find(|(_, met)| !met.contains(need));
        let having = self.arms.iter().find(|(_, met)| met.contains(need));
        match (having, lacking) {
            (Some((having, _)), Some((lacking, _))) => Err(format!(
                "`{having}` has a fixture for `{need}`, but `{lacking}` does not. Give one to each arm, or \
                 to no arm: then each workload starts its own"
            )),
            (having, _) => Ok(having.is_some()),
        }
    }
}

fn needs_met(fixture: &str) -> Vec<&'static str> {
    let services = weigh_fixture::find(fixture).map_or(&[][..], |fixture| fixture.services);
    services.iter().map(|service| service.need).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_no_server_that_is_asked() {
        let of = |fixtures: &[&str], name: &str| {
            let fixtures: Vec<String> = fixtures.iter().map(|&label| label.into()).collect();
            Surroundings::of(&["none".into()], &fixtures).is_server_asked(name)
        };
        assert!(of(&[], "app:db.point-read@mariadb-relaxed"));
        assert!(of(&[], "app:web.page@nginx/app:db.point-read@sqlite"));
        assert!(!of(&[], "app:db.point-read@sqlite-relaxed"));
        assert!(!of(&[], "feel:spawn/app:db.point-read@mariadb"));
        assert!(of(&["postgres:relaxed"], "app:db.point-read"));
        assert!(!of(&["sqlite"], "app:db.point-read") && !of(&["postgres"], "getppid"));
    }

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
        assert!(of(&["none", "mariadb+audit"], &[]).unwrap_err().contains("`none` does not"));
    }
}
