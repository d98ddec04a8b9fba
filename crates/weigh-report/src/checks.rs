//! Findings of `weigh doctor`, as text and as JSON.

use serde::Serialize;

use super::paint::{FAINT, WARNING, paint};
use super::screen::Room;
use super::text::{emphasise, wrap};
use weigh_model::finding::{Finding, Severity};
use weigh_model::format;

/// The version of the JSON document; it changes when a field changes its meaning or goes.
const SCHEMA: &str = "weighbridge/doctor/1";

#[derive(Serialize)]
struct ChecksDocument<'a> {
    schema: &'static str,
    findings: &'a [Finding],
}

/// The findings as JSON (`docs/doctor.md`), with a newline at the end.
pub fn json(findings: &[Finding]) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&ChecksDocument { schema: SCHEMA, findings })? + "\n")
}

/// The findings, warnings first.
pub fn text(findings: &[Finding], room: Room, colour: bool) -> String {
    let count = |severity| findings.iter().filter(|found| found.severity == severity).count();
    let warnings = count(Severity::Warning);
    let sentence = match warnings {
        0 => format!("{} found nothing that disturbs a measurement.", checks(findings.len())),
        _ => {
            format!("{} of {} found a disturbance.", warnings, checks(findings.len()))
        }
    };
    let mut lines = wrap(&sentence, room.wrap, 0);
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.severity);
    let mut last = None;
    for finding in sorted {
        if last != Some(finding.severity) {
            last = Some(finding.severity);
            lines.push(String::new());
            let title = title(finding.severity);
            let style = if finding.severity == Severity::Warning { WARNING } else { FAINT };
            lines.push(paint(title, style.bold(), colour));
        }
        lines.extend(paragraph(finding, room, colour));
    }
    lines.join("\n") + "\n"
}

fn checks(count: usize) -> String {
    format::plural(count, "check")
}

fn title(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "Warnings (repeated in every report)",
        Severity::Note => "Worth knowing",
        Severity::Good => "Good",
    }
}

/// Formats a finding: a good one in a line, any other with its effect and the remedy.
fn paragraph(finding: &Finding, room: Room, colour: bool) -> Vec<String> {
    let now = format::label(&finding.now);
    if finding.severity == Severity::Good {
        return vec![format::shorten(&format!("{:<17}  {now}", finding.name), room.cut)];
    }
    let mut lines = wrap(&format!("{}: {now}", finding.name), room.wrap, 4);
    let indented = |text: &str| -> Vec<String> {
        let lines = wrap(text, room.wrap.saturating_sub(4), 0);
        lines.iter().map(|line| format!("    {}", emphasise(line, colour))).collect()
    };
    lines.extend(indented(&finding.effect));
    lines.extend(finding.fix.iter().flat_map(|fix| indented(fix)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        let finding = |name: &str, severity, fix: Option<&str>| Finding {
            name: name.into(),
            severity,
            now: "now".into(),
            effect: "It does this to a measurement.".into(),
            fix: fix.map(str::to_owned),
        };
        vec![
            finding("Swap", Severity::Good, None),
            finding("Load", Severity::Warning, Some("Stop it: `kill it`.")),
            finding("SMT", Severity::Note, None),
        ]
    }

    #[test]
    fn warnings_come_first_with_what_to_do() {
        let text = text(&findings(), Room::terminal(80), false);
        assert!(text.starts_with("1 of 3 checks found a disturbance.\n"), "{text}");
        let places = ["Load", "`kill it`", "SMT", "Swap"].map(|part| text.find(part).unwrap());
        assert!(places.is_sorted(), "{text}");
        assert!(text.ends_with("\nGood\nSwap               now\n"), "{text}");
    }

    #[test]
    fn no_line_is_too_wide_and_only_colour_makes_escapes() {
        let narrow = text(&findings(), Room::terminal(40), false);
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(
            !narrow.contains('\u{1b}')
                && text(&findings(), Room::terminal(40), true).contains('\u{1b}')
        );
    }

    #[test]
    fn the_json_leaves_out_what_is_not_there() {
        let document: serde_json::Value =
            serde_json::from_str(&json(&findings()).unwrap()).unwrap();
        assert_eq!(document["schema"], SCHEMA);
        assert_eq!(document["findings"][1]["severity"], "warning");
        assert_eq!(document["findings"][0].get("mend"), None);
        assert_eq!(document["findings"][1]["mend"], "Stop it: `kill it`.");
    }
}
