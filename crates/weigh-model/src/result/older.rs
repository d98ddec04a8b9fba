//! Documents of an earlier weigh, read as those of this one.

use crate::result::summary::{Failure, Row, SCHEMA, Summary};
use crate::result::work_name::{WorkName, split_times};

/// Experiments whose rows had the number of copies in their names.
pub const SCHEMA_1: &str = "weighbridge/experiment/1";

impl Summary {
    /// Reads a document, of this schema or of an earlier one.
    ///
    /// # Errors
    /// Where it is none.
    pub fn read(text: &str) -> serde_json::Result<Summary> {
        let mut summary: Summary = serde_json::from_str(text)?;
        if summary.schema != SCHEMA_1 {
            return Ok(summary);
        }
        summary.name_units();
        let figures = summary.imported.iter().flat_map(|imported| imported.distinct());
        // What was imported was called so by its figures.
        let imported: Vec<(String, WorkName)> = figures
            .filter_map(|figure| {
                let copies = figure.copies?;
                Some((format!("{} ({copies} copies)", figure.test), figure.name()))
            })
            .collect();
        let of_figures = |name: &str| {
            imported.iter().find(|(title, _)| title == name).map(|(_, name)| name.clone())
        };
        let renamed = |Row { workload, evidence, .. }: &Row| {
            // A command may be called anything; what makes system calls that we know of is a workload.
            let copies = evidence.syscalls_per_op.and_then(|_| of_copies(&workload.name));
            copies.or_else(|| of_figures(&workload.name))
        };
        for row in &mut summary.results {
            row.workload = renamed(row).unwrap_or_else(|| row.workload.clone());
        }
        let names = summary.failures.iter_mut().map(|Failure { workload, .. }| workload);
        let above = summary.gate.iter_mut().flat_map(|gate| &mut gate.above);
        for name in names.chain(above.map(|row| &mut row.workload)) {
            let renamed = of_figures(&name.name).or_else(|| of_copies(&name.name));
            *name = renamed.unwrap_or_else(|| name.clone());
        }
        summary.schema = SCHEMA.into();
        Ok(summary)
    }
}

fn of_copies(name: &str) -> Option<WorkName> {
    split_times(name).map(|(workload, copies)| WorkName::of_copies(workload, copies))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let read = Summary::read(text).unwrap();
        assert_eq!(read.schema, SCHEMA);
        let failures = read.failures.iter().map(|failure| &failure.workload);
        let rows = read.results.iter().map(|row| &row.workload);
        rows.chain(failures).map(WorkName::to_string).collect()
    }

    #[test]
    fn copies_in_a_name_are_a_load_in_what_was_measured_and_what_was_imported() {
        let audit = include_str!("../../../../tests/fixtures/store/y5yacx.json");
        assert_eq!(names(audit), ["getppid:copies=2", "pipe:copies=2"]);
        let now = audit.replace("experiment/1", "experiment/2");
        assert_eq!(names(&now), ["getppid x 2", "pipe x 2"], "there it is a name");
    }
}
