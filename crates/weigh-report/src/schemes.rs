//! How the pairs of each row were taken, if there was a choice.

use weigh_model::format::quoted;
use weigh_model::result::scheme::Scheme;
use weigh_model::result::summary::{Row, Summary};
use weigh_model::workload::metric::WHOLE_RUNS;

/// So many workloads are named.
const MOST_NAMED: usize = 6;

/// Measure by which commands that share a CPU are compared.
pub const CPU_TIME: &str = "CPU time";
/// How interleaved pairs of commands are taken, and what lets them stand for the time of a command.
const SHARED: &str = "both commands of a pair ran at the same time on the same CPUs (interleaved pairs), so \
                      their CPU time is compared";
const CPU_BOUND: &str =
    "They are CPU-bound: when they ran alone, they waited for less than 5 % of their time.";

/// States which rows were interleaved, and which were not.
pub fn sentence(s: &Summary) -> Option<String> {
    let of = |scheme| rows_of(s, scheme).collect::<Vec<&Row>>();
    let [interleaved, sequential] = [of(Scheme::Interleaved), of(Scheme::Sequential)];
    let has_several = s.results.iter().any(|row| row.treatment != s.results[0].treatment);
    let share_cpu = shares_cpu(s);
    Some(match (&interleaved[..], &sequential[..]) {
        ([], []) if !is_switched_off(s) => return None,
        ([_, ..], []) if share_cpu => format!("Method: {SHARED}. {CPU_BOUND}"),
        ([_, ..], [_, ..]) if share_cpu => format!(
            "Method: for {}, {SHARED}. {CPU_BOUND} Sequential pairs for {}.",
            named(&interleaved, has_several),
            named(&sequential, has_several)
        ),
        ([_, ..], []) => {
            "Method: baseline and treated process alternated on one CPU (interleaved pairs).".into()
        }
        ([], _) => "Method: one sample ran after the other (sequential pairs).".into(),
        _ => format!(
            "Method: interleaved pairs on one CPU for {}; sequential pairs for {}.",
            named(&interleaved, has_several),
            named(&sequential, has_several)
        ),
    })
}

/// Returns true if commands shared a CPU: their rows are about CPU time.
pub fn shares_cpu(s: &Summary) -> bool {
    s.results.iter().any(is_of_cpu_time)
}

/// Returns true if both commands of a row's pairs shared a CPU, so that the row is about CPU time.
pub fn is_of_cpu_time(row: &Row) -> bool {
    row.scheme == Some(Scheme::Interleaved) && row.unit == WHOLE_RUNS
}

/// Returns true if the command line excluded interleaved pairs: its rows had no choice, and have no scheme.
fn is_switched_off(s: &Summary) -> bool {
    !s.results.is_empty() && s.command.contains(" --interleave off")
}

fn rows_of(s: &Summary, scheme: Scheme) -> impl Iterator<Item = &Row> {
    s.results.iter().filter(move |row| row.scheme == Some(scheme))
}

/// `a`, `b` and 3 more; with their treatments if the experiment has several.
fn named(rows: &[&Row], has_several: bool) -> String {
    let name = |row: &&Row| match has_several {
        true => format!("{} under {}", quoted(&row.workload), quoted(&row.treatment)),
        false => quoted(&row.workload),
    };
    let mut names: Vec<String> = rows.iter().take(MOST_NAMED).map(name).collect();
    let last = match rows.len() - names.len() {
        0 => names.pop().unwrap_or_default(),
        more => format!("{more} more"),
    };
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn each_row_is_named_as_interleaved_or_sequential() {
        let mut s = example::audit();
        assert_eq!(sentence(&s), None);
        s.command += " --interleave off";
        let sequential = "Method: one sample ran after the other (sequential pairs).";
        assert_eq!(sentence(&s).unwrap(), sequential);
        for row in &mut s.results {
            row.scheme = Some(Scheme::Sequential);
        }
        assert_eq!(sentence(&s).unwrap(), sequential);
        for row in &mut s.results {
            row.scheme = Some(Scheme::Interleaved);
        }
        let all = "Method: baseline and treated process alternated on one CPU (interleaved pairs).";
        assert_eq!(sentence(&s).unwrap(), all);
        for row in &mut s.results {
            row.scheme = Some(Scheme::Sequential);
        }
        s.results[0].scheme = Some(Scheme::Interleaved);
        let said = sentence(&s).unwrap();
        let first = quoted(&s.results[0].workload);
        assert!(
            said.starts_with(&format!(
                "Method: interleaved pairs on one CPU for {first}; sequential"
            )),
            "{said}"
        );
        assert!(said.contains(" and 5 more."), "{said}");
    }

    #[test]
    fn a_workload_with_both_schemes_is_named_with_its_treatments() {
        let mut s = example::audit();
        s.results.truncate(2);
        s.results[0].scheme = Some(Scheme::Interleaved);
        s.results[1].scheme = Some(Scheme::Sequential);
        s.results[1].workload = s.results[0].workload.clone();
        s.results[1].treatment = "seccomp".into();
        let workload = quoted(&s.results[0].workload);
        assert_eq!(
            sentence(&s).unwrap(),
            format!(
                "Method: interleaved pairs on one CPU for {workload} under `audit`; sequential pairs for \
                 {workload} under `seccomp`."
            )
        );
    }

    #[test]
    fn commands_that_shared_a_cpu_are_said_to_be_cpu_bound() {
        let mut s = example::versus();
        assert!(!shares_cpu(&s));
        for row in &mut s.results {
            // As tables and sentences show them.
            row.workload = row.treatment.as_str().into();
            (row.treatment, row.scheme) = ("command".into(), Some(Scheme::Interleaved));
        }
        assert!(shares_cpu(&s));
        let all = format!("Method: {SHARED}. {CPU_BOUND}");
        assert_eq!(sentence(&s).unwrap(), all);
        s.results[1].scheme = Some(Scheme::Sequential);
        let some =
            format!("Method: for `new --x`, {SHARED}. {CPU_BOUND} Sequential pairs for `new --y`.");
        assert_eq!(sentence(&s).unwrap(), some);
    }
}
