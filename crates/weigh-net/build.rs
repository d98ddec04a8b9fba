//! Lists the grids, which are found by a glob. Adding one is adding one file.

use file_lists::{list_texts, workspace};

fn main() {
    list_texts(&workspace().join("suites/net"), "grids.rs");
}
