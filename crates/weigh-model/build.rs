//! Embeds the suites and mixes: adding one is adding one file.

use file_lists::{list_texts, workspace};

fn main() {
    let suites = workspace().join("suites");
    list_texts(&suites, "suites.rs");
    list_texts(&suites.join("load"), "mixes.rs");
}
