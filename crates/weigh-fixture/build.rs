//! Lists the kinds of fixture, which are found by a glob. Adding one is adding one file.

use file_lists::{Modules, list_modules};

const FIXTURES: Modules = Modules {
    directory: "src/kind",
    item: "KIND",
    type_name: "crate::FixtureKind",
    list: "FIXTURES",
    output: "fixtures.rs",
};

fn main() {
    list_modules(&FIXTURES);
}
