//! Results as data, without layout, and with no words except those that are part of a document. The
//! engine and the importers make them, and every format shows them.

pub mod alike;
pub mod atlas;
pub mod btu;
pub mod budget;
pub mod busy_machine;
pub mod calibration;
pub mod cost;
pub mod curve;
pub mod diff;
pub mod dose;
pub mod factorial;
pub mod gate;
pub mod imported;
pub mod load;
pub mod load_compared;
pub mod metrics;
pub mod net;
pub mod net_cells;
mod net_distribution;
pub mod net_rank;
pub mod plausible;
pub mod preliminary;
pub mod profiled;
pub mod quantity;
pub mod reading;
pub mod report;
pub mod rules;
pub mod run;
pub mod scheme;
pub mod suite_index;
pub mod summary;
pub mod times;
pub mod unixbench_index;
pub mod versus;
pub mod warning;
pub mod work_name;
