//! Lists the formats of reports, and the well-known tables: adding one is adding one file.

use file_lists::{Modules, list_modules};

fn main() {
    list_modules(&Modules {
        directory: "src/formats",
        item: "FORMAT",
        type_name: "crate::ReportFormat",
        list: "FORMATS",
        output: "formats.rs",
    });
    list_modules(&Modules {
        directory: "src/dialect/tables",
        item: "TABLE",
        type_name: "crate::dialect::Dialect",
        list: "TABLES",
        output: "tables.rs",
    });
}
