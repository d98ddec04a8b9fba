//! Table of the amounts that the treatments produced: the storage cost that no benchmark shows. The
//! treatments declare these amounts.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Align, Table};
use QuantityKind::{Arrived, Lost, Made, Spent, Waited};
use weigh_model::format;
use weigh_model::format::quoted;
use weigh_model::result::quantity::{EvidenceQuantity, NOT_COUNTED, QuantityKind, QuantityUnit};
use weigh_model::result::summary::{Row, RowEvidence, Summary};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// A column: what stands under its title, of several quantities together.
struct EvidenceColumn<'a> {
    title: String,
    /// True if the title leaves open whose amounts these are.
    is_of_several: bool,
    text: fn(&EvidenceQuantity, &Row) -> Option<String>,
    quantities: Vec<&'a EvidenceQuantity>,
}

impl EvidenceColumn<'_> {
    fn cell(&self, row: &Row) -> String {
        let texts = self.quantities.iter().filter_map(|quantity| {
            let text = (self.text)(quantity, row)?;
            Some(match self.is_of_several {
                true => format!("{} {text}", quantity.noun),
                false => text,
            })
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    fn align(&self) -> Align {
        if self.is_of_several { Align::Left } else { Align::Right }
    }
}

/// The rows that have evidence; `None` when no treatment gave any.
pub fn table(s: &Summary) -> Option<Table> {
    let rows: Vec<&Row> = s.results.iter().filter(|row| says_something(&row.evidence)).collect();
    if rows.is_empty() {
        return None;
    }
    let of_treatments = columns_of(declared(s));
    let texts = rows.iter().flat_map(|row| row.evidence.amounts.texts());
    let said: BTreeSet<&str> = texts.map(|(name, _)| name).collect();
    let titles: Vec<String> = said.iter().map(|name| name.replace('_', " ")).collect();
    let mut columns = vec![("workload", Align::Left), ("treatment", Align::Left)];
    columns.extend(of_treatments.iter().map(|column| (&*column.title, column.align())));
    columns.push(("syscalls/op", Align::Right));
    columns.extend(titles.iter().map(|title| (title.as_str(), Align::Left)));
    let several = super::has_several_treatments(s);
    let cells = rows.iter().map(|row| {
        let mut cells = vec![
            format::label(&row.workload),
            if several { format::label(&row.treatment) } else { String::new() },
        ];
        cells.extend(of_treatments.iter().map(|column| column.cell(row)));
        cells.push(row.evidence.syscalls_per_op.map(format::per_op).unwrap_or_default());
        let value = |name: &&str| row.evidence.amounts.text(name).map(format::label);
        cells.extend(said.iter().map(|name| value(name).unwrap_or_default()));
        cells
    });
    Some(Table::new(columns, cells.collect()))
}

/// Returns the quantities that all treatments declare, each name once.
fn declared(s: &Summary) -> Vec<&EvidenceQuantity> {
    let mut declared: Vec<&EvidenceQuantity> = Vec::new();
    for quantity in s.treatments.iter().flat_map(|treatment| &treatment.quantities) {
        if declared.iter().all(|known| known.name != quantity.name) {
            declared.push(quantity);
        }
    }
    declared
}

/// Orders the columns: output of operations, losses and waits; then how fast a disk fills; then use
/// by others.
fn columns_of(declared: Vec<&EvidenceQuantity>) -> Vec<EvidenceColumn<'_>> {
    let of_kind = |kinds: &[QuantityKind]| -> Vec<&EvidenceQuantity> {
        let declared = declared.iter().copied();
        declared.filter(|quantity| kinds.contains(&quantity.kind)).collect()
    };
    let column = |title: String, quantity, text| EvidenceColumn {
        title,
        is_of_several: false,
        text,
        quantities: vec![quantity],
    };
    let mut columns: Vec<EvidenceColumn> = of_kind(&[Made, Lost, Waited])
        .into_iter()
        .map(|quantity| column(title(quantity), quantity, text))
        .collect();
    for quantity in of_kind(&[Made]).into_iter().filter(|it| it.unit == QuantityUnit::Bytes) {
        columns.push(column(format!("max {} rate", quantity.noun), quantity, growth));
    }
    columns.push(EvidenceColumn {
        title: "CPU spent elsewhere/op".into(),
        is_of_several: true,
        text,
        quantities: of_kind(&[Spent]),
    });
    columns
}

fn title(quantity: &EvidenceQuantity) -> String {
    match (quantity.kind, quantity.unit) {
        (Lost, _) => "lost".into(),
        (_, QuantityUnit::Bytes) => format!("{} B/op", quantity.noun),
        _ => format!("{}/op", quantity.noun),
    }
}

fn text(quantity: &EvidenceQuantity, row: &Row) -> Option<String> {
    if quantity.kind == Lost {
        return lost(quantity, &row.evidence);
    }
    let per_op = row.evidence.amounts.number(&quantity.per_op())?;
    match (quantity.kind, quantity.unit) {
        (Waited, QuantityUnit::Seconds) if !(1.0..1e3).contains(&per_op) => {
            Some(format::seconds(per_op / 1e9))
        }
        (Arrived, _) => None,
        (_, QuantityUnit::Seconds) => Some(format::time_ns(per_op)),
        (_, QuantityUnit::Count | QuantityUnit::Bytes) => Some(count(&row.unit, per_op)),
    }
}

/// Divisor of an amount: an operation, unless the amount would then be shown as 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Per {
    Operation,
    Million,
    /// For workloads that move data over a network: their operation is a bit.
    Mebibyte,
}

impl Per {
    /// Chooses for a row whose rate has this unit.
    fn of(unit: &str, per_op: f64) -> Per {
        match unit {
            "Mb/s" => Per::Mebibyte,
            _ if per_op != 0.0 && per_op.abs() < 1e-4 => Per::Million,
            _ => Per::Operation,
        }
    }

    fn operations(self) -> f64 {
        match self {
            Per::Operation => 1.0,
            Per::Million => 1e6,
            Per::Mebibyte => 8.0 * f64::from(1 << 20),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Per::Operation => "operation",
            Per::Million => "million operations",
            Per::Mebibyte => "MiB transferred",
        }
    }
}

/// An amount per operation, as text, for a row whose rate has this unit: `3`, `7.10 per MiB`.
pub fn count(unit: &str, per_op: f64) -> String {
    let per = Per::of(unit, per_op);
    let amount = format::rare(per_op * per.operations());
    match per {
        Per::Operation => amount,
        Per::Million => format!("{amount} per million"),
        Per::Mebibyte => format!("{amount} per MiB"),
    }
}

/// `16,910 (≥ 12.0 %)`
fn lost(quantity: &EvidenceQuantity, evidence: &RowEvidence) -> Option<String> {
    let count = format::integer(evidence.amounts.whole(&quantity.name)?);
    Some(match evidence.amounts.number(&quantity.pct()) {
        Some(pct) => format!("{count} (≥ {} %)", format::unsigned(pct)),
        None => count,
    })
}

/// Amounts that a treatment produced in a row, per operation, and their losses: `3 records/op`.
pub fn proof(row: &Row, quantities: &[EvidenceQuantity]) -> String {
    let counts = |quantity: &&EvidenceQuantity| {
        matches!((quantity.kind, quantity.unit), (Made, QuantityUnit::Count) | (Lost, _))
    };
    let said = quantities.iter().filter(counts).filter_map(|quantity| {
        let text = text(quantity, row).filter(|text| text != "0")?;
        Some(match quantity.kind {
            Lost => format!("{text} {} lost", quantity.noun),
            _ => format!("{text} {}/op", quantity.noun),
        })
    });
    said.collect::<Vec<_>>().join(", ")
}

fn growth(quantity: &EvidenceQuantity, row: &Row) -> Option<String> {
    bytes_per_day(quantity, &row.evidence).map(|bytes| format!("{}/day", format::bytes(bytes)))
}

/// Returns the bytes that a day of only this workload would add.
fn bytes_per_day(quantity: &EvidenceQuantity, evidence: &RowEvidence) -> Option<f64> {
    let rate = evidence.amounts.number(&quantity.name)? / evidence.treated_s?;
    rate.is_finite().then_some(rate * SECONDS_PER_DAY)
}

/// Returns the quantities in bytes that treatments store.
pub fn stored(s: &Summary) -> Vec<&EvidenceQuantity> {
    let declared = declared(s).into_iter();
    declared.filter(|it| (it.kind, it.unit) == (Made, QuantityUnit::Bytes)).collect()
}

/// Returns the bytes that one operation of a row stores.
pub fn stored_per_op(stored: &[&EvidenceQuantity], row: &Row) -> f64 {
    stored.iter().filter_map(|quantity| row.evidence.amounts.number(&quantity.per_op())).sum()
}

/// The amounts that a row made, its bytes, and how many bytes a day of only this workload adds.
pub fn storage_cells(s: &Summary, row: &Row) -> [String; 3] {
    let declared = declared(s);
    let made = |unit| {
        declared
            .iter()
            .copied()
            .filter(move |it: &&EvidenceQuantity| (it.kind, it.unit) == (Made, unit))
    };
    let joined = |texts: Vec<String>| texts.join(", ");
    let bytes = || made(QuantityUnit::Bytes);
    [
        joined(made(QuantityUnit::Count).filter_map(|it| text(it, row)).collect()),
        joined(bytes().filter_map(|it| text(it, row)).collect()),
        joined(bytes().filter_map(|it| growth(it, row)).collect()),
    ]
}

/// A quantity in the rows that share a divisor.
struct Range<'a> {
    per: Per,
    /// From the lowest row to the highest, as text.
    text: String,
    rows: Vec<&'a Row>,
    highest: &'a Row,
}

impl Range<'_> {
    /// Names the divisor; rare events also with their workload, as its operations are others.
    fn per_noun(&self) -> String {
        match (self.per, &self.rows[..]) {
            (Per::Million, [row]) => {
                format!("per {} of {}", self.per.noun(), quoted(&row.workload))
            }
            (Per::Million, rows) => {
                format!("per {} of {}", self.per.noun(), format::plural(rows.len(), "workload"))
            }
            _ => format!("per {}", self.per.noun()),
        }
    }
}

/// The range of a quantity over all rows that have it, for each divisor.
fn ranges<'a>(s: &'a Summary, quantity: &EvidenceQuantity) -> Vec<Range<'a>> {
    let mut amounts: BTreeMap<Per, Vec<(f64, &Row)>> = BTreeMap::new();
    for row in &s.results {
        let per_op = row.evidence.amounts.number(&quantity.per_op());
        if let Some(per_op) = per_op.filter(|per_op| *per_op > 0.0) {
            let per = match (Per::of(&row.unit, per_op), quantity.unit) {
                // No operation writes a part of a byte.
                (Per::Operation, QuantityUnit::Bytes) if per_op < 1.0 => Per::Million,
                (per, _) => per,
            };
            amounts.entry(per).or_default().push((per_op * per.operations(), row));
        }
    }
    let text = |amount: f64| match quantity.unit {
        QuantityUnit::Bytes if amount >= 1.0 => format::bytes(amount),
        QuantityUnit::Bytes => format!("{} B", format::rare(amount)),
        _ => format::rare(amount),
    };
    let range = |(per, mut amounts): (Per, Vec<(f64, &'a Row)>)| {
        amounts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let [low, high] = [amounts.first()?, amounts.last()?];
        let (low, high, highest) = (text(low.0), text(high.0), high.1);
        let text = if low == high { high } else { format!("{low} to {high}") };
        Some(Range { per, text, rows: amounts.iter().map(|(_, row)| *row).collect(), highest })
    };
    amounts.into_iter().filter_map(range).collect()
}

/// Clauses such as `3 records per operation`; with a larger divisor, also the total.
fn counted(s: &Summary, quantity: &EvidenceQuantity) -> Vec<String> {
    let total = |range: &Range| {
        let rows = range.rows.iter();
        rows.filter_map(|row| row.evidence.amounts.whole(&quantity.name)).sum::<u64>()
    };
    let clause = |range: Range| {
        let clause = format!("{} {} {}", range.text, quantity.noun, range.per_noun());
        match range.per {
            Per::Operation if range.text.contains(" to ") => {
                format!("{clause} (most: {})", quoted(&range.highest.workload))
            }
            Per::Operation => clause,
            _ => format!("{clause} ({} in all)", format::integer(total(&range))),
        }
    };
    ranges(s, quantity).into_iter().map(clause).collect()
}

/// A number that many look for first, as a page has it at its top.
pub struct KeyNumber {
    pub title: String,
    pub value: String,
    /// Scope of the number; may be empty.
    pub remark: String,
}

/// The log of a day and the losses; empty if the treatments declare neither, or nothing was recorded.
pub fn key_numbers(s: &Summary) -> Vec<KeyNumber> {
    let declared = declared(s);
    let mut numbers = Vec::new();
    for quantity in declared.iter().filter(|it| (it.kind, it.unit) == (Made, QuantityUnit::Bytes)) {
        if let Some((row, bytes)) = fastest_growth(s, quantity) {
            numbers.push(KeyNumber {
                title: format!("{} per day at the highest measured rate", quantity.noun),
                value: format::bytes(bytes),
                remark: format!("if only {} runs", quoted(&row.workload)),
            });
        }
    }
    let lost = declared.iter().find(|quantity| quantity.kind == Lost);
    if let Some(quantity) = lost.filter(|_| !numbers.is_empty()) {
        let losses = s.results.iter().filter_map(|row| row.evidence.loss(s.quantities(row)));
        let worst = losses.filter_map(|loss| loss.pct).reduce(f64::max);
        let at_least = |pct| format!("worst row: at least {} %", format::unsigned(pct));
        numbers.push(KeyNumber {
            title: format!("{} lost", quantity.noun),
            value: format::integer(lost_in_all(s)),
            remark: worst.map(at_least).unwrap_or_default(),
        });
    }
    numbers
}

/// Returns the row that adds most of this a day, with the bytes; `None` if no row adds any.
fn fastest_growth<'a>(s: &'a Summary, quantity: &EvidenceQuantity) -> Option<(&'a Row, f64)> {
    let growth = |row: &'a Row| Some((row, bytes_per_day(quantity, &row.evidence)?));
    let growing = s.results.iter().filter_map(growth).filter(|(_, bytes)| *bytes > 0.0);
    growing.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn lost_in_all(s: &Summary) -> u64 {
    let losses = s.results.iter().filter_map(|row| row.evidence.loss(s.quantities(row)));
    losses.map(|loss| loss.count).fold(0, u64::saturating_add)
}

/// The storage cost in a sentence, for a screen without the table; `None` if nothing was recorded.
pub fn storage(s: &Summary) -> Option<String> {
    let declared = declared(s);
    let made = |unit| declared.iter().filter(move |it| (it.kind, it.unit) == (Made, unit));
    let mut clauses: Vec<String> =
        made(QuantityUnit::Count).flat_map(|quantity| counted(s, quantity)).collect();
    if clauses.is_empty() {
        return None;
    }
    for quantity in made(QuantityUnit::Bytes) {
        let bytes =
            |range: Range| format!("{} of {} {}", range.text, quantity.noun, range.per_noun());
        clauses.extend(ranges(s, quantity).into_iter().map(bytes));
        if let Some((row, bytes)) = fastest_growth(s, quantity) {
            let (day, name) = (format::bytes(bytes), quoted(&row.workload));
            let noun = &quantity.noun;
            clauses.push(format!("up to {day} of {noun} a day (if only {name} runs)"));
        }
    }
    if let Some(quantity) = declared.iter().find(|quantity| quantity.kind == Lost) {
        let lost = match lost_in_all(s) {
            0 => "no".to_owned(),
            lost => format::integer(lost),
        };
        clauses.push(format!("{lost} {} lost", quantity.noun));
    }
    // The amounts are then those that others counted, such as the machine that receives the records.
    let why = |row: &Row| row.evidence.amounts.text(NOT_COUNTED).map(str::to_owned);
    let uncounted: BTreeSet<String> = s.results.iter().filter_map(why).collect();
    clauses.extend(uncounted.iter().map(|why| format!("the count is incomplete: {why}")));
    Some(format!("{}.", clauses.join(", ")))
}

/// Returns the heading of [`storage`]: events that nobody stores are only counted.
pub fn storage_title(s: &Summary) -> &'static str {
    let is_stored = declared(s).iter().any(|it| (it.kind, it.unit) == (Made, QuantityUnit::Bytes));
    if is_stored { "Storage" } else { "Evidence" }
}

/// Returns true if the row has evidence of a treatment. A workload's declaration about itself does
/// not count.
fn says_something(evidence: &RowEvidence) -> bool {
    *evidence != RowEvidence { syscalls_per_op: evidence.syscalls_per_op, ..RowEvidence::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::quantity::of_before;

    #[test]
    fn storage_is_what_full_speed_writes_in_a_day() {
        let quantities = of_before();
        let log = quantities.iter().find(|quantity| quantity.name == "log_bytes").unwrap();
        let mut evidence = RowEvidence { treated_s: Some(2.0), ..RowEvidence::default() };
        evidence.amounts.set("log_bytes", 1 << 20);
        assert_eq!(bytes_per_day(log, &evidence), Some(45_298_483_200.0));
        evidence.treated_s = Some(0.0);
        assert_eq!(bytes_per_day(log, &evidence), None);
    }

    #[test]
    fn storage_is_a_sentence_too() {
        let mut s = example::audit();
        assert_eq!(
            storage(&s).unwrap(),
            "3 records per operation, 500 B of log per operation, up to 14.4 TiB of log a day (if only \
             `pipe` runs), 16,910 records lost."
        );
        s.results.truncate(2);
        s.results[1].evidence.amounts.set("records_per_op", 148.25);
        let said = storage(&s).unwrap();
        let most =
            format!("3 to 148.2 records per operation (most: `{}`), ", s.results[1].workload);
        assert!(said.starts_with(&most) && said.ends_with(", no records lost."), "{said}");
        // A day's few records of others, beside a workload that makes none itself.
        for (name, per_op) in [("records_per_op", 1.2e-6), ("log_bytes_per_op", 1.9e-4)] {
            s.results[0].evidence.amounts.set(name, per_op);
        }
        let (said, name) = (storage(&s).unwrap(), &s.results[0].workload);
        let few = format!("1.20 records per million operations of `{name}` (");
        assert!(said.contains(&few), "{said}");
        let log = format!(", 190 B of log per million operations of `{name}`, ");
        assert!(said.contains(&log), "{said}");
        for row in &mut s.results {
            row.evidence.amounts.set("records_per_op", 0.0);
        }
        assert_eq!(storage(&s), None);
    }

    #[test]
    fn the_log_of_a_day_and_the_losses_are_key_numbers() {
        let mut s = example::audit();
        let said = |s: &Summary| -> Vec<[String; 3]> {
            key_numbers(s).into_iter().map(|one| [one.title, one.value, one.remark]).collect()
        };
        let log = ["log per day at the highest measured rate", "14.4 TiB", "if only `pipe` runs"];
        let lost = ["records lost", "16,910", "worst row: at least 0.43 %"];
        assert_eq!(said(&s), [log.map(str::to_owned), lost.map(str::to_owned)]);
        s.results.retain(|row| row.workload.name == "syscall");
        assert_eq!(said(&s)[1], ["records lost", "0", ""].map(str::to_owned));
        s.treatments.iter_mut().for_each(|treatment| treatment.quantities.clear());
        assert!(said(&s).is_empty());
    }

    /// In a network workload an operation is a bit, and few of 100,000 operations make a record.
    #[test]
    fn what_few_operations_make_is_not_shown_as_nothing() {
        let mut s = example::audit();
        s.results.truncate(1);
        let row = &mut s.results[0];
        row.unit = "Mb/s".into();
        row.evidence = RowEvidence::default();
        for (name, per_op) in [("records_per_op", 1e-6), ("log_bytes_per_op", 2e-4)] {
            row.evidence.amounts.set(name, per_op);
        }
        row.evidence.amounts.set("records", 2_007_948);
        let said = "8.39 records per MiB transferred (2,007,948 in all), 1.64 KiB of log per MiB \
                    transferred, no records lost.";
        assert_eq!(storage(&s).unwrap(), said);
        let cells = table(&s).unwrap().rows.remove(0);
        assert!(cells.contains(&"8.39 per MiB".into()), "{cells:?}");
        s.results[0].unit = "ops/s".into();
        let said = storage(&s).unwrap();
        let few = format!(
            "1 records per million operations of `{}` (2,007,948 in all)",
            s.results[0].workload
        );
        assert!(said.starts_with(&few), "{said}");
        // The other machine may have counted shipped records that were not counted here.
        s.treatments[0].quantities = vec![EvidenceQuantity::new(
            "shipped",
            "records there",
            QuantityUnit::Count,
            Made,
            None,
        )];
        let mut evidence = RowEvidence::default();
        evidence.amounts.set("shipped", 12);
        evidence.amounts.set("shipped_per_op", 3.0);
        evidence.amounts.set(NOT_COUNTED, "the receiver stalled");
        s.results[0].evidence = evidence;
        let said = "3 records there per operation, the count is incomplete: the receiver stalled.";
        assert_eq!(storage(&s).unwrap(), said);
    }

    #[test]
    fn the_cpu_time_of_others_is_told_apart() {
        let quantities = of_before();
        let column = columns_of(quantities.iter().collect()).pop().unwrap();
        let mut row = example::audit().results.remove(0);
        row.evidence = RowEvidence::default();
        assert_eq!(column.cell(&row), "");
        row.evidence.amounts.set("kauditd_cpu_ns_per_op", 4200.0);
        assert_eq!(column.cell(&row), "kauditd 4.20 µs");
        row.evidence.amounts.set("sink_cpu_ns_per_op", 12_000.0);
        assert_eq!(column.cell(&row), "receiver 12.0 µs, kauditd 4.20 µs");
    }

    #[test]
    fn only_columns_with_something_in_them() {
        let mut s = example::audit();
        for row in &mut s.results {
            row.evidence = RowEvidence::default();
        }
        assert!(table(&s).is_none());
        s.results[0].evidence.amounts.set("seccomp_mode", "2");
        let table = table(&s).expect("one row has evidence");
        let titles: Vec<&str> = table.columns.iter().map(|(title, _)| title.as_str()).collect();
        assert_eq!(titles, ["workload", "seccomp mode"]);
        assert_eq!(table.rows.len(), 1);
    }

    /// Tests a treatment that is unknown to this code.
    #[test]
    fn whatever_a_treatment_declares_has_its_column() {
        let mut s = example::audit();
        s.results.truncate(1);
        let new = |name, noun, unit, kind| EvidenceQuantity::new(name, noun, unit, kind, None);
        s.treatments[0].quantities = vec![
            new("lookups", "AVC lookups", QuantityUnit::Count, Made),
            new("trace_bytes", "trace", QuantityUnit::Bytes, Made),
            new("missed", "events", QuantityUnit::Count, Lost),
            new("lock_s", "lock", QuantityUnit::Seconds, Made),
        ];
        let mut evidence = RowEvidence { treated_s: Some(1.0), ..RowEvidence::default() };
        evidence.amounts.set("lookups_per_op", 7.0);
        evidence.amounts.set("trace_bytes_per_op", 64.0);
        evidence.amounts.set("trace_bytes", 1024);
        evidence.amounts.set("missed", 5);
        evidence.amounts.set("lock_ns_per_op", 80.0);
        s.results[0].evidence = evidence;
        let table = table(&s).unwrap();
        let shown = table.columns.iter().map(|(title, _)| title.as_str()).zip(&table.rows[0]);
        let shown: Vec<String> =
            shown.skip(1).map(|(title, cell)| format!("{title} {cell}")).collect();
        assert_eq!(
            shown,
            [
                "AVC lookups/op 7",
                "trace B/op 64",
                "lost 5",
                "lock/op 80.0 ns",
                "max trace rate 84.4 MiB/day"
            ]
        );
        assert_eq!(
            storage(&s).unwrap(),
            "7 AVC lookups per operation, 64 B of trace per operation, up to 84.4 MiB of trace a day (if \
             only `syscall` runs), 5 events lost."
        );
    }
}
