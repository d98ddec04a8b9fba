//! Lists the formats of reports: adding one is adding one file.

use file_lists::{Modules, list_modules};

fn main() {
    list_modules(&Modules {
        directory: "src/formats",
        item: "FORMAT",
        type_name: "crate::ReportFormat",
        list: "FORMATS",
        output: "formats.rs",
    });
}
