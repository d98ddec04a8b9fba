//! Processes that have the CPUs beside what is tested.

use super::{Home, Running};

const ENDLESS: &str = "while :; do :; done";

/// Processes that do nothing but use CPU time, until this is dropped.
pub struct Busy {
    _hogs: Vec<Running>,
}

impl Busy {
    pub fn start(home: &Home, count: usize) -> Busy {
        let hog = |_| {
            let mut command = home.command("/bin/sh");
            command.args(["-c", ENDLESS]);
            home.start(command)
        };
        Busy { _hogs: (0..count).map(hog).collect() }
    }

    /// A single one that stays on the first CPU.
    pub fn on_first_cpu(home: &Home) -> Busy {
        let mut command = home.command("taskset");
        command.args(["-c", "0", "sh", "-c", ENDLESS]);
        Busy { _hogs: vec![home.start(command)] }
    }
}

/// The load average of the last minute, as the kernel writes it.
pub fn load_average() -> String {
    let averages = std::fs::read_to_string("/proc/loadavg").unwrap();
    averages.split(' ').next().unwrap().to_owned()
}
