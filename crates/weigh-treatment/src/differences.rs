//! In what two arms differ, by their labels: where that is more than one thing, an effect is that of all of
//! them together.

use super::kind::none;
use super::{find, is_name, read_label};
use weigh_model::kind::is_placeholder;
use weigh_model::label::{ArmLabel, Parameters, Term};

/// Each thing in which `arm` differs from `base`, in words; none for labels that cannot be read.
pub fn differences(base: &str, arm: &str) -> Vec<String> {
    let (Ok(base), Ok(arm)) = (read_label(base), read_label(arm)) else { return Vec::new() };
    let (base, arm) = (terms(base), terms(arm));
    let other = |term: &Term, terms: &[Term]| {
        terms.iter().find(|other| other.name == term.name).map(|other| other.parameters.clone())
    };
    let mut found = Vec::new();
    for term in &arm {
        match other(term, &base) {
            Some(before) => found.extend(in_parameters(&term.name, &before, &term.parameters)),
            None => found.extend(parts(term).iter().map(|part| format!("with {part}"))),
        }
    }
    for term in base.iter().filter(|term| other(term, &arm).is_none()) {
        found.extend(parts(term).iter().map(|part| format!("without {part}")));
    }
    found
}

/// Returns the parts of an arm, each as a label.
///
/// The baseline has no parts. Returns `None` for a text that is not a label.
pub fn factors(label: &str) -> Option<Vec<String>> {
    let terms = terms(read_label(label).ok()?);
    let written = |term| ArmLabel { places: Vec::new(), treatments: vec![term] }.written(is_name);
    Some(terms.into_iter().map(written).collect())
}

fn terms(label: ArmLabel) -> Vec<Term> {
    let all = label.places.into_iter().chain(label.treatments);
    all.filter(|term| term.name != none::KIND.kind.name).collect()
}

/// A treatment whose parameters have names of the user's own is as many things.
fn parts(term: &Term) -> Vec<String> {
    let has_own_names = find(&term.name).is_some_and(|kind| {
        let mut forms = kind.parameters.iter().filter_map(|known| known.form.split_once('='));
        forms.any(|(name, _)| is_placeholder(name))
    });
    if !has_own_names {
        return vec![written(&term.name, &term.parameters)];
    }
    let all = term.parameters.iter();
    all.map(|(key, value)| alone(&term.name, key, value.unwrap_or_default())).collect()
}

fn in_parameters(name: &str, before: &Parameters, now: &Parameters) -> Vec<String> {
    let words = |all: &Parameters| -> Vec<String> {
        let bare = all.iter().filter(|(_, value)| value.is_none());
        bare.map(|(word, _)| word.to_owned()).collect()
    };
    let mut found = Vec::new();
    if words(before) != words(now) {
        let (now, before) = (written(name, now), written(name, before));
        return vec![format!("{now} in place of {before}")];
    }
    for (key, value) in now.iter().filter_map(|(key, value)| Some((key, value?))) {
        match before.value(key) {
            Some(before) if before == value => {}
            Some(before) => found.push(format!(
                "{} in place of {}",
                quoted(&format!("{key}={value}")),
                quoted(&format!("{key}={before}"))
            )),
            None => found.push(format!("with {}", alone(name, key, value))),
        }
    }
    let gone = before.iter().filter(|(key, _)| !now.has(key));
    found
        .extend(gone.map(|(key, value)| format!("without `{name}:{key}={}`", value.unwrap_or(""))));
    found
}

fn written(name: &str, parameters: &Parameters) -> String {
    let term = Term { name: name.to_owned(), parameters: parameters.clone() };
    quoted(&ArmLabel { places: Vec::new(), treatments: vec![term] }.written(is_name))
}

fn alone(name: &str, key: &str, value: &str) -> String {
    written(name, &Parameters::default().replaced(&[], key, value))
}

fn quoted(text: &str) -> String {
    format!("`{}`", text.replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named_once() {
        for (base, arm, found) in [
            ("none", "nice:5", &["with `nice:5`"][..]),
            ("none", "none", &[]),
            ("none", "nice:5+cpus:0,1", &["with `nice:5`", "with `cpus:0,1`"]),
            ("cpus:0", "nice:5", &["with `nice:5`", "without `cpus:0`"]),
            ("nice:3", "nice:5", &["`nice:5` in place of `nice:3`"]),
            ("none", "env:A=1,B=2", &["with `env:A=1`", "with `env:B=2`"]),
            (
                "env:A=0,C=3",
                "env:A=1,B=2",
                &["`A=1` in place of `A=0`", "with `env:B=2`", "without `env:C=3`"],
            ),
            ("audit", "audit:backlog=64+seccomp", &["with `audit:backlog=64`", "with `seccomp`"]),
            ("audit+seccomp", "audit+seccomp", &[]),
            ("gone:x", "nice:5", &["with `nice:5`", "without `gone:x`"]),
            ("nice:", "nice:5", &[]),
        ] {
            assert_eq!(differences(base, arm), found, "{base} {arm}");
        }
    }
}
