//! What `auditctl -R` says of the lines that it was given.

use std::collections::BTreeMap;

use super::rule_set::Outcome;

/// What `auditctl -R` said, by the line that it said it of; the first line, ours, left out.
pub fn complaints(stderr: &[u8]) -> BTreeMap<usize, String> {
    let said = String::from_utf8_lossy(stderr);
    let mut complaints = BTreeMap::new();
    let mut reason = "";
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let number = line
            .strip_prefix("There was an error in line ")
            .and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
        match number {
            Some(number) => {
                let said = if reason.is_empty() { "auditctl gave no reason" } else { reason };
                complaints.insert(number.saturating_sub(1), said.to_owned());
                reason = "";
            }
            None if !line.starts_with("WARNING") && reason.is_empty() => reason = line,
            None => {}
        }
    }
    complaints
}

/// What a complaint of `auditctl` comes to.
pub fn refusal(reason: &str) -> Outcome {
    // How auditctl words EEXIST and ENOENT of AUDIT_ADD_RULE.
    if reason.contains("Rule exists") {
        return Outcome::Present;
    }
    if reason.starts_with("Error sending add rule") && reason.contains("No such file or directory")
    {
        return Outcome::Refused("a file or directory in it does not exist".into());
    }
    Outcome::Refused(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasons_belong_to_the_line_that_follows_them() {
        let said = b"Unknown user: nobody2\nThere was an error in line 3 of /x/batch.rules\n\
            WARNING - 32/64 bit syscall mismatch in line 4, you should specify an arch\n\
            Error sending add rule data request (Rule exists)\n\
            There was an error in line 5 of /x/batch.rules\n\
            There was an error in line 9 of /x/batch.rules\n";
        let complaints = complaints(said);
        let of = |line| complaints.get(&line).map(String::as_str);
        assert_eq!(of(2), Some("Unknown user: nobody2"));
        assert_eq!(of(3), None);
        assert_eq!(refusal(of(4).unwrap()), Outcome::Present);
        assert_eq!(of(8), Some("auditctl gave no reason"));
    }

    proptest! {
        #[test]
        fn foreign_output_never_panics(said in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = complaints(&said);
        }
    }
}
