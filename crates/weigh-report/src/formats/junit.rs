//! JUnit's XML, which CI systems show: a suite per treatment, with a test per workload. A row that fails the
//! gate is a failure, a workload without a result an error, and a row that leaves a question open is skipped:
//! it has no verdict, or the gate is undecided on it. So no test passes that makes the exit status 3. Where
//! nothing is compared, there is one suite, and nothing in it is a failure.

use std::fmt::Display;

use crate::results::{self, has_interval};
use crate::{
    ReportFormat, budget, by_treatment, command_times, repeated, rules, run_page, sentence,
};
use paired::Verdict;
use weigh_model::format;
use weigh_model::result::budget::{BudgetReport, KeptUp, Load};
use weigh_model::result::gate::{Gate, NamedRow};
use weigh_model::result::imported::Imported;
use weigh_model::result::repeated::{LoadSet, RepeatedReport, SampleLength};
use weigh_model::result::report::Report;
use weigh_model::result::rules::{Fate, LineReport, RuleReport};
use weigh_model::result::run::{RunReport, RunRow};
use weigh_model::result::summary::{Failure, Row, Summary};
use weigh_model::result::versus::WORK;
use weigh_model::result::work_name::WorkName;

pub static FORMAT: ReportFormat = ReportFormat {
    name: "junit",
    what: "the rows as tests in JUnit's XML, for CI",
    render: |report| {
        let suites = match report {
            Report::Compared(s)
                if s.is_of_one_command() && !command_times::commands(s).is_empty() =>
            {
                vec![of_one_command(s)]
            }
            Report::Compared(s) => compared(s),
            Report::Run(report) => vec![run(report)],
            Report::Rules(report) => vec![of_rules(report)],
            Report::Budget(report) => vec![of_budget(report)],
            Report::Repeated(report) => vec![of_repeated(report)],
            Report::Profile(_) | Report::Atlas(_) => {
                return Err(format!(
                    "{} is of {}, which has no tests for --junit: use --json",
                    report.id(),
                    report.header().kind.commands()
                ));
            }
        };
        Ok(document(suites, failure(report).as_deref()))
    },
    is_json: false,
};

/// Why the experiment failed as a whole: also where a command has no time, as one with a rate of its own.
fn failure(report: &Report) -> Option<String> {
    let timeless = match report {
        Report::Compared(s) if s.is_of_one_command() && s.failures.is_empty() => {
            command_times::commands(s).is_empty().then_some(s)
        }
        _ => None,
    };
    let failure = report.header().failure.map(str::to_owned);
    failure.or_else(|| timeless.map(|s| sentence::sentence(s)))
}

/// A part of a document: markup of our own, and escaped text, and nothing else.
struct Xml(String);

impl From<&'static str> for Xml {
    fn from(own: &'static str) -> Xml {
        Xml(own.to_owned())
    }
}

impl Xml {
    fn element(
        name: &'static str,
        attributes: &[(&'static str, &dyn Display)],
        content: Vec<Xml>,
    ) -> Xml {
        let attributes = attributes.iter().map(|(key, value)| {
            let value = escape(&value.to_string());
            format!(" {key}=\"{value}\"")
        });
        let head = format!("<{name}{}", attributes.collect::<String>());
        let content: Vec<String> = content.into_iter().map(|part| part.0).collect();
        Xml(match content.is_empty() {
            true => format!("{head}/>"),
            false => format!("{head}>{}</{name}>", content.concat()),
        })
    }

    fn text(text: &str) -> Xml {
        Xml(escape(text))
    }
}

/// Each on a line of its own.
fn lines(indent: &'static str, parts: Vec<Xml>) -> impl Iterator<Item = Xml> {
    parts.into_iter().flat_map(move |part| [Xml::from(indent), part])
}

fn document(mut suites: Vec<Xml>, failure: Option<&str>) -> String {
    if let Some(reason) = failure {
        let names: [(_, &dyn Display); 2] = [("classname", &"weigh"), ("name", &"experiment")];
        let case = Xml::element("testcase", &names, vec![error(reason)]);
        let numbers: [(_, &dyn Display); 3] =
            [("name", &"experiment"), ("tests", &1), ("errors", &1)];
        let content = lines("\n    ", vec![case]).chain(["\n  ".into()]);
        suites.push(Xml::element("testsuite", &numbers, content.collect()));
    }
    let content = lines("\n  ", suites).chain(["\n".into()]);
    let all = Xml::element("testsuites", &[("name", &"weigh")], content.collect());
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", all.0)
}

/// A suite per treatment, also where none of its workloads has a result.
fn compared(s: &Summary) -> Vec<Xml> {
    let mut groups = by_treatment(s);
    let without_rows = s.unmeasured.iter().map(|row| &row.treatment);
    for label in s.failures.iter().map(|failure| &failure.arm).chain(without_rows) {
        if !groups.iter().any(|(other, _)| other == label) {
            groups.push((label, Vec::new()));
        }
    }
    let of_treatment = |(treatment, rows): (&str, Vec<&Row>)| {
        let outcomes: Vec<RowOutcome> = rows.iter().map(|row| RowOutcome::of(s, row)).collect();
        let count =
            |is_it: fn(&RowOutcome) -> bool| outcomes.iter().filter(|one| is_it(one)).count();
        let failures: Vec<&Failure> = s.failures.iter().filter(|f| f.arm == treatment).collect();
        let failed = failures.iter().map(|one| failed_test(treatment, &one.workload, &one.reason));
        let unmeasured: Vec<&NamedRow> =
            s.unmeasured.iter().filter(|row| row.treatment == treatment).collect();
        let open = unmeasured.iter().map(|one| {
            let reason = skipped(&"no whole pair was measured before the budget ended");
            test(treatment, &one.workload.to_string(), vec![reason])
        });
        let cases = rows.iter().zip(&outcomes).map(|(row, outcome)| case(s, row, outcome));
        Suite {
            name: treatment,
            started: Some(&s.started),
            cases: cases.chain(failed).chain(open).collect(),
            failed: count(|outcome| matches!(outcome, RowOutcome::Failed(_))),
            skipped: count(|outcome| matches!(outcome, RowOutcome::Skipped(_))) + unmeasured.len(),
            errors: failures.len(),
            said: sentence::sentence(s),
        }
        .xml()
    };
    groups.into_iter().map(of_treatment).collect()
}

/// A test that passes, because the command is compared with no other.
fn of_one_command(s: &Summary) -> Xml {
    Suite {
        name: WORK,
        started: Some(&s.started),
        cases: vec![test(WORK, &s.baseline, Vec::new())],
        said: sentence::sentence(s),
        ..Suite::default()
    }
    .xml()
}

/// The names of suites, in which nothing is compared.
const RUN: &str = "run";
const RULES: &str = "rules";
const BUDGET: &str = "budget";
const REPEATED: &str = "repeated";

fn run(report: &RunReport) -> Xml {
    let title = run_page::title(report);
    let title = std::iter::once(format!("{}.", title.trim_end_matches('.')));
    let sentences: Vec<String> = title.chain(run_page::sentences(report)).collect();
    let measured = |row: &RunRow| {
        let rate = format!("{} {}", format::rate(row.rate, &row.unit), row.unit);
        let parts = [rate, run_page::spread(row), format::plural(row.samples, "sample")];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        test(RUN, &row.workload, vec![output(&parts.join(", "))])
    };
    let failed = report.failures.iter();
    let failed = failed.map(|one| failed_test(RUN, &one.workload, &one.reason));
    Suite {
        name: RUN,
        started: Some(&report.started),
        cases: report.results.iter().map(measured).chain(failed).collect(),
        errors: report.failures.len(),
        said: sentences.join(" "),
        ..Suite::default()
    }
    .xml()
}

/// A rule that was not loaded is an error: its cost is not known.
fn of_rules(report: &RuleReport) -> Xml {
    let line = |line: &LineReport| {
        let name = format!("{}:{} {}", line.file.display(), line.number, line.text);
        match &line.fate {
            Fate::Loaded(cost) if cost.standing.has_figure() => {
                let added = report.metric.amount(cost.per_syscall.value);
                test(RULES, &name, vec![output(&format!("adds {added} to each system call"))])
            }
            Fate::Loaded(_) => test(RULES, &name, vec![output("adds no detectable cost")]),
            Fate::Present => {
                let reason = "already in force on this host, so not measured";
                test(RULES, &name, vec![skipped(&reason)])
            }
            Fate::Skipped(reason) => test(RULES, &name, vec![skipped(reason)]),
            Fate::Refused(reason) => failed_test(RULES, &name, reason),
        }
    };
    let count =
        |is_it: fn(&Fate) -> bool| report.lines.iter().filter(|line| is_it(&line.fate)).count();
    Suite {
        name: RULES,
        cases: report.lines.iter().map(line).collect(),
        skipped: count(|fate| matches!(fate, Fate::Present | Fate::Skipped(_))),
        errors: count(|fate| matches!(fate, Fate::Refused(_))),
        said: rules::outline(report).sentences.join(" "),
        ..Suite::default()
    }
    .xml()
}

/// A test per rate at which the log was loaded.
fn of_budget(report: &BudgetReport) -> Xml {
    let load = |load: &Load| {
        let name = format!("{} operations/s", format::rate(load.rate, ""));
        let kept_up = match load.kept_up {
            KeptUp::Yes => "kept up",
            KeptUp::No => "did not keep up",
            KeptUp::Undecided => "not decided",
        };
        let lost = format::plural(load.lost as usize, "record");
        test(BUDGET, &name, vec![output(&format!("{kept_up}; {lost} lost"))])
    };
    Suite {
        name: BUDGET,
        cases: report.loads.iter().map(load).collect(),
        said: budget::outline(report).sentences.join(" "),
        ..Suite::default()
    }
    .xml()
}

/// A test per run. One without the answer that was asked for is skipped, and a workload without a result an
/// error.
fn of_repeated(report: &RepeatedReport) -> Xml {
    let set = |(number, set): (usize, &LoadSet)| {
        let said = set.peak.map(|peak| {
            let rate = format::rate(peak.jobs_per_min, "jobs/min");
            format!("{}, {rate} jobs/min", format::plural(peak.users, "user"))
        });
        (format!("set {}", number + 1), said, "no peak was confirmed")
    };
    let length = |length: &SampleLength| {
        let change = length.change.as_ref();
        let said = change.map(|change| format!("{:.2} % from sample to sample", change.mean_pct));
        let name = format!("samples of {}", format::seconds(length.sample_s));
        (name, said, "no workload has two samples")
    };
    let runs = report.sets.iter().enumerate().map(set).chain(report.lengths.iter().map(length));
    let runs: Vec<(String, Option<String>, &str)> = runs.collect();
    let case = |(name, said, without): &(String, Option<String>, &str)| {
        let content = said.as_ref().map_or_else(|| skipped(without), |said| output(said));
        test(REPEATED, name, vec![content])
    };
    let failure = |failure: &Failure| failed_test(REPEATED, &failure.name(), &failure.reason);
    Suite {
        name: REPEATED,
        cases: runs.iter().map(case).chain(report.failures.iter().map(failure)).collect(),
        skipped: runs.iter().filter(|(_, said, _)| said.is_none()).count(),
        errors: report.failures.len(),
        said: repeated::outline(report).sentences.join(" "),
        ..Suite::default()
    }
    .xml()
}

#[derive(Default)]
struct Suite<'a> {
    name: &'a str,
    started: Option<&'a str>,
    /// `failed`, `skipped` and `errors` are counts of these.
    cases: Vec<Xml>,
    failed: usize,
    skipped: usize,
    errors: usize,
    said: String,
}

impl Suite<'_> {
    fn xml(self) -> Xml {
        let tests = self.cases.len();
        let started = self.started.map(|started| started.trim_end_matches('Z'));
        let mut attributes: Vec<(_, &dyn Display)> = vec![("name", &self.name)];
        attributes.extend(started.as_ref().map(|started| ("timestamp", started as &dyn Display)));
        attributes.extend([
            ("tests", &tests as &dyn Display),
            ("failures", &self.failed),
            ("errors", &self.errors),
            ("skipped", &self.skipped),
        ]);
        let content = self.cases.into_iter().chain([output(&self.said)]).collect();
        let content = lines("\n    ", content).chain(["\n  ".into()]);
        Xml::element("testsuite", &attributes, content.collect())
    }
}

fn output(text: &str) -> Xml {
    Xml::element("system-out", &[], vec![Xml::text(text)])
}

fn skipped(reason: &dyn Display) -> Xml {
    Xml::element("skipped", &[("message", reason)], Vec::new())
}

fn failed_test(suite: &str, name: &dyn Display, reason: &str) -> Xml {
    test(suite, name, vec![error(reason)])
}

fn error(reason: &str) -> Xml {
    Xml::element("error", &[("message", &reason)], Vec::new())
}

/// A row as a test, with the reason where it does not pass.
enum RowOutcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl RowOutcome {
    /// As the exit status has it: 1 for a row that fails the gate, 3 for one that leaves a question open.
    fn of(s: &Summary, row: &Row) -> RowOutcome {
        let found = found(s, row);
        let limit = s.gate.as_ref().map(|gate| format::margin(gate.fail_above_pct));
        let is_gated = |is_it: fn(&Gate, &WorkName, &str) -> bool| {
            s.gate.as_ref().is_some_and(|gate| is_it(gate, &row.workload, &row.treatment))
        };
        match limit {
            Some(limit) if is_gated(Gate::is_above) => {
                RowOutcome::Failed(format!("costs more than {limit}: {found}"))
            }
            Some(limit) if is_gated(Gate::is_open) => {
                RowOutcome::Skipped(format!("not shown to cost less than {limit}: {found}"))
            }
            _ if row.verdict == Verdict::Inconclusive => RowOutcome::Skipped(found),
            _ => row.open_metric(&s.requested_metrics).map_or(RowOutcome::Passed, |metric| {
                let metric = metric.name();
                RowOutcome::Skipped(format!("no verdict on {metric}; the rate: {found}"))
            }),
        }
    }
}

/// The result of a row in a line. Figures that were imported have neither pairs nor a verdict, and an
/// interval only where the files have the runs of both sides.
fn found(s: &Summary, row: &Row) -> String {
    if s.imported.as_ref().is_some_and(Imported::is_figures) {
        let interval = has_interval(row).then(|| format!(" {}", results::interval(row)));
        let effect = format::percent(row.effect_pct) + &interval.unwrap_or_default();
        return format!("{effect}, imported without a verdict");
    }
    let effect = match has_interval(row) || row.preliminary.is_some() {
        true => format!("{} {}", results::measured(row)[0], results::interval(row)),
        false => format::NONE.to_owned(),
    };
    let verdict = results::verdict(row, s.margin_pct);
    format!("{effect}, {verdict}, {}", format::plural(row.pairs, "pair"))
}

fn case(s: &Summary, row: &Row, outcome: &RowOutcome) -> Xml {
    let outcome = match outcome {
        RowOutcome::Passed => None,
        RowOutcome::Failed(reason) => {
            Some(Xml::element("failure", &[("message", reason)], Vec::new()))
        }
        RowOutcome::Skipped(reason) => Some(skipped(reason)),
    };
    let said = output(&found(s, row));
    test(&row.treatment, &row.workload, outcome.into_iter().chain([said]).collect())
}

fn test(suite: &str, name: &dyn Display, content: Vec<Xml>) -> Xml {
    let class = format!("weigh.{suite}");
    Xml::element("testcase", &[("classname", &class), ("name", name)], content)
}

/// For text and attributes; XML has no form for control characters, nor for the last two of the basic plane.
fn escape(text: &str) -> String {
    let text = format::label(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::workload::metric::Metric;

    #[test]
    fn a_command_without_times_is_an_error() {
        let mut s = weigh_model::example::one_command();
        let xml = |s: &Summary| (FORMAT.render)(&s.clone().into()).unwrap();
        assert!(!xml(&s).contains("<error"), "{}", xml(&s));
        s.versus.as_mut().unwrap().commands.clear();
        assert!(xml(&s).contains("<error"), "{}", xml(&s));
    }

    #[test]
    fn what_fails_the_gate_fails_and_what_has_no_result_is_an_error() {
        let mut s = example::audit();
        let render = |s: &Summary| (FORMAT.render)(&s.clone().into()).unwrap();
        let text = render(&s);
        assert!(text.contains("tests=\"13\" failures=\"0\" errors=\"1\""), "{text}");
        assert!(text.contains("name=\"fsdisk\"><error message=\"It took longer"), "{text}");
        let row = &s.results[0];
        let above = NamedRow { workload: row.workload.clone(), treatment: row.treatment.clone() };
        s.gate =
            Some(Gate { fail_above_pct: 3.0, passed: false, above: vec![above], open: Vec::new() });
        let text = render(&s);
        assert!(text.contains("failures=\"1\"") && text.contains("costs more than 3"), "{text}");
        assert!(text.contains("FAIL: `syscall` under `audit` costs more than 3 % ("), "{text}");
        let skipped = s.results.iter().filter(|row| row.verdict == Verdict::Inconclusive).count();
        assert_eq!(text.matches("<skipped").count(), skipped);
    }

    /// The exit status of both is 3, though the rate has its verdict.
    #[test]
    fn a_row_that_leaves_a_question_open_is_skipped_with_the_reason() {
        let mut s = example::control();
        let passed = (FORMAT.render)(&s.clone().into()).unwrap();
        assert!(passed.contains("skipped=\"0\"") && !passed.contains("<skipped"), "{passed}");
        let row = &s.results[3];
        let open = NamedRow { workload: row.workload.clone(), treatment: row.treatment.clone() };
        let (passed, above) = (false, Vec::new());
        s.gate = Some(Gate { fail_above_pct: 0.5, passed, above, open: vec![open] });
        let text = (FORMAT.render)(&s.clone().into()).unwrap();
        assert!(text.contains("failures=\"0\" errors=\"0\" skipped=\"1\""), "{text}");
        let reason = "name=\"execl\"><skipped message=\"not shown to cost less than 0.5 %: −15.1 %";
        assert!(text.contains(reason), "{text}");
        // A requested metric needs a verdict in each row, whether or not any sample has it.
        let requested = Metric::Named("peak_memory".into());
        let memory = |verdict| example::reading(requested.clone(), verdict);
        s.requested_metrics = vec![requested.clone()];
        for row in &mut s.results[1..] {
            row.readings = vec![memory(Verdict::Equivalent)];
        }
        s.results[4].readings = vec![memory(Verdict::Inconclusive)];
        let text = (FORMAT.render)(&s.into()).unwrap();
        assert!(text.contains("skipped=\"3\""), "{text}");
        let open = "<skipped message=\"no verdict on peak_memory; the rate: ";
        assert_eq!(text.matches(open).count(), 2, "{text}");
    }

    #[test]
    fn imported_figures_have_no_interval_but_their_own_and_no_pairs() {
        let mut s = example::imported();
        let render = |s: &Summary| (FORMAT.render)(&s.clone().into()).unwrap();
        let text = render(&s);
        assert!(
            text.contains("<skipped message=\"−10.0 %, imported without a verdict\"/>"),
            "{text}"
        );
        (s.results[0].low_pct, s.results[0].high_pct) = (Some(-12.0), Some(-8.0));
        let text = render(&s);
        assert!(text.contains("−10.0 % [−12.0, −8.00], imported without a verdict"), "{text}");
        for word in ["∞", "pair", "inconclusive"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    /// Every quotation mark and angle bracket is markup of ours.
    #[test]
    fn no_name_becomes_markup() {
        let text = (FORMAT.render)(&example::hostile().into()).unwrap();
        assert!(!text.contains("<script") && !text.contains("<i>") && !text.contains('\u{1b}'));
        for line in text.lines() {
            assert_eq!(line.matches('<').count(), line.matches('>').count(), "{line}");
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
        }
        assert_eq!(escape("a\u{fffe}\u{ffff}b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(escape("a<b>&\"c\"'\n"), "a&lt;b&gt;&amp;&quot;c&quot;&apos;\u{fffd}");
    }
}
