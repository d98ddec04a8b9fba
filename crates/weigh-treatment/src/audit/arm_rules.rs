//! The rules of one arm, which take turns with those of other arms in the kernel's one list.
//!
//! They are loaded once by `auditctl`, or as we make them; what the kernel then lists is what is sent
//! to it again whenever it is their turn.

use std::collections::HashSet;
use std::io;

use linux_audit::netlink::Client;
use linux_audit::rule::Rule;

/// Rules in the kernel when it is this arm's turn.
pub struct ArmRules {
    /// All rules, those of the host too, as the kernel lists them.
    pub listed: Vec<Rule>,
    /// The arm's own rules among these, in the order in which they have to be loaded.
    own: Vec<Rule>,
}

impl ArmRules {
    /// Learns the arm's own rules: all rules that are loaded now and were not there `before`.
    pub fn learn(before: &[Rule], now: Vec<Rule>) -> ArmRules {
        let hosts: HashSet<&Rule> = before.iter().collect();
        // The kernel adds a rule at the end of its list or, prepended, at the head. It does not say
        // which it was: a rule before one of the host's was prepended, the last of them first.
        let is_before_hosts = |index: usize, rule: &Rule| {
            let later = now[index + 1..].iter();
            later.into_iter().any(|later| later.filter() == rule.filter() && hosts.contains(later))
        };
        let own = now.iter().enumerate().filter(|(_, rule)| !hosts.contains(rule));
        let (front, back): (Vec<_>, Vec<_>) =
            own.partition(|(index, rule)| is_before_hosts(*index, rule));
        let prepended = front.into_iter().rev().map(|(_, rule)| rule.clone().prepended());
        let own = back.into_iter().map(|(_, rule)| rule.clone()).chain(prepended).collect();
        ArmRules { listed: now, own }
    }

    /// How many rules are the arm's own.
    pub fn count(&self) -> usize {
        self.own.len()
    }

    /// The arm's own rules as the kernel lists them.
    pub fn own(&self) -> impl Iterator<Item = Rule> {
        self.own.iter().map(|rule| rule.clone().listed())
    }

    /// Returns true if equal rules are loaded in the turns of both arms.
    pub fn is_same(&self, other: &ArmRules) -> bool {
        self.listed == other.listed
    }

    /// Loads the arm's own rules.
    ///
    /// # Errors
    /// As [`Client::add_rule`]: a watch's directory may have gone.
    pub fn load(&self, client: &mut Client) -> io::Result<()> {
        self.own.iter().try_for_each(|rule| client.add_rule(rule))
    }

    /// Unloads them again.
    ///
    /// # Errors
    /// As [`Client::delete_rule`]: somebody else may have unloaded one.
    pub fn unload(&self, client: &mut Client) -> io::Result<()> {
        self.own().try_for_each(|rule| client.delete_rule(&rule))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn watch(path: &str) -> Rule {
        Rule::watch(Path::new(path), "k").listed()
    }

    /// Applies the rules as the kernel does to its list.
    fn loaded(host: &[Rule], set: &ArmRules) -> Vec<Rule> {
        let mut list = host.to_vec();
        for rule in &set.own {
            let listed = rule.clone().listed();
            let same_filter = |other: &&Rule| other.filter() == listed.filter();
            let (first, count) = (
                list.iter().position(|other| same_filter(&other)).unwrap_or(list.len()),
                list.iter().filter(same_filter).count(),
            );
            let at = if *rule == listed { first + count } else { first };
            list.insert(at, listed);
        }
        list
    }

    #[test]
    fn loaded_again_the_rules_are_in_the_order_in_which_they_were() {
        let task = Rule::never_task(7).listed();
        let host = [task.clone(), watch("/host/a"), watch("/host/b")];
        let [a, b, c, d] = ["/a", "/b", "/c", "/d"].map(watch);
        let now = vec![task, a, b, host[1].clone(), host[2].clone(), c, d];
        let set = ArmRules::learn(&host, now.clone());
        assert_eq!(set.count(), 4);
        assert_eq!(loaded(&host, &set), now);
        assert!(set.own().all(|rule| !host.contains(&rule)));
    }

    #[test]
    fn on_a_host_without_rules_all_are_appended() {
        let now = vec![watch("/a"), watch("/b")];
        let set = ArmRules::learn(&[], now.clone());
        assert_eq!((&set.own, loaded(&[], &set)), (&now, now.clone()));
    }
}
