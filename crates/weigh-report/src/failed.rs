//! Workloads without a result. Failures for the same reason share a sentence, such as a missing
//! interpreter for all of its programs.

use weigh_model::result::summary::Failure;
use weigh_model::result::versus::WORK;

/// So many are named; of more, the first.
const MOST_NAMED: usize = 3;

/// Returns each reason with the names that `name` gives to its failures, in the order of the failures. Each
/// command is an arm of its own, so commands share a reason whatever their arm.
pub fn by_reason(failures: &[Failure], name: fn(&Failure) -> String) -> Vec<(String, String)> {
    let mut reasons: Vec<(&Failure, Vec<String>)> = Vec::new();
    for failure in failures {
        let of = |one: &Failure| {
            let arm = (one.workload.name != WORK).then(|| one.arm.clone());
            (one.reason.clone(), arm)
        };
        match reasons.iter_mut().find(|(first, _)| of(first) == of(failure)) {
            Some((_, names)) => names.push(name(failure)),
            None => reasons.push((failure, vec![name(failure)])),
        }
    }
    reasons.into_iter().map(|(first, names)| (some(&names), first.reason.clone())).collect()
}

/// All names, or how many there are besides the first.
pub fn some(names: &[String]) -> String {
    match names {
        [one, .., _] if names.len() > MOST_NAMED => format!("{one} and {} others", names.len() - 1),
        all => all.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_for_the_same_reason_are_told_together() {
        let failure = |name: &str, reason: &str| Failure {
            workload: name.into(),
            arm: "none".into(),
            reason: reason.into(),
        };
        let all = ["a", "b", "c", "d"].map(|name| failure(name, "it is missing"));
        let told = |failures: &[Failure]| by_reason(failures, |one| one.workload.to_string());
        let pair = |names: &str, reason: &str| (names.to_owned(), reason.to_owned());
        assert_eq!(told(&all), [pair("a and 3 others", "it is missing")]);
        assert_eq!(told(&all[..3]), [pair("a, b, c", "it is missing")]);
        let both = [failure("a", "x"), failure("b", "y"), failure("c", "x")];
        assert_eq!(told(&both), [pair("a, c", "x"), pair("b", "y")]);
    }

    #[test]
    fn commands_that_fail_for_one_reason_are_told_together() {
        let failure = |command: &str, reason: &str| Failure {
            workload: WORK.into(),
            arm: command.into(),
            reason: reason.into(),
        };
        let all = [failure("a", "x"), failure("b", "y"), failure("c", "x")];
        let told = by_reason(&all, Failure::name_in_arm);
        let pair = |names: &str, reason: &str| (names.to_owned(), reason.to_owned());
        assert_eq!(told, [pair("a, c", "x"), pair("b", "y")]);
    }
}
