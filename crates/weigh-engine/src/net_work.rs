//! Work for the cells of a grid: each cell by itself, or all cells as one sample of a comparison.

use weigh_model::result::work_name::WorkName;
use weigh_model::workload::sample::Sample;
use weigh_net::cell::Cell;
use weigh_net::grid::Grid;

/// The unit of COMM's rate, and that of an activity alone.
pub const BITS: &str = "Mb/s";
const UNITS: &str = "units/s";

#[derive(Clone, Debug, PartialEq)]
pub struct NetWork {
    /// As it was asked for: `net:quick`.
    pub label: String,
    pub grid: Grid,
    pub part: NetPart,
}

/// Which of them a sample is of.
#[derive(Clone, Debug, PartialEq)]
pub enum NetPart {
    /// One, and its number in the grid.
    Cell { number: usize, cell: Cell },
    /// All of them, or those of one class.
    Sweep { class_bytes: Option<u32> },
}

impl NetWork {
    pub fn cells_of(label: &str, grid: &Grid) -> Vec<NetWork> {
        let cell = |(number, cell): (usize, Cell)| NetWork {
            label: label.to_owned(),
            grid: grid.clone(),
            part: NetPart::Cell { number, cell },
        };
        grid.cells().into_iter().enumerate().map(cell).collect()
    }

    pub fn name(&self) -> WorkName {
        match &self.part {
            NetPart::Cell { cell, .. } => {
                WorkName::of_bytes(&format!("{}/{}", self.label, cell.name()), cell.bytes)
            }
            NetPart::Sweep { class_bytes: Some(bytes) } => WorkName::of_bytes(&self.label, *bytes),
            NetPart::Sweep { class_bytes: None } => (*self.label).into(),
        }
    }

    pub fn unit(&self) -> &'static str {
        match &self.part {
            NetPart::Cell { cell, .. } if cell.is_activity_alone() => UNITS,
            NetPart::Cell { cell: Cell { further: Some(further), .. }, .. } => further.unit(),
            _ => BITS,
        }
    }

    /// Checks that a sample belongs to this kind of cell.
    pub fn check(&self, sample: &Sample) -> Result<(), String> {
        match sample.unit.as_deref() {
            Some(unit) if unit == self.unit() => Ok(()),
            other => {
                let unit = other.unwrap_or("no unit");
                Err(format!("it reported a rate in {unit}, not in {}", self.unit()))
            }
        }
    }
}
