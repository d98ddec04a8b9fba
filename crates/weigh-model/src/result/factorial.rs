//! The arms of a full factorial design, and the effects that follow from them: of each factor, and of factors
//! together beyond what each does alone.
//!
//! Where y(S) is the log of the rate with the treatments S, the effect of T among k factors is
//!
//! ```text
//! Σ over all S of (−1)^|T \ S| · y(S) / 2^(k − |T|)
//! ```
//!
//! Of one factor: the mean, over all settings of the others, of what switching it on does. Of two: how much
//! more the one does where the other is on. Yates, "The Design and Analysis of Factorial Experiments" (1937);
//! Box, Hunter and Hunter, "Statistics for Experimenters", chapter 5, who halve an interaction once more for
//! each factor beyond the first. The weights of an effect sum to 0, so each y(S) may be the log-ratio of
//! its arm to the baseline, which is what a pair gives.

use serde::{Deserialize, Serialize};

use crate::result::work_name::WorkName;
use paired::{Verdict, Withheld};

/// More factors have more arms than an experiment can measure next to each other.
pub const MOST_FACTORS: usize = 4;

/// A full factorial design: 2^k arms of k treatments, the baseline has none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factorial {
    pub factors: Vec<String>,
    /// Factors of each arm as a mask, the baseline first: bit i is the i-th factor.
    of_arms: Vec<usize>,
}

/// An effect, as the factors that it is of: bit i is the i-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect(usize);

impl Factorial {
    /// The design of arms that are given as sets of factors, the baseline first; `None` where they are not
    /// all the sets that there are of two or more factors, each once.
    pub fn of(arms: &[Vec<String>]) -> Option<Factorial> {
        let mut factors: Vec<String> = Vec::new();
        for factor in arms.iter().flatten() {
            if !factors.contains(factor) {
                factors.push(factor.clone());
            }
        }
        let is_possible = (2..=MOST_FACTORS).contains(&factors.len());
        if !is_possible || arms.len() != 1 << factors.len() || !arms.first()?.is_empty() {
            return None;
        }
        let bit = |factor: &String| factors.iter().position(|other| other == factor);
        let mask = |arm: &Vec<String>| arm.iter().filter_map(bit).fold(0, |mask, i| mask | 1 << i);
        let of_arms: Vec<usize> = arms.iter().map(mask).collect();
        let mut sorted = of_arms.clone();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..arms.len()).then_some(Factorial { factors, of_arms })
    }

    /// All effects: those of one factor first, then those of two, and so on.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = (1..self.of_arms.len()).map(Effect).collect();
        effects.sort_by_key(|effect| effect.0.count_ones());
        effects
    }

    /// The factors of an effect, in the order given.
    pub fn factors_of(&self, effect: Effect) -> Vec<String> {
        let has = |(i, _): &(usize, &String)| effect.0 & (1 << i) != 0;
        self.factors.iter().enumerate().filter(has).map(|(_, factor)| factor.clone()).collect()
    }

    /// The effect from the log-ratios of each arm to the baseline, from arm 1 on.
    pub fn contrast(&self, effect: Effect, log_ratios: &[f64]) -> f64 {
        self.weights(effect).iter().zip(log_ratios).map(|(weight, d)| weight * d).sum()
    }

    /// The weights of the arms' log-ratios in an effect, from arm 1 on.
    pub fn weights(&self, effect: Effect) -> Vec<f64> {
        let k = self.factors.len() as u32;
        let scale = f64::from(1_u32 << (k - effect.0.count_ones()));
        let weight = |arm: &usize| match (effect.0 & !arm).count_ones() % 2 {
            0 => 1.0 / scale,
            _ => -1.0 / scale,
        };
        self.of_arms.iter().skip(1).map(weight).collect()
    }
}

/// The sets of factors that a full design has, in the order of its arms: none, A, B, A and B, C, …
pub fn subsets(factors: &[String]) -> impl Iterator<Item = Vec<&str>> {
    (0..1_usize << factors.len()).map(|mask| {
        let has = |(i, _): &(usize, &String)| mask & (1 << i) != 0;
        factors.iter().enumerate().filter(has).map(|(_, factor)| factor.as_str()).collect()
    })
}

/// Effect of a factor, or of several together, on the rate of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorialEffect {
    #[serde(flatten)]
    pub workload: WorkName,
    /// Labels of treatments: one of a main effect, several of an interaction.
    pub factors: Vec<String>,
    /// In per cent of the rate, negative is slower: of a main effect the mean over all settings of the other
    /// factors; of an interaction what the factors do together beyond what each does alone.
    pub effect_pct: f64,
    /// The interval of the effect; `None` where it is not bounded.
    pub low_pct: Option<f64>,
    pub high_pct: Option<f64>,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Withheld>,
    /// From how many rounds, each with a pair of every arm.
    pub rounds: usize,
}

impl FactorialEffect {
    /// Returns true for an effect of several factors together.
    pub fn is_interaction(&self) -> bool {
        self.factors.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(factors: &[&str]) -> Factorial {
        let factors: Vec<String> = factors.iter().map(|factor| (*factor).to_owned()).collect();
        let arms: Vec<Vec<String>> =
            subsets(&factors).map(|arm| arm.into_iter().map(str::to_owned).collect()).collect();
        Factorial::of(&arms).expect("it is full")
    }

    #[test]
    fn of_two_factors_it_is_what_the_books_have() {
        let design = design(&["a", "b"]);
        let [a, b, together] = design.effects()[..] else { panic!("{:?}", design.effects()) };
        // y(A) = 1, y(B) = 10, y(AB) = 14.
        let log_ratios = [1.0, 10.0, 14.0];
        assert_eq!(design.contrast(a, &log_ratios), (1.0 + 4.0) / 2.0);
        assert_eq!(design.contrast(b, &log_ratios), (10.0 + 13.0) / 2.0);
        assert_eq!(design.contrast(together, &log_ratios), 3.0);
        assert_eq!(design.factors_of(together), ["a", "b"]);
    }

    #[test]
    fn of_three_factors_each_planted_effect_comes_back_alone() {
        let design = design(&["a", "b", "c"]);
        for planted in design.effects() {
            // An effect of 1 where all its factors are on: main effects and lower interactions of parts of
            // it follow from that, and nothing of what is no part.
            let y = |arm: usize| f64::from(u8::from(arm & planted.0 == planted.0));
            let log_ratios: Vec<f64> = (1..8).map(y).collect();
            for effect in design.effects() {
                let outside = planted.0 & !effect.0;
                let is_part = effect.0 & !planted.0 == 0;
                let expected =
                    if is_part { 0.5_f64.powi(outside.count_ones() as i32) } else { 0.0 };
                assert_eq!(
                    design.contrast(effect, &log_ratios),
                    expected,
                    "{planted:?} {effect:?}"
                );
            }
        }
    }

    #[test]
    fn only_all_the_sets_make_a_design() {
        let arms = |arms: &[&[&str]]| -> Option<Factorial> {
            let words = |arm: &&[&str]| arm.iter().map(|word| (*word).to_owned()).collect();
            Factorial::of(&arms.iter().map(words).collect::<Vec<Vec<String>>>())
        };
        assert!(arms(&[&[], &["a"], &["b"], &["b", "a"]]).is_some());
        assert!(arms(&[&[], &["a", "b"], &["b"], &["a"]]).is_some(), "in any order");
        assert!(arms(&[&[], &["a"], &["b"]]).is_none());
        assert!(arms(&[&[], &["a"]]).is_none());
        assert!(arms(&[&[], &["a"], &["b"], &["b"]]).is_none());
        assert!(arms(&[&["a"], &[], &["b"], &["a", "b"]]).is_none(), "the baseline has none");
        assert!(arms(&[]).is_none());
    }
}
