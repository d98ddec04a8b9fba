//! What a reader of the figures must know, in sentences.

use super::assemble::Measured;
use super::run::Request;
use crate::profile::record::Profile;
use crate::report::format;
use crate::report::rules::{Class, Metric, Standing, words};

/// What of a profile is no part of the answer for it.
fn notes_of_profile(profile: &Profile) -> Vec<String> {
    let mut notes = Vec::new();
    if profile.calls_per_cpu_s().is_none() {
        notes.push(
            "The profile tells no CPU time, so what the rules take of it cannot be told; one that `weigh \
             profile -o FILE -- COMMAND` wrote does."
                .into(),
        );
    }
    if profile.other_abi_calls > 0 {
        notes.push(format!(
            "{} of 32-bit programs are no part of the profile, and what rules cost them is in no figure.",
            format::plural(profile.other_abi_calls as usize, "more system call")
        ));
    }
    notes
}

/// That leaving out its rules one by one gives back less than leaving out all of them, or more.
fn one_by_one(class: &Class, metric: Metric) -> Option<String> {
    let amount = |value: f64| words::amount(value, metric);
    let one_by_one = class.one_by_one?.value;
    Some(format!(
        "{}: all {} together cost {}, and left out one by one they give back {} in all. A line is shown \
         with what it gives back: among others of its kind it need not cost what it costs alone.",
        class.title,
        class.rules,
        amount(class.per_syscall.value),
        amount(one_by_one)
    ))
}

pub fn notes(
    request: &Request,
    measured: &Measured,
    of_rules: f64,
    sum_of_lines: f64,
    classes: &[Class],
) -> Vec<String> {
    const TOLERANCE: f64 = 0.1;
    let mut notes = vec![measured.host.clone()];
    notes.extend(request.profile.iter().flat_map(notes_of_profile));
    if measured.host_rules > 0 {
        notes.push(format!(
            "{} of this host stay in force throughout, which also exempt or watch what they say. What \
             they cost is in no figure but those of `one rule` and `all rules`. The changes that \
             weighing makes to the list of rules are not written to the log.",
            format::plural(measured.host_rules, "rule")
        ));
    }
    if measured.is_cut_short {
        notes.push("It was ended early: what is missing was not measured any more.".into());
    }
    if (sum_of_lines - of_rules).abs() > TOLERANCE * of_rules.abs() {
        notes.push(format!(
            "The lines by themselves add up to {:.0} % of what all of them cost together: take single \
             figures with caution, or measure again on a quieter machine.",
            100.0 * sum_of_lines / of_rules
        ));
    }
    notes.extend(classes.iter().filter_map(|class| one_by_one(class, measured.metric)));
    let matching = measured.matches.iter().filter(|operations| !operations.is_empty()).count();
    if matching > 0 {
        notes.push(format!(
            "{} of the rules match operations that are weighed here. What they cost others was \
             measured with one more condition in them that nobody meets.",
            matching
        ));
    }
    let gaps = measured.decoded.iter().filter(|rule| measured.mix.has_gap(rule)).count();
    if gaps > 0 {
        notes.push(format!(
            "{gaps} of the rules concern calls of the profile that no operation here makes; for those \
             calls they are priced as for the operation that is most alike."
        ));
    }
    let unseen = |standing: &&Standing| **standing == Standing::BelowResolution;
    let unseen = measured.attribution.standing.iter().filter(unseen).count();
    notes
        .push("What a rule adds to fork and exec is added up from the system calls of one.".into());
    if unseen > 0 && measured.metric == Metric::Nanoseconds {
        notes.push(
            "This machine has no PMU that counts, so costs are times, and those of a single rule are \
             shown only where they stand out of the noise."
                .into(),
        );
    }
    notes
}
