//! Keeps the rates of the suite `hardware` in the data directory, for later reports of the same machine.

use std::io;
use std::path::Path;

use trust::{owner, user_file};
use weigh_model::facts::Facts;
use weigh_model::hardware_speed::HardwareSpeed;

const FILE: &str = "hardware.json";
const LONGEST_FILE: u64 = 1 << 20;

/// Returns the stored rates of this machine; `None` if they were not measured before.
pub fn known(data_directory: &Path, machine: &Facts) -> Option<HardwareSpeed> {
    let text = user_file::read_text(&data_directory.join(FILE), LONGEST_FILE).ok()?;
    let known: HardwareSpeed = serde_json::from_str(&text).ok()?;
    let is_its = (&known.hostname, &known.cpu_model) == (&machine.hostname, &machine.cpu_model);
    is_its.then_some(known)
}

pub fn keep(found: &HardwareSpeed, data_directory: &Path) -> io::Result<()> {
    owner::create_directory(data_directory, 0o700)?;
    owner::replace(&data_directory.join(FILE), &serde_json::to_vec_pretty(found)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_another_machine_are_not_this_ones() {
        let directory = tempfile::tempdir().unwrap();
        let of = |hostname: &str| Facts { hostname: hostname.into(), ..Facts::default() };
        assert_eq!(known(directory.path(), &of("a")), None);
        let found = HardwareSpeed {
            experiment: "k3f9qx".into(),
            started: "2026-11-29".into(),
            hostname: "a".into(),
            cpu_model: String::new(),
            rates: [].into(),
        };
        keep(&found, directory.path()).unwrap();
        assert_eq!(known(directory.path(), &of("a")), Some(found));
        assert_eq!(known(directory.path(), &of("b")), None);
    }
}
