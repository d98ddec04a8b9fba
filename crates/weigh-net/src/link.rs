//! Impairments of a grid's wires in all cells that use them, besides the delays and drops that
//! differ between cells.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wire::{Choice, Impairment, LinkCounters};

use super::cell::{Cell, LinkSetting};
use weigh_testbed::{LinkCount, Via};

/// Impairments of both directions, in the wire's own form: docs/link.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GridLink {
    pub from_test: Impairment,
    pub to_test: Impairment,
    /// True if undisturbed traffic also uses the wires, instead of the LAN.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub everywhere: bool,
}

impl GridLink {
    /// Which way a cell goes.
    pub fn via(link: Option<&GridLink>, cell: &Cell) -> Via {
        match cell.component {
            Some(component) if component.via() == Via::Wire => Via::Wire,
            _ if link.is_some_and(|link| link.everywhere) => Via::Wire,
            _ => Via::Lan,
        }
    }

    /// How long so many bytes take at least, where the wires have a rate.
    pub fn least_time(link: Option<&GridLink>, bytes: u64) -> Duration {
        let directions = link.into_iter().flat_map(|link| [&link.from_test, &link.to_test]);
        let slowest = directions.filter_map(|one| one.rate_bits_per_s).min();
        slowest.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(8.0 * bytes as f64 / rate as f64)
        })
    }

    pub fn is_over_wire(link: Option<&GridLink>, cell: &Cell) -> bool {
        GridLink::via(link, cell) == Via::Wire
    }

    /// Returns the impairments of the directions from and to W_test in a cell.
    pub fn impairments(link: Option<&GridLink>, of: &LinkSetting) -> [Impairment; 2] {
        let GridLink { mut from_test, mut to_test, .. } = link.cloned().unwrap_or_default();
        from_test.loss.extend(of.drops.iter().map(|drops| Choice::Numbered(drops.clone())));
        to_test.delay_ns += of.delay_us * 1000;
        for one in [&mut from_test, &mut to_test] {
            // Which packets a delay is for says nothing where there is none.
            one.delayed = one.delayed.take().filter(|_| one.delay_ns > 0);
            one.logs_drops = true;
        }
        [from_test, to_test]
    }

    pub fn check(&self, longest_us: u64) -> Result<(), String> {
        // Without any, what is said of delays is not looked at.
        let longest = LinkSetting { delay_us: longest_us.max(1), drops: None };
        let directions = GridLink::impairments(Some(self), &longest);
        for (name, one) in ["from_test", "to_test"].into_iter().zip(&directions) {
            one.check().map_err(|problem| format!("[link.{name}]: {problem}"))?;
        }
        let [from_test, to_test] = directions;
        let of = |one: &Impairment| (one.shared, one.rate_bits_per_s, one.contending_pct);
        if (from_test.shared || to_test.shared) && of(&from_test) != of(&to_test) {
            return Err(
                "[link]: both directions of a hub must be `shared`, at the same `rate_bits_per_s`, and with \
                 the same `contending_pct`"
                    .into(),
            );
        }
        Ok(())
    }

    /// Returns how long the busiest transmitter sent what the wires counted, in seconds; `None`
    /// without a rate. Third parties on a hub have their share of the rate.
    pub fn busiest_s(&self, wires: &[LinkCount]) -> Option<f64> {
        let sending_s = |one: &Impairment, count: &LinkCounters| {
            let bytes = count.delivered_bytes + u64::from(one.overhead_bytes) * count.delivered;
            let rate = one.rate_bits_per_s? as f64 * (1.0 - f64::from(one.contending_pct) / 100.0);
            Some(8.0 * bytes as f64 / rate)
        };
        let directions = wires.iter().flat_map(|wire| {
            [sending_s(&self.from_test, &wire.from_test), sending_s(&self.to_test, &wire.to_test)]
        });
        let together: fn(f64, f64) -> f64 = if self.is_hub() { |a, b| a + b } else { f64::max };
        directions.flatten().reduce(together)
    }

    /// Returns true if all wires share one medium, which is possible only on one machine.
    pub fn is_hub(&self) -> bool {
        self.from_test.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> GridLink {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_cell_adds_its_delay_and_drops_to_what_the_link_does_anyway() {
        let link = link(
            "[from_test]\nloss = [\"1%x4\"]\n[to_test]\ndelay_ns = 5\ndelayed = \"3@1%10\"\nseed = 7",
        );
        let drops = Some("1@2%40".parse().unwrap());
        let of =
            |delay_us, drops| GridLink::impairments(Some(&link), &LinkSetting { delay_us, drops });
        let [from_test, to_test] = of(1000, drops);
        assert_eq!(from_test.loss.len(), 2);
        assert_eq!((to_test.delay_ns, to_test.seed), (1_000_005, 7));
        assert!(to_test.delayed.is_some() && to_test.logs_drops);
        assert_eq!(from_test.check().and(to_test.check()), Ok(()));
    }

    #[test]
    fn what_delays_only_some_packets_is_for_cells_with_a_delay() {
        let link = link("[to_test]\ndelayed = \"3@1%10\"");
        assert_eq!(link.check(0), Ok(()));
        let far = link.check(1_000_001).unwrap_err();
        assert!(far.starts_with("[link.to_test]: "), "{far}");
        let [_, without] = GridLink::impairments(Some(&link), &LinkSetting::default());
        assert_eq!(without.delayed, None);
        let wrong = self::link("[from_test]\nrate_bits_per_s = 1");
        assert!(wrong.check(0).unwrap_err().starts_with("[link.from_test]: a rate"));
    }

    #[test]
    fn a_wire_sends_as_long_as_its_packets_take_at_its_rate_and_a_hub_sends_all_of_them() {
        let counters = |delivered_bytes| LinkCounters {
            delivered: 10,
            delivered_bytes,
            ..LinkCounters::default()
        };
        let wire = |from, to| LinkCount {
            from_test: counters(from),
            to_test: counters(to),
            ..LinkCount::default()
        };
        let wires = [wire(9_900, 1_900), wire(4_900, 0)];
        let rate = "rate_bits_per_s = 10000\noverhead_bytes = 10\n";
        let one_way = format!("[from_test]\n{rate}");
        assert_eq!(link(&one_way).busiest_s(&wires), Some(8.0));
        let hub = format!("{rate}shared = true\ncontending_pct = 50\n");
        let hub = format!("[from_test]\n{hub}[to_test]\n{hub}");
        assert_eq!(link(&hub).busiest_s(&wires), Some(2.0 * (8.0 + 1.6 + 4.0 + 0.08)));
        assert_eq!(link("everywhere = true").busiest_s(&wires), None);
    }

    #[test]
    fn both_directions_of_a_hub_are_on_it() {
        let direction =
            |name, rate, shared| format!("[{name}]\nrate_bits_per_s = {rate}\nshared = {shared}\n");
        let of = |rates: [u64; 2], shared: [bool; 2]| {
            let [one, other] = [0, 1].map(|at| (rates[at], shared[at]));
            link(&(direction("from_test", one.0, one.1) + &direction("to_test", other.0, other.1)))
        };
        let ten = 10_000_000;
        assert_eq!(of([ten, ten], [true, true]).check(0), Ok(()));
        assert!(of([ten, ten], [true, true]).is_hub() && !of([ten, ten], [false, false]).is_hub());
        let mut uneven = of([ten, ten], [true, true]);
        uneven.to_test.contending_pct = 30;
        let wrong = [of([ten, 2 * ten], [true, true]), of([ten, ten], [false, true]), uneven];
        for wrong in wrong {
            assert!(wrong.check(0).unwrap_err().contains("both directions of a hub must"));
        }
        assert_eq!(of([ten, 2 * ten], [false, false]).check(0), Ok(()));
    }
}
