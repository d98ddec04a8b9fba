//! Costs of rules, on a terminal: the sentence, the most expensive lines, their kinds, and
//! suggested rewrites.

use super::rule_table::{self, FileNames, RuleRow};
use super::{tables, words};
use crate::curve_text::bar;
use crate::page::Page;
use crate::paint::{FAINT, paint};
use crate::screen::Room;
use crate::table::Align;
use crate::text::wrap;
use weigh_model::format;
use weigh_model::result::rules::{Rewrite, RuleReport};

/// Longer bars say no more.
const WIDEST_BAR: usize = 30;
/// Shorter ones show nothing.
const SHORTEST_BAR: usize = 8;

/// The whole report, with the `top` most expensive rows.
pub fn show(r: &RuleReport, top: usize, room: Room, colour: bool) -> String {
    let mut page = Page::new(room, colour);
    page.say(&words::sentences(r).join(" "));
    let lines = rule_table::alike(r);
    let shown = &lines[..top.min(lines.len())];
    if !shown.is_empty() {
        let count = |rows: &[RuleRow]| {
            format::integer(rows.iter().map(RuleRow::rules).sum::<usize>() as u64)
        };
        let title = match lines.len() > shown.len() {
            true => format!("The {} most expensive of {} rules", count(shown), count(&lines)),
            false => "The rules, most expensive first".to_owned(),
        };
        let are_alike = shown.iter().any(|row| row.rules() > 1);
        let title = title + if are_alike { ", similar rules in one row" } else { "" };
        page.table(&title, &rule_table::most_expensive(r, shown, page.room.cut));
        if let Some(rest) = rule_table::rest(r, &lines, shown.len()) {
            page.legend(&rest);
        }
        page.legend(&rule_table::legend(r));
    }
    classes(&mut page, r);
    if !lines.is_empty() {
        let title = format!("Per system call of {}", format::label(&r.mix));
        page.table(&estimated(r, &title), &tables::sums(r));
        let title = format!("Cost of each operation, in {}", words::unit(r.metric));
        page.table(&title, &tables::operations(r));
        if let Some(elapsed) = tables::elapsed(r) {
            page.table("In nanoseconds of wall-clock time", &elapsed);
        }
    }
    cheaper(&mut page, r);
    let files = FileNames::of(r);
    page.list("Not loaded", files.grouped(tables::left_out(r).into_iter()));
    page.list("Loaded with warnings", files.grouped(tables::warned(r).into_iter()));
    page.list("Not measured", words::not_measured(r));
    page.list("Warnings", r.warnings.iter().collect());
    page.list("Notes", words::notes(r));
    context(&mut page, r);
    page.lines.join("\n") + "\n"
}

/// A heading over figures of this report's metric.
fn estimated(r: &RuleReport, heading: &str) -> String {
    format!("{heading}{}", if r.is_estimate { ", estimated" } else { "" })
}

/// The table of classes, with a bar for each share where there is room.
fn classes(page: &mut Page, r: &RuleReport) {
    let mut table = tables::classes(r);
    if table.rows.is_empty() {
        return;
    }
    let used = table.to_lines(page.room.wrap).iter().map(|line| line.chars().count()).max();
    let room = page.room.wrap.saturating_sub(used.unwrap_or(0) + 2).min(WIDEST_BAR);
    if room >= SHORTEST_BAR {
        let mut shares: Vec<f64> =
            r.classes.iter().map(|class| class.share_pct.unwrap_or(0.0)).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        table.columns.push((String::new(), Align::Left));
        for (row, share) in table.rows.iter_mut().zip(shares) {
            row.push(bar(share / 100.0, room));
        }
    }
    page.table(&estimated(r, "By kind"), &table);
}

fn cheaper(page: &mut Page, r: &RuleReport) {
    if r.rewrites.is_empty() {
        return;
    }
    page.heading("Rewrites, each measured in place of the lines that it replaces");
    let files = FileNames::of(r);
    for rewrite in &r.rewrites {
        let text = format!("- {}: {}", format::label(&rewrite.title), words::saving(r, rewrite));
        page.lines.extend(wrap(&text, page.room.wrap, 2));
        for (label, text) in details(r, rewrite, &files) {
            // Wrapped by hand of the label's width: rules line up beneath each other.
            let room = page.room.wrap.saturating_sub(12);
            for (i, line) in wrap(&text, room, 2).into_iter().enumerate() {
                let label = if i == 0 { label } else { "" };
                let label = paint(&format!("  {label:<10}"), FAINT, page.colour);
                page.lines.push(format!("{label}{line}"));
            }
        }
    }
}

/// Returns the details of a rewrite: removed lines, added lines, and lost records.
fn details(r: &RuleReport, rewrite: &Rewrite, files: &FileNames) -> Vec<(&'static str, String)> {
    let replaced = words::replaced(r, rewrite);
    let mut details = Vec::new();
    if !replaced.is_empty() {
        details.push(("replaces", files.places(&replaced)));
    }
    for (i, line) in rewrite.with.iter().enumerate() {
        let label = match (i, rewrite.is_first) {
            (0, true) => "put first",
            (0, false) => "with",
            _ => "",
        };
        details.push((label, format::label(line)));
    }
    details.push(("gives up", words::given_up(rewrite)));
    details
}

/// On which machine, and how to do it again.
fn context(page: &mut Page, r: &RuleReport) {
    page.faint(vec![format!("measured in {}", format::seconds(r.elapsed_s))], &r.machine);
    if !r.id.is_empty() {
        page.lines.push(format!("kept:  weigh show {}", format::label(&r.id)));
    }
    // Not wrapped: a command is to be copied.
    page.lines.push(format!("again: {}", format::label(&r.command)));
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use weigh_model::result::rules::{CostInterval, Fate, Standing};

    #[test]
    fn it_is_the_report_of_the_fixture() {
        let text = show(&sample::stig(), 12, Room::terminal(100), false);
        let expected = include_str!("../../../../tests/fixtures/report/rules-100.txt");
        assert_eq!(text, expected, "now it is:\n{text}");
    }

    #[test]
    fn a_saving_that_surely_matters_is_a_headline_and_no_other() {
        let headline = |share: f64| {
            let mut r = sample::stig();
            let saved = share * r.total.value;
            let saving = CostInterval { value: saved, low: 0.9 * saved, high: 1.1 * saved };
            r.rewrites.truncate(1);
            r.rewrites[0].saving_per_syscall = saving;
            let said = words::sentences(&r).join(" ");
            said.contains("The best rewrite saves")
        };
        assert!(headline(0.05));
        assert!(!headline(0.003));
        assert!(!headline(0.0105), "its low end is below 1 %");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        for r in [sample::stig(), sample::nginx(), sample::hostile()] {
            for width in [0, 40, 60, 80, 100, 140, 200] {
                let text = show(&r, 20, Room::terminal(width), false);
                let lines = text.lines().filter(|line| !line.starts_with("again: "));
                // A word that is longer than the line, as a list of system calls, is not broken.
                let wide = lines.filter(|line| {
                    line.trim().contains(' ') && line.chars().count() > width.max(40)
                });
                let wide: Vec<&str> = wide.filter(|line| !line.contains("openat,creat")).collect();
                assert!(wide.is_empty(), "{width}: {wide:#?}");
                assert!(!text.contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn the_rule_can_be_read_before_its_interval_can() {
        let head = |width| {
            let text = show(&sample::stig(), 20, Room::terminal(width), false);
            text.lines()
                .find(|line| line.starts_with("share ") && line.contains("per call"))
                .map(str::to_owned)
                .unwrap_or_default()
        };
        let narrow = head(80);
        assert!(
            narrow.contains("getppid") && narrow.contains("rule") && !narrow.contains("95 %"),
            "{narrow}"
        );
        let broad = head(200);
        let all =
            ["95 %", "share", "create-unlink", "if it matches", "records", "log B", "line", "rule"];
        for column in all {
            assert!(broad.contains(column), "{column} is missing: {broad}");
        }
    }

    #[test]
    fn a_profile_is_named_with_what_it_costs() {
        let text = show(&sample::nginx(), 5, Room::terminal(200), false).replace('\n', " ");
        assert!(
            text.contains(
                "For `nginx -g 'daemon off;'`: at least +4.99 % CPU: +4.11 % [+3.80, +4.40] for"
            ),
            "{text}"
        );
        assert!(
            text.starts_with(
                "These 352 rules add 2,510 instructions (≈ 640 ns) to every system call"
            ),
            "{text}"
        );
        assert!(!text.contains("hardware counters"), "{text}");
    }

    #[test]
    fn without_records_the_answer_for_a_profile_says_so() {
        let mut r = sample::nginx();
        let text = show(&r, 5, Room::terminal(200), false).replace('\n', " ");
        assert!(text.contains("and ≈ +1.19 % for the records of `execve`"), "{text}");
        assert!(text.contains("Records of rules with conditions are not included"), "{text}");
        r.profile_records = None;
        let text = show(&r, 5, Room::terminal(200), false).replace('\n', " ");
        assert!(
            text.contains(
                "+4.11 % CPU [+3.80, +4.40] for evaluating the rules. Records are not included"
            ),
            "{text}"
        );
        assert!(text.contains("`weigh compare audit:rules=FILE -- COMMAND`"), "{text}");
    }

    #[test]
    fn every_figure_of_a_machine_without_a_pmu_is_an_estimate() {
        let mut r = sample::stig();
        let text = show(&r, 5, Room::terminal(200), false);
        assert!(text.starts_with("These 352 rules add ≈ 2.51 µs (an estimate:"), "{text}");
        assert!(text.contains("%     ≈ 84.1 ") && !text.contains("%      84.1 "), "{text}");
        let page = super::super::html::page(&r).expect("the template renders");
        assert!(page.contains("an estimate: this machine has no PMU") && page.contains("≈ 84.1"));
        r = sample::nginx();
        let text = show(&r, 5, Room::terminal(200), false);
        assert!(text.contains("%      84.1 ") && !text.contains("estimate"), "{text}");
    }

    #[test]
    fn what_leaving_out_does_not_confirm_has_no_figure_and_nothing_is_zero() {
        let mut r = sample::nginx();
        let standings = [Standing::BelowResolution, Standing::Nothing];
        let loaded = r.lines.iter_mut().filter_map(|line| match &mut line.fate {
            Fate::Loaded(cost) => Some(cost),
            _ => None,
        });
        loaded.zip(standings).for_each(|(cost, standing)| {
            (cost.standing, cost.per_syscall) =
                (standing, CostInterval { value: 77.7, low: 77.0, high: 78.0 });
        });
        let text = show(&r, 400, Room::terminal(200), false);
        let is_zero = |line: &str| line.trim_start().starts_with("0 ");
        assert!(!text.contains("77.7") && text.lines().any(is_zero), "{text}");
    }

    #[test]
    fn what_leaving_out_contradicts_is_shown_where_it_belongs_with_both_figures() {
        let mut r = sample::nginx();
        let first = r.lines.iter_mut().find_map(|line| match &mut line.fate {
            Fate::Loaded(cost) => Some(cost),
            _ => None,
        });
        let cost = first.unwrap();
        (cost.standing, cost.per_syscall) =
            (Standing::Contradicted, CostInterval { value: 9e3, low: 7e3, high: 9.5e3 });
        let text = show(&r, 3, Room::terminal(200), false);
        let row = text.lines().find(|line| line.contains("9,000 ?")).unwrap_or_default();
        assert!(row.contains("[7,000, 9,500]"), "{text}");
        assert!(
            text.lines().position(|line| line == row) < text.lines().position(|l| l == "By kind")
        );
    }

    #[test]
    fn what_cannot_be_told_from_nothing_is_no_overhead() {
        let mut r = sample::stig();
        r.total = CostInterval { value: 0.4, low: -1.2, high: 2.0 };
        let text = show(&r, 5, Room::terminal(200), false);
        assert!(
            text.contains("no detectable cost to a system call that no rule matches: ≈ 0.40"),
            "{text}"
        );
        // Nor is there a share of it.
        r.sum_of_lines = r.total;
        r.classes.iter_mut().for_each(|class| class.share_pct = None);
        let text = show(&r, 5, Room::terminal(200), false);
        for shares in ["comes from", "% of all lines", "of the difference"] {
            assert!(!text.contains(shares), "{shares}: {text}");
        }
        r.lines.retain(|line| !matches!(line.fate, Fate::Loaded(_)));
        let text = show(&r, 5, Room::terminal(200), false);
        assert!(
            text.starts_with("Nothing was measured: no rule was loaded from 50 lines."),
            "{text}"
        );
        assert!(!text.contains("most expensive"), "{text}");
    }
}
