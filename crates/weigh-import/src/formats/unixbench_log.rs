//! UnixBench's `.log` (5.x, 6.0.0): every pass, of which the report keeps two thirds.
//!
//! A test begins with `TITLE -- N copies`. Each pass lists `# FIELD: VALUE` for each copy; the test
//! ends with `>>>> score: VALUE`.

use crate::{Document, ForeignFormat, ImportedResults, Problem, figure, number};
use weigh_model::result::imported::Figure;

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "unixbench-log",
    what: "UnixBench's .log",
    rank: 5,
    is_json: false,
    is_it: |text| text.contains("#### Pass "),
    read: |text| read(text).map(Document::of),
};

fn read(text: &str) -> Result<Vec<ImportedResults>, Problem> {
    let mut runs: Vec<Vec<Figure>> = vec![Vec::new()];
    let mut open: Option<Test> = None;
    for (at, line) in text.lines().map(str::trim).enumerate() {
        let said = |problem: String| (Some(at + 1), problem);
        if let Some((title, copies)) = heading(line) {
            open = Some(Test::new(title, copies));
        } else if let Some(test) = &mut open {
            if line.starts_with("#### Pass") {
                test.passes.push(Pass::default());
            } else if let Some((field, value)) =
                line.strip_prefix("# ").and_then(|rest| rest.split_once(": "))
            {
                test.field(field, value).map_err(said)?;
            } else if let Some(score) = line.strip_prefix(">>>> score: ") {
                let score =
                    number(score).ok_or_else(|| said(format!("{score:?} is not a score")))?;
                let Some(figure) = open.take().map(|test| test.figure(score)) else { continue };
                // A run has each test once: with the second begins another run.
                let is_same =
                    |other: &Figure| (&other.test, other.copies) == (&figure.test, figure.copies);
                match runs.last_mut().filter(|run| !run.iter().any(is_same)) {
                    Some(run) => run.push(figure),
                    None => runs.push(vec![figure]),
                }
            }
        }
    }
    if let Some(test) = open {
        let problem = format!(
            "{:?} has no score, because the run ended early: delete the file from that test on",
            test.title
        );
        return Err((None, problem));
    }
    let is_alone = runs.len() == 1;
    let result = |(number, figures): (usize, Vec<Figure>)| ImportedResults {
        format: "UnixBench log".into(),
        label: (!is_alone).then(|| format!("report {}", number + 1)),
        figures,
        ..Default::default()
    };
    Ok(runs.into_iter().enumerate().map(result).collect())
}

/// `TITLE -- 2 copies`
fn heading(line: &str) -> Option<(&str, u32)> {
    let (title, copies) = line.rsplit_once(" -- ")?;
    let (count, word) = copies.split_once(' ')?;
    let copies = count.parse().ok().filter(|_| matches!(word, "copy" | "copies"))?;
    (!line.starts_with(['#', '>'])).then_some((title, copies))
}

struct Test {
    title: String,
    copies: u32,
    unit: String,
    /// Seconds that the count is for: 1 for `lps`, 60 for `lpm`, 0 where it is a rate already.
    timebase: f64,
    passes: Vec<Pass>,
}

/// Sums over the copies of one pass.
#[derive(Default)]
struct Pass {
    count: f64,
    /// By the program's own clock, where it says, else by that around it.
    time: f64,
    elapsed: f64,
}

impl Test {
    fn new(title: &str, copies: u32) -> Test {
        let title = title.to_owned();
        Test { title, copies, unit: "lps".into(), timebase: 1.0, passes: Vec::new() }
    }

    fn field(&mut self, field: &str, value: &str) -> Result<(), String> {
        let amount = || number(value).ok_or_else(|| format!("{value:?} is not a value of {field}"));
        let Some(pass) = self.passes.last_mut() else {
            return Err(format!("{field} comes before the first pass"));
        };
        match field {
            "COUNT0" => pass.count += amount()?,
            "COUNT1" => self.timebase = amount()?,
            "COUNT2" => self.unit = value.trim().into(),
            "TIME" => pass.time += amount()?,
            "elapsed" => pass.elapsed += amount()?,
            _ => {}
        }
        Ok(())
    }

    fn figure(&self, score: f64) -> Figure {
        let copies = f64::from(self.copies.max(1));
        let rate = |pass: &Pass| {
            let time = if pass.time > 0.0 { pass.time } else { pass.elapsed } / copies;
            if self.timebase > 0.0 { pass.count * self.timebase / time } else { pass.count }
        };
        Figure {
            copies: Some(self.copies).filter(|copies| *copies != 1),
            runs: self.passes.iter().map(rate).filter(|rate| rate.is_finite()).collect(),
            ..figure(&self.title, score, &self.unit)
        }
    }
}
