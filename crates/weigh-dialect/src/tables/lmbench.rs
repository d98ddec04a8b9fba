//! lmbench's summary: a table per kind of test, with a line per arm. A column is there where some
//! workload is. As lmbench does, it takes off what the same operations cost without what is of interest,
//! where that was measured, and shows it.

use crate::lmbench_columns::{LmbenchColumn, SECTIONS, Section};
use crate::{Dialect, Sheet, SheetLine, format, lines, three_digits};
use weigh_model::ids::ArmId;
use weigh_report::table::{Align, Table};
use weigh_report::text::wrap;

pub static TABLE: Dialect =
    Dialect { name: "lmbench", study_of: None, is_of_time: true, render, page: None };

/// lmbench's summary fits this.
const WIDTH: usize = 80;

pub(super) fn render(sheet: &Sheet) -> Result<String, String> {
    let parts: Vec<String> = SECTIONS.iter().filter_map(|section| section.render(sheet)).collect();
    if parts.is_empty() {
        return Err("no workload of this result is a column of lmbench's summary".into());
    }
    let mut text = parts.join("\n");
    if sheet.head.is_none() {
        text.push_str("\nCompatible with lmbench's summary, from workloads of our own.\n");
        for sentence in about_overhead(sheet) {
            for line in wrap(&sentence, WIDTH, 0) {
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    Ok(text)
}

/// Which columns are less what lmbench takes off, and which are not.
fn about_overhead(sheet: &Sheet) -> Vec<String> {
    let with_overhead = || {
        let columns = SECTIONS.iter().flat_map(|section| section.columns);
        columns.filter(|column| !column.less.is_empty() && column.is_there(sheet))
    };
    let titles = |is_net: bool| -> Vec<&str> {
        // One column is in two tables.
        let mut titles = Vec::new();
        for column in with_overhead().filter(|column| column.is_net(sheet) == is_net) {
            if !titles.contains(&column.title) {
                titles.push(column.title);
            }
        }
        titles
    };
    let mut sentences = Vec::new();
    let (net, gross) = (titles(true), titles(false));
    if !net.is_empty() {
        sentences.push(format!(
            "Net, as in lmbench: {}. The overhead subtracted is ovr of the same size, sig ovr, and for Prot \
             Fault sig hndl. Where the difference is not above 0, the table shows {}.",
            net.join(", "),
            format::NONE
        ));
    }
    if !gross.is_empty() {
        sentences.push(format!(
            "Gross, as the overhead that lmbench subtracts was not measured: {}.",
            gross.join(", ")
        ));
    }
    sentences
}

impl Section {
    /// `None` where no column has a workload.
    fn render(&self, sheet: &Sheet) -> Option<String> {
        let arms: Vec<ArmId> = sheet.arm_ids().collect();
        let table = in_two_lines(self.table(sheet, &arms, false)?);
        Some(format!("{}\n{}", self.title, lines(&table)))
    }

    /// A line per arm; with the last over the first as one more, where that is wanted.
    pub(super) fn table(&self, sheet: &Sheet, arms: &[ArmId], has_ratio: bool) -> Option<Table> {
        let titles = std::iter::once(("", Align::Left));
        let columns = titles.chain(self.columns.iter().map(|c| (c.title, Align::Right)));
        let row = |arm: &ArmId| {
            let cells = self.columns.iter().map(|column| self.cell(sheet, column, *arm));
            std::iter::once(format::label(&sheet.arms[*arm])).chain(cells).collect::<Vec<String>>()
        };
        let mut rows: Vec<Vec<String>> = arms.iter().map(row).collect();
        let is_there = rows.iter().any(|row| row[1..].iter().any(|cell| !cell.is_empty()));
        if let (true, Some(first), Some(last)) = (has_ratio, arms.first(), arms.last()) {
            let ratio = |column: &LmbenchColumn| {
                let of = |arm: ArmId| self.value(sheet, column, arm).flatten();
                let ratio = of(*last).zip(of(*first)).map(|(last, first)| last / first);
                ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default()
            };
            let ratios = self.columns.iter().map(ratio);
            rows.push(std::iter::once(String::new()).chain(ratios).collect());
        }
        is_there.then(|| Table::new(columns.collect(), rows))
    }

    fn imported<'a>(&self, sheet: &'a Sheet, column: &LmbenchColumn) -> Option<&'a SheetLine> {
        let title = format!("{}{}", column.title, self.suffix);
        single(sheet).find(|line| line.name.name == title)
    }

    fn cell(&self, sheet: &Sheet, column: &LmbenchColumn, arm: ArmId) -> String {
        match self.value(sheet, column, arm) {
            None => String::new(),
            // lmbench has nothing to say there either: the difference is within the noise of the two.
            Some(None) => format::NONE.into(),
            Some(Some(value)) => three_digits(value),
        }
    }

    /// The number of a column; within it `None` where what is taken off is no less, without it where nothing
    /// was measured.
    pub(super) fn value(
        &self,
        sheet: &Sheet,
        column: &LmbenchColumn,
        arm: ArmId,
    ) -> Option<Option<f64>> {
        let scale = column.own_scale.unwrap_or(self.scale);
        let of = |names: &[&str]| mean(sheet, names, arm, |rate| scale.of(rate));
        if let Some(line) = self.imported(sheet, column) {
            return line.rates[arm].map(|rate| Some(scale.of(rate)));
        }
        if let Some(part) = column.part {
            let part_s = sheet.median_s(column.names, part, arm)?;
            return Some(Some(scale.of(1.0 / part_s)));
        }
        let gross = of(column.names)?;
        if !column.is_net(sheet) {
            return Some(Some(gross));
        }
        let time = |names: &[&str]| of(names).unwrap_or(0.0);
        Some(Some(gross - time(column.less) + time(column.more)).filter(|net| *net > 0.0))
    }
}

/// The last word of each title below the others, as lmbench has them, so that 80 characters hold a table.
pub(super) fn in_two_lines(mut table: Table) -> Table {
    let below = table.columns.iter_mut().map(|(title, _)| {
        let (above, below) = title.rsplit_once(' ').unwrap_or(("", title));
        let (above, below) = (above.to_owned(), below.to_owned());
        *title = above;
        below
    });
    let below = below.collect();
    table.rows.insert(0, below);
    table
}

impl LmbenchColumn {
    /// Returns true if at least one arm has these workloads.
    fn is_there(&self, sheet: &Sheet) -> bool {
        sheet.arm_ids().any(|arm| has(sheet, self.names, arm))
    }

    /// Returns true if the times that lmbench subtracts were measured wherever the column was. Net
    /// and gross times in one column would look like a difference between the arms.
    fn is_net(&self, sheet: &Sheet) -> bool {
        !self.less.is_empty()
            && sheet
                .arm_ids()
                .filter(|&arm| has(sheet, self.names, arm))
                .all(|arm| has(sheet, self.less, arm) && has(sheet, self.more, arm))
    }
}

fn has(sheet: &Sheet, names: &[&str], arm: ArmId) -> bool {
    names.is_empty() || mean(sheet, names, arm, |rate| rate).is_some()
}

/// The mean over workloads, as lmbench's null I/O is that of read and write.
fn mean(sheet: &Sheet, names: &[&str], arm: ArmId, value: impl Fn(f64) -> f64) -> Option<f64> {
    let rate = |name: &&str| {
        // Two runs shall show the same, whichever placements they have.
        let on_one = format!("{name}@same-cpu");
        let line = single(sheet).find(|line| line.name.name == on_one);
        line.or_else(|| single(sheet).find(|line| is_of(&line.name.name, name)))?.rates[arm]
    };
    let values: Vec<f64> =
        names.iter().map(|name| rate(name).map(&value)).collect::<Option<_>>()?;
    Some(values.iter().sum::<f64>() / values.len() as f64).filter(|mean| mean.is_finite())
}

/// The lines of one copy: the tables have no place for more.
fn single(sheet: &Sheet) -> impl Iterator<Item = &SheetLine> {
    sheet.lines.iter().filter(|line| line.name.copies() == 1)
}

/// The workloads that its columns are made of.
pub fn workloads() -> impl Iterator<Item = &'static str> {
    let columns = SECTIONS.iter().flat_map(|section| section.columns);
    columns.flat_map(|column| column.names.iter().chain(column.less).chain(column.more).copied())
}

/// Returns true if a row belongs to a workload, wherever its processes were placed.
fn is_of(row: &str, workload: &str) -> bool {
    row.split('@').next() == Some(workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::times::TimesRow;

    /// A sheet of one arm, from times in µs.
    fn sheet(times_us: &[(&str, f64)]) -> Sheet {
        let rates = times_us.iter().map(|(name, us)| ((*name).into(), "ops/s".into(), 1e6 / us));
        Sheet::of_rates("id", "none", rates)
    }

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_lmbench_takes_off_is_taken_off_and_shown() {
        let text = render(&sheet(&[
            ("lat-ctx-2p-0k", 5.5),
            ("lat-ctx-2p-16k", 6.0),
            ("lat-ctx-2p-64k", 9.25),
            ("lat-ctx-overhead-0k", 2.0),
            ("lat-ctx-overhead-16k", 6.5),
            ("lat-sig-catch", 8.0),
            ("lat-sig-overhead", 1.5),
            ("lat-sig-prot", 9.0),
        ]));
        let text = words(&text.unwrap());
        let table =
            "2p/0K 2p/16K 2p/64K ovr ovr ctxsw ctxsw ctxsw 0K 16K none 3.50 – 9.25 2.00 6.50";
        for part in [
            table,
            "sig sig hndl ovr none 6.50 1.50",
            "Prot Fault none 2.50",
            "Net, as in lmbench: sig hndl, 2p/0K ctxsw, 2p/16K ctxsw, Prot Fault.",
            "Gross, as the overhead that lmbench subtracts was not measured: 2p/64K ctxsw.",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    #[test]
    fn mhz_is_a_rate_and_halves_of_a_workload_have_columns_of_their_own() {
        let of = [("lat-ops-uint64-bit", 0.0005), ("stat", 2.0), ("lat-fs-0k", 9.0)];
        let mut sheet = sheet(&of);
        let times = |of: &str, p50_ns| TimesRow {
            workload: "lat-fs-0k".into(),
            treatment: None,
            of: of.into(),
            count: 1000,
            per_s: 1.0,
            per_op: Some(1.0),
            p50_ns: Some(p50_ns),
            p99_ns: None,
            p99_9_ns: None,
            longest_ns: 9000,
            longest_at: String::new(),
            waiting_cpu_pct: 0.0,
            waiting_disk_pct: 0.0,
            stolen_pct: 0.0,
        };
        sheet.times = vec![times("create", 6500.0), times("delete", 2250.0)];
        let text = words(&render(&sheet).unwrap());
        assert!(text.contains("Mhz stat none 2000 2.00"), "{text}");
        assert!(text.contains("0K File 0K File Create Delete none 6.50 2.25"), "{text}");
    }

    #[test]
    fn what_is_gross_in_one_arm_is_so_in_all() {
        let mut sheet = sheet(&[("lat-ctx-2p-0k", 5.5), ("lat-ctx-overhead-0k", 2.0)]);
        sheet.arms.push("audit".into());
        sheet.lines[0].rates.push(Some(1e6 / 6.5));
        sheet.lines[1].rates.push(None);
        let text = words(&render(&sheet).unwrap());
        assert!(text.contains("none 5.50 2.00 audit 6.50"), "{text}");
        let gross = "Gross, as the overhead that lmbench subtracts was not measured: 2p/0K ctxsw.";
        assert!(text.contains(gross), "{text}");
        assert!(!text.contains("Net,"), "{text}");
    }
}
