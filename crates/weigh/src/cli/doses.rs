//! A range in a treatment's parameter, `landlock:layers=1..16`: an arm for each of a few numbers in it.

use weigh_treatment as treatment;

/// Arms of one range. Each costs as much time as a treatment of its own.
const MOST_ARMS: usize = 5;

/// The labels, with the arms of each range in place of the label that has it.
pub fn expanded(labels: &[String]) -> Result<Vec<String>, String> {
    let arms: Result<Vec<Vec<String>>, String> = labels.iter().map(|label| arms(label)).collect();
    Ok(arms?.concat())
}

fn arms(label: &str) -> Result<Vec<String>, String> {
    // Whatever else is wrong with it is reported later.
    let Ok(arm) = treatment::read_label(label) else { return Ok(vec![label.to_owned()]) };
    let mut ranges = Vec::new();
    for term in &arm.treatments {
        for (key, value) in term.parameters.iter() {
            let is_number = treatment::find(&term.name)
                .is_some_and(|kind| kind.parameters.iter().any(|it| it.form == format!("{key}=N")));
            if let Some((from, to)) = value.filter(|_| is_number).and_then(|it| it.split_once(".."))
            {
                ranges.push((term.name.as_str(), key, doses(key, from, to)?));
            }
        }
    }
    match &ranges[..] {
        [] => Ok(vec![label.to_owned()]),
        [(kind, key, doses)] => {
            let with = |dose: &u32| {
                treatment::with_parameter(label, kind, &[*key], (*key, &dose.to_string()))
            };
            doses.iter().map(with).collect()
        }
        _ => Err(format!("`{label}` has several ranges: write one, and a number for the others")),
    }
}

/// Both ends, and up to three numbers between that are equally far apart on a logarithmic scale.
fn doses(key: &str, from: &str, to: &str) -> Result<Vec<u32>, String> {
    let number = |text: &str| text.parse::<u32>().ok();
    let (from, to) = number(from).zip(number(to)).filter(|(from, to)| from < to).ok_or_else(|| {
        format!("{key}={from}..{to}: takes two whole numbers, the lower one first, such as {key}=1..16")
    })?;
    if to - from < MOST_ARMS as u32 {
        return Ok((from..=to).collect());
    }
    let (first, last) = (f64::from(from.max(1)), f64::from(to));
    let steps = MOST_ARMS - 1 - usize::from(from == 0);
    let between = |step: usize| first * (last / first).powf(step as f64 / steps as f64);
    let mut doses: Vec<u32> = (0..=steps).map(|step| between(step).round() as u32).collect();
    doses.extend([from, to]);
    doses.sort_unstable();
    doses.dedup();
    Ok(doses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(label: &str) -> Vec<String> {
        expanded(&[label.to_owned()]).unwrap()
    }

    #[test]
    fn a_range_is_a_few_arms() {
        assert_eq!(
            of("landlock:layers=1..16"),
            [1, 2, 4, 8, 16].map(|layers| format!("landlock:layers={layers}"))
        );
        assert_eq!(
            of("nice:5+seccomp:compares=10..1000"),
            [10, 32, 100, 316, 1000].map(|number| format!("nice:5+seccomp:compares={number}"))
        );
        assert_eq!(doses("n", "0", "16").unwrap(), [0, 1, 3, 6, 16]);
        assert_eq!(doses("n", "3", "6").unwrap(), [3, 4, 5, 6]);
    }

    #[test]
    fn only_a_parameter_that_takes_a_number_has_a_range() {
        for label in ["env:A=1..5", "fanotify:delay=1..5", "landlock:layers=4", "no-such:n=1..5"] {
            assert_eq!(of(label), [label]);
        }
        let refused = |label: &str| expanded(&[label.to_owned()]).unwrap_err();
        for bad in ["landlock:layers=16..1", "landlock:layers=1..", "landlock:layers=a..b"] {
            assert!(refused(bad).contains("the lower one first, such as layers=1..16"), "{bad}");
        }
        assert!(refused("landlock:layers=1..4,rules=1..4").contains("several ranges"));
    }
}
