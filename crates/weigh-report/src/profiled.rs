//! Output of a profiler: kernel functions with the share of each arm side by side, or its printout,
//! arm by arm.

use super::table::{Align, Table};
use weigh_model::format;
use weigh_model::result::profiled::{Profiled, ProfiledArm};

/// So many functions are on a page; all are in the JSON.
const MOST_SYMBOLS: usize = 15;

/// So many lines of what was printed are on a small screen.
pub const MOST_PRINTED: usize = 20;

pub struct ProfilerText {
    pub title: String,
    pub lines: Vec<String>,
}

/// The functions of the kernel, each table with its title.
pub fn tables(profiles: &[Profiled]) -> Vec<(String, Table)> {
    let known = profiles.iter().filter(|one| one.arms.iter().any(|arm| !arm.symbols.is_empty()));
    known
        .map(|one| (format!("Hottest in the kernel: {}", format::label(&one.workload)), table(one)))
        .collect()
}

fn table(one: &Profiled) -> Table {
    let titles: Vec<String> = one.arms.iter().map(of_arm).collect();
    let arms = titles.iter().map(|title| (title.as_str(), Align::Right));
    let columns = std::iter::once(("function", Align::Left)).chain(arms).collect();
    let cell = |share: Option<f64>| share.map_or("–".into(), |share| format!("{share:.1} %"));
    let rows = one.side_by_side().into_iter().take(MOST_SYMBOLS).map(|(symbol, shares)| {
        std::iter::once(format::label(&symbol)).chain(shares.into_iter().map(cell)).collect()
    });
    Table::new(columns, rows.collect())
}

fn of_arm(arm: &ProfiledArm) -> String {
    format::label(&match &arm.at {
        Some(at) => format!("{}, {at}", arm.arm),
        None => arm.arm.clone(),
    })
}

/// Returns the profiler's other output, per workload and arm.
pub fn printouts(profiles: &[Profiled]) -> Vec<ProfilerText> {
    let of_one = |one: &Profiled| {
        let printed = one.arms.iter().filter(|arm| arm.symbols.is_empty());
        let printout = |arm: &ProfiledArm| {
            let title = format!("Profiler: {}, {}", format::label(&one.workload), of_arm(arm));
            let lines: Vec<String> = match arm.printed.as_str() {
                "" => vec!["The profiler printed nothing.".into()],
                printed => {
                    printed.lines().map(|line| format::label(&line.replace('\t', "    "))).collect()
                }
            };
            ProfilerText { title, lines }
        };
        printed.map(printout).collect::<Vec<_>>()
    };
    profiles.iter().flat_map(of_one).collect()
}

/// The first lines, as far as each has room.
pub fn first(lines: &[String], most: usize, width: usize) -> Vec<String> {
    let shown = if lines.len() <= most { lines.len() } else { most - 1 };
    let rest = lines.len() - shown;
    let more = (rest > 0).then(|| format!("… {} more (-v)", format::plural(rest, "line")));
    lines[..shown].iter().map(|line| format::shorten(line, width)).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::result::profiled::HotSymbol;

    #[test]
    fn functions_are_side_by_side_and_what_was_printed_is_by_arm() {
        let symbols = vec![HotSymbol { symbol: "audit_log_start".into(), share_pct: 12.3 }];
        let arm = |arm: &str, symbols, printed: &str| ProfiledArm {
            arm: arm.into(),
            at: None,
            symbols,
            printed: printed.into(),
        };
        let arms = vec![arm("none", Vec::new(), "a\tb\x1b[1m"), arm("audit", symbols, "")];
        let profiles = [Profiled { workload: "stat".into(), arms }];
        let (title, table) = tables(&profiles).remove(0);
        assert_eq!(title, "Hottest in the kernel: stat");
        assert_eq!(table.rows, [["audit_log_start", "–", "12.3 %"]]);
        let printed = printouts(&profiles);
        assert_eq!((printed.len(), printed[0].title.as_str()), (1, "Profiler: stat, none"));
        assert!(printed[0].lines[0].starts_with("a    b") && !printed[0].lines[0].contains('\x1b'));
    }
}
