//! Several HTML reports as one page, for readers who want all results of a study: first a list of the
//! headlines, then each report. The reports are escaped already, so their parts are taken as they are.

use minijinja::{Value, context};

use super::fill;
use weigh_model::format;

/// A report as its own page.
pub struct ReportPage {
    pub id: String,
    /// Its result in a few words.
    pub result: String,
    pub html: String,
}

/// Joins pages, of which each has the parts of `page.jinja`.
///
/// # Errors
/// A page lacks one of these parts.
pub fn join(pages: &[ReportPage]) -> Result<String, String> {
    let parts = pages.iter().map(parts).collect::<Result<Vec<Value>, String>>()?;
    let values = context! {
        plain => format::plural(pages.len(), "experiment"),
        reports => parts,
    };
    let filled = fill("pages.html", values);
    filled.map_err(|error| format!("the page could not be written: {error}"))
}

/// The parts of a page, whose text is escaped.
fn parts(ReportPage { id, result, html }: &ReportPage) -> Result<Value, String> {
    let part = |from: &str, to: &str| {
        let found = html.split_once(from).and_then(|(_, rest)| Some(rest.split_once(to)?.0));
        let found = found.ok_or_else(|| format!("the page of {id} has no {from}"))?;
        Ok::<Value, String>(Value::from_safe_string(found.to_owned()))
    };
    Ok(context! {
        id => id.as_str(),
        result => result.as_str(),
        kicker => part("<p class=\"kicker\">Weighbridge ", "</p>")?,
        headline => part("<h1>", "</h1>")?,
        report => part("<main>", "</main>")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FORMATS, outcome};
    use weigh_model::example;
    use weigh_model::result::report::Report;

    fn page(report: &Report) -> ReportPage {
        let html = FORMATS.iter().find(|format| format.name == "html").unwrap();
        let html = (html.render)(report).unwrap();
        ReportPage { id: report.id().to_owned(), result: outcome::words(report), html }
    }

    #[test]
    fn each_report_is_on_the_page_once_behind_a_link_with_its_headline() {
        let (run, compared) = (example::run().into(), example::audit().into());
        let pages = [page(&run), page(&compared)];
        let all = join(&pages).unwrap();
        for ReportPage { id, result, html } in &pages {
            let result = result.replace('/', "&#x2f;");
            let main = html.split("<main>").nth(1).unwrap().split("</main>").next().unwrap();
            assert_eq!(all.matches(main).count(), 1, "{id}");
            for part in [
                &format!("<a href=\"#{id}\">"),
                &format!("<main id=\"{id}\">"),
                &format!("<p>{result}</p>"),
            ] {
                assert_eq!(all.matches(part.as_str()).count(), 1, "{part}");
            }
        }
        for once in ["<style>", "<body", "</html>", "(Weighbridge)</title>"] {
            assert_eq!(all.matches(once).count(), 1, "{once}");
        }
    }

    #[test]
    fn the_text_of_others_stays_text() {
        let hostile = ReportPage { result: "<script>".into(), ..page(&example::run().into()) };
        let all = join(&[hostile]).unwrap();
        assert!(all.contains("&lt;script&gt;") && !all.contains("<script>"), "{all}");
    }
}
