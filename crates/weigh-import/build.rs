//! Lists the formats of imports: adding one is adding one file.

use file_lists::{Modules, list_modules};

fn main() {
    list_modules(&Modules {
        directory: "src/formats",
        item: "IMPORT",
        type_name: "crate::ForeignFormat",
        list: "IMPORTS",
        output: "imports.rs",
    });
}
