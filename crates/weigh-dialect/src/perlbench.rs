//! Two perls beside each other as perlbench shows them, in points of which the first has 100, with the
//! arithmetic mean; and Whitcher's two programs, in seconds.

use super::{Sheet, SheetLine, lines, side_by_side, three_digits};
use weigh_model::format;
use weigh_model::ids::ArmId;
use weigh_report::table::{Align, Table};

const PREFIX: &str = "interp:perl.";

/// Whitcher's names of his programs, and ours. The others of `interp:perl.` that have a hyphen are
/// perlbench's.
const HIS: [(&str, &str); 4] = [
    ("fib 28", "fib-28"),
    ("fib 32", "fib-32"),
    ("fib 32 (opt'n by Larry Wall)", "fib-32-wall"),
    ("moving avg calc", "movavg-100k"),
];

/// The table in points; `None` where none of perlbench's programs was measured.
pub fn in_points(sheet: &Sheet, own: ArmId, other: ArmId) -> Option<String> {
    let mut points = Vec::new();
    let mut rows = Vec::new();
    for line in &sheet.lines {
        let Some(title) = perlbenchs_name(line) else { continue };
        let of_other = both(line, own, other).map(|(own, other)| 100.0 * other / own);
        points.extend(of_other);
        let shown = of_other.map_or("n/a".into(), whole);
        rows.push(vec![title, line.rates[own].map_or("n/a".into(), |_| whole(100.0)), shown]);
    }
    let average = points.iter().sum::<f64>() / points.len() as f64;
    (!points.is_empty()).then(|| {
        rows.push(vec!["AVERAGE".into(), whole(100.0), whole(average)]);
        let columns = vec![
            ("perlbench", Align::Left),
            (&*sheet.arms[own], Align::Right),
            (&*sheet.arms[other], Align::Right),
        ];
        let table = lines(&Table::new(columns, rows));
        format!("perlbench - points - bigger is better\n{table}")
    })
}

/// His own programs; `None` where none was measured.
pub fn in_seconds(sheet: &Sheet, systems: &[ArmId]) -> Option<String> {
    let row = |(title, name): &(&str, &str)| {
        let is_this = |line: &&SheetLine| name_of(line) == Some(name);
        let line = sheet.lines.iter().find(is_this)?;
        let seconds =
            |arm: &ArmId| line.rates[*arm].map_or("n/a".into(), |r| three_digits(1.0 / r));
        let mut cells = vec![(*title).to_owned()];
        cells.extend(systems.iter().map(seconds));
        if let [own, other] = *systems {
            let ratio = both(line, own, other).map(|(own, other)| format!("{:.2}", other / own));
            cells.push(ratio.unwrap_or("n/a".into()));
        }
        Some(cells)
    };
    let rows: Vec<Vec<String>> = HIS.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| {
        let table = lines(&side_by_side::table(sheet, systems, "perl", rows));
        let difference = match *systems {
            [own, other] => {
                let [own, other] = [own, other].map(|arm| format::label(&sheet.arms[arm]));
                format!("Difference: {own} over {other}.\n")
            }
            _ => String::new(),
        };
        format!("Perl - seconds - smaller is better\n{table}{difference}")
    })
}

fn name_of(line: &SheetLine) -> Option<&str> {
    line.name.name.strip_prefix(PREFIX)
}

/// As perlbench calls it: `arith/mixed`.
fn perlbenchs_name(line: &SheetLine) -> Option<String> {
    let name = name_of(line).filter(|name| !HIS.iter().any(|(_, his)| his == name))?;
    name.contains('-').then(|| name.replacen('-', "/", 1))
}

fn both(line: &SheetLine, own: ArmId, other: ArmId) -> Option<(f64, f64)> {
    line.rates[own].zip(line.rates[other])
}

fn whole(points: f64) -> String {
    format!("{points:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let rates = [
            ("interp:perl.arith-mixed", 100.0, 79.0),
            ("interp:perl.loop-for-range-const", 10.0, 9.1),
            ("interp:perl.fib", 10.0, 1.0),
            ("interp:perl.fib-28", 1.0 / 2.7, 1.0 / 3.6),
            ("getppid", 5.0, 6.0),
        ];
        let of_own = rates.map(|(name, own, _)| (name.into(), "ops/s".into(), own));
        let mut sheet = Sheet::of_rates("id", "lunar", of_own.into_iter());
        sheet.arms.push("redhat".into());
        for (line, (_, _, other)) in sheet.lines.iter_mut().zip(rates) {
            line.rates.push(Some(other));
        }
        sheet
    }

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_first_has_100_points_and_the_average_is_of_perlbenchs_alone() {
        let text = words(&in_points(&sheet(), ArmId(0), ArmId(1)).unwrap());
        let rows = "arith/mixed 100 79 loop/for-range-const 100 91 AVERAGE 100 85";
        assert!(text.contains(rows), "{text}");
        let mut sheet = sheet();
        sheet.lines[0].rates[1] = None;
        let text = words(&in_points(&sheet, ArmId(0), ArmId(1)).unwrap());
        assert!(text.contains("arith/mixed 100 n/a") && text.contains("AVERAGE 100 91"), "{text}");
        sheet.lines.drain(..2);
        assert_eq!(in_points(&sheet, ArmId(0), ArmId(1)), None);
    }

    #[test]
    fn his_programs_are_in_seconds_and_the_difference_is_a_ratio() {
        let text = words(&in_seconds(&sheet(), &[ArmId(0), ArmId(1)]).unwrap());
        assert!(text.contains("fib 28 2.70 3.60 0.75"), "{text}");
        assert!(!text.contains("fib 32"), "{text}");
    }
}
