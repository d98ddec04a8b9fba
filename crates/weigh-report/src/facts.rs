//! Changes to the system, as the treatments describe them.

use weigh_model::format;
use weigh_model::result::summary::Summary;

/// The sentences of the baseline, where it has a treatment, and of every treatment that has some;
/// with the label of each, safe to print. One command alone is no baseline.
pub(super) fn by_label(s: &Summary) -> Vec<(String, Vec<String>)> {
    let of_baseline = if s.is_of_one_command() { "" } else { " (baseline)" };
    let baseline = (format!("{}{of_baseline}", s.baseline), &s.baseline_facts);
    let treated = s.treatments.iter().map(|treatment| (treatment.label.clone(), &treatment.facts));
    std::iter::once(baseline)
        .chain(treated)
        .filter(|(_, facts)| !facts.is_empty())
        .map(|(label, facts)| (format::label(&label), facts.iter().map(format::label).collect()))
        .collect()
}
