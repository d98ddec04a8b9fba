//! Work of a workload of ours beside what it reports.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::executable::FILE_NAME;
use crate::setup::Act;

/// So many millionths; with 0 it says that it did none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedShare {
    pub ppm: u32,
    /// All of it is done in one slice, or batch, of so many.
    pub every: u32,
}

impl PlantedShare {
    /// As much in each slice.
    pub fn evenly(ppm: u32) -> PlantedShare {
        PlantedShare { ppm, every: 1 }
    }
}

impl Act for PlantedShare {
    /// As many characters in both arms, as their number moves the stack.
    fn command_line(&self, mut argv: Vec<String>) -> Vec<String> {
        let program = argv.first().and_then(|program| Path::new(program).file_name());
        if program.is_some_and(|name| name == FILE_NAME) {
            argv.extend(["--planted-ppm".into(), format!("{:06}", self.ppm)]);
            if self.every > 1 {
                argv.extend(["--planted-every".into(), self.every.to_string()]);
            }
        }
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workloads_of_ours_are_told() {
        let told =
            |program: &str, ppm| PlantedShare::evenly(ppm).command_line(vec![program.into()]);
        assert_eq!(told("/x/weigh-workloads", 10_000)[1..], ["--planted-ppm", "010000"]);
        assert_eq!(told("/x/weigh-workloads", 0).len(), 3);
        assert_eq!(told("/bin/true", 10_000), ["/bin/true"]);
        let periodic = |ppm| PlantedShare { ppm, every: 5 };
        let [none, some] =
            [0, 50_000].map(|ppm| periodic(ppm).command_line(vec!["/x/weigh-workloads".into()]));
        assert_eq!(some[1..], ["--planted-ppm", "050000", "--planted-every", "5"]);
        assert_eq!(none.concat().len(), some.concat().len());
    }
}
