//! The strip plot of commands: every run is a dot over one axis of time, and the median is a line.
//!
//! Laid out like the forest plot: horizontal places are percentages, vertical ones pixels.

use minijinja::{Value, context};

use super::axis::{Axis, tick_text};
use super::class;
use super::forest::{CHARACTER, LONGEST_NAME, ROW_HEIGHT, TOP, WIDE_CHARACTER, place};
use crate::command_times::commands;
use weigh_model::format;
use weigh_model::result::curve::Quantity;
use weigh_model::result::summary::Summary;
use weigh_model::result::versus::CommandTimes;

/// More dots of one command could not be told apart.
const MOST_DOTS: usize = 400;
/// How far from the middle of its row a dot may lie, in pixels.
const SCATTER: f64 = 8.0;
/// Steps of this share of the height set dots next to each other far apart.
const GOLDEN: f64 = 0.618_033_988_75;

/// The figure; `None` without times.
pub fn figure(s: &Summary) -> Option<Value> {
    let commands = commands(s);
    let all_ns: Vec<f64> = commands.iter().flat_map(|one| &one.times_s).map(|s| s * 1e9).collect();
    if all_ns.is_empty() {
        return None;
    }
    let axis = Axis::of_times(&all_ns);
    let labels = |room: f64| axis.labels(&axis.ticks(), room, |ns| tick_text(ns, &Quantity::Time));
    let major = labels(WIDE_CHARACTER);
    let ticks = labels(CHARACTER).into_iter().map(|tick| {
        context! { x => place(tick.0), minor => !major.contains(&tick), text => tick.1 }
    });
    let row = |(index, times): (usize, &CommandTimes)| row(s, times, index, &axis);
    Some(context! {
        height => TOP + ROW_HEIGHT * commands.len() + 6,
        top => TOP,
        bottom => TOP + ROW_HEIGHT * commands.len(),
        ticks => ticks.collect::<Vec<Value>>(),
        rows => commands.iter().enumerate().map(row).collect::<Vec<Value>>(),
        is_log => axis.is_log,
    })
}

fn row(s: &Summary, times: &CommandTimes, index: usize, axis: &Axis) -> Value {
    let y = TOP + ROW_HEIGHT * index + ROW_HEIGHT / 2;
    let name = format::label(&times.command);
    let ranking = s.versus.iter().flat_map(|versus| &versus.ranking);
    let ranked = ranking.into_iter().find(|ranked| ranked.command == times.command);
    let median = times.median_s() * 1e9;
    let every = times.times_s.len().div_ceil(MOST_DOTS).max(1);
    let dots = times.times_s.iter().enumerate().step_by(every).map(|(number, time_s)| {
        let height = (number as f64 * GOLDEN).fract() - 0.5;
        let cy = (10.0 * (y as f64 + 2.0 * SCATTER * height)).round() / 10.0;
        context! { x => place(axis.at(time_s * 1e9)), y => cy }
    });
    let median_text = format::time_ns(median);
    let runs = format::plural(times.times_s.len(), "run");
    context! {
        y,
        class => ranked.and_then(|ranked| ranked.verdict).map_or("", class),
        title => format!("{name}: median {median_text} of {runs}"),
        name => format::shorten_name(&name, LONGEST_NAME),
        median => place(axis.at(median)),
        median_text,
        runs,
        dots => dots.collect::<Vec<Value>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn every_run_is_a_dot_until_they_are_too_many() {
        let mut s = example::versus();
        let dots = |s: &Summary, row: usize| {
            let rows = figure(s).unwrap().get_attr("rows").unwrap();
            rows.get_item(&row.into()).unwrap().get_attr("dots").unwrap().len().unwrap()
        };
        assert_eq!([0, 1, 2].map(|row| dots(&s, row)), [8; 3]);
        s.versus.as_mut().unwrap().commands[1].times_s = vec![0.1; 1000];
        assert!(dots(&s, 1) <= MOST_DOTS);
        s.versus.as_mut().unwrap().commands.clear();
        assert!(figure(&s).is_none() && figure(&example::audit()).is_none());
    }
}
