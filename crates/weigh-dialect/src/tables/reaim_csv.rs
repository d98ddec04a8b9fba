//! The table of re-aim as CSV.

use super::reaim::render_csv;
use crate::Dialect;

pub static TABLE: Dialect = Dialect {
    name: "reaim-csv",
    study_of: None,
    is_of_time: false,
    render: render_csv,
    page: None,
};
