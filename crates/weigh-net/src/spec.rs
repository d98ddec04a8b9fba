//! A testbed written down, so that others can replicate it: the grid, and what of the black boxes, the
//! links and the protocol a score depends on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::cpus::{allowed, halves};
use super::grid::Grid;
use trust::user_file;
use weigh_model::workload::toml_problem;
use weigh_testbed::{HostName, Testbed, TestbedError, TestbedReady, TestbedSetup};

const LONGEST_FILE: u64 = 1 << 20;
/// Version of the protocol between COMM and its peers: workloads/driver/comm.h.
const COMM_VERSION: u32 = 2;

/// As a file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Which weigh wrote it.
    pub weigh: String,
    pub comm_version: u32,
    /// Hash of the grid.
    pub hash: String,
    pub kernel: String,
    pub test_cpus: usize,
    pub black_box_cpus: usize,
    pub wire_offload: String,
    pub wire_is_real_time: bool,
    pub has_ipv6: bool,
    /// Kernel settings that TCP depends on, by host.
    pub settings: BTreeMap<HostName, BTreeMap<String, String>>,
    pub grid: Grid,
}

/// How a testbed differs from the one that was written down.
#[derive(Debug, Default, PartialEq)]
pub struct SpecDifferences {
    /// Differences that change the scores, so that replication is forbidden.
    pub forbidden: Vec<String>,
    /// Differences to report when the scores are compared.
    pub told: Vec<String>,
}

impl Spec {
    /// Describes this machine, with a testbed that exists only meanwhile.
    pub fn of_this_machine(grid: Grid, interrupted: &AtomicBool) -> Result<Spec, String> {
        let (test_cpus, other_cpus) = halves(allowed().map_err(|error| error.to_string())?);
        let counts = (test_cpus.len(), other_cpus.len());
        let (wire_cpus, real_time) = (other_cpus, true);
        let setup = TestbedSetup { wire_cpus, real_time, ..TestbedSetup::default() };
        let testbed = Testbed::start(Testbed::role(), &setup, interrupted)
            .map_err(|error: TestbedError| error.to_string())?;
        Ok(Spec::of(grid, counts, &testbed.ready))
    }

    fn of(grid: Grid, (test_cpus, black_box_cpus): (usize, usize), ready: &TestbedReady) -> Spec {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Spec {
            weigh: env!("CARGO_PKG_VERSION").into(),
            comm_version: COMM_VERSION,
            hash: grid.hash(),
            kernel: kernel.trim().into(),
            test_cpus,
            black_box_cpus,
            wire_offload: ready.offload.clone(),
            wire_is_real_time: ready.not_real_time.is_none(),
            has_ipv6: ready.no_ipv6.is_none(),
            settings: ready.hosts.iter().map(|host| (host.name, host.settings.clone())).collect(),
            grid,
        }
    }

    pub fn read(path: &str) -> Result<Spec, String> {
        let text = user_file::read_text(Path::new(path), LONGEST_FILE)
            .map_err(|error| format!("cannot read {path}: {error}"))?;
        let spec: Spec =
            toml::from_str(&text).map_err(|error| toml_problem::sentence(path, &text, &error))?;
        spec.grid.check().map_err(|problem| format!("{path}: {problem}"))?;
        if spec.grid.hash() != spec.hash {
            return Err(format!(
                "{path}: the grid has the hash {}, not {}: the file was changed, or a different weigh wrote \
                 the file",
                spec.grid.hash(),
                spec.hash
            ));
        }
        Ok(spec)
    }

    /// As a file has it.
    pub fn text(&self) -> String {
        let head = "# A testbed of `weigh net`, to be replicated: weigh net --from-spec FILE\n";
        head.to_owned() + &toml::to_string(self).expect("plain data with text keys")
    }

    /// Lists how `here`, the machine that is to replicate this one, differs from it.
    pub fn differences(&self, here: &Spec) -> SpecDifferences {
        let mut found = SpecDifferences::default();
        if self.comm_version != here.comm_version {
            found.forbidden.push(format!(
                "it was written for protocol version {}, and this weigh has {}",
                self.comm_version, here.comm_version
            ));
        }
        if self.grid.ipv6 && !here.has_ipv6 {
            found.forbidden.push("the grid needs IPv6, which this host lacks".into());
        }
        let mut tell = |what: &str, theirs: &str, ours: &str| {
            if theirs != ours {
                found.told.push(format!("{what}: {theirs} in the file, {ours} here"));
            }
        };
        tell("weigh", &self.weigh, &here.weigh);
        tell("kernel", &self.kernel, &here.kernel);
        let count = |count: usize| count.to_string();
        tell("CPUs of W_test", &count(self.test_cpus), &count(here.test_cpus));
        tell("CPUs of the black boxes", &count(self.black_box_cpus), &count(here.black_box_cpus));
        tell("segmentation left to the wire", &self.wire_offload, &here.wire_offload);
        let real_time = |is_so: bool| if is_so { "yes" } else { "no" };
        tell(
            "real-time priority of the wire",
            real_time(self.wire_is_real_time),
            real_time(here.wire_is_real_time),
        );
        for (host, settings) in &self.settings {
            let ours = here.settings.get(host);
            for (name, value) in settings {
                let own = ours.and_then(|ours| ours.get(name)).map_or("none", String::as_str);
                tell(&format!("{name} of W_{}", format!("{host:?}").to_lowercase()), value, own);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        let grid = Grid::find("quick").unwrap();
        let settings = BTreeMap::from([("net.ipv4.tcp_sack".to_owned(), "1".to_owned())]);
        Spec {
            weigh: "1".into(),
            comm_version: COMM_VERSION,
            hash: grid.hash(),
            kernel: "6.1".into(),
            test_cpus: 1,
            black_box_cpus: 1,
            wire_offload: "tcp and udp".into(),
            wire_is_real_time: true,
            has_ipv6: true,
            settings: BTreeMap::from([(HostName::Active, settings)]),
            grid,
        }
    }

    #[test]
    fn what_was_written_is_read_and_a_changed_grid_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spec.toml").display().to_string();
        std::fs::write(&path, spec().text()).unwrap();
        assert_eq!(Spec::read(&path), Ok(spec()));
        std::fs::write(&path, spec().text().replace("least_ms = 40", "least_ms = 41")).unwrap();
        assert!(Spec::read(&path).unwrap_err().contains("the file was changed"));
        std::fs::write(&path, "weigh = 5").unwrap();
        assert!(Spec::read(&path).unwrap_err().contains("spec.toml:1"));
    }

    #[test]
    fn what_makes_other_scores_is_told_apart_from_what_is_to_be_known() {
        let mut here = spec();
        assert_eq!(spec().differences(&here), SpecDifferences::default());
        here.kernel = "6.18".into();
        here.comm_version += 1;
        here.settings.clear();
        let found = spec().differences(&here);
        assert_eq!(found.forbidden.len(), 1);
        let told = [
            "kernel: 6.1 in the file, 6.18 here",
            "net.ipv4.tcp_sack of W_active: 1 in the file, none here",
        ];
        assert_eq!(found.told, told);
    }

    #[test]
    fn the_version_is_that_of_the_protocol() {
        let header = include_str!("../../../workloads/driver/comm.h");
        assert!(header.contains(&format!("COMM_VERSION = {COMM_VERSION},")));
    }
}
