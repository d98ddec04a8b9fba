//! Whitcher's tests of servers: random inserts into a database table, and pages that recognise
//! their visitor by a cookie. A query is a turn of his loop: it draws a key, looks it up, and
//! inserts it if it is missing.

use super::side_by_side::{NOT_AVAILABLE, row, table};
use super::{Sheet, SheetLine, format, lines, three_digits};
use weigh_model::ids::ArmId;
use weigh_model::result::filling::{
    FILLS, Filling, RECORDS, filled_pct, queries, seconds_to_the_end,
};
use weigh_model::result::imported::Better;
use weigh_model::result::series::RunSeries;
use weigh_model::result::work_name::WorkName;
use weigh_report::table::{Align, Table};

const RANDOM_INSERT: &str = "app:db.random-insert";
const RANDOM_FILL: &str = "app:db.random-fill";
const LONGEST_BAR: f64 = 30.0;
/// Bars of the first system and of the second.
const BARS: [&str; 2] = ["▇", "░"];
const COOKIE: &str = "app:web.cookie";

/// His curve tells the time of so many queries.
const QUERIES: f64 = 100_000.0;
const MINUTE_S: f64 = 60.0;

/// Function from the seconds that all records take to a figure.
type OfTime = fn(f64) -> f64;

/// The tables of which there is something.
pub fn parts(sheet: &Sheet, systems: &[ArmId], difference: &str) -> Vec<String> {
    let rates = || sheet.lines.iter().map(|line| (&line.name, &line.rates));
    let inserts = sheet.inserts.iter().map(|(name, rates)| (name, rates));
    let titled = |title: &str, table: Option<Table>, note: &str| {
        table.map(|table| format!("{title}\n{}{note}", lines(&table)))
    };
    let all = [
        titled(
            "Database - seconds per 100,000 queries while a table fills - smaller is better",
            while_filling(sheet, systems),
            "A line per pass of --for that has a result. Filled: the expected share of the 2^20 keys of each \
             table.\nA pass without a result may have filled more.\n",
        ),
        titled(
            "Database - minutes for 900,000 records in a table of 2^20 keys - smaller is better",
            in_one_run(sheet, systems),
            "Time of one run until every table has them. For best and worst, measure several runs.\n",
        ),
        titled(
            "Database - random inserts until tables are 90 % full, best (worst)",
            to_the_end(sheet, systems),
            "From the queries per second at 0, 30, 60 and 90 %, between which the time of a query is taken \
             as linear.\nBest and worst: as if each had its fastest sample, or its slowest.\n",
        ),
        titled(
            "Database - queries of random inserts per second - bigger is better",
            of_servers(sheet, systems, RANDOM_INSERT, rates()),
            difference,
        ),
        titled(
            "Database - seconds per 100,000 queries, best (worst) - smaller is better",
            best_and_worst(sheet, systems),
            "Best and worst: by the rates of single samples.\n",
        ),
        titled(
            "Database - inserts per second - bigger is better",
            of_servers(sheet, systems, RANDOM_INSERT, inserts),
            difference,
        ),
        titled(
            "Web server and database - pages with cookies per second - bigger is better",
            of_servers(sheet, systems, COOKIE, rates()),
            difference,
        ),
    ];
    all.into_iter().flatten().collect()
}

pub fn filling(series: &[RunSeries]) -> Vec<Filling> {
    let of_fill = series.iter().filter(|one| WhoIsAsked::of(&one.workload, RANDOM_FILL).is_some());
    let filling = |RunSeries { workload, arm, samples, .. }: &RunSeries| Filling {
        name: workload.clone(),
        arm: *arm,
        passes: samples.iter().map(|sample| [sample.operations, sample.rate]).collect(),
    };
    of_fill.map(filling).collect()
}

/// His plot of the time over the queries, as lines with bars: of both systems on one scale, by queries.
fn while_filling(sheet: &Sheet, systems: &[ArmId]) -> Option<Table> {
    let mut rows = Vec::new();
    let mut names: Vec<&WorkName> = sheet.filling.iter().map(|one| &one.name).collect();
    names.dedup();
    for name in names {
        let asked = WhoIsAsked::of(name, RANDOM_FILL)?.title();
        let mut points: Vec<(f64, ArmId, f64)> = Vec::new();
        let of_work = sheet.filling.iter().filter(|one| one.name == *name && one.passes.len() > 1);
        for Filling { arm, passes, .. } in of_work {
            let mut queries = 0.0;
            for [more, rate] in passes {
                queries += more;
                points.push((queries, *arm, QUERIES / rate));
            }
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let slowest = points.iter().map(|point| point.2).fold(0.0, f64::max);
        for (queries, arm, seconds) in points {
            let filled_pct = filled_pct(queries / name.copies() as f64);
            let at = systems.iter().position(|system| *system == arm)?;
            let system = if systems.len() > 1 { &*sheet.arms[arm] } else { "" };
            let bar = BARS[at].repeat((LONGEST_BAR * seconds / slowest).round() as usize);
            rows.push(vec![
                if system.is_empty() { asked.clone() } else { format!("{asked}, {system}") },
                format::integer(queries as u64),
                format!("{filled_pct:.1}%"),
                three_digits(seconds),
                bar,
            ]);
        }
    }
    let columns = [
        ("Benchmark", Align::Left),
        ("queries", Align::Right),
        ("filled", Align::Right),
        ("s per 100,000", Align::Right),
        ("", Align::Left),
    ];
    (!rows.is_empty()).then(|| Table::new(columns.to_vec(), rows))
}

/// Measured time until the tables have all records; `None` if no run reached the end.
fn in_one_run(sheet: &Sheet, systems: &[ArmId]) -> Option<Table> {
    let runs = || sheet.filling.iter().filter(|one| one.passes.len() > 1);
    let mut names: Vec<&WorkName> = runs().map(|one| &one.name).collect();
    names.dedup();
    let rows = names.into_iter().filter_map(|name| {
        let minutes = |arm: &ArmId| {
            let run = runs().find(|one| one.name == *name && one.arm == *arm);
            Some(run?.seconds_to_records()? / MINUTE_S)
        };
        let minutes: Vec<Option<f64>> = systems.iter().map(minutes).collect();
        let title = WhoIsAsked::of(name, RANDOM_FILL)?.title();
        let is_known = minutes.iter().any(Option::is_some);
        is_known.then(|| row(&title, &minutes, three_digits, Better::Less))
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(sheet, systems, "Benchmark", rows))
}

/// A line for each server, state of the table and number of clients; `None` where there is none.
fn of_servers<'a>(
    sheet: &Sheet,
    systems: &[ArmId],
    workload: &str,
    lines: impl Iterator<Item = (&'a WorkName, &'a Vec<Option<f64>>)>,
) -> Option<Table> {
    let rows = lines.filter_map(|(work, rates)| {
        let title = WhoIsAsked::of(work, workload)?.title();
        let values: Vec<Option<f64>> = systems.iter().map(|arm| rates[*arm]).collect();
        Some(row(&title, &values, three_digits, Better::More))
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(sheet, systems, "Benchmark", rows))
}

/// Builds the table of random inserts: the time for all queries by the fastest and by the slowest
/// sample.
fn best_and_worst(sheet: &Sheet, systems: &[ArmId]) -> Option<Table> {
    let rows = sheet.lines.iter().filter_map(|line| {
        let title = WhoIsAsked::of(&line.name, RANDOM_INSERT)?.title();
        let times = |arm: &ArmId| {
            line.extremes[*arm].map(|rates| both(rates.map(|rate| three_digits(QUERIES / rate))))
        };
        let times: Vec<Option<String>> = systems.iter().map(times).collect();
        times.iter().any(Option::is_some).then(|| {
            let shown = times.into_iter().map(|times| times.unwrap_or(NOT_AVAILABLE.into()));
            std::iter::once(title).chain(shown).collect()
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut columns = vec![("Benchmark", Align::Left)];
    columns.extend(systems.iter().map(|arm| (&*sheet.arms[*arm], Align::Right)));
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}

/// As in his summary, a column for each number of clients: the time of all records, and the inserts and the
/// queries in a second meanwhile. `None` where no server was measured at every fill.
fn to_the_end(sheet: &Sheet, systems: &[ArmId]) -> Option<Table> {
    let asked: Vec<(WhoIsAsked, &SheetLine)> = (sheet.lines.iter())
        .filter_map(|line| Some((WhoIsAsked::of(&line.name, RANDOM_INSERT)?, line)))
        .collect();
    let seconds = |server: &str, clients: usize, arm: ArmId| {
        let rates = |fill: u32| {
            let is_this = |asked: &WhoIsAsked| {
                (asked.server, asked.clients, asked.state)
                    == (server, clients, TableState::Full(fill))
            };
            asked.iter().find(|(asked, _)| is_this(asked))?.1.extremes[arm]
        };
        let [a, b, c, d] = FILLS.map(rates);
        let all = [a?, b?, c?, d?];
        // The fastest of each, and the slowest.
        Some([0, 1].map(|which| seconds_to_the_end(all.map(|rates| rates[which]))))
    };
    let mut servers: Vec<&str> = Vec::new();
    for (asked, _) in &asked {
        if !servers.contains(&asked.server) {
            servers.push(asked.server);
        }
    }
    let mut clients: Vec<usize> = asked.iter().map(|(asked, _)| asked.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let quantities: [(&str, OfTime); 3] = [
        ("minutes for 900,000 records", |seconds| seconds / MINUTE_S),
        ("inserts per second", |seconds| RECORDS / seconds),
        ("queries per second", |seconds| queries() / seconds),
    ];
    let mut rows = Vec::new();
    for (quantity, of) in quantities {
        for (server, arm) in
            servers.iter().flat_map(|server| systems.iter().map(move |arm| (server, arm)))
        {
            let found = clients.iter().map(|clients| seconds(server, *clients, *arm));
            let cells: Vec<Option<String>> = found
                .map(|times| times.map(|times| both(times.map(|t| three_digits(of(t))))))
                .collect();
            if cells.iter().any(Option::is_some) {
                let arm = if systems.len() > 1 { &*sheet.arms[*arm] } else { "" };
                let parts = [quantity, server, arm].into_iter().filter(|part| !part.is_empty());
                let title = format::label(&parts.collect::<Vec<_>>().join(", "));
                let cells = cells.into_iter().map(|cell| cell.unwrap_or(NOT_AVAILABLE.into()));
                rows.push(std::iter::once(title).chain(cells).collect());
            }
        }
    }
    let titles: Vec<String> = clients.iter().map(|n| format::plural(*n, "client")).collect();
    let mut columns = vec![("Benchmark", Align::Left)];
    columns.extend(titles.iter().map(|title| (&**title, Align::Right)));
    (!rows.is_empty()).then(|| Table::new(columns, rows))
}

/// Best (worst).
fn both([best, worst]: [String; 2]) -> String {
    format!("{best} ({worst})")
}

/// Who was asked, by how many.
struct WhoIsAsked<'a> {
    server: &'a str,
    state: TableState,
    clients: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum TableState {
    Full(u32),
    /// Empty, and that of all clients.
    Shared,
}

impl WhoIsAsked<'_> {
    /// `None` of another workload.
    fn of<'a>(work: &'a WorkName, workload: &str) -> Option<WhoIsAsked<'a>> {
        let (name, server) = work.name.split_once('@').unwrap_or((&work.name, ""));
        let state = match name.strip_prefix(workload)? {
            "" => TableState::Full(0),
            "-shared" => TableState::Shared,
            fill => TableState::Full(fill.strip_prefix('-')?.parse().ok()?),
        };
        Some(WhoIsAsked { server, state, clients: work.copies() })
    }

    fn title(&self) -> String {
        let state = match self.state {
            TableState::Full(0) => String::new(),
            TableState::Full(fill) => format!("{fill} % full"),
            TableState::Shared => "one table".to_owned(),
        };
        let clients = format::plural(self.clients, "client");
        let parts = [self.server, &state, &clients].into_iter().filter(|part| !part.is_empty());
        format::label(&parts.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates in a second, of the baseline and of the other arm.
    fn sheet(rates: &[(WorkName, f64, f64)]) -> Sheet {
        let of_baseline = rates.iter().map(|(name, rate, _)| (name.clone(), "ops/s".into(), *rate));
        let mut sheet = Sheet::of_rates("id", "debian", of_baseline);
        sheet.arms.push("lunar".into());
        for (line, (_, baseline, treated)) in sheet.lines.iter_mut().zip(rates) {
            line.rates.push(Some(*treated));
            line.extremes = [baseline, treated].map(|rate| Some([rate * 2.0, rate / 2.0])).to_vec();
        }
        sheet
    }

    fn words(parts: Vec<String>) -> String {
        parts.join("\n").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn assert_has(text: &str, parts: &[&str]) {
        for part in parts {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn a_table_that_fills_has_a_line_and_a_bar_per_pass() {
        let mut sheet = Sheet::of_rates("id", "none", std::iter::empty());
        let name = WorkName::of_copies("app:db.random-fill@mariadb", 2);
        let half = f64::from(1u32 << 20);
        let passes = vec![[half, 1000.0], [half, 2000.0]];
        sheet.filling = vec![Filling { name: name.clone(), arm: ArmId(0), passes }];
        let text = words(parts(&sheet, &[ArmId(0)], ""));
        // Each client has drawn half as many keys as there are, and then as many.
        let (long, short) = ("▇".repeat(30), "▇".repeat(15));
        assert_has(
            &text,
            &[
                &format!("mariadb, 2 clients 1,048,576 39.3% 100 {long}"),
                &format!("mariadb, 2 clients 2,097,152 63.2% 50.0 {short}"),
            ],
        );
        // A second system is on the same scale, and its lines are between those of the first.
        sheet.arms.push("lunar".into());
        let passes = vec![[1.5 * half, 4000.0], [1.0, 4000.0]];
        sheet.filling.push(Filling { name, arm: ArmId(1), passes });
        let both = words(parts(&sheet, &[ArmId(1), ArmId(0)], ""));
        let light = "░".repeat(30);
        assert_has(
            &both,
            &[
                &format!(
                    "2 clients, none 1,048,576 39.3% 100 {light} mariadb, 2 clients, lunar 1,572,864"
                ),
                &format!("25.0 {}", "▇".repeat(8)),
            ],
        );
        assert!(!both.contains("900,000"), "{both}");
        sheet.filling.iter_mut().for_each(|one| one.passes[0][0] *= 10.0);
        let whole = words(parts(&sheet, &[ArmId(1), ArmId(0)], ""));
        // 2^20 · 1.9534 queries of each client.
        assert_has(&whole, &["mariadb, 2 clients 17.1 68.3 300%"]);
        // A single sample is not a run of passes.
        sheet.filling.iter_mut().for_each(|one| one.passes.truncate(1));
        assert!(parts(&sheet, &[ArmId(1), ArmId(0)], "").is_empty());
    }

    #[test]
    fn queries_and_pages_are_shown_by_server_fill_and_clients() {
        let mut sheet = sheet(&[
            ("app:db.random-insert@mariadb".into(), 400.0, 800.0),
            ("app:db.random-insert-30@mariadb".into(), 500.0, 500.0),
            (WorkName::of_copies("app:db.random-insert", 4), 1000.0, 2000.0),
            ("app:db.transaction@mariadb".into(), 1.0, 1.0),
            ("app:web.cookie@nginx-fpm".into(), 1000.0, 1250.0),
        ]);
        let inserts = vec![Some(300.0), Some(450.0)];
        sheet.inserts = vec![("app:db.random-insert-shared@mariadb".into(), inserts)];
        let text = words(parts(&sheet, &[ArmId(1), ArmId(0)], "Difference: lunar over debian.\n"));
        assert_has(
            &text,
            &[
                "queries of random inserts per second - bigger is better Benchmark lunar debian Difference \
                 mariadb, 1 client 800 400 100% mariadb, 30 % full, 1 client 500 500 0% \
                 4 clients 2000 1000 100% Difference: lunar over debian",
                "pages with cookies per second - bigger is better Benchmark lunar debian Difference \
                 nginx-fpm, 1 client 1250 1000 25%",
                "per 100,000 queries, best (worst) - smaller is better Benchmark lunar debian \
                 mariadb, 1 client 62.5 (250) 125 (500)",
                "inserts per second - bigger is better Benchmark lunar debian Difference \
                 mariadb, one table, 1 client 450 300 50%",
            ],
        );
        assert!(!text.contains("transaction") && !text.contains("900,000"), "{text}");
    }

    #[test]
    fn a_run_has_no_difference() {
        let mut sheet = sheet(&[("app:db.random-insert@sqlite".into(), 400.0, 800.0)]);
        sheet.arms.pop();
        let text = words(parts(&sheet, &[ArmId(0)], ""));
        let queries = "Benchmark debian sqlite, 1 client 400 Database - seconds";
        assert_has(&text, &[queries, "sqlite, 1 client 125 (500) Best"]);
        assert!(!text.contains("Difference"), "{text}");
    }

    #[test]
    fn his_summary_has_a_column_for_each_number_of_clients() {
        let of = |fill: &str, clients| {
            WorkName::of_copies(&format!("app:db.random-insert{fill}@mariadb"), clients)
        };
        let fills = ["", "-30", "-60", "-90"];
        let mut rates: Vec<(WorkName, f64, f64)> =
            fills.iter().map(|fill| (of(fill, 1), 1000.0, 2000.0)).collect();
        rates.push((of("", 6), 1.0, 1.0));
        let text = words(parts(&sheet(&rates), &[ArmId(1), ArmId(0)], ""));
        assert_has(
            &text,
            &[
                "best (worst) Benchmark 1 client 6 clients",
                "minutes for 900,000 records, mariadb, lunar 9.59 (38.4) n/a",
                "minutes for 900,000 records, mariadb, debian 19.2 (76.8) n/a",
                "inserts per second, mariadb, lunar 1563 (391) n/a",
                "queries per second, mariadb, debian 2000 (500) n/a",
            ],
        );
    }
}
