//! Rules that are alike, in one row: twenty equal rows tell no more than one.

use std::collections::HashMap;

use super::words::{loaded, number};
use super::{Cost, Line, LineCost, RuleReport, Standing};
use crate::report::format;

/// One rule, or several of a kind whose figures are the same. Never without a line.
pub struct Row<'a>(Vec<(&'a Line, &'a LineCost)>);

impl<'a> Row<'a> {
    pub fn first(&self) -> (&'a Line, &'a LineCost) {
        self.0[0]
    }

    pub fn rules(&self) -> usize {
        self.0.len()
    }

    /// `20 × ` where it is of twenty rules, nothing where it is of one.
    pub fn times(&self) -> String {
        match self.0.len() {
            1 => String::new(),
            several => format!("{} × ", format::integer(several as u64)),
        }
    }

    /// Of all its rules, where none is told less well than this.
    pub fn standing(&self) -> Standing {
        let is_confirmed = |(_, cost): &(&Line, &LineCost)| cost.standing == Standing::Confirmed;
        let least = self.0.iter().find(|line| !is_confirmed(line));
        least.map_or(Standing::Confirmed, |(_, cost)| cost.standing)
    }

    /// What its rules add together, per system call of the mix. What is known of a kind is known of its
    /// rules alike, so that intervals add as values do.
    pub fn per_syscall(&self) -> Cost {
        together(self.0.iter().map(|(_, cost)| cost.per_syscall))
    }

    /// The same on an operation; `None` where it was not weighed.
    pub fn on_operation(&self, operation: usize) -> Option<Cost> {
        let costs = self.0.iter().map(|(_, cost)| cost.per_operation.get(operation).copied());
        costs.collect::<Option<Vec<Cost>>>().map(|costs| together(costs.into_iter()))
    }
}

fn together(costs: impl Iterator<Item = Cost>) -> Cost {
    costs.fold(Cost::default(), |sum, cost| Cost {
        value: sum.value + cost.value,
        low: sum.low + cost.low,
        high: sum.high + cost.high,
    })
}

/// All loaded rules, alike ones in one row: the most expensive row first, and those that nothing is known of
/// at the end.
pub fn alike(r: &RuleReport) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut place_of = HashMap::new();
    for (_, line, cost) in loaded(r) {
        let place = *place_of.entry(key(cost)).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => row.0.push((line, cost)),
            None => rows.push(Row(vec![(line, cost)])),
        }
    }
    sorted(rows)
}

/// The same with a row for each rule.
pub fn one_by_one(r: &RuleReport) -> Vec<Row<'_>> {
    sorted(loaded(r).map(|(_, line, cost)| Row(vec![(line, cost)])).collect())
}

/// What is the same of rules that are shown as one: their kind, how well they are known, and their figures.
fn key(cost: &LineCost) -> (usize, Option<Standing>, Vec<String>) {
    let figures = cost.per_operation.iter().chain([&cost.per_syscall]);
    match cost.standing {
        Standing::Confirmed | Standing::OfItsClass => {
            (cost.class, None, figures.map(|cost| number(cost.value)).collect())
        }
        Standing::Contradicted => {
            let all = [cost.per_syscall.low, cost.per_syscall.high].map(number);
            let figures = figures.map(|cost| number(cost.value)).chain(all);
            (cost.class, Some(cost.standing), figures.collect())
        }
        other => (cost.class, Some(other), Vec::new()),
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    let is_known = |row: &Row| row.standing().has_figure();
    rows.sort_by(|a, b| {
        let by_value = b.per_syscall().value.total_cmp(&a.per_syscall().value);
        is_known(b).cmp(&is_known(a)).then(by_value)
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn alike_rules_are_one_row_and_every_rule_is_in_one() {
        let r = sample::stig();
        let (rows, single) = (alike(&r), one_by_one(&r));
        assert_eq!(rows.iter().map(Row::rules).sum::<usize>(), single.len());
        // Four of the 21 with `exe=` were confirmed with figures of their own.
        let most = &rows[0];
        assert_eq!((most.rules(), most.standing()), (17, Standing::OfItsClass));
        assert_eq!((&*most.times(), &*single[0].times()), ("17 × ", ""));
        assert!((most.per_syscall().value - 17.0 * 80.2).abs() < 1e-6);
        let getppid = most.on_operation(0).unwrap();
        assert!((getppid.high - 17.0 * 80.2 * 1.02).abs() < 1e-6, "{getppid:?}");
        // What is below the resolution is one row for each kind, at the end.
        let is_below = |row: &&Row| row.standing() == Standing::BelowResolution;
        let below: Vec<usize> = rows.iter().filter(is_below).map(Row::rules).collect();
        assert_eq!((below, is_below(&rows.last().unwrap())), (vec![227, 1], true));
    }
}
