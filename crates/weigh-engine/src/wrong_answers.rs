//! Answers that were wrong, as a workload printed them in place of a result: how many there were, and of
//! which kinds. A fast server that answers wrong has no rate.

use serde::Deserialize;

use weigh_model::format;
use weigh_model::printable;

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WrongKind {
    pub kind: String,
    pub count: u64,
    /// When the first one came, from the beginning of what was timed.
    pub first_ns: u64,
    pub example: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WrongAnswers {
    #[serde(rename = "wrong")]
    pub kinds: Vec<WrongKind>,
    /// Good ones, in the timed part.
    pub operations: u64,
    pub elapsed_ns: u64,
    /// All of them, the warm-up's too.
    pub total_operations: u64,
}

impl WrongAnswers {
    /// Parses the wrong answers that a workload printed; `None` if it printed none.
    pub fn parse(output: &str) -> Option<WrongAnswers> {
        let last = output.lines().rev().find(|line| !line.trim().is_empty())?;
        let wrong: WrongAnswers = serde_json::from_str(last).ok()?;
        (!wrong.kinds.is_empty()).then_some(wrong)
    }

    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// In percent of all.
    pub fn share_pct(&self) -> f64 {
        let all = self.total_operations.max(self.count()).max(1);
        100.0 * self.count() as f64 / all as f64
    }

    /// Good ones a second.
    pub fn good_rate(&self) -> f64 {
        self.operations as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Why there is no rate, with what is known instead.
    pub fn sentence(&self) -> String {
        format!(
            "{:.1} % of its answers were wrong ({} of {}), so it has no rate: {}; good answers a second: {}",
            self.share_pct(),
            format::integer(self.count()),
            format::integer(self.total_operations),
            self.kinds_in_words(),
            format::rate(self.good_rate(), "/s")
        )
    }

    /// Each kind with how many there were, and an example.
    pub fn kinds_in_words(&self) -> String {
        let kinds = self.kinds.iter().map(|one| {
            let WrongKind { kind, count, example, .. } = one;
            let (kind, example) = (printable::line(kind), printable::line(example));
            let example = format::shorten(example.trim(), 80);
            format!("{} {kind} (\"{example}\")", format::integer(*count))
        });
        kinds.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_wrong_is_told_with_its_share_and_what_was_good() {
        let line = r#"{"operations":1500,"elapsed_ns":1000000000,"total_operations":4000,"wrong":[
            {"kind":"an error page with status 200","count":2400,"first_ns":7,"example":"error \u001b[2J"},
            {"kind":"connection closed","count":100,"first_ns":9,"example":"x"}]}"#;
        let wrong = WrongAnswers::parse(&line.replace('\n', " ")).unwrap();
        let said = wrong.sentence();
        for part in
            ["62.5 %", "2,500 of 4,000", "2,400 an error page", "100 connection closed", "1,500"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains('\u{1b}'));
    }

    #[test]
    fn a_result_is_nothing_wrong() {
        assert_eq!(
            WrongAnswers::parse(r#"{"operations":5,"elapsed_ns":7,"total_operations":9}"#),
            None
        );
        assert_eq!(WrongAnswers::parse("x\n"), None);
    }
}
