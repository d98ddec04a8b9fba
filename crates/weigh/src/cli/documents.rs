//! Documents that go to files or to stdout, and the report on the terminal: at most one of them has stdout,
//! or a program that reads it would get two in one; and what cannot be written keeps nothing else from being
//! shown.

use std::path::Path;

use super::output;

pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Before anything is measured: whether these files, each of an option that may be given, can be written.
pub fn check<'a>(
    files: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
) -> Result<(), String> {
    let mut on_stdout = None;
    for (option, path) in files.into_iter().filter_map(|(option, path)| Some((option, path?))) {
        if !is_stdout(path) {
            output::check_writable(path)?;
        } else if let Some(first) = on_stdout.replace(option) {
            return Err(format!(
                "--{first} and --{option} both want stdout, and two documents in one can be read by no \
                 program: name a file for one of them"
            ));
        }
    }
    Ok(())
}

/// Written documents, and those that could not be written.
#[derive(Default)]
pub struct Documents {
    problems: Vec<String>,
    has_stdout: bool,
}

impl Documents {
    /// JSON, where it was asked for.
    pub fn json(&mut self, path: Option<&Path>, render: impl FnOnce() -> Result<String, String>) {
        self.write(path, render, output::write_json);
    }

    /// Any other document.
    pub fn report(&mut self, path: Option<&Path>, render: impl FnOnce() -> Result<String, String>) {
        self.write(path, render, output::write_report);
    }

    fn write(
        &mut self,
        path: Option<&Path>,
        render: impl FnOnce() -> Result<String, String>,
        write: impl FnOnce(&Path, &str) -> Result<(), String>,
    ) {
        let Some(path) = path else { return };
        self.has_stdout |= is_stdout(path);
        self.problems.extend(render().and_then(|text| write(path, &text)).err());
    }

    /// The report on the terminal, unless a document has that, and the end of it all.
    pub fn print(mut self, render: impl FnOnce() -> String) -> Result<(), String> {
        if !self.has_stdout {
            self.problems.extend(output::print(&render()).err());
        }
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn one_document_has_stdout() {
        let of = |files: &[(&str, &str)]| {
            check(files.iter().map(|(option, path)| (*option, Some(Path::new(*path)))))
        };
        assert_eq!(of(&[("json", "-")]), Ok(()));
        let refused = of(&[("json", "-"), ("html", "-")]).unwrap_err();
        assert!(refused.starts_with("--json and --html both want stdout"), "{refused}");
        assert!(of(&[("json", "/no/such/directory/x"), ("html", "-")]).is_err());
    }

    #[test]
    fn what_cannot_be_written_keeps_nothing_else_from_being_shown() {
        let home = tempfile::tempdir().unwrap();
        let (full, page) = (Path::new("/dev/full"), home.path().join("page.html"));
        let mut documents = Documents::default();
        documents.json(Some(full), || Ok("{}".into()));
        documents.report(Some(&page), || Ok("page".into()));
        let is_shown = Cell::new(false);
        let problem = documents.print(|| {
            is_shown.set(true);
            String::new()
        });
        assert!(problem.unwrap_err().starts_with("cannot write /dev/full"));
        assert_eq!(std::fs::read_to_string(page).unwrap(), "page");
        assert!(is_shown.get());
    }

    #[test]
    fn nothing_else_is_printed_where_a_document_has_stdout() {
        let mut documents = Documents::default();
        documents.report(Some(Path::new("-")), || Err("not rendered".into()));
        let problem = documents.print(|| panic!("it is printed"));
        assert_eq!(problem, Err("not rendered".into()));
    }
}
