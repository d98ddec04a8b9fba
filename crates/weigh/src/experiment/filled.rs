//! What treatments fill in the command, held against the command before anything is measured.

use std::collections::BTreeSet;

use crate::treatment::Named;
use crate::workload::setup::kind::filled_command::FilledCommand;

/// Every `{NAME}` of the command that one arm fills, all do, and no arm fills another.
///
/// # Errors
/// A sentence that names what is not filled, or not there.
pub fn check_filled(command: Option<&[String]>, treatments: &[Named]) -> Result<(), String> {
    let names: Vec<BTreeSet<String>> = treatments.iter().map(filled_by).collect();
    let all: BTreeSet<&String> = names.iter().flatten().collect();
    let Some(command) = command else {
        return match all.first() {
            None => Ok(()),
            Some(name) => Err(format!(
                "`with:{name}=…` fills {{{name}}} in a command, and workloads have none: put a command \
                 after `--`"
            )),
        };
    };
    for name in all {
        let blank = format!("{{{name}}}");
        if !command.iter().any(|word| word.contains(&blank)) {
            return Err(format!(
                "there is no {blank} in the command that `with:{name}=…` could fill"
            ));
        }
        let without = names.iter().position(|names| !names.contains(name));
        if let Some(arm) = without {
            let label = &treatments[arm].label;
            let (is_base, with) = (arm == 0, format!("with:{name}=VALUE"));
            let what_to_do = match is_base {
                true => format!("give the baseline a value too: --base {with}"),
                false => format!("add +{with} to it"),
            };
            return Err(format!(
                "`{label}` leaves {blank} as it stands in the command: {what_to_do}"
            ));
        }
    }
    Ok(())
}

fn filled_by(named: &Named) -> BTreeSet<String> {
    let setup = named.treatment.setup(true);
    let values = setup.get::<FilledCommand>().map_or(&[][..], |step| &step.values);
    values.iter().map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::treatment::parse;

    fn check(command: Option<&str>, labels: &[&str]) -> Result<(), String> {
        let words = command.map(|line| line.split(' ').map(String::from).collect::<Vec<_>>());
        let treatments: Vec<Named> = labels.iter().map(|label| parse(label).unwrap()).collect();
        check_filled(words.as_deref(), &treatments)
    }

    #[test]
    fn all_arms_fill_what_one_does_and_nothing_else() {
        let command = Some("prog -j{n} {m} {other}");
        assert_eq!(check(command, &["with:n=1", "with:n=2"]), Ok(()));
        assert_eq!(check(command, &["with:n=1,m=2", "nice:3+with:n=2,m=3"]), Ok(()));
        assert_eq!(check(command, &["none", "nice:3"]), Ok(()), "braces are anybody's");
        let said = check(command, &["none", "with:n=2"]).unwrap_err();
        assert!(
            said.contains("`none` leaves {n}") && said.contains("--base with:n=VALUE"),
            "{said}"
        );
        let said = check(command, &["with:n=1", "with:n=2", "nice:3"]).unwrap_err();
        assert!(said.contains("`nice:3` leaves {n}") && said.contains("add +with:n="), "{said}");
        let said = check(command, &["with:k=1", "with:k=2"]).unwrap_err();
        assert!(said.contains("no {k} in the command"), "{said}");
        let said = check(None, &["none", "with:n=1"]).unwrap_err();
        assert!(said.contains("workloads have none"), "{said}");
    }
}
