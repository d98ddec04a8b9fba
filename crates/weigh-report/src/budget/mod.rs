//! `weigh budget`'s report, as text.

mod tables;
mod text;

pub use text::render;
