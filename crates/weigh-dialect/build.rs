//! Lists the well-known tables: adding one is adding one file.

use file_lists::{Modules, list_modules};

fn main() {
    list_modules(&Modules {
        directory: "src/tables",
        item: "TABLE",
        type_name: "crate::Dialect",
        list: "TABLES",
        output: "tables.rs",
    });
}
