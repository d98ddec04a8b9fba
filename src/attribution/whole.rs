//! What all rules cost together: as it was measured with all of them loaded.

use super::assemble::Measured;
use super::attribute::mix as mixed;
use super::mix::Mix;
use super::processes;
use super::scale::sum;
use crate::report::rules::Cost;

/// What all rules cost together, per system call of the mix.
pub struct Whole {
    pub total: Cost,
    pub total_ns: Cost,
    pub armed: Cost,
    /// What the lines should add up to.
    pub of_lines: f64,
    /// By [`Operation::ALL`](super::operation::Operation::ALL): of a system call of the mix.
    pub weights: Vec<f64>,
}

impl Whole {
    pub fn of(measured: &Measured) -> Whole {
        let attribution = &measured.attribution;
        let weights = measured.mix.weights();
        // Processes and programs that are started have a price of their own.
        let starts = processes::beyond_their_likes(&measured.mix, &measured.exec);
        let mut with_starts = starts.clone();
        with_starts.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight);
        // A host that audits already has paid for the first rule.
        let is_armed_anyway = measured.host_rules > 0;
        let armed = match is_armed_anyway {
            true => Cost::default(),
            false => measured.levels.armed(&with_starts),
        };
        let of_rules = mixed(&attribution.total, &weights);
        let of_starts = measured.levels.rules(&starts);
        let correction = correction(measured, &measured.mix.without(processes::is_start));
        let total = plus(sum([of_rules, of_starts, armed]), correction);
        let total_ns = match &measured.elapsed {
            None => total,
            Some(elapsed) => {
                let all = match is_armed_anyway {
                    true => elapsed.rules(&with_starts),
                    false => elapsed.full(&with_starts),
                };
                plus(all, correction * all.value / (total.value - correction))
            }
        };
        let of_lines = of_rules.value + self::correction(measured, &measured.mix);
        Whole { total, total_ns, armed, of_lines, weights: with_starts }
    }
}

/// Of a profile, calls that a rule treats otherwise than the operation they are like are corrected by what
/// the lines say.
fn correction(measured: &Measured, mix: &Mix) -> f64 {
    let together = measured.attribution.costs.together();
    let total = |weights: &[Vec<f64>]| together.total(0..measured.rules.len(), weights).value;
    let each: Vec<Vec<f64>> = measured.decoded.iter().map(|rule| mix.weights_for(rule)).collect();
    total(&each) - total(&vec![mix.weights(); measured.rules.len()])
}

/// The cost and its interval, both shifted.
fn plus(cost: Cost, shift: f64) -> Cost {
    Cost { value: cost.value + shift, low: cost.low + shift, high: cost.high + shift }
}
