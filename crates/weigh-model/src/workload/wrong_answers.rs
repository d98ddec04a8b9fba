//! Answers that were wrong, as a workload printed them in place of a result: how many there were, and of
//! which kinds. A fast server that answers wrong has no rate.

use serde::Deserialize;

use super::sample::Sample;
use crate::format;
use crate::printable;
use crate::result::warning::Warning;
use crate::result::work_name::WorkName;

/// Kinds that other clients cause (workloads/shared/http.h, workloads/web/cookie.c): their requests slow a
/// server, so its good answers do not count either.
const BY_OTHERS: [&str; 2] =
    ["a request that somebody else made", "a visit in the database that nobody made"];

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
        kinds_in_words(&self.kinds)
    }

    /// Why its good answers do not count either, if they do not.
    pub fn why_none_counts(&self) -> Option<String> {
        if self.operations == 0 {
            return Some(format!("no answer was right: {}", self.kinds_in_words()));
        }
        let by_others = |kind: &&WrongKind| BY_OTHERS.contains(&&*kind.kind);
        let kind = self.kinds.iter().find(by_others)?;
        Some(format!("{} {}, which slows the server", format::integer(kind.count), kind.kind))
    }
}

/// Effect of wrong answers on their workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWrong {
    Fail,
    /// The good answers are compared (`--good-answers`).
    Count,
}

/// Answers of one arm to a workload: how many there were, and the wrong ones by kind.
#[derive(Debug, Default, PartialEq)]
pub struct AnswerTally {
    all: u64,
    wrong: Vec<WrongKind>,
}

impl AnswerTally {
    /// Adds the answers of a sample.
    pub fn add(&mut self, sample: &Sample, wrong: Option<WrongAnswers>) {
        self.all += match &wrong {
            Some(wrong) => wrong.total_operations.max(wrong.count()),
            None => sample.total_operations.unwrap_or(sample.operations) as u64,
        };
        for one in wrong.into_iter().flat_map(|wrong| wrong.kinds) {
            match self.wrong.iter_mut().find(|known| known.kind == one.kind) {
                Some(known) => known.count += one.count,
                None => self.wrong.push(one),
            }
        }
    }

    pub fn has_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    /// The warning about the wrong ones, if there were any.
    pub fn warning(&self, workload: WorkName, arm: String) -> Option<Warning> {
        let wrong = self.wrong.iter().map(|kind| kind.count).sum();
        let kinds = kinds_in_words(&self.wrong);
        (wrong > 0).then_some(Warning::WrongAnswers {
            workload,
            arm,
            wrong,
            answers: self.all,
            kinds,
        })
    }
}

fn kinds_in_words(kinds: &[WrongKind]) -> String {
    let kinds = kinds.iter().map(|one| {
        let WrongKind { kind, count, example, .. } = one;
        let (kind, example) = (printable::line(kind), printable::line(example));
        let example = format::shorten(example.trim(), 80);
        format!("{} {kind} (\"{example}\")", format::integer(*count))
    });
    kinds.collect::<Vec<_>>().join(", ")
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

    fn wrong(operations: u64, kinds: &[(&str, u64)]) -> WrongAnswers {
        let kind = |(kind, count): &(&str, u64)| WrongKind {
            kind: (*kind).into(),
            count: *count,
            first_ns: 1,
            example: "x".into(),
        };
        let kinds: Vec<WrongKind> = kinds.iter().map(kind).collect();
        let bad: u64 = kinds.iter().map(|kind| kind.count).sum();
        WrongAnswers { kinds, operations, elapsed_ns: 9, total_operations: operations + bad }
    }

    #[test]
    fn a_tally_has_each_kind_once_and_the_answers_of_good_samples() {
        let sample = Sample { total_operations: Some(60.0), ..Sample::default() };
        let mut tally = AnswerTally::default();
        tally.add(&sample, None);
        assert_eq!(tally.warning("app:web".into(), "none".into()), None);
        tally.add(&sample, Some(wrong(20, &[("other bytes", 5)])));
        tally.add(&sample, Some(wrong(10, &[("connection closed", 2), ("other bytes", 3)])));
        let said = tally.warning("app:web".into(), "seccomp".into()).unwrap().to_string();
        assert_eq!(
            said,
            "app:web under `seccomp`: 10.0 % of the answers were wrong (10 of 100): 8 other bytes (\"x\"), 2 \
             connection closed (\"x\"). The rate counts the good answers alone."
        );
    }

    #[test]
    fn good_answers_beside_requests_of_others_do_not_count() {
        assert_eq!(wrong(5, &[("other bytes", 5)]).why_none_counts(), None);
        let none_right = wrong(0, &[("other bytes", 5)]).why_none_counts().unwrap();
        assert!(none_right.starts_with("no answer was right: 5 other bytes"), "{none_right}");
        let others = wrong(5, &[("a request that somebody else made", 2)]).why_none_counts();
        assert_eq!(others.unwrap(), "2 a request that somebody else made, which slows the server");
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
