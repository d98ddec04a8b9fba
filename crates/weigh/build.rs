//! Lists what is found by a glob: grids and kinds of treatment. Adding one of these is adding one file;
//! nothing here or elsewhere names it.

use file_lists::{Modules, list_modules, list_texts, workspace};

const KINDS: Modules = Modules {
    directory: "src/treatment/kind",
    item: "KIND",
    type_name: "dyn crate::treatment::Kind",
    list: "KINDS",
    output: "treatments.rs",
};

fn main() {
    let root = workspace();
    println!("cargo:rustc-env=WORKSPACE={}", root.display());
    list_texts(&root.join("suites/net"), "grids.rs");
    list_modules(&KINDS);
}
