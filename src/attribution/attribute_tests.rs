//! Attribution on a simulated machine, whose rules have known costs.

use std::time::Duration;

use super::attribute::{Attribution, MAX_PAIRS, PAIRS_PER_VISIT, Question, attribute};
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
    /// Whose cost is another each time that it is left out.
    fickle: Option<Fickle>,
    /// What those of the second kind cost besides, however many of them are loaded.
    shared: f64,
    /// Instead of a user who has enough, something that goes wrong.
    is_broken: bool,
}

struct Fickle {
    rule: usize,
    /// At the screening, in the first half of the leaving out, and in the second.
    costs: [f64; 3],
    times: usize,
    is_left_out: bool,
}

impl Fickle {
    /// What it is off what it costs elsewhere, where it alone is left out.
    fn off(&mut self, loaded: &[usize], costs: &[f64]) -> f64 {
        let is_left_out = loaded.len() + 1 == costs.len() && !loaded.contains(&self.rule);
        let is_another = loaded.len() + 1 == costs.len() && !is_left_out;
        if is_left_out && !self.is_left_out {
            self.times += 1;
        }
        // With all loaded, it may be its turn still.
        self.is_left_out = is_left_out || (self.is_left_out && !is_another);
        match is_left_out {
            true => {
                let half = 1 + MAX_PAIRS / PAIRS_PER_VISIT;
                let when = usize::from(self.times > 1) + usize::from(self.times > half);
                costs[self.rule] - self.costs[when]
            }
            false => 0.0,
        }
    }
}

impl Scale for Simulated {
    fn weigh(&mut self, loaded: &[usize]) -> Result<Vec<f64>, Error> {
        self.weighings += 1;
        if self.weighings > self.give_up_after {
            return Err(match self.is_broken {
                true => Error::Unavailable("no room".into()),
                false => Error::Interrupted,
            });
        }
        let off = self.fickle.as_mut().map_or(0.0, |fickle| fickle.off(loaded, &self.costs));
        let is_any = loaded.iter().any(|rule| (40..46).contains(rule));
        let off = if is_any { off + self.shared } else { off };
        let rules = off + loaded.iter().map(|rule| self.costs[*rule]).sum::<f64>();
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
    let (scatter, weighings, fickle, is_broken) = (300.0, 0, None, false);
    let scale = Simulated {
        costs,
        noise,
        scatter,
        weighings,
        give_up_after,
        fickle,
        shared: 0.0,
        is_broken,
    };
    (scale, question)
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
    // Per system call: 0.6 of the first operation and 0.2 of the second, which is twice as expensive.
    assert!((cost(0) - 2.0).abs() < 0.5, "{}", cost(0));
    assert!((cost(41) - 30.0).abs() < 4.0, "{}", cost(41));
    assert!((cost(45) - 90.0).abs() < 10.0, "{}", cost(45));
    assert_ne!(attribution.costs.of_rule(45), attribution.costs.of_its_pool(45));
    assert_eq!(attribution.standing[45], Standing::Confirmed);
    assert_eq!(attribution.standing[41], Standing::Confirmed);
    assert_ne!(attribution.standing[0], Standing::Confirmed);
    let sum = attribution.costs.total(0..question.pools.rules(), &question.weights);
    assert!((sum.value - 320.0).abs() < 32.0 && is_seen(&sum), "{sum:?}");
    assert!(!attribution.is_cut_short);
}

/// As by the clock, where the processor begins with a rule before it is done with the last.
#[test]
fn rules_that_cost_less_beside_others_of_their_kind_are_alike_all_the_same() {
    let (mut scale, question) = simulated(usize::MAX);
    scale.shared = 60.0;
    scale.costs[45] = 30.0;
    let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
    let costs = &attribution.costs;
    for rule in 40..46 {
        assert_eq!(costs.of_rule(rule), costs.of_rule(40), "{rule}");
        assert_eq!(attribution.standing[rule], Standing::Confirmed, "{rule}");
    }
    let one = attribution.per_syscall(40, &question.weights).value;
    assert!((one - 30.0).abs() < 4.0, "{one}");
    let of_kind = costs.together().total(40..46, &question.weights).value;
    assert!((of_kind - 240.0).abs() < 24.0, "{of_kind}");
    // Of the others, which add up, nothing else is said.
    assert!(costs.is_one_by_one(40) && !costs.is_one_by_one(0) && !costs.is_one_by_one(46));
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
    assert_ne!(attribution.costs.of_rule(45), attribution.costs.of_its_pool(45));
    let confirmed = attribution.standing.iter().filter(|s| **s == Standing::Confirmed);
    assert!(confirmed.count() <= question.top + 1);
}

#[test]
fn a_rule_that_leaving_out_does_not_confirm_is_not_shown_as_one_of_its_class() {
    let (mut scale, question) = simulated(usize::MAX);
    scale.scatter = 0.0;
    scale.fickle =
        Some(Fickle { rule: 45, costs: [90.0, 60.0, 120.0], times: 0, is_left_out: false });
    let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
    assert_eq!(attribution.standing[45], Standing::Contradicted);
    let [shown, back] =
        [attribution.per_syscall(45, &question.weights), attribution.gave_back[&45]];
    assert!(back.low <= back.value && back.value <= back.high, "{back:?} {shown:?}");
    assert_eq!(attribution.standing[41], Standing::Confirmed);
    let steady = attribute(&mut simulated(usize::MAX).0, &question, &mut |_, _| {}).unwrap();
    assert_eq!(steady.standing[45], Standing::Confirmed);
}

/// Leaving out tells of each of them three times, with few pairs; each time it may err.
#[test]
fn noise_seldom_contradicts_a_rule_that_costs_what_is_shown() {
    const EXPERIMENTS: u64 = 1000;
    let contradicted = |seed: &u64| {
        let (mut scale, mut question) = simulated(usize::MAX);
        scale.noise = Machine::new(Noise::White, *seed);
        scale.costs[45] = 30.0;
        // Small beside the noise, so that no leeway helps.
        scale.scatter = 1000.0;
        question.time = Duration::ZERO;
        let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
        attribution.standing[40..46].contains(&Standing::Contradicted)
    };
    let contradicted = (0..EXPERIMENTS).filter(contradicted).count();
    // 5 % and three standard deviations of 1000 repetitions.
    assert!(contradicted <= 70, "{contradicted} of {EXPERIMENTS}");
}

#[test]
fn what_is_counted_to_be_zero_costs_nothing() {
    let (mut scale, question) = simulated(usize::MAX);
    scale.scatter = 0.0;
    let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
    assert_eq!(attribution.standing[46..], [Standing::Nothing; 5]);
    assert!(!attribution.standing[..46].contains(&Standing::Nothing));
}

#[test]
fn what_goes_wrong_while_rules_are_left_out_takes_nothing_from_what_is_known() {
    let (mut whole, question) = simulated(usize::MAX);
    attribute(&mut whole, &question, &mut |_, _| {}).unwrap();
    let (mut scale, _) = simulated(whole.weighings - 10);
    scale.is_broken = true;
    let attribution = attribute(&mut scale, &question, &mut |_, _| {}).unwrap();
    assert!(matches!(attribution.failure, Some(Error::Unavailable(_))));
    assert!((attribution.per_syscall(0, &question.weights).value - 2.0).abs() < 0.5);
    assert!(attribution.standing.contains(&Standing::Confirmed), "those visited twice are judged");
}
