//! UnixBench's `.csv`, which begins with `Concurrency,`.

use super::unixbench::read_csv;
use crate::{Document, ForeignFormat};

pub static IMPORT: ForeignFormat = ForeignFormat {
    name: "unixbench-csv",
    what: "UnixBench's .csv",
    rank: 4,
    is_json: false,
    is_it: |text| text.trim_start().starts_with("Concurrency,"),
    read: |text| read_csv(text).map(Document::of),
};
