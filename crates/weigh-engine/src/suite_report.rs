//! Results in the report that a suite of its own prints, such as UnixBench's `./Run`: one reading per
//! test, so that a command that runs a suite has a verdict on each test.

use weigh_import::Content;
use weigh_import::formats::unixbench::IMPORT;
use weigh_model::result::imported::{Better, Figure};
use weigh_model::workload::metric::{Direction, LONGEST_NAME};
use weigh_model::workload::sample::{OwnReading, check_readings};

/// Returns the readings of a report in the output of a command; none if it has no report, or several.
///
/// # Errors
/// The report is cut off or contradicts itself.
pub fn readings(output: &str) -> Result<Vec<OwnReading>, String> {
    if !(IMPORT.is_it)(output) {
        return Ok(Vec::new());
    }
    let wrong = |problem: String| format!("it printed an invalid UnixBench report. {problem}");
    let document = weigh_import::read("stdout", output.as_bytes(), Some(&IMPORT))
        .map_err(|error| wrong(error.to_string()))?;
    if let Some(warning) = document.warnings.into_iter().next() {
        return Err(wrong(warning));
    }
    let Content::Results(reports) = document.content else { return Ok(Vec::new()) };
    // Whoever prints several, such as `cat`, has run none of them.
    let [report] = &reports[..] else { return Ok(Vec::new()) };
    let readings: Vec<OwnReading> = report.figures.iter().map(reading).collect();
    check_readings(&readings).map_err(wrong)?;
    Ok(readings)
}

fn reading(figure: &Figure) -> OwnReading {
    let better = match figure.better {
        Better::More => Direction::Higher,
        Better::Less | Better::Neither => Direction::Lower,
    };
    OwnReading::new(metric_name(figure), figure.value, figure.unit.clone(), better)
}

/// The title of a test as the name of a metric: `Pipe Throughput` with 2 copies is
/// `pipe-throughput-x2`.
fn metric_name(figure: &Figure) -> String {
    let letters = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let title: String = figure.test.chars().map(letters).collect();
    let mut name = title.split_whitespace().collect::<Vec<_>>().join("-");
    let copies = figure.copies.map(|copies| format!("-x{copies}")).unwrap_or_default();
    name.truncate(LONGEST_NAME - copies.len());
    name + &copies
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = include_str!("../../../tests/fixtures/import/unixbench-5.1.3.txt");

    #[test]
    fn each_test_and_number_of_copies_is_a_reading() {
        let found = readings(&format!("make all\n{REPORT}")).unwrap();
        let of = |name: &str| found.iter().find(|one| one.name == name);
        let first = of("process-creation").unwrap();
        assert_eq!((first.value, first.better), (4732.0, Direction::Higher));
        assert_eq!(of("shell-scripts-16-concurrent").unwrap().unit, "lpm");
        assert!(of("system-call-overhead").is_some());
        let long = Figure {
            test: "File Copy 1024 bufsize 2000 maxblocks".into(),
            value: 1.0,
            unit: "KBps".into(),
            better: Better::More,
            copies: Some(16),
            users: None,
            runs: Vec::new(),
            baseline: None,
            interval: None,
        };
        assert_eq!(metric_name(&long), "file-copy-1024-bufsize-2000-maxblock-x16");
    }

    #[test]
    fn a_report_that_is_cut_off_or_not_alone_gives_no_reading() {
        assert_eq!(readings("no report"), Ok(Vec::new()));
        let (half, _) = REPORT.split_once("System Call Overhead  ").unwrap();
        assert!(readings(half).unwrap_err().contains("its end may be missing"));
        assert_eq!(readings(&REPORT.repeat(2)), Ok(Vec::new()));
        let twice = REPORT.replacen("Process Creation   ", "System Call Overhead", 1);
        assert!(readings(&twice).unwrap_err().contains("appears twice"));
    }
}
