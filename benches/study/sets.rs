//! The rule sets that auditd ships, against each other in one experiment; and what drains the records.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Part;
use super::table::Table;
use super::weigh::{Weigh, effect, list, number, text, time};

/// Where Debian and Fedora have them.
const PLACES: [&str; 2] = ["/usr/share/doc/auditd/examples/rules", "/usr/share/audit/sample-rules"];
/// The standard, and how the names of its files begin.
const SETS: [(&str, &str); 4] =
    [("STIG", "30-stig"), ("PCI DSS", "30-pci-dss"), ("NISPOM", "30-nispom"), ("OSPP", "30-ospp")];
const WORKLOADS: [&str; 8] =
    ["getppid", "read", "stat", "open-close", "create-unlink", "fork", "exec", "shell1"];

/// A rule set: its name and the directory that has its files.
pub struct Set {
    pub name: &'static str,
    pub directory: PathBuf,
}

/// Gathers the sets below `directory`.
///
/// # Errors
/// Where one of them is not installed.
pub fn gather(directory: &Path) -> Result<Vec<Set>, String> {
    let place = PLACES.iter().find(|place| Path::new(place).is_dir());
    let place = place.ok_or("auditd's example rules are not installed (package auditd)")?;
    SETS.iter()
        .map(|&(name, prefix)| {
            let own = directory.join(prefix);
            std::fs::create_dir_all(&own).map_err(|error| error.to_string())?;
            let mut is_empty = true;
            for entry in std::fs::read_dir(place).map_err(|error| format!("{place}: {error}"))? {
                let file = entry.map_err(|error| error.to_string())?;
                let file_name = file.file_name();
                if file_name.to_string_lossy().starts_with(prefix) {
                    std::fs::copy(file.path(), own.join(&file_name)).map_err(|e| e.to_string())?;
                    is_empty = false;
                }
            }
            if is_empty {
                Err(format!("{place} has no {prefix}*"))
            } else {
                Ok(Set { name, directory: own })
            }
        })
        .collect()
}

pub fn measure(weigh: &Weigh) -> Result<Part, String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let sets = gather(scratch.path())?;
    let treatments: Vec<String> =
        sets.iter().map(|set| format!("audit:rules={}", set.directory.display())).collect();
    let budget = weigh.budget(240);
    let mut arguments = vec!["compare"];
    arguments.extend(treatments.iter().map(String::as_str));
    WORKLOADS.iter().for_each(|name| arguments.extend(["-w", name]));
    arguments.extend(["--no-detail", "--budget", &budget]);
    let result = weigh.json(&arguments)?;
    let row_of = |workload: &str, treatment: &str| -> Option<&Value> {
        list(&result, "/results")
            .iter()
            .find(|row| text(row, "/workload") == workload && text(row, "/treatment") == treatment)
    };
    let cells = |workload: &str| {
        let cell = |treatment: &String| row_of(workload, treatment).map_or("–".into(), effect);
        std::iter::once(format!("`{workload}`")).chain(treatments.iter().map(cell)).collect()
    };
    let head = std::iter::once("workload".to_owned())
        .chain(sets.iter().map(|set| format!("{}, %", set.name)))
        .collect();
    let table = Table {
        title: "The rule sets that auditd ships, of processes of a logged-in user".into(),
        head,
        rows: WORKLOADS.iter().map(|workload| cells(workload)).collect(),
    };
    let sentences = sets
        .iter()
        .zip(&treatments)
        .filter_map(|(set, treatment)| sentence(set.name, row_of("shell1", treatment)?))
        .collect();
    Ok(Part { sentences, tables: vec![table, sinks(weigh)?] })
}

fn sentence(name: &str, row: &Value) -> Option<String> {
    Some(format!(
        "Under the {name} rules a shell script with its commands (`shell1`) runs at {:.1} % of its rate and \
         makes {:.0} records, {:.0} bytes of log.",
        100.0 + number(row, "/effect_pct")?,
        number(row, "/evidence/records_per_op")?,
        number(row, "/evidence/log_bytes_per_op")?,
    ))
}

/// Every system call audited, and different ways to drain the records.
fn sinks(weigh: &Weigh) -> Result<Table, String> {
    const SINKS: [&str; 7] = [
        "own",
        "auditd,flush=none",
        "auditd,flush=incremental",
        "auditd,flush=data",
        "auditd,flush=sync",
        "auditd+dispatcher",
        "none",
    ];
    let budget = weigh.budget(20);
    let mut rows = Vec::new();
    for sink in SINKS {
        let treatment = format!("audit:sink={sink}");
        let result = weigh.json(&[
            "compare",
            &treatment,
            "-w",
            "getppid",
            "-w",
            "open-close",
            "--no-detail",
            "--budget",
            &budget,
        ])?;
        for row in list(&result, "/results") {
            let per_op = |path| number(row, path).map_or("–".into(), time);
            rows.push(vec![
                format!("`sink={sink}`"),
                format!("`{}`", text(row, "/workload")),
                effect(row),
                per_op("/evidence/backlog_wait_ns_per_op"),
                per_op("/evidence/sink_cpu_ns_per_op"),
                per_op("/evidence/kauditd_cpu_ns_per_op"),
                number(row, "/evidence/lost").map_or("–".into(), |lost| format!("{lost:.0}")),
            ]);
        }
    }
    let head = [
        "who drains the records",
        "workload",
        "effect, %",
        "waiting/op",
        "CPU of the sink/op",
        "CPU of kauditd/op",
        "lost",
    ];
    Ok(Table {
        title: "Who drains the records, every system call audited".into(),
        head: head.map(String::from).to_vec(),
        rows,
    })
}
