//! Settings that an arm asks of its servers, turned into parameters of its fixtures.
//!
//! The fixtures may be in the arm's label, in the labels of all arms, or belong to one workload.

use super::kind::server;
use super::read_label;
use weigh_model::kind::is_of_form;
use weigh_model::label::{Parameters, Term};

/// Gives a fixture what the treatments of its arm ask of the servers that it has. Whether there was anything.
pub fn tune(fixture: &mut Term, arm: &[Term]) -> bool {
    let Some(found) = weigh_fixture::find(&fixture.name) else { return false };
    let forms = found.kind.parameters.iter().map(|known| known.form);
    let heads = forms.filter_map(|form| form.split_once('='));
    let of_servers: Vec<&str> = heads.map(|(head, _)| head).filter(|h| h.contains('.')).collect();
    let mut is_tuned = false;
    for term in arm.iter().filter(|term| term.name == server::KIND.kind.name) {
        for (key, value) in term.parameters.iter() {
            if of_servers.iter().any(|form| is_of_form(key, form)) {
                let value = value.unwrap_or_default();
                fixture.parameters = fixture.parameters.replaced(&[key], key, value);
                is_tuned = true;
            }
        }
    }
    is_tuned
}

/// Returns the settings that an arm asks of its servers, for all servers together.
pub fn asked_of_servers(arm: &str) -> Option<Parameters> {
    let terms = read_label(arm).ok()?.treatments.into_iter();
    let mut of_servers = terms.filter(|term| term.name == server::KIND.kind.name);
    of_servers.next().map(|term| term.parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_gets_what_is_asked_of_its_own_servers() {
        let arm = read_label("server:mariadb.a=1,apache.config=f+nice:5").unwrap().treatments;
        let tuned = |label: &str| {
            let mut term = read_label(label).unwrap().treatments.remove(0);
            let is_tuned = tune(&mut term, &arm);
            let all = term.parameters.iter().map(|(key, value)| (key, value.unwrap_or("")));
            (is_tuned, all.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>())
        };
        assert_eq!(
            tuned("mariadb:connections=20"),
            (true, vec!["connections=20".into(), "mariadb.a=1".into()])
        );
        assert_eq!(tuned("apache"), (true, vec!["apache.config=f".into()]));
        assert_eq!(tuned("postgres"), (false, vec![]));
        assert!(!tuned("nice:5").0);
        let (is_tuned, all) = tuned("apache-mod-php:mariadb.a=0");
        assert!(is_tuned && all == ["mariadb.a=1", "apache.config=f"], "{all:?}");
    }
}
