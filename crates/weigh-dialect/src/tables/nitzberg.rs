//! Table 2 of Nitzberg, "Performance Benchmarking of UNIX System Auditing" (1994): the difference in
//! per cent of each of two sets, and how far the two lie apart; and, where they were counted, the records
//! and bytes of the audit trail "for individual tests and cumulatively", which he missed in benchmarks.
//!
//! The thesis prints no consistent sign, and cuts digits off. Here a sign always says the direction,
//! negative is slower, and digits are rounded.

use minijinja::{Error, Value, context};

use crate::{Dialect, Sheet, SheetLine, format, lines};
use weigh_report::table::{Align, Table};
use weigh_report::{evidence, html};

pub static TABLE: Dialect = Dialect {
    name: "nitzberg",
    study_of: Some("auditing"),
    is_of_time: false,
    render,
    page: Some(page),
};

/// Name of Nitzberg's count, as auditing declares it.
const RECORDS: &str = "records";
const LOG_BYTES: &str = "log_bytes";
/// As many as the thesis prints at most.
const DECIMALS: usize = 6;
/// His Figure 4 has what lost more than this in either set.
const DRAWN_FROM_PCT: f64 = 1.0;
/// As high as an item of the lists beside the bars: see the style sheet.
const ROW_HEIGHT: usize = 26;
const LONGEST_NAME: usize = 60;

/// A test of his Table 2: its name there, the group of his findings, and the workload that does it. One
/// sample of `fstime` stands for 10 and for 30 seconds.
type Test = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
static TESTS: [Test; 27] = [
    ("Dhrystone 2 without register variables", "arithmetic", "dhry2"),
    ("Dhrystone 2 using register variables", "arithmetic", "dhry2reg"),
    ("Arithmetic Test (type = arithoh)", "arithmetic", "arithoh"),
    ("Arithmetic Test (type = register)", "arithmetic", "arith-register"),
    ("Arithmetic Test (type = short)", "arithmetic", "arith-short"),
    ("Arithmetic Test (type = int)", "arithmetic", "arith-int"),
    ("Arithmetic Test (type = long)", "arithmetic", "arith-long"),
    ("Arithmetic Test (type = float)", "arithmetic", "arith-float"),
    ("Arithmetic Test (type = double)", "arithmetic", "arith-double"),
    ("System Call Overhead Test", "system calls", "syscall"),
    ("Pipe Throughput Test", "pipes", "pipe"),
    ("Pipebased Context Switching Test", "pipes", "context1@same-cpu"),
    ("Process Creation Test", "processes", "spawn@same-cpu"),
    ("Execl Throughput Test", "processes", "execl"),
    ("File Read (10 seconds)", "files", "fstime-r"),
    ("File Write (10 seconds)", "files", "fstime-w"),
    ("File Copy (10 seconds)", "files", "fstime"),
    ("File Read (30 seconds)", "files", "fstime-r"),
    ("File Write (30 seconds)", "files", "fstime-w"),
    ("File Copy (30 seconds)", "files", "fstime"),
    ("C Compiler Test", "compiler", "compile"),
    ("Shell scripts (1 concurrent)", "shell", "shell1"),
    ("Shell scripts (2 concurrent)", "shell", "shell2"),
    ("Shell scripts (4 concurrent)", "shell", "shell4"),
    ("Shell scripts (8 concurrent)", "shell", "shell8"),
    ("Dc: sqrt(2) to 99 decimal places", "dc", "dc"),
    ("Recursion Test--Tower of Hanoi", "recursion", "hanoi"),
];

fn render(sheet: &Sheet) -> Result<String, String> {
    let sentences = [examine(sheet), missing(sheet)].into_iter().flatten();
    let sentences = sentences.map(|sentence| format!("\n{sentence}\n"));
    Ok(lines(&table(sheet)?) + &sentences.collect::<String>())
}

/// Names the tests whose sets differ, which he examined for the cause; `None` if there are none.
fn examine(sheet: &Sheet) -> Option<String> {
    let rows =
        rows_of(sheet).into_iter().filter_map(|(name, _, line)| Some((name, spread(line?)?)));
    let apart: Vec<String> = rows
        .filter(|(_, spread)| *spread > DRAWN_FROM_PCT)
        .map(|(name, spread)| format!("{name} ({spread:.1})"))
        .collect();
    (!apart.is_empty()).then(|| {
        format!(
            "The sets differ by more than {DRAWN_FROM_PCT} point: {}. Without --as, -v shows the interval of \
             each set: where these overlap, more pairs will bring the sets together.",
            apart.join("; ")
        )
    })
}

/// The largest effect of a set less the smallest; `None` for fewer than two sets.
fn spread(line: &SheetLine) -> Option<f64> {
    let highest = line.sets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = line.sets.iter().copied().fold(f64::INFINITY, f64::min);
    (line.sets.len() > 1).then_some(highest - lowest)
}

/// A row for each of his groups with more than one measured test: the mean of its tests.
fn group_means(sheet: &Sheet, sets: usize) -> Vec<Vec<String>> {
    let mut groups: Vec<(&str, Vec<&SheetLine>)> = Vec::new();
    for (_, group, line) in rows_of(sheet) {
        let Some(line) = line.filter(|line| line.sets.len() == sets && !group.is_empty()) else {
            continue;
        };
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, of_it)) => of_it.push(line),
            None => groups.push((group, vec![line])),
        }
    }
    let row = |(group, of_it): &(&str, Vec<&SheetLine>)| {
        let mean =
            |set: usize| of_it.iter().map(|line| line.sets[set]).sum::<f64>() / of_it.len() as f64;
        let mut cells = vec![format!("Mean of {} tests", of_it.len()), (*group).to_owned()];
        let means: Vec<f64> = (0..sets).map(mean).collect();
        cells.extend(means.iter().map(|mean| fixed(*mean)));
        let apart = SheetLine { sets: means, ..SheetLine::default() };
        cells.push(spread(&apart).map(fixed).unwrap_or_default());
        cells.resize(2 + sets + 3, String::new());
        cells
    };
    groups.iter().filter(|(_, of_it)| of_it.len() > 1).map(row).collect()
}

/// Name, group and line of each row. If any workload is a test of the thesis, all its tests come first,
/// measured or not.
fn rows_of(sheet: &Sheet) -> Vec<(String, &'static str, Option<&SheetLine>)> {
    let of = |workload: &str| sheet.lines.iter().find(|line| line.name.to_string() == workload);
    let other = |line: &&SheetLine| TESTS.iter().all(|(_, _, of)| line.name.to_string() != *of);
    let others = sheet.lines.iter().filter(other);
    let others = others.map(|line| (format::label(&line.name), "", Some(line)));
    match TESTS.iter().any(|(_, _, workload)| of(workload).is_some()) {
        true => {
            let tests = TESTS
                .iter()
                .map(|(name, group, of_test)| ((*name).to_owned(), *group, of(of_test)));
            tests.chain(others).collect()
        }
        false => others.collect(),
    }
}

/// Names the tests that the cumulative rows leave out, and so show too little; `None` if there are none.
fn missing(sheet: &Sheet) -> Option<String> {
    sheet.cumulative.as_ref()?;
    let is_out = |line: &Option<&SheetLine>| line.is_none_or(|line| line.records_per_op.is_none());
    let out = rows_of(sheet).into_iter().filter(|(_, _, line)| is_out(line)).map(|(name, ..)| name);
    let out: Vec<String> = out.collect();
    (!out.is_empty()).then(|| {
        format!(
            "Not in the cumulative rows, as their records were not counted: {}.",
            out.join("; ")
        )
    })
}

fn table(sheet: &Sheet) -> Result<Table, String> {
    let sets = sheet.lines.iter().map(|line| line.sets.len()).max().unwrap_or(0);
    if sets < 2 {
        return Err("this table needs one treatment in two sets: `weigh compare TREATMENT --sets 2`, or an \
                    import of four results with the labels on, off, on, off"
            .into());
    }
    let last = if sets == 2 { "Delta-3".into() } else { "largest − smallest".to_owned() };
    let titles: Vec<String> =
        (1..=sets).map(|set| format!("Delta-{set}")).chain(std::iter::once(last)).collect();
    let mut columns = vec![("Benchmark", Align::Left), ("group", Align::Left)];
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Right)));
    columns.extend([("records/op", Align::Right), ("log B/op", Align::Right)]);
    let rows = rows_of(sheet).into_iter().map(|(name, group, line)| {
        let mut cells = vec![name, group.to_owned()];
        let Some(line) = line.filter(|line| line.sets.len() == sets) else {
            cells.push("no result".into());
            cells.resize(2 + sets + 3, String::new());
            return cells;
        };
        cells.extend(line.sets.iter().map(|effect| fixed(*effect)));
        cells.push(spread(line).map(fixed).unwrap_or_default());
        let counts = [line.records_per_op, line.log_bytes_per_op];
        cells.extend(counts.map(|count| {
            count.map(|count| evidence::count(&line.unit, count)).unwrap_or_default()
        }));
        cells
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    rows.extend(group_means(sheet, sets));
    rows.extend(cumulatively(sheet, sets));
    Ok(Table::new(columns, rows))
}

/// The last rows; none where nothing was counted.
fn cumulatively(sheet: &Sheet, sets: usize) -> Vec<Vec<String>> {
    let Some(sum) = &sheet.cumulative else { return Vec::new() };
    let row = |what: &str, records, log_bytes| {
        let mut cells = vec![format!("Cumulatively: {what}")];
        cells.resize(2 + sets + 1, String::new());
        cells.extend([records, log_bytes]);
        cells
    };
    let one_each = |name| sum.of_one_each(name).map(format::per_op).unwrap_or_default();
    let all = |name| sum.amounts.whole(name).map(format::integer).unwrap_or_default();
    vec![
        row("one operation of each", one_each(RECORDS), one_each(LOG_BYTES)),
        row("all timed operations", all(RECORDS), all(LOG_BYTES)),
    ]
}

/// Figure 4 and the table, as one page.
fn page(sheet: &Sheet) -> Result<String, String> {
    let table = table(sheet)?;
    filled(sheet, &table).map_err(|error| format!("the page could not be written: {error}"))
}

fn filled(sheet: &Sheet, table: &Table) -> Result<String, Error> {
    let title = format!("What {} costs, as in Nitzberg's Table 2 and Figure 4", sheet.arms[1]);
    let bars = drawn(sheet);
    html::fill_own(
        "nitzberg.html",
        include_str!("../nitzberg.jinja"),
        context! {
            id => sheet.id.as_str(),
            plain => title,
            head => sheet.head.as_deref().map(html::parts),
            figure => context! {
                title => "Figure 4: what lost more than 1 % of its rate in either set,",
                note => "in per cent; the larger of both.",
                keys => Vec::<Value>::new(),
                height => ROW_HEIGHT * bars.len(),
                rows => bars,
            },
            table => html::table(table),
            missing => missing(sheet),
        },
    )
}

/// The bars, from 0 to 100 %, in the order of the table.
fn drawn(sheet: &Sheet) -> Vec<Value> {
    let rows = rows_of(sheet).into_iter();
    let costly = rows.filter_map(|(name, _, line)| Some((name, cost_pct(line?)?)));
    let bar = |(row, (name, cost_pct)): (usize, (String, f64))| {
        let part = context! {
            class => "cost",
            x => "0.00%",
            width => format!("{:.2}%", cost_pct.clamp(0.0, 100.0)),
        };
        context! {
            y => ROW_HEIGHT * row + ROW_HEIGHT / 2,
            name => format::shorten(&name, LONGEST_NAME),
            whole => name,
            parts => vec![part],
            value => format!("{cost_pct:.1}\u{a0}%"),
            remark => "",
        }
    };
    costly.enumerate().map(bar).collect()
}

/// The larger of what both sets lost; `None` up to 1 %.
fn cost_pct(line: &SheetLine) -> Option<f64> {
    let lowest = line.sets.iter().copied().fold(f64::INFINITY, f64::min);
    (line.sets.len() > 1 && -lowest > DRAWN_FROM_PCT).then_some(-lowest)
}

fn fixed(pct: f64) -> String {
    // Without a sign where it rounds to nothing.
    let text = format!("{pct:.DECIMALS$}");
    if text.trim_matches(['-', '0', '.']).is_empty() {
        "0".into()
    } else {
        text.replace('-', "−")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn the_last_rows_are_cumulative() {
        let text = render(&Sheet::of_summary(&example::two_sets())).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("Overhead Test system calls −85.219400 −84.796700 0.422700 3 500"),
            "{text}"
        );
        assert_eq!(text.matches("no result").count(), 25, "all of his 27 are there: {text}");
        assert!(words.contains("Cumulatively: one operation of each 6 1,000"), "{text}");
        assert!(words.contains("Cumulatively: all timed operations"), "{text}");
        let missing = text.lines().last().unwrap();
        assert!(missing.starts_with("Not in the cumulative rows, as their records"), "{text}");
        assert!(
            missing.contains("C Compiler Test; ") && !missing.contains("System Call"),
            "{text}"
        );
    }

    #[test]
    fn tests_whose_sets_differ_are_named_and_groups_have_a_mean() {
        let mut s = example::two_sets();
        let text = render(&Sheet::of_summary(&s)).unwrap();
        assert!(
            text.contains("differ by more than 1 point: ") && text.contains(" (11.7)."),
            "{text}"
        );
        assert!(!text.contains("Mean of"), "each group has one test: {text}");
        s.results[0].workload = "pipe".into();
        s.results[1].workload = "context1@same-cpu".into();
        s.results[1].sets[1].effect_pct = 4.5;
        let text = render(&Sheet::of_summary(&s)).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Mean of 2 tests pipes −40.609700 −40.148350 0.461350"), "{text}");
        assert!(!text.contains("differ by more than"), "{text}");
    }

    #[test]
    fn the_figure_has_the_larger_cost_of_rows_above_one_per_cent() {
        let mut s = example::two_sets();
        s.results[1].sets[0].effect_pct = -0.99;
        s.results[1].sets[1].effect_pct = 3.0;
        let text = page(&Sheet::of_summary(&s)).unwrap();
        assert!(text.contains("85.2\u{a0}%") && !text.contains("84.8\u{a0}%"), "the larger");
        assert_eq!(text.matches("<rect").count(), 1, "the other lost less than 1 %");
        s.results[1].sets[0].effect_pct = -1.01;
        let text = page(&Sheet::of_summary(&s)).unwrap();
        assert!(text.contains("1.0\u{a0}%") && text.matches("<rect").count() == 2);
        for outside in ["http:", "https:", "url(", "@import", " src=", "<link", "<script"] {
            assert!(!text.contains(outside), "{outside} is on the page");
        }
    }
}
