//! Checks of the source tree: its sizes, structure, documents, commands and generated files. They need no
//! privilege and measure nothing.

#[path = "../support/mod.rs"]
mod support;

mod completions;
mod contributing;
mod curves;
mod dependencies;
mod documents;
mod histogram;
mod labels;
mod prose;
mod quick;
mod sanitized;
mod structure;
mod tidy;
