//! The report as one HTML file: no script, nothing from the network, made to be printed and kept.
//!
//! The templates hold the markup and escape every text; this crate hands them numbers already
//! placed and texts already formatted.

mod axis;
pub(super) mod chart;
mod doses;
mod drift;
mod forest;
mod interaction;
pub mod pages;
pub mod run;
mod runs;
mod sequence;

use minijinja::{Environment, Error, Value, context};

use super::profiled::{self, ProfilerText};
use super::results::{about_preliminary, interval, measured, verdict};
use super::scale::{EffectScale, Span};
use super::table::{Align, Table};
use super::{
    bounds, by_treatment, command_times, degrees, equivalence, evidence, factorial, facts,
    imported, latency, readings, sentence, sets, times, versus,
};
use paired::Verdict;
use weigh_model::described;
use weigh_model::facts::Facts;
use weigh_model::format;
use weigh_model::result::curve::Chart;
use weigh_model::result::summary::{Failure, Row, State, Summary, charts_of_effects};

/// The page. The names end in `.html`, by which minijinja knows that texts must be escaped.
const TEMPLATES: [(&str, &str); 17] = [
    ("page.html", include_str!("html/page.jinja")),
    ("runs.html", include_str!("html/runs.jinja")),
    ("run.html", include_str!("html/run.jinja")),
    ("pages.html", include_str!("html/pages.jinja")),
    ("rules.html", include_str!("html/rules.jinja")),
    ("outline.html", include_str!("html/outline.jinja")),
    ("net_rank.html", include_str!("html/net_rank.jinja")),
    ("bars.html", include_str!("html/bars.jinja")),
    ("sentence.html", include_str!("html/sentence.jinja")),
    ("head.html", include_str!("html/head.jinja")),
    ("grid.html", include_str!("html/grid.jinja")),
    ("chart.html", include_str!("html/chart.jinja")),
    ("machine.html", include_str!("html/machine.jinja")),
    ("forest.html", include_str!("html/forest.jinja")),
    ("drift.html", include_str!("html/drift.jinja")),
    ("sequence.html", include_str!("html/sequence.jinja")),
    ("style.css", include_str!("html/style.css")),
];

/// A fact of more bytes is folded away: few ask for it, and it would push the others off the page.
const LONG_FACT: usize = 90;

pub fn render(s: &Summary) -> Result<String, String> {
    let filled = fill("page.html", page(&versus::laid_out(s)));
    filled.map_err(|error| format!("the HTML report could not be written: {error}"))
}

pub(super) fn fill(template: &str, values: Value) -> Result<String, Error> {
    environment()?.get_template(template)?.render(values)
}

/// Fills a template of another crate, which may use those of reports.
///
/// # Errors
/// The template is wrong, or needs a value that is not there.
pub fn fill_own(name: &str, template: &str, values: Value) -> Result<String, Error> {
    let mut environment = environment()?;
    environment.add_template_owned(name.to_owned(), template.to_owned())?;
    environment.get_template(name)?.render(values)
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// Returns the tables of metrics other than the rate, from the pairs.
fn of_metrics(s: &Summary) -> Vec<Value> {
    readings::tables(s).iter().map(metric_table).collect()
}

fn metric_table(of_metric: &readings::MetricTable) -> Value {
    context! {
        title => &of_metric.title,
        legend => of_metric.legend,
        table => table(&of_metric.table),
    }
}

fn what_was_done(s: &Summary) -> Vec<Value> {
    let value = |(label, facts): (String, Vec<String>)| {
        let sentences: Vec<_> = facts.iter().map(|fact| parts(fact)).collect();
        context! { label, sentences }
    };
    facts::by_label(s).into_iter().map(value).collect()
}

fn drivers(s: &Summary) -> Option<Value> {
    let (title, legend) = (latency::DRIVERS, latency::OF_DRIVERS);
    Some(context! { title, legend, table => table(&latency::drivers_table(s)?) })
}

fn by_degree(s: &Summary) -> Option<Value> {
    let (title, legend) = (degrees::TITLE, degrees::LEGEND);
    Some(context! { title, legend, table => table(&degrees::table(s)?) })
}

fn factors(s: &Summary) -> Option<Value> {
    let factors = factorial::table(s)?;
    Some(context! {
        title => factorial::TITLE,
        legend => factorial::LEGEND,
        table => table(&factors),
        charts => interaction::figures(s),
    })
}

fn key_numbers(s: &Summary) -> Vec<Value> {
    let value = |number: evidence::KeyNumber| {
        context! {
            title => format::label(&number.title),
            value => unbroken(&number.value),
            remark => parts(&format::label(&number.remark)),
        }
    };
    evidence::key_numbers(s).into_iter().map(value).collect()
}

fn page(s: &Summary) -> Value {
    let said = sentence::sentences(s);
    let (headline, rest) = said.split_first().map_or(("", &[][..]), |(a, b)| (a.as_str(), b));
    let scale = EffectScale::with_factors(s.results.iter().map(Span::from), s.margin_pct);
    let several = by_treatment(s).len() > 1;
    let figures = by_treatment(s).into_iter().map(|(treatment, rows)| {
        context! {
            treatment => format::label(treatment),
            forest => forest::figure(&rows, &scale, s.margin_pct),
            charts => charts_of_effects(&rows)
                .iter()
                .filter(|chart| chart.has_shape())
                .flat_map(|chart| chart::figures(chart, several.then_some(treatment)))
                .collect::<Vec<Value>>(),
        }
    });
    // Figures have no intervals to draw, and their table shows them as they were written.
    let figures_read = s.imported.as_ref().filter(|imported| imported.is_figures());
    let is_measured = figures_read.is_none();
    let has_added = s.results.iter().any(|row| row.cost.has_added());
    let end_s = drift::end_s(&s.results);
    let drifts = s.results.iter().filter_map(|row| drift::figure(row, several, end_s));
    let rows = by_treatment(s).into_iter().flat_map(|(_, rows)| forest::ordered(rows));
    context! {
        id => format::label(&s.id),
        started => format::label(&s.started),
        complete => s.state == State::Complete,
        headline => parts(headline),
        rest => parts(&rest.join(" ")),
        plain => headline.replace('`', ""),
        baseline => format::label(&s.baseline),
        baseline_state => s.baseline_state.as_deref().map(format::label),
        pairs => format::plural(s.results.iter().map(|row| row.pairs).sum(), "pair"),
        elapsed => format::seconds(s.elapsed_s),
        confidence => unbroken(&format::confidence(s.alpha)),
        margin => unbroken(&format::margin(s.margin_pct)),
        seed => s.seed.to_string(),
        several => several,
        read => figures_read.map(|imported| table(&imported::table(s, imported))),
        key_numbers => key_numbers(s),
        has_factors => scale.has_factors(),
        figures => figures.filter(|_| is_measured).collect::<Vec<Value>>(),
        loads => load_figures(s), load_tables => load_tables(s),
        times_of_commands => times_of_commands(s),
        runs => runs::figure(s),
        is_compared => is_measured && !s.is_of_one_command(),
        rows => rows.filter(|_| is_measured).map(|row| result(row, s.margin_pct))
            .collect::<Vec<Value>>(),
        equivalence => equivalence::note(s).map(|note| parts(&note)),
        commands => commands(s), preliminary => about_preliminary(s),
        titles => versus::titles(s).to_vec(),
        has_added,
        columns => 10 + usize::from(several) + usize::from(has_added),
        readings => of_metrics(s),
        latencies => latency::quantiles_table(s).map(|latencies| table(&latencies)),
        times => times::table(&s.times).map(|times| table(&times)), times_title => times::TITLE,
        times_legend => times::LEGEND,
        resources => latency::resources_table(s).map(|resources| table(&resources)),
        drivers => drivers(s),
        factors => factors(s),
        doses => doses::section(s), sets => sets::sets_table(s).map(|sets| table(&sets)),
        degrees => by_degree(s),
        evidence => evidence::table(s).map(|evidence| table(&evidence)),
        profiles => titled(&profiled::tables(&s.profiles)),
        printouts => printouts(&profiled::printouts(&s.profiles)),
        drifts => drifts.collect::<Vec<Value>>(),
        facts => what_was_done(s),
        failures => failures(s),
        warnings => s.warnings.iter().map(|w| parts(&format::label(w))).collect::<Vec<_>>(),
        machine => is_measured.then(|| machine_facts(&s.machine)),
        command => format::label(&s.command),
    }
}

/// The mixes whose peaks were sought, over users.
fn load_figures(s: &Summary) -> Vec<Value> {
    let charts = s.loads.iter().map(|load| load.charts(&s.baseline));
    charts.filter_map(|charts| chart::stacked(&charts)).collect()
}

/// The mixes with too few load points for a picture.
fn load_tables(s: &Summary) -> Vec<Value> {
    let charts = s.loads.iter().map(|load| load.charts(&s.baseline));
    let flat = charts.filter(|charts| !charts.iter().any(Chart::has_shape));
    let flat = flat.filter(|charts| !charts.is_empty());
    let value = |charts: Vec<Chart>| {
        context! { title => format::label(charts[0].title()), table => table(&chart::table(&charts)) }
    };
    flat.map(value).collect()
}

fn failures(s: &Summary) -> Vec<Value> {
    let value = |failure: &Failure| {
        context! {
            workload => format::label(&failure.name()),
            arm => (failure.name() != failure.arm).then(|| format::label(&failure.arm)),
            reason => format::label(&failure.reason),
        }
    };
    s.failures.iter().map(value).collect()
}

pub(super) fn titled(tables: &[(String, Table)]) -> Vec<Value> {
    let value = |(title, of_it): &(String, Table)| {
        context! { title => format::label(title), table => table(of_it) }
    };
    tables.iter().map(value).collect()
}

fn printouts(printed: &[ProfilerText]) -> Vec<Value> {
    let value = |one: &ProfilerText| context! { title => &one.title, text => one.lines.join("\n") };
    printed.iter().map(value).collect()
}

fn times_of_commands(s: &Summary) -> Option<Value> {
    let (title, times) = command_times::table(s)?;
    Some(
        context! { title, table => table(&times), legend => command_times::legend(s).replace('`', "") },
    )
}

/// The commands that are compared, in order, and what was timed.
fn commands(s: &Summary) -> Option<Value> {
    let commands = table(&versus::table(s)?);
    Some(context! { table => commands, timed => versus::legend(s).map(|text| parts(&text)) })
}

pub(super) fn machine_facts(facts: &Facts) -> Vec<Value> {
    let facts = described::facts(facts).into_iter();
    let is_long = |key: &str, value: &str| {
        key.starts_with("cmdline") || key.starts_with("mitigations") || value.len() > LONG_FACT
    };
    facts.map(|(key, value)| context! { folded => is_long(&key, &value), key, value }).collect()
}

/// A sentence in pieces, those between backticks being names.
pub fn parts(text: &str) -> Vec<Value> {
    let pieces = text.split('`').enumerate();
    let pieces = pieces.map(|(i, piece)| context! { name => i % 2 == 1, text => unbroken(piece) });
    pieces.collect()
}

/// Keeps a number and its unit on one line.
pub(super) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

fn result(row: &Row, margin_pct: f64) -> Value {
    let [effect, treated, factor, added] = measured(row);
    context! {
        workload => format::label(&row.workload),
        treatment => format::label(&row.treatment),
        baseline => format::rate(row.baseline, &row.unit),
        treated,
        unit => format::label(&row.unit),
        effect, factor, added,
        interval => interval(row),
        cost_at_most => bounds::of(row),
        class => class(row.verdict),
        verdict => verdict(row, margin_pct),
        pairs => format::integer(row.pairs as u64),
        notes => row.notes.iter().map(format::label).collect::<Vec<_>>().join(" "),
    }
}

/// Returns what `grid.html` fills a table with.
pub fn table(table: &Table) -> Value {
    let columns = table.columns.iter().map(|(title, align)| {
        context! { title => title.as_str(), right => *align == Align::Right }
    });
    context! {
        columns => columns.collect::<Vec<Value>>(),
        rows => table.rows.iter().map(|row| Value::from(row.clone())).collect::<Vec<Value>>(),
    }
}

/// The name by which the style sheet knows a verdict.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;

    #[test]
    fn everything_is_on_the_page() {
        let text = render(&example::audit()).expect("the template renders");
        for part in [
            "<code>audit</code> slows 9 of 12 workloads",
            "16,910",
            "max log rate",
            "It took longer than 30 s",
            "weigh compare audit -w unixbench",
            "prefers-color-scheme",
            "@media print",
            "How to read this",
        ] {
            assert!(text.contains(part), "{part} is missing");
        }
        assert_eq!(text.matches("class=\"strip effects\"").count(), 12);
        let text = render(&example::two_sets()).expect("the template renders");
        assert!(text.contains("Delta-3") && text.contains("sets disagree"));
    }

    /// The colours of each `:root` of the style sheet: light, dark, and print.
    fn palettes() -> Vec<Vec<(String, [f64; 3])>> {
        let blocks = include_str!("html/style.css").split(":root {").skip(1);
        let colours = |block: &str| {
            let block = block.split('}').next().unwrap().to_owned();
            let parts: Vec<String> = block.split(';').map(|part| part.trim().to_owned()).collect();
            let pairs = parts.iter().filter_map(|part| part.split_once(": #"));
            pairs.map(|(name, hex)| (name.to_owned(), channels(hex))).collect()
        };
        blocks.map(colours).collect()
    }

    fn channels(hex: &str) -> [f64; 3] {
        let wide: String = match hex.len() {
            3 => hex.chars().flat_map(|c| [c, c]).collect(),
            _ => hex.to_owned(),
        };
        let byte = |i: usize| u8::from_str_radix(&wide[2 * i..2 * i + 2], 16).expect("a colour");
        [0, 1, 2].map(|i| f64::from(byte(i)) / 255.0)
    }

    /// WCAG 2's contrast ratio.
    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let linear =
            |c: f64| if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        let luminance =
            |[r, g, b]: [f64; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn every_text_can_be_read_in_light_in_dark_and_on_paper() {
        assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
        let palettes = palettes();
        assert_eq!(palettes.len(), 3);
        for palette in palettes {
            let colour = |name: &str| palette.iter().find(|(known, _)| known == name).unwrap().1;
            for text in ["ink", "soft", "slower", "faster", "equivalent", "inconclusive"] {
                let ratio = contrast(colour(&format!("--{text}")), colour("--paper"));
                assert!(ratio >= 4.5, "{text}: {ratio:.2}");
            }
        }
    }

    #[test]
    fn the_table_has_the_order_of_the_chart_and_every_table_a_caption() {
        let text = render(&example::audit()).expect("the template renders");
        let after = |from: &str| text.split_once(from).expect(from).1.to_owned();
        let chart: Vec<String> = after("<ol class=\"names\">")
            .split("</ol>")
            .next()
            .unwrap()
            .split("<li>")
            .skip(1)
            .map(|item| item.replace("</li>", ""))
            .collect();
        let table = after("<h2>Results</h2>");
        let table = table.split("</table>").next().unwrap();
        let rows = table.split("<th scope=\"row\">").skip(1);
        let rows: Vec<&str> = rows.map(|row| row.split('<').next().unwrap()).collect();
        assert_eq!((rows[0], rows.len()), ("syscall", 12));
        assert_eq!(rows, chart);
        assert_eq!(text.matches("<table").count(), text.matches("<caption>").count());
        assert_eq!(text.matches("<table").count(), 4);
        assert!(text.contains("×6.76") && text.contains("+12.3 µs"));
    }

    #[test]
    fn long_facts_are_folded_away() {
        let mut s = example::audit();
        s.machine.cmdline = "root=/dev/vda quiet".into();
        s.machine.mitigations.insert("gather_data_sampling".into(), "Not affected".into());
        let text = render(&s).expect("the template renders");
        let (open, folded) = text.split_once("<details>").expect("something is folded");
        let folded = folded.split("</details>").next().unwrap();
        assert!(folded.contains("quiet") && folded.contains("gather data sampling"), "{folded}");
        assert!(open.contains("bench1") && !open.contains("quiet"));
    }

    #[test]
    fn an_empty_experiment_is_a_page() {
        let mut s = example::audit();
        s.results.clear();
        s.state = State::Failed;
        let text = render(&s).expect("the template renders");
        assert!(text.contains("No verdict.") && !text.contains("<table"));
    }
}
