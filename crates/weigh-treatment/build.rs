//! Lists the kinds of treatment, which are found by a glob. Adding one is adding one file.

use file_lists::{Modules, list_modules, workspace};

const KINDS: Modules = Modules {
    directory: "src/kind",
    item: "KIND",
    type_name: "crate::TreatmentKind",
    list: "KINDS",
    output: "treatments.rs",
};

fn main() {
    println!("cargo:rustc-env=WORKSPACE={}", workspace().display());
    list_modules(&KINDS);
}
