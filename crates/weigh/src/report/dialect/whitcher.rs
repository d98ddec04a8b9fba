//! The tables of Whitcher's report on Lunar Linux and Red Hat (2003): two systems beside each other,
//! the one that is of interest first, in UnixBench's indices and in lmbench's times; and lmbench's
//! summary with the ratio of the two, as in its appendix; of perl, perlbench's points and his own two
//! programs; of servers, the queries of his random inserts and the pages with cookies.
//!
//! A difference is how much faster the first is: its index over the other's, less 1, and the other's
//! time over its own. The ratio is always that of the second line over the first, so that it says the
//! opposite in tables of bandwidths.

use super::super::table::{Align, Table};
use super::lmbench::in_two_lines;
use super::lmbench_columns::{SECTIONS, Section};
use super::perlbench;
use super::unixbench::{ArmIndex, index_of};
use super::{Sheet, format, lines, three_digits, whole_percent};
use crate::result::work_name::WorkName;

const NOT_AVAILABLE: &str = "n/a";

/// His names of UnixBench's tests, and ours.
const INDICES: [(&str, &str); 8] = [
    ("file copy 4KB", "fsdisk"),
    ("file copy 1KB", "fstime"),
    ("file copy 256B", "fsbuffer"),
    ("pipe", "pipe"),
    ("pipe switching", "context1"),
    ("process creation", "spawn"),
    ("execl", "execl"),
    ("shell scripts (8)", "shell8"),
];

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

/// What he asked servers for, and ours. A query is a turn of his loop: one key drawn, looked up, and inserted
/// where it was not there.
const SERVED: [(&str, &str); 2] = [
    ("Database - queries of random inserts per second - bigger is better", "app:db.random-insert"),
    (
        "Web server and database - pages with cookies per second - bigger is better",
        "app:web.cookie",
    ),
];

/// His curve tells the time of so many turns of the loop.
const TURNS: f64 = 100_000.0;

/// The other system's arm, and that of the one that is of interest.
const OTHER: usize = 0;
const OWN: usize = 1;

pub fn render(sheet: &Sheet) -> Result<String, String> {
    let [other, own] = sheet.arms.as_slice() else {
        return Err("these tables have two systems beside each other: compare one arm with one \
                    baseline"
            .into());
    };
    let [other, own] = [other, own].map(format::label);
    let mut parts = Vec::new();
    if let Some(table) = indices(sheet)? {
        let title = "UnixBench - index values - bigger is better";
        parts.push(format!("{title}\n{}Difference: {own} over {other}, less 1.\n", lines(&table)));
    }
    if let Some(table) = times(sheet) {
        let title = "lmbench - times in microseconds - smaller is better";
        parts.push(format!("{title}\n{}Difference: {other} over {own}, less 1.\n", lines(&table)));
    }
    parts.extend(perlbench::in_points(sheet, OWN, OTHER));
    parts.extend(perlbench::in_seconds(sheet, OWN, OTHER));
    parts.extend(SERVED.iter().filter_map(|(title, workload)| {
        let table = served(sheet, workload)?;
        Some(format!("{title}\n{}Difference: {own} over {other}, less 1.\n", lines(&table)))
    }));
    parts.extend(best_and_worst(sheet).map(|table| {
        let title = "Database - seconds per 100,000 queries, best (worst) - smaller is better";
        format!("{title}\n{}Best and worst: by the rates of single samples.\n", lines(&table))
    }));
    parts.extend(inserted(sheet).map(|table| {
        let title = "Database - inserts per second - bigger is better";
        format!("{title}\n{}Difference: {own} over {other}, less 1.\n", lines(&table))
    }));
    let sections = SECTIONS.iter().filter_map(|section| {
        let table = in_two_lines(section.table(sheet, &[OWN, OTHER], true)?);
        Some(format!("{}\n{}", section.title, lines(&table)))
    });
    let sections: Vec<String> = sections.collect();
    if !sections.is_empty() {
        parts.push(format!("{}The last line of each: {other} over {own}.\n", sections.join("\n")));
    }
    if parts.is_empty() {
        return Err("none of its workloads is in these tables; they are those of the suites \
                    unixbench-4.1, lmbench, interp-perl and app-fill, and app:web.cookie"
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
fn indices(sheet: &Sheet) -> Result<Option<Table>, String> {
    let [own, other] = [index_of(sheet, OWN)?, index_of(sheet, OTHER)?];
    if own.items.is_empty() && other.items.is_empty() {
        return Ok(None);
    }
    let is_his = |name: &str| INDICES.iter().any(|(_, his)| is_test(name, his));
    let find = |of: &ArmIndex, his: &str| {
        of.items.iter().find(|item| is_test(&item.name, his)).map(|item| item.index)
    };
    let mut rows: Vec<Vec<String>> = INDICES
        .iter()
        .map(|(title, his)| index_row(title, find(&own, his), find(&other, his)))
        .collect();
    for item in own.items.iter().filter(|item| !is_his(&item.name)) {
        rows.push(index_row(&item.title, Some(item.index), find(&other, &item.name)));
    }
    let tests = |of: &ArmIndex| of.items.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
    let mut last = index_row(&own.score_title(), own.score(), other.score());
    if tests(&own) != tests(&other) {
        // Scores of different tests cannot be compared.
        last[3] = NOT_AVAILABLE.into();
    }
    rows.push(last);
    Ok(Some(table(sheet, "Microbenchmark", rows)))
}

/// Whether it is this one, wherever its processes were placed.
fn is_test(name: &str, test: &str) -> bool {
    name == test || name.split('@').next() == Some(test)
}

fn index_row(title: &str, own: Option<f64>, other: Option<f64>) -> Vec<String> {
    let one =
        |index: Option<f64>| index.map_or(NOT_AVAILABLE.into(), |index| format!("{index:.1}"));
    vec![title.to_owned(), one(own), one(other), difference(own.zip(other))]
}

/// `None` where none of his was measured.
fn times(sheet: &Sheet) -> Option<Table> {
    let value = |title: &str, suffix: &str, arm: usize| {
        let of_section = |section: &Section| {
            let column = section.columns.iter().find(|column| column.title == title)?;
            section.value(sheet, column, arm)?
        };
        SECTIONS.iter().filter(|section| section.suffix == suffix).find_map(of_section)
    };
    let rows = TIMES.iter().filter_map(|(name, title, suffix)| {
        let [own, other] = [OWN, OTHER].map(|arm| value(title, suffix, arm));
        own.or(other)?;
        let shown = |time: Option<f64>| time.map_or(NOT_AVAILABLE.into(), three_digits);
        Some(vec![(*name).to_owned(), shown(own), shown(other), difference(other.zip(own))])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(sheet, "Microbenchmark", rows))
}

/// A line for each server, state of the table and number of clients; `None` where there is none.
fn served(sheet: &Sheet, workload: &str) -> Option<Table> {
    let lines = sheet.lines.iter().map(|line| (&line.name, &line.rates));
    of_servers(sheet, workload, lines)
}

/// The same of the inserts alone.
fn inserted(sheet: &Sheet) -> Option<Table> {
    of_servers(sheet, SERVED[0].1, sheet.inserts.iter().map(|(name, rates)| (name, rates)))
}

/// Of random inserts, how long the fastest sample and the slowest would have taken for all the turns.
fn best_and_worst(sheet: &Sheet) -> Option<Table> {
    let rows = sheet.lines.iter().filter_map(|line| {
        let [own, other] = [OWN, OTHER].map(|arm| {
            let [best, worst] = line.extremes[arm]?.map(|rate| three_digits(TURNS / rate));
            Some(format!("{best} ({worst})"))
        });
        own.as_ref().or(other.as_ref())?;
        let shown = |times: Option<String>| times.unwrap_or(NOT_AVAILABLE.into());
        Some(vec![title_of_served(&line.name, SERVED[0].1)?, shown(own), shown(other)])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let columns = vec![
        ("Benchmark", Align::Left),
        (&*sheet.arms[OWN], Align::Right),
        (&*sheet.arms[OTHER], Align::Right),
    ];
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}

fn of_servers<'a>(
    sheet: &Sheet,
    workload: &str,
    lines: impl Iterator<Item = (&'a WorkName, &'a Vec<Option<f64>>)>,
) -> Option<Table> {
    let rows = lines.filter_map(|(work, rates)| {
        let [own, other] = [OWN, OTHER].map(|arm| rates[arm]);
        let shown = |rate: Option<f64>| rate.map_or(NOT_AVAILABLE.into(), three_digits);
        let title = title_of_served(work, workload)?;
        Some(vec![title, shown(own), shown(other), difference(own.zip(other))])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(sheet, "Benchmark", rows))
}

/// Server, state of the table and number of clients; `None` of another workload.
fn title_of_served(work: &WorkName, workload: &str) -> Option<String> {
    let (name, server) = work.name.split_once('@').unwrap_or((&work.name, ""));
    let fill = match name.strip_prefix(workload)? {
        "" => String::new(),
        "-shared" => "one table".to_owned(),
        fill => format!("{} % full", fill.strip_prefix('-')?),
    };
    let clients = work.load.as_ref().map_or(1.0, |load| load.value);
    let clients = format::plural(clients as usize, "client");
    let parts = [server, &fill, &clients].into_iter().filter(|part| !part.is_empty());
    Some(format::label(&parts.collect::<Vec<_>>().join(", ")))
}

/// How much more the first is than the second.
fn difference(both: Option<(f64, f64)>) -> String {
    both.map_or(NOT_AVAILABLE.into(), |(one, other)| whole_percent(one / other))
}

fn table(sheet: &Sheet, title: &str, rows: Vec<Vec<String>>) -> Table {
    let columns = vec![
        (title, Align::Left),
        (&*sheet.arms[OWN], Align::Right),
        (&*sheet.arms[OTHER], Align::Right),
        ("Difference", Align::Right),
    ];
    Table::new(columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the same workloads in two arms, from the time of an operation in µs in each.
    fn sheet(times_us: &[(&str, f64, f64)]) -> Sheet {
        let rates = times_us.iter().map(|(name, us, _)| ((*name).into(), "ops/s".into(), 1e6 / us));
        let mut sheet = Sheet::of_run("id", "debian", rates);
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
    fn queries_and_pages_are_shown_by_server_fill_and_clients() {
        let mut sheet = sheet(&[
            ("app:db.random-insert@mariadb", 2800.0, 1600.0),
            ("app:db.random-insert-30@mariadb", 2000.0, 2000.0),
            ("app:db.random-insert", 1000.0, 500.0),
            ("app:db.transaction@mariadb", 1.0, 1.0),
            ("app:web.cookie@nginx-fpm", 1000.0, 800.0),
        ]);
        sheet.lines[2].name = WorkName::of_copies("app:db.random-insert", 4);
        let inserts = vec![Some(300.0), Some(450.0)];
        sheet.lines[0].extremes = vec![Some([500.0, 250.0]), Some([800.0, 400.0])];
        sheet.inserts = vec![("app:db.random-insert-shared@mariadb".into(), inserts)];
        let text = words(&render(&sheet).unwrap());
        for part in [
            "queries of random inserts per second - bigger is better Benchmark lunar debian Difference \
             mariadb, 1 client 625 357 75% mariadb, 30 % full, 1 client 500 500 0% \
             4 clients 2000 1000 100% Difference: lunar over debian",
            "pages with cookies per second - bigger is better Benchmark lunar debian Difference \
             nginx-fpm, 1 client 1250 1000 25%",
            "per 100,000 queries, best (worst) - smaller is better Benchmark lunar debian \
             mariadb, 1 client 125 (250) 200 (400) Best and worst",
            "inserts per second - bigger is better Benchmark lunar debian Difference \
             mariadb, one table, 1 client 450 300 50%",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(!text.contains("transaction"), "{text}");
    }

    #[test]
    fn scores_of_different_tests_are_not_compared() {
        let mut sheet = sheet(&[("execl", 2.0, 1.0), ("spawn@same-cpu", 3.0, 3.0)]);
        let score = |sheet: &Sheet| {
            let text = render(sheet).unwrap();
            words(text.lines().find(|line| line.starts_with("FINAL SCORE (partial only)")).unwrap())
        };
        assert!(score(&sheet).ends_with(" 41%"), "{}", score(&sheet));
        sheet.lines[1].rates[OTHER] = None;
        assert!(score(&sheet).ends_with(" n/a"), "{}", score(&sheet));
        let text = words(&render(&sheet).unwrap());
        assert!(text.contains("pipe n/a n/a n/a"), "{text}");
    }

    #[test]
    fn other_sheets_are_refused() {
        assert!(render(&sheet(&[("getrandom", 1.0, 1.0)])).unwrap_err().contains("unixbench-4.1"));
        let mut one = sheet(&[("stat", 1.0, 1.0)]);
        one.arms.pop();
        assert!(render(&one).unwrap_err().contains("two systems"));
    }
}
