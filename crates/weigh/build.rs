//! Lists the grids of `weigh net`, which are found by a glob. Adding one is adding one file.

use file_lists::{list_texts, workspace};

fn main() {
    let root = workspace();
    println!("cargo:rustc-env=WORKSPACE={}", root.display());
    list_texts(&root.join("suites/net"), "grids.rs");
}
