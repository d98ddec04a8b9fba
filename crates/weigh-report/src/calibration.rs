//! Report of `weigh calibrate`: the effects that this machine can show, and the number of false
//! alarms.

use std::collections::BTreeSet;

use crate::screen::{Room, first_sentence};
use crate::table::{Table, columns};
use crate::text::{emphasise, wrap};
use paired::binomial::{FalseAlarms, Share};
use weigh_model::format;
use weigh_model::result::calibration::{Calibration, WorkloadNoise};
use weigh_model::result::calibration::{PeriodicExperiments, PlantedExperiments};
use weigh_model::result::scheme::Scheme;
use weigh_model::result::warning::Warning;
use weigh_model::result::work_name::WorkName;

pub fn render(calibration: &Calibration, room: Room, colour: bool) -> String {
    let width = room.wrap;
    let mut lines = Vec::new();
    let planted = calibration.planted.as_ref();
    let sentences = [sentence(&calibration.workloads), alarms_of_these(calibration)];
    let planted_sentences = planted.map(|planted| [found(planted), periodic(&planted.periodic)]);
    for sentence in sentences.into_iter().chain(planted_sentences.into_iter().flatten()) {
        lines.extend(wrap(&sentence, width, 0));
    }
    lines.push(String::new());
    let is_known = !calibration.workloads.is_empty();
    if is_known {
        lines.extend(table(&calibration.workloads).to_lines(room.cut));
        lines.push(String::new());
    }
    if let Some(planted) = planted {
        lines.extend(planted_table(planted).to_lines(room.cut));
        lines.push(String::new());
        for sentence in about_planted(planted, calibration.alpha) {
            lines.extend(wrap(&sentence, width, 0));
        }
    }
    let notes = [
        "scheme: interleaved or sequential pairs, a row for each that a calibration used. noise: standard \
         deviation of a pair's log-ratio (1.4826 · MAD). detected, 10 s, 1 min, 5 min: the smallest effect \
         that half of all experiments detect in that time. bias: mean effect of this run's experiments, with \
         the half-width of its 95 % interval, for all rows together."
            .to_owned(),
        "A false alarm is a verdict of slower or faster at the end of an experiment. Verdicts withdrawn \
         before the end are not counted."
            .to_owned(),
        alarms_of_all(calibration),
        format!(
            "Machine: {}, {}, Linux {}. From now on, `weigh compare` expects this noise.",
            calibration.hostname, calibration.cpu_model, calibration.kernel
        ),
    ];
    let notes = notes.into_iter().chain(biased(&calibration.workloads)).filter(|_| is_known);
    for note in notes.chain(warnings(&calibration.these.warnings, room)) {
        lines.extend(wrap(&note, width, 0));
    }
    lines.extend(wrap(&stored(calibration), width, 0));
    emphasise(&(lines.join("\n") + "\n"), colour)
}

fn warnings(warnings: &[Warning], room: Room) -> impl Iterator<Item = String> {
    let sentences = warnings.iter().map(move |warning| match warning.to_string() {
        whole if room.is_file() => whole,
        whole => first_sentence(&whole),
    });
    sentences.map(|warning| format!("Warning: {}", format::label(&warning)))
}

/// The ids of all experiments of this command.
fn stored(calibration: &Calibration) -> String {
    let planted = calibration.planted.iter();
    let planted = planted.flat_map(|one| one.experiments.iter().chain(&one.periodic.experiments));
    let ids: Vec<&str> =
        calibration.these.experiments.iter().chain(planted).map(String::as_str).collect();
    format!("Stored as {}: `weigh show -v ID` shows an experiment.", ids.join(", "))
}

/// Writes which effect a minute will show, for the best and the worst workload of this command.
fn sentence(workloads: &[WorkloadNoise]) -> String {
    let of_these = workloads.iter().filter(|row| row.these_experiments > 0);
    let mut shown: Vec<(f64, &WorkName)> =
        of_these.filter_map(|row| Some((row.smallest_effect_pct[1]?, &row.workload))).collect();
    shown.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Where these experiments used both schemes, the better one is what `weigh compare` chooses.
    let mut known = BTreeSet::new();
    shown.retain(|(_, workload)| known.insert(*workload));
    match &shown[..] {
        [] => {
            "Too few pairs to show what this machine can detect: use a longer --budget.".to_owned()
        }
        [(only, name)] => {
            format!("In one minute this machine detects a change of {} in `{name}`.", pct(*only))
        }
        [(least, best), .., (most, worst)] => format!(
            "In one minute per workload this machine detects a change of {} in `{best}`, and of {} \
             in `{worst}`{}.",
            pct(*least),
            pct(*most),
            if shown.len() > 2 { "; the other workloads are in between" } else { "" }
        ),
    }
}

/// The promise, for the experiments that were made just now.
fn alarms_of_these(calibration: &Calibration) -> String {
    let tally = &calibration.these.experiment_alarms;
    match tally.of {
        0 => "No row has enough pairs for a verdict or a false alarm: use a longer --budget."
            .to_owned(),
        1 => format!(
            "This experiment raised {}.",
            if tally.alarms == 0 { "no false alarm" } else { "a false alarm" }
        ),
        several => format!(
            "{} of these {several} experiments raised a false alarm{}.",
            tally.alarms,
            judged(tally, calibration.alpha)
        ),
    }
}

/// Writes the false alarms of all calibrations of this machine, and of rows.
fn alarms_of_all(calibration: &Calibration) -> String {
    let (these, all) = (&calibration.these, calibration);
    let rows = |tally: &FalseAlarms| format!("{} of {}", tally.alarms, tally.of);
    let cpu_time = match all.cpu_time_row_alarms.of {
        0 => String::new(),
        _ => format!(
            " Rows by CPU time: {} in this run, {} in all{}.",
            rows(&these.cpu_time_row_alarms),
            rows(&all.cpu_time_row_alarms),
            judged(&all.cpu_time_row_alarms, all.alpha)
        ),
    };
    format!(
        "All calibrations of this machine: {} of {} raised a false alarm{}. Rows with a false alarm: {} in \
         this run, {} in all{}.{cpu_time}",
        all.experiment_alarms.alarms,
        format::plural(all.experiment_alarms.of, "experiment"),
        judged(&all.experiment_alarms, all.alpha),
        rows(&these.row_alarms),
        rows(&all.row_alarms),
        judged(&all.row_alarms, all.alpha)
    )
}

/// The number of alarms against the promised rate.
fn judged(tally: &FalseAlarms, alpha: f64) -> String {
    let promise = format::margin(100.0 * alpha);
    let allowed =
        format!("{promise} expected; chance explains up to {} of {}", tally.allowed, tally.of);
    if tally.is_within() {
        format!(" ({allowed})")
    } else {
        format!(
            " ({allowed}; probability {}): do not trust small differences on this machine",
            format::unsigned(tally.chance)
        )
    }
}

fn table(workloads: &[WorkloadNoise]) -> Table {
    let columns = columns(
        "workload|scheme|>noise|>time per pair|>detected, 10 s|>1 min|>5 min|>pairs|\
         >false alarms|>bias",
    );
    let rows = workloads
        .iter()
        .map(|row| {
            let mut cells =
                vec![row.workload.to_string(), taken(row.scheme).into(), pct(row.noise_pct)];
            cells.push(format::seconds(row.pair_s));
            let shown = |effect: Option<f64>| effect.map_or_else(|| "–".to_owned(), pct);
            cells.extend(row.smallest_effect_pct.map(shown));
            cells.push(format::integer(row.pairs as u64));
            cells.push(format!("{} of {}", row.alarms, row.experiments));
            cells.push(row.bias_pct.map(bias).unwrap_or_default());
            cells
        })
        .collect();
    Table::new(columns, rows)
}

/// The mean, and half the width of its interval: both are often below 0.01 %.
fn bias([low, high]: [f64; 2]) -> String {
    let mean = f64::midpoint(low, high);
    let sign = if mean < 0.0 { '−' } else { '+' };
    format!("{sign}{:.3} ± {:.3} %", mean.abs(), (high - low) / 2.0)
}

/// Names the rows whose identical arms differ by more than chance explains.
fn biased(workloads: &[WorkloadNoise]) -> Option<String> {
    let biased = workloads.iter().filter(|row| row.is_biased());
    let named =
        biased.filter_map(|row| Some(format!("`{}` {}", row.workload, bias(row.bias_pct?))));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| {
        format!(
            "Identical arms differ systematically: {}. Do not trust smaller differences in these rows.",
            named.join(", ")
        )
    })
}

fn taken(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Sequential => "sequential",
        Scheme::Interleaved => "interleaved",
    }
}

fn found(planted: &PlantedExperiments) -> String {
    match planted.covered.of {
        0 => "No row with a planted effect has enough pairs for a verdict: use a longer --budget."
            .to_owned(),
        rows => format!(
            "A planted effect of {} was found in {} of {}, and is within the interval in {}.",
            pct_signed(planted.true_effect_pct),
            planted.found.count,
            format::plural(rows, "row"),
            planted.covered.count
        ),
    }
}

/// How often the effect in one slice of several was found or denied.
fn periodic(periodic: &PeriodicExperiments) -> String {
    let effect = pct_signed(periodic.true_effect_pct);
    let every = periodic.every;
    let rows = format::plural(periodic.denied.of, "row");
    match (periodic.denied.of, periodic.denied.count) {
        (0, _) => {
            format!(
                "No row with a planted effect in 1 of {every} slices has enough pairs for a verdict: use a \
                 longer --budget."
            )
        }
        (_, 0) => format!(
            "A planted effect of {effect}, concentrated in 1 of {every} slices, was found in {} of {rows} \
             and never reported as equivalent or faster.",
            periodic.found.count
        ),
        (_, denied) => format!(
            "A planted effect of {effect}, concentrated in 1 of {every} slices, was reported as equivalent \
             or faster in {denied} of {rows}: do not trust these verdicts on this machine."
        ),
    }
}

fn planted_table(planted: &PlantedExperiments) -> Table {
    let columns = columns("planted effect|>covered|>exact 95 %|>found|>exact 95 %|>pairs");
    let cells = |name: String, covered: &Share, found: &Share, pairs: String| {
        let mut cells = vec![name];
        cells.extend([covered, found].iter().flat_map(|share| [of(share), range(share)]));
        cells.push(pairs);
        cells
    };
    let rows = planted.workloads.iter().map(|row| {
        cells(row.workload.to_string(), &row.covered, &row.found, format!("{:.0}", row.pairs))
    });
    let all = cells("all rows".into(), &planted.covered, &planted.found, "–".into());
    Table::new(columns, rows.chain([all]).collect())
}

fn about_planted(planted: &PlantedExperiments, alpha: f64) -> Vec<String> {
    let promised = 100.0 * (1.0 - alpha);
    let mut sentences = vec![format!(
        "planted effect: one arm did {} more work in its timed part than it reported. covered: \
         experiments whose final interval contains {}. found: experiments with the verdict slower. \
         pairs: median of the experiments.",
        format::margin(planted.share_pct),
        pct_signed(planted.true_effect_pct)
    )];
    if planted.covered.high_pct < promised {
        sentences.push(format!(
            "The coverage is below the promised {} by more than chance: do not trust the intervals on this \
             machine.",
            format::margin(promised)
        ));
    }
    sentences.extend(planted.left_out.iter().map(|(workload, why)| {
        format!("`{workload}` has no experiments with a planted effect: {why}.")
    }));
    sentences
}

fn of(share: &Share) -> String {
    format!("{} of {}", share.count, share.of)
}

fn range(share: &Share) -> String {
    format!("{:.1} to {:.1} %", share.low_pct, share.high_pct)
}

fn pct_signed(value: f64) -> String {
    format!("−{}", pct(value.abs()))
}

fn pct(value: f64) -> String {
    format!("{} %", format::unsigned(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::calibration::PlantedWorkload;
    use weigh_model::result::calibration::These;

    /// Twenty experiments of forty.
    fn calibration(alarms: usize, allowed: usize) -> Calibration {
        let row = |workload: &str, shown: [Option<f64>; 3]| WorkloadNoise {
            workload: workload.into(),
            scheme: Scheme::Interleaved,
            noise_pct: 1.4,
            pair_s: 0.18,
            smallest_effect_pct: shown,
            experiments: 20,
            these_experiments: 1,
            pairs: 640,
            alarms,
            bias_pct: Some([-0.02, 0.01]),
        };
        let tally = |of| FalseAlarms { alarms, of, allowed, chance: 0.0159 };
        let all = |of| FalseAlarms { alarms: alarms + 2, of, allowed: 5, chance: 0.3 };
        Calibration {
            schema: "",
            hostname: "scales".into(),
            cpu_model: "a CPU".into(),
            kernel: "6.1".into(),
            alpha: 0.05,
            experiments: vec!["abcdef".into(); 40],
            workloads: vec![
                row("fsdisk", [None, Some(4.2), Some(1.9)]),
                row("getppid", [Some(0.9), Some(0.31), Some(0.14)]),
            ],
            experiment_alarms: all(40),
            row_alarms: all(80),
            cpu_time_row_alarms: all(78),
            these: These {
                experiments: vec!["abcdef".into(); 20],
                experiment_alarms: tally(20),
                row_alarms: tally(41),
                cpu_time_row_alarms: tally(39),
                warnings: Vec::new(),
            },
            planted: None,
        }
    }

    #[test]
    fn a_bias_is_named_only_if_chance_does_not_explain_it() {
        let mut calibration = calibration(1, 3);
        let text = render(&calibration, Room::terminal(140), false);
        assert!(text.contains("−0.005 ± 0.015 %") && !text.contains("systematically"), "{text}");
        calibration.workloads[1].bias_pct = Some([0.03, 0.05]);
        let text = render(&calibration, Room::terminal(140), false).replace('\n', " ");
        let said = "Identical arms differ systematically: `getppid` +0.040 ± 0.010 %. Do not trust";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn it_says_what_is_shown_and_that_the_promise_is_kept() {
        let text = render(&calibration(1, 3), Room::terminal(100), false).replace('\n', " ");
        assert!(text.contains("a change of 0.31 % in `getppid`, and of 4.20 %"), "{text}");
        let said = [
            "1 of these 20 experiments raised a false alarm (5 % expected; chance explains up to 3 of 20).",
            "All calibrations of this machine: 3 of 40 experiments raised a false alarm",
            "Rows with a false alarm: 1 of 41 in this run, 3 of 80 in all",
            "Rows by CPU time: 1 of 39 in this run, 3 of 78 in all",
            "withdrawn before the end are not counted",
        ];
        for said in said {
            assert!(text.contains(said), "`{said}` is not in {text}");
        }
        assert!(
            text.contains("interleaved") && text.contains('–') && !text.contains("do not trust"),
            "{text}"
        );
    }

    #[test]
    fn the_headline_is_about_the_schemes_of_these_experiments() {
        let mut earlier = calibration(1, 3);
        let sequential = WorkloadNoise {
            workload: "getppid".into(),
            scheme: Scheme::Sequential,
            noise_pct: 3.0,
            pair_s: 0.3,
            smallest_effect_pct: [None, Some(1.7), Some(0.8)],
            experiments: 1,
            these_experiments: 1,
            pairs: 30,
            alarms: 0,
            bias_pct: None,
        };
        earlier.workloads.iter_mut().for_each(|row| row.these_experiments = 0);
        earlier.workloads.push(sequential);
        let text = render(&earlier, Room::terminal(100), false);
        let headline = "In one minute this machine detects a change of 1.70 % in `getppid`.";
        assert!(text.starts_with(headline), "{text}");
        assert!(!text.contains("chosen"), "{text}");
    }

    #[test]
    fn it_ends_with_the_warnings_and_the_ids_of_what_was_stored() {
        let mut calibration = calibration(1, 3);
        calibration.these.experiments = vec!["abcdef".into(), "k3f9qx".into()];
        calibration.these.warnings = vec![Warning::MachineDiffers { what: "2 CPUs. Stop".into() }];
        let text = render(&calibration, Room::terminal(100), false);
        let end = "\nWarning: The machine differs: 2 CPUs.\n\
                   Stored as abcdef, k3f9qx: `weigh show -v ID` shows an experiment.\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn without_a_row_there_is_no_table_to_explain() {
        let calibration = Calibration { workloads: Vec::new(), ..calibration(0, 0) };
        let text = render(&calibration, Room::terminal(100), false);
        assert!(text.starts_with("Too few pairs to show what this machine can detect"), "{text}");
        for absent in ["\n\n\n", "scheme:", "From now on", "All calibrations"] {
            assert!(!text.contains(absent), "`{absent}` is in {text}");
        }
    }

    #[test]
    fn too_many_false_alarms_are_a_warning() {
        let text = render(&calibration(4, 3), Room::terminal(100), false).replace('\n', " ");
        assert!(
            text.contains("chance explains up to 3 of 20; probability 0.02): do not trust")
                && text.contains("do not trust"),
            "{text}"
        );
    }

    #[test]
    fn a_planted_effect_has_its_coverage_and_power() {
        let share = |count, of| Share { count, of, low_pct: 20.0, high_pct: 70.0 };
        let planted = PlantedExperiments {
            share_pct: 1.0,
            true_effect_pct: -0.990_099,
            experiments: vec!["abcdef".into(); 20],
            workloads: vec![PlantedWorkload {
                workload: "getppid".into(),
                covered: share(9, 20),
                found: share(13, 20),
                pairs: 61.0,
            }],
            covered: share(9, 20),
            found: share(13, 20),
            left_out: [("shell1".into(), "too few operations".into())].into(),
            periodic: PeriodicExperiments {
                every: 5,
                share_pct: 5.0,
                true_effect_pct: -4.761_905,
                experiments: vec!["fedcba".into(); 20],
                found: share(7, 20),
                denied: share(0, 20),
            },
        };
        let text = render(
            &Calibration { planted: Some(planted), ..calibration(1, 3) },
            Room::terminal(100),
            false,
        );
        let said = [
            "A planted effect of −0.99 % was found in 13 of 20 rows, and is within the interval in 9.",
            "20.0 to 70.0 %",
            "one arm did 1 % more work",
            "The coverage is below the promised 95 % by more than chance",
            "A planted effect of −4.76 %, concentrated in 1 of 5 slices, was found in 7 of 20 rows and never",
            "`shell1` has no experiments with a planted effect: too few operations.",
        ];
        for said in said {
            assert!(text.replace('\n', " ").contains(said), "`{said}` is not in {text}");
        }
    }
}
