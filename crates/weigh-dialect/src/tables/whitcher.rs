//! The tables of Whitcher's report on Lunar Linux and Red Hat (2003): two systems beside each other,
//! the one that is of interest first, in UnixBench's indices and in lmbench's times; and lmbench's
//! summary with the ratio of the two, as in its appendix; of perl, perlbench's points and his own two
//! programs; of servers, his random inserts and the pages with cookies. Of a run there is one system, and
//! nothing that is a difference or a ratio.
//!
//! A difference is how much faster the first is: its index over the other's, less 1, and the other's
//! time over its own. The ratio is always that of the second line over the first, so that it says the
//! opposite in tables of bandwidths.

use super::lmbench::in_two_lines;
use super::unixbench::{ArmIndex, index_of_4_1};
use crate::eight_tests::{EIGHT_TESTS, is_test};
use crate::lmbench_columns::{SECTIONS, Section};
use crate::side_by_side::{NOT_AVAILABLE, row, table};
use crate::{Dialect, Sheet, format, lines, three_digits};
use crate::{asked_servers, perlbench};
use weigh_model::ids::ArmId;
use weigh_model::result::imported::Better;
use weigh_report::table::Table;

pub static TABLE: Dialect = Dialect {
    name: "whitcher",
    study_of: Some("distributions"),
    is_of_time: true,
    render,
    page: None,
};

/// His names of lmbench's, and the title of the column with what follows it where two tables have it.
const TIMES: [(&str, &str, &str); 13] = [
    ("null I/O", "null I/O", ""),
    ("stat", "stat", ""),
    ("open/close", "open clos", ""),
    ("0KB create", "0K File Create", ""),
    ("0KB delete", "0K File Delete", ""),
    ("0KB create and delete", "0K create+delete", ""),
    ("fork", "fork proc", ""),
    ("execve", "exec proc", ""),
    ("sh", "sh proc", ""),
    ("pipe", "Pipe", " latency"),
    ("AF_UNIX", "AF UNIX", " latency"),
    ("TCP", "TCP", " latency"),
    ("TCP connect", "TCP conn", " latency"),
];

/// The arms in the order of the columns: the one that is of interest, and the other, which is the baseline.
/// Of a run there is one.
fn systems(sheet: &Sheet) -> Result<&'static [ArmId], String> {
    match sheet.arms.len() {
        1 => Ok(&[ArmId(0)]),
        2 => Ok(&[ArmId(1), ArmId(0)]),
        _ => {
            Err("these tables show two systems side by side: compare one arm with one baseline"
                .into())
        }
    }
}

fn render(sheet: &Sheet) -> Result<String, String> {
    let systems = systems(sheet)?;
    let names: Vec<String> = systems.iter().map(|arm| format::label(&sheet.arms[*arm])).collect();
    // How much faster the first is, by rates and by times.
    let [by_rate, by_time, ratio] = match &names[..] {
        [own, other] => [
            format!("Difference: {own} over {other}, less 1.\n"),
            format!("Difference: {other} over {own}, less 1.\n"),
            format!("The last line of each: {other} over {own}.\n"),
        ],
        _ => Default::default(),
    };
    let mut parts = Vec::new();
    if let Some(table) = indices(sheet, systems)? {
        let title = "UnixBench - index values - bigger is better";
        parts.push(format!("{title}\n{}{by_rate}", lines(&table)));
    }
    if let Some(table) = times(sheet, systems) {
        let title = "lmbench - times in microseconds - smaller is better";
        parts.push(format!("{title}\n{}{by_time}", lines(&table)));
    }
    if let [own, other] = *systems {
        parts.extend(perlbench::in_points(sheet, own, other));
    }
    parts.extend(perlbench::in_seconds(sheet, systems));
    parts.extend(asked_servers::parts(sheet, systems, &by_rate));
    let sections = SECTIONS.iter().filter_map(|section| {
        let table = in_two_lines(section.table(sheet, systems, systems.len() > 1)?);
        Some(format!("{}\n{}", section.title, lines(&table)))
    });
    let sections: Vec<String> = sections.collect();
    if !sections.is_empty() {
        parts.push(format!("{}{ratio}", sections.join("\n")));
    }
    if parts.is_empty() {
        return Err("no workload of this result is in these tables, which show the suites \
                    unixbench-4.1, lmbench, interp-perl and app-fill, app:web.cookie, and \
                    app:db.random-fill with --for; perlbench's \
                    points need two perls (weigh compare)"
            .into());
    }
    if sheet.head.is_none() {
        parts.push(
            "Compatible with UnixBench, lmbench and perlbench, from workloads of our own.\n".into(),
        );
    }
    Ok(parts.join("\n"))
}

/// His tests, the others of the index by their own names, and the final score.
fn indices(sheet: &Sheet, systems: &[ArmId]) -> Result<Option<Table>, String> {
    let all: Vec<ArmIndex> =
        systems.iter().map(|arm| index_of_4_1(sheet, *arm)).collect::<Result<_, _>>()?;
    if all.iter().all(|of| of.items.is_empty()) {
        return Ok(None);
    }
    let index = |index: f64| format!("{index:.1}");
    let find = |test: &str| -> Vec<Option<f64>> {
        let of_test = |of: &ArmIndex| {
            of.items.iter().find(|item| is_test(&item.name, test)).map(|item| item.index)
        };
        all.iter().map(of_test).collect()
    };
    let mut rows: Vec<Vec<String>> = EIGHT_TESTS
        .iter()
        .map(|(title, his)| row(title, &find(his), index, Better::More))
        .collect();
    let is_his = |name: &str| EIGHT_TESTS.iter().any(|(_, his)| is_test(name, his));
    for item in all[0].items.iter().filter(|item| !is_his(&item.name)) {
        rows.push(row(&item.title, &find(&item.name), index, Better::More));
    }
    let scores: Vec<Option<f64>> = all.iter().map(ArmIndex::score).collect();
    let mut last = row(&all[0].score_title(), &scores, index, Better::More);
    let tests = |of: &ArmIndex| of.items.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
    if let [own, other] = &all[..]
        && tests(own) != tests(other)
    {
        // Scores of different tests cannot be compared.
        last[3] = NOT_AVAILABLE.into();
    }
    rows.push(last);
    Ok(Some(table(sheet, systems, "Microbenchmark", rows)))
}

/// `None` where none of his was measured.
fn times(sheet: &Sheet, systems: &[ArmId]) -> Option<Table> {
    let value = |title: &str, suffix: &str, arm: ArmId| {
        let of_section = |section: &Section| {
            let column = section.columns.iter().find(|column| column.title == title)?;
            section.value(sheet, column, arm)?
        };
        SECTIONS.iter().filter(|section| section.suffix == suffix).find_map(of_section)
    };
    let rows = TIMES.iter().filter_map(|(name, title, suffix)| {
        let values: Vec<Option<f64>> =
            systems.iter().map(|arm| value(title, suffix, *arm)).collect();
        values.iter().any(Option::is_some).then(|| row(name, &values, three_digits, Better::Less))
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(sheet, systems, "Microbenchmark", rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a sheet of the same workloads in two arms, from the time of an operation in each arm,
    /// in µs.
    fn sheet(times_us: &[(&str, f64, f64)]) -> Sheet {
        let rates = times_us.iter().map(|(name, us, _)| ((*name).into(), "ops/s".into(), 1e6 / us));
        let mut sheet = Sheet::of_rates("id", "debian", rates);
        sheet.arms.push("lunar".into());
        for (line, (_, _, us)) in sheet.lines.iter_mut().zip(times_us) {
            line.rates.push(Some(1e6 / us));
            line.extremes.push(None);
            line.baselines.push(None);
        }
        sheet
    }

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_system_of_interest_comes_first_and_is_as_much_faster() {
        let text = render(&sheet(&[
            ("pipe@same-cpu", 2.0, 1.0),
            ("lat-pipe@same-cpu", 10.0, 12.5),
            ("stat", 1.5, 1.0),
            ("create-unlink", 20.0, 20.0),
            ("bw-pipe", 1.0, 2.0),
        ]));
        let text = words(&text.unwrap());
        for part in [
            "Microbenchmark lunar debian Difference",
            "stat 1.00 1.50 50%",
            "0KB create and delete 20.0 20.0 0%",
            "pipe 12.5 10.0 −20%",
            "lunar 12.5 debian 10.0 0.8000",
            // Of bandwidths too, the ratio is that of the second line over the first.
            "lunar 500000 debian 1000000 2.0000",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn scores_of_different_tests_are_not_compared() {
        let mut sheet = sheet(&[("execl", 2.0, 1.0), ("spawn@same-cpu", 3.0, 3.0)]);
        let score = |sheet: &Sheet| {
            let text = render(sheet).unwrap();
            words(text.lines().find(|line| line.starts_with("FINAL SCORE (partial only)")).unwrap())
        };
        assert!(score(&sheet).ends_with(" 41%"), "{}", score(&sheet));
        sheet.lines[1].rates[0] = None;
        assert!(score(&sheet).ends_with(" n/a"), "{}", score(&sheet));
        let text = words(&render(&sheet).unwrap());
        assert!(text.contains("pipe n/a n/a n/a"), "{text}");
    }

    #[test]
    fn other_sheets_are_refused() {
        assert!(render(&sheet(&[("getrandom", 1.0, 1.0)])).unwrap_err().contains("unixbench-4.1"));
        let mut three = sheet(&[("stat", 1.0, 1.0)]);
        three.arms.push("suse".into());
        assert!(render(&three).unwrap_err().contains("two systems"));
    }

    #[test]
    fn a_run_is_one_system_without_differences() {
        let times = [("stat", 2.0), ("execl", 1000.0), ("interp:perl.fib-28", 7.2e5)];
        let rates = times.iter().map(|(name, us)| ((*name).into(), "ops/s".into(), 1e6 / us));
        let text = words(&render(&Sheet::of_rates("id", "none", rates)).unwrap());
        for part in [
            "Microbenchmark none file copy 4KB n/a",
            "Microbenchmark none stat 2.00",
            "perl none fib 28 0.720",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        for absent in ["Difference", "last line", "AVERAGE"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        let points = [("interp:perl.arith-mixed".into(), "ops/s".into(), 1.0)];
        let why = render(&Sheet::of_rates("id", "none", points.into_iter())).unwrap_err();
        assert!(why.contains("two perls"), "{why}");
    }
}
