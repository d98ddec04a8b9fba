//! Attribution on a simulated machine, whose rules have known costs.

use std::time::Duration;

use super::attribute::{Attribution, Question, attribute};
use super::pools::Pools;
use super::scale::{Scale, is_seen};
use crate::report::rules::Standing;
use crate::stats::simulated::{Machine, Noise};
use crate::treatment::Error;

/// Two operations, of which a rule costs the second twice as much; now and then one is interrupted.
struct Simulated {
    costs: Vec<f64>,
    noise: Machine,
    /// Of a cost, by deviation of the noise.
    scatter: f64,
    weighings: usize,
    give_up_after: usize,
}

impl Scale for Simulated {
    fn weigh(&mut self, loaded: &[usize]) -> Result<Vec<f64>, Error> {
        self.weighings += 1;
        if self.weighings > self.give_up_after {
            return Err(Error::Interrupted);
        }
        let rules: f64 = loaded.iter().map(|rule| self.costs[*rule]).sum();
        let mut noisy = |value: f64| value + self.scatter * self.noise.pair(0.0);
        Ok(vec![noisy(400.0 + rules), noisy(900.0 + 2.0 * rules)])
    }
}

/// 40 rules of 2 units, 6 of 30, of which the last costs 90 in truth, and 5 of nothing.
fn simulated(give_up_after: usize) -> (Simulated, Question) {
    let costs: Vec<f64> =
        [vec![2.0; 40], vec![30.0; 5], vec![90.0], vec![0.0; 5]].into_iter().flatten().collect();
    let kind = |rule: usize| {
        if rule < 40 {
            "other"
        } else if rule < 46 {
            "all"
        } else {
            "file"
        }
    };
    let question = Question {
        pools: Pools::new((0..costs.len()).map(|rule| vec![kind(rule); 2]).collect()),
        order_matters: false,
        weights: vec![vec![0.6, 0.2]; costs.len()],
        top: 6,
        time: Duration::from_secs(20),
    };
    let noise = Machine::new(Noise::HeavyTailed, 5);
    (Simulated { costs, noise, scatter: 300.0, weighings: 0, give_up_after }, question)
}

fn run(give_up_after: usize) -> (Attribution, Question) {
    let (mut scale, question) = simulated(give_up_after);
    let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
    (attribution, question)
}

#[test]
fn every_rule_gets_its_cost() {
    let (attribution, question) = run(usize::MAX);
    let cost = |rule| attribution.per_syscall(rule, &question.weights).value;
    // Per system call: 0.6 of the first operation and 0.2 of the second, which is twice as dear.
    assert!((cost(0) - 2.0).abs() < 0.5, "{}", cost(0));
    assert!((cost(41) - 30.0).abs() < 4.0, "{}", cost(41));
    assert!((cost(45) - 90.0).abs() < 10.0, "{}", cost(45));
    assert!(attribution.costs.has_own(45), "it is not as its class");
    assert_eq!(attribution.standing[45], Standing::Confirmed);
    assert_eq!(attribution.standing[41], Standing::Confirmed);
    assert_ne!(attribution.standing[0], Standing::Confirmed);
    let sum = attribution.costs.total(0..question.pools.rules(), &question.weights);
    assert!((sum.value - 320.0).abs() < 32.0 && is_seen(&sum), "{sum:?}");
    assert!(!attribution.is_cut_short);
}

#[test]
fn what_was_known_when_the_user_gave_up_is_kept() {
    let (mut scale, question) = simulated(10);
    let stopped = attribute(&mut scale, &question, &mut |_, _| {});
    assert!(matches!(stopped, Err(Error::Interrupted)), "nothing is known of any class yet");
    let (mut whole, _) = simulated(usize::MAX);
    attribute(&mut whole, &question, &mut |_, _| {}).unwrap();
    let (attribution, question) = run(whole.weighings - 10);
    assert!(attribution.is_cut_short);
    assert_eq!(attribution.standing.len(), question.pools.rules());
    assert!((attribution.per_syscall(0, &question.weights).value - 2.0).abs() < 0.5);
}

#[test]
fn of_exact_counts_only_what_is_far_from_its_kind_is_looked_at_again() {
    let (mut scale, question) = simulated(usize::MAX);
    scale.scatter = 0.0;
    scale.costs.iter_mut().enumerate().for_each(|(rule, cost)| *cost += 0.01 * rule as f64);
    let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
    assert!(attribution.costs.has_own(45));
    let confirmed = attribution.standing.iter().filter(|s| **s == Standing::Confirmed);
    assert!(confirmed.count() <= question.top + 1);
}
