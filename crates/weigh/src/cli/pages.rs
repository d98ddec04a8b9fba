//! Several HTML reports as one page, for readers who want all results of a study: first a list of the
//! headlines, then each report. The reports are escaped already, so their parts are taken as they are.

use weigh_model::format;

/// A report as its own page.
pub struct ReportPage {
    pub id: String,
    /// Its result in a few words.
    pub result: String,
    pub html: String,
}

/// Joins pages, of which each has the parts of `weigh-report/html/page.jinja`.
pub fn join(pages: &[ReportPage]) -> Result<String, String> {
    let title = format::plural(pages.len(), "experiment");
    let (mut list, mut reports, mut style) = (String::new(), String::new(), "");
    for ReportPage { id, result, html } in pages {
        let part = |from: &str, to: &str| {
            let found = html.split_once(from).and_then(|(_, rest)| Some(rest.split_once(to)?.0));
            found.ok_or_else(|| format!("the page of {id} has no {from}"))
        };
        style = part("<style>", "</style>")?;
        let kicker = part("<p class=\"kicker\">Weighbridge ", "</p>")?;
        let (headline, result) = (part("<h1>", "</h1>")?, escaped(result));
        list += &format!(
            "<li><p class=\"kicker\">{kicker}</p><p class=\"lede\"><a href=\"#{id}\">{headline}</a></p>\
             <p>{result}</p></li>\n"
        );
        reports += &format!("<main id=\"{id}\">{}</main>\n", part("<main>", "</main>")?);
    }
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} (Weighbridge)</title>\n\
         <style>{style}li .kicker span:first-child::before {{ content: none; }}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n<ul>\n{list}</ul>\n</main>\n\
         {reports}</body>\n</html>\n"
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::example;
    use weigh_model::result::report::Report;
    use weigh_report::{FORMATS, outcome};

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
        for once in ["<style>", "<body>", "</html>", "(Weighbridge)</title>"] {
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
