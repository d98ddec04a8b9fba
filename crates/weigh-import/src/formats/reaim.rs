//! re-aim's results (classic-suites.md, 3.3): the table that it prints, its `.csv`, its `multiuser.ss` and
//! `singleuser.ss`. Columns are found by their titles, so that tables of papers, which have some of them, are
//! read as well; a line of words between rows is the label of those that follow. A caption (`Table 8: …`)
//! below a paper's table names its labels, and ends it.
//!
//! Jobs per minute follow from users, time and jobs per user, of which all users have the same number: a
//! warning names rows that do not agree on it.

use crate::{Content, Document, ForeignFormat, ImportedResults, Problem, figure, number, words};
use weigh_model::result::imported::Figure;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "reaim",
    what: "re-aim's table, .csv or .ss",
    rank: 2,
    is_json: false,
    is_it,
    read,
};

const USERS: &str = "users";
const TIME: &str = "parent time";
const RATE: &str = "jobs per minute";
const PER_USER: &str = "jobs per minute and user";

/// The titles of the printed table, as papers have them too, longest first; and what is in the column.
const TITLES: [(&str, &str); 10] = [
    ("jobs/min/child", PER_USER),
    ("jobs per minute", RATE),
    ("number forked", USERS),
    ("child systime", "child system time"),
    ("std_dev percent", ""),
    ("std_dev time", ""),
    ("child utime", "child user time"),
    ("parent time", TIME),
    ("num forked", USERS),
    ("jti", ""),
];
/// The columns of `.csv` and `multiuser.ss`.
const CSV_HEAD: &str = "Forks,JPM,JPM_C,";
const CSV: [&str; 11] =
    [USERS, RATE, PER_USER, "", TIME, "child user time", "child system time", "", "", "", ""];
/// Index of the unit in a line of `singleuser.ss`. The line has number, name, elapsed, iterations,
/// loops/s, operations/s and their unit.
const SINGLE: usize = 6;

/// Returns true if the text is a file of re-aim.
fn is_it(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_single = |line: &str| single(line).is_some();
    text.contains(CSV_HEAD)
        || lines.clone().any(|line| has_rates(&titles(line)))
        || lines.clone().next().is_some_and(|first| numbers(first).len() == CSV.len())
            && lines.all(|line| numbers(line).len() == CSV.len())
        || text.lines().any(|line| !line.trim().is_empty())
            && text.lines().filter(|line| !line.trim().is_empty()).all(is_single)
}

fn read(text: &str) -> Result<Document, Problem> {
    let mut tables: Vec<Loads> = Vec::new();
    let mut columns: Vec<&str> = Vec::new();
    let mut label = None;
    let mut is_again = false;
    let (mut captioned, mut unread) = (0, Vec::new());
    for (at, line) in text.lines().enumerate() {
        let (line, said) = (line.trim(), |problem: String| (Some(at + 1), problem));
        if line.starts_with('#') {
            continue;
        }
        if let Some(caption) = caption(line) {
            if captioned == tables.len() {
                unread.push(caption);
                continue;
            }
            tables[captioned..].iter_mut().for_each(|table| table.put_under(&caption));
            (captioned, label) = (tables.len(), None);
            columns.clear();
            continue;
        }
        let found = titles(line);
        let begins = line.starts_with(CSV_HEAD) || has_rates(&found);
        if begins {
            // A label stands below the titles. What was printed above them is none.
            (is_again, label) = (true, None);
        }
        if line.starts_with(CSV_HEAD) || (columns.is_empty() && numbers(line).len() == CSV.len()) {
            columns = CSV.to_vec();
        } else if has_rates(&found) {
            columns = found;
        } else if let Some(one) = single(line).filter(|_| columns.is_empty()) {
            let table = tables.first_mut();
            match table {
                Some(table) => table.single.push(one),
                None => tables.push(Loads { single: vec![one], ..Loads::default() }),
            }
            continue;
        }
        let is_row = line.starts_with(|c: char| c.is_ascii_digit());
        if columns.is_empty() || line.is_empty() {
            continue;
        } else if is_row {
            let cells = numbers(line);
            if cells.len() != columns.len() {
                return Err(said(format!("expected {} numbers, found {line:?}", columns.len())));
            }
            // Titles without a label after rows begin another report.
            if label.is_some() || is_again || tables.is_empty() {
                tables.push(Loads { label: label.take(), ..Loads::default() });
            }
            is_again = false;
            let table = tables.last_mut().expect("there is one since the first row");
            table.add(&columns, &cells).map_err(said)?;
        } else if titles(line).is_empty() && !line.starts_with(CSV_HEAD) && !is_peak(line) {
            label = Some(words(line));
        }
    }
    if tables.len() > 1 {
        for (number, table) in tables.iter_mut().enumerate() {
            table.label.get_or_insert_with(|| format!("table {}", number + 1));
        }
    }
    let unread = (!unread.is_empty()).then(|| {
        let names = unread.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        format!("Not read, as they have no jobs per minute: {names}.")
    });
    let warnings = tables.iter().flat_map(Loads::doubts).chain(unread).collect();
    let results = tables.into_iter().map(Loads::results).collect();
    Ok(Document { content: Content::Results(results), warnings })
}

/// The words of a caption such as `Table 8: All User Time Workload`.
fn caption(line: &str) -> Option<String> {
    let (number, title) = line.strip_prefix("Table ")?.split_once(':')?;
    number.parse::<u32>().ok()?;
    Some(format!("Table {number} {}", words(title)))
}

fn is_peak(line: &str) -> bool {
    line.to_ascii_lowercase().starts_with("max jobs per minute")
}

/// Returns the columns in a line of titles; nothing for any other line.
fn titles(line: &str) -> Vec<&'static str> {
    let mut rest = line.to_ascii_lowercase().replace('|', " ");
    let mut columns = Vec::new();
    loop {
        rest = rest.trim_start().to_owned();
        if rest.is_empty() {
            return columns;
        }
        let known = TITLES.iter().find_map(|(title, column)| {
            rest.strip_prefix(title).map(|rest| (rest.to_owned(), *column))
        });
        let Some((after, column)) = known else { return Vec::new() };
        columns.push(column);
        rest = after;
    }
}

fn has_rates(columns: &[&str]) -> bool {
    columns.contains(&USERS) && columns.contains(&RATE)
}

/// The numbers of a line that has nothing else.
fn numbers(line: &str) -> Vec<f64> {
    let cells = line.split([',', '|', ' ', '\t']).filter(|cell| !cell.is_empty());
    cells.map(number).collect::<Option<_>>().unwrap_or_default()
}

/// A line of `singleuser.ss`: the name, operations per second, and what is counted.
fn single(line: &str) -> Option<(String, f64, String)> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let (first, rest) = cells.split_first()?;
    first.parse::<u32>().ok()?;
    let name = rest.first().filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    let values: Option<Vec<f64>> =
        rest.get(1..SINGLE - 1)?.iter().map(|cell| number(cell)).collect();
    Some(((*name).to_owned(), *values?.last()?, cells[SINGLE..].join(" ")))
}

/// The load points of one machine.
#[derive(Default)]
struct Loads {
    label: Option<String>,
    rows: Vec<Vec<(&'static str, f64)>>,
    single: Vec<(String, f64, String)>,
}

impl Loads {
    fn put_under(&mut self, caption: &str) {
        self.label = Some(match &self.label {
            Some(label) => format!("{caption}, {label}"),
            None => caption.to_owned(),
        });
    }

    fn add(&mut self, columns: &[&'static str], cells: &[f64]) -> Result<(), String> {
        let row: Vec<(&str, f64)> = columns.iter().copied().zip(cells.iter().copied()).collect();
        let users = of(&row, USERS).filter(|users| *users >= 1.0 && users.fract() == 0.0);
        users.ok_or("the number of users must be a whole number of at least 1")?;
        self.rows.push(row);
        Ok(())
    }

    /// Rows that do not agree with what most of them say a user does; each printed number may be half of its
    /// last digit away.
    fn doubts(&self) -> Vec<String> {
        let jobs = |row: &Vec<(&str, f64)>| {
            let [users, time, rate] = [USERS, TIME, RATE].map(|column| of(row, column));
            let (users, time, rate) = (users?, time?, rate?);
            let jobs = rate * time / (60.0 * users);
            let rounding = jobs * (0.005 / rate + 0.005 / time);
            jobs.is_finite().then_some((users, jobs, rounding + 0.001))
        };
        let found: Vec<(f64, f64, f64)> = self.rows.iter().filter_map(jobs).collect();
        let mut sorted: Vec<f64> = found.iter().map(|(_, jobs, _)| jobs.round()).collect();
        sorted.sort_by(f64::total_cmp);
        let Some(&usual) = sorted.get(sorted.len() / 2) else { return Vec::new() };
        let differs = found.iter().filter(|(_, jobs, off)| (jobs - usual).abs() > *off);
        let label = self.label.as_ref().map(|label| format!("{label}, ")).unwrap_or_default();
        differs
            .map(|(users, jobs, _)| {
                format!(
                    "{label}{}: jobs per minute and time give {jobs:.2} jobs per user, but most rows give \
                     {usual}.",
                    with_noun(*users)
                )
            })
            .collect()
    }

    fn results(self) -> ImportedResults {
        let of_row = |row: &Vec<(&'static str, f64)>| -> Vec<Figure> {
            let users = of(row, USERS).unwrap_or_default();
            let is_shown = |(column, _): &&(&str, f64)| !column.is_empty() && *column != USERS;
            let figure = |(column, value): &(&str, f64)| {
                let unit = if column.ends_with("time") { "s" } else { "jobs/min" };
                figure(&format!("{}, {column}", with_noun(users)), *value, unit)
            };
            row.iter().filter(is_shown).map(figure).collect()
        };
        let alone = self.single.iter().map(|(name, rate, of)| {
            let unit = if of.is_empty() { "ops/s".to_owned() } else { of.clone() };
            figure(name, *rate, &unit)
        });
        let figures = self.rows.iter().flat_map(of_row).chain(alone).collect();
        ImportedResults {
            format: "re-aim".into(),
            label: self.label,
            figures,
            ..Default::default()
        }
    }
}

fn of(row: &[(&str, f64)], column: &str) -> Option<f64> {
    row.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
}

/// A number of users as the names of rows have it, without grouped digits.
fn with_noun(users: f64) -> String {
    format!("{users} {}", if users == 1.0 { "user" } else { "users" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Vec<(String, f64, String)> {
        let Content::Results(results) = read(text).unwrap().content else { panic!() };
        let figures = results.into_iter().flat_map(|results| results.figures);
        figures.map(|figure| (figure.test, figure.value, figure.unit)).collect()
    }

    /// As in the appendix of White's paper: each table has the same three systems, and prose between.
    #[test]
    fn a_caption_names_the_labels_of_its_table() {
        let text = "Max Jobs per minute\t\nSingle - 1044.37 (1 user)\n\
            Num Forked\tParent Time\tJobs per Minute\nSingle\t\t\n\
            5\t29.32\t1043.66\nDual\n14\t29.27\t2927.23\n\n\
            Table 8: All User Time Workload\n\n3.3 of them are prose.\nMax Jobs per minute\n\
            Num Forked\tParent Time\tJobs per Minute\n222\t674.92\t1835.42\n\n\
            Table 9: All Tests Workload\n\nForks\tdelta\n10\t8.3%\nTable 10: A Comparison\n";
        let document = read(text).unwrap();
        let unread = "Not read, as they have no jobs per minute: `Table 10 A Comparison`.";
        assert_eq!(document.warnings, [unread]);
        let Content::Results(results) = document.content else { panic!() };
        let labels: Vec<&str> = results.iter().map(|one| one.label.as_deref().unwrap()).collect();
        let expected = [
            "Table 8 All User Time Workload, Single",
            "Table 8 All User Time Workload, Dual",
            "Table 9 All Tests Workload",
        ];
        assert_eq!(labels, expected);
    }

    const PRINTED: &str = "Num Forked Parent Time Child SysTime Child UTime Jobs per Minute \
        Jobs/min/Child Std_dev Time Std_dev Percent JTI\n\
        1 2.00 0.50 1.50 2910.00 2910.00 0.00 0.00 100\n\
        2 4.00 1.00 3.00 2910.00 1455.00 0.10 2.50 97\nMax Jobs per Minute 2910.00\n";

    #[test]
    fn the_printed_table_the_csv_and_the_ss_say_the_same() {
        let csv = "Forks,JPM,JPM_C,JPS_C,parent_tm,childU_tm,childS_tm,std_dev,JTI,max_c,min_c\n\
            1,2910.00,2910.00,48.50,2.00,1.50,0.50,0.00,100,2.00,2.00\n\
            2,2910.00,1455.00,24.25,4.00,3.00,1.00,0.10,97,4.00,3.90\n";
        let ss: String = csv.lines().skip(1).map(|l| l.replace(',', "  ") + "\n").collect();
        let sorted = |text: &str| {
            let mut figures = figures(text);
            figures.sort_by(|a, b| a.0.cmp(&b.0));
            figures
        };
        assert!([PRINTED, csv, &ss].iter().all(|text| is_it(text)));
        assert_eq!(sorted(csv), sorted(PRINTED));
        assert_eq!(sorted(&ss), sorted(PRINTED));
        let rate = ("2 users, jobs per minute".into(), 2910.0, "jobs/min".into());
        assert!(figures(PRINTED).contains(&rate), "{:?}", figures(PRINTED));
    }

    #[test]
    fn two_tables_of_one_file_are_two_results() {
        let text =
            format!("make: Entering directory '/x'\n{PRINTED}make: done\n\n{PRINTED}make: done\n");
        assert!(is_it(&text));
        let Content::Results(results) = read(&text).unwrap().content else { panic!() };
        let labels: Vec<_> = results.iter().map(|of| of.label.as_deref().unwrap()).collect();
        assert_eq!(labels, ["table 1", "table 2"]);
        assert_eq!(results[0].figures, results[1].figures);
    }

    #[test]
    fn tests_alone_are_read_with_what_they_count() {
        let text = "1 add_double 10.01 120 11.98 215784.22 Thousand Double Adds/second\n\
            2 creat_clo 10.02 300 29.94 29940.12 File Creations/second\n";
        assert!(is_it(text));
        let expected = ("add_double".into(), 215_784.22, "Thousand Double Adds/second".into());
        assert_eq!((figures(text)[0].clone(), figures(text).len()), (expected, 2));
    }

    #[test]
    fn a_row_that_does_not_agree_with_the_others_is_told() {
        let wrong = PRINTED.replace("2 4.00 1.00 3.00 2910.00", "2 4.00 1.00 3.00 3000.00");
        let warnings = read(&wrong).unwrap().warnings;
        assert!(
            warnings.len() == 1 && warnings[0].starts_with("1 user: jobs per minute and time"),
            "{warnings:?}"
        );
        assert_eq!(read(PRINTED).unwrap().warnings, Vec::<String>::new());
    }

    #[test]
    fn a_wrong_line_is_named() {
        let broken = PRINTED.replace("2 4.00 1.00", "2 4.00");
        assert_eq!(read(&broken).err().unwrap().0, Some(3));
        let no_users = PRINTED.replace("\n2 4.00", "\n2.5 4.00");
        assert_eq!(read(&no_users).err().unwrap().0, Some(3));
        assert!(!is_it("1,2,3\n") && !is_it(""));
    }
}
