//! Effects of a full log disk on records and on the programs that make them. They are measured
//! under each auditd policy that does not stop the machine.

use std::io::BufRead;
use std::time::Duration;

use super::backlog::drained;
use super::load::{self, paced_file};
use super::small_disk::SmallDisk;
use super::treated::Treated;
use linux_audit::auditd::{AuditdConfiguration, Flush, find_auditd};
use linux_audit::netlink::Client;
use linux_audit::status::jiffies_to_s;
use weigh_engine::platform::Stop;
use weigh_host::machine::process::process_start;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::started;
use weigh_model::result::budget::DiskFull;
use weigh_treatment::audit::sink_choice::start_auditd;
use weigh_treatment::{ApplyContext, with_parameter};
use weigh_workload::paced::Pace;

/// Values of `disk_full_action` to try. `single`, `halt` and `exec` would stop the machine or start
/// an unknown program.
const ACTIONS: [&str; 4] = ["IGNORE", "SYSLOG", "ROTATE", "SUSPEND"];
/// So many that the disk is full after about half of them.
const STEPS: u64 = 10_000;
const SECONDS: f64 = 4.0;
/// auditd flushes with threads of its own, and its last message may still be on the way.
const SETTLE: Duration = Duration::from_millis(300);

/// Checks that a full disk can be tried on this host.
pub fn check() -> Result<(), String> {
    find_auditd().map_err(|problem| format!("--disk-full: {problem}"))?;
    let status = Client::open().and_then(|mut client| client.status());
    let holder = status.map_err(|error| error.to_string())?.pid;
    let is_alive = process_start(holder).map_err(|error| error.to_string())?.is_some();
    match is_alive {
        false => Ok(()),
        true => Err(format!(
            "--disk-full starts its own auditd, but this host already runs an audit daemon (process \
             {holder}): stop that daemon first"
        )),
    }
}

/// Tries each policy with the real auditd on a small file system.
pub fn policies(
    context: ApplyContext,
    treatment: &str,
    guard: &mut Guard,
    done: &mut Vec<DiskFull>,
    announce: &mut dyn FnMut(&str),
) -> Result<(), Stop> {
    // First: whoever is started later sees the file system.
    let disk = SmallDisk::mount(&context.place.scratch).map_err(Stop::Failed)?;
    // With nobody who receives the records, so that there is room for an auditd of ours.
    let label = with_parameter(treatment, "audit", &["sink", "flush"], ("sink", "none"))
        .map_err(Stop::Failed)?;
    let mut treated = Treated::set_up(context, &label, guard, &mut |_| {})?;
    let result = ACTIONS.iter().try_for_each(|action| {
        announce(&format!("A full disk with disk_full_action = {action}…"));
        done.push(policy(&mut treated, &disk, action, guard)?);
        Ok(())
    });
    let restored = treated.take_down(guard);
    result.and(restored)
}

fn policy(
    treated: &mut Treated,
    disk: &SmallDisk,
    action: &'static str,
    guard: &mut Guard,
) -> Result<DiskFull, Stop> {
    let failed = |error: std::io::Error| Stop::Failed(error.to_string());
    disk.clear().map_err(failed)?;
    let directory =
        treated.context().place.scratch.join(format!("auditd-{}", action.to_lowercase()));
    let configuration = AuditdConfiguration {
        log_directory: disk.directory.clone(),
        // Full while the second file is written, so that ROTATE has an older one to take away.
        max_log_mib: 2,
        num_logs: 2,
        disk_full_action: action,
        ..AuditdConfiguration::new(directory, Flush::None, None)
    };
    let mut auditd = start_auditd(configuration, guard, &mut treated.client)?;
    std::thread::sleep(SETTLE);
    disk.messages(); // that it has started
    let before = drained(treated)?;
    let file = paced_file(treated)?;
    let pace = Pace { file: file.clone(), steps: STEPS, seconds: SECONDS };
    let launched = treated.launch(&pace.job(&treated.context().place.scratch))?;
    let paced = load::read(&launched)?;
    std::thread::sleep(SETTLE);
    let after = treated.status()?;
    let waited = after.backlog_wait_time_actual.zip(before.backlog_wait_time_actual);
    let name = format!("name=\"{}\"", file.display());
    let mut logged = 0;
    for log in disk.logs().map_err(failed)? {
        logged += count_lines_with(&log, &name).map_err(failed)?;
    }
    let outcome = DiskFull {
        action: action.to_owned(),
        file_system: disk.file_system.to_owned(),
        due: paced.due,
        due_s: SECONDS,
        made: paced.made,
        logged,
        lost: after.lost.wrapping_sub(before.lost).into(),
        backlog: after.backlog,
        waited_s: waited.map_or(0.0, |(now, then)| jiffies_to_s(now.wrapping_sub(then))),
        longest_s: paced.longest_s,
        is_registered: after.pid == auditd.pid(),
        has_ended: auditd.has_ended(),
        messages: disk.messages(),
    };
    let pid = auditd.pid();
    drop(auditd);
    started::forget(guard, pid).map_err(Stop::Failed)?;
    Ok(outcome)
}

fn count_lines_with(log: &std::path::Path, text: &str) -> std::io::Result<u64> {
    let mut lines = std::io::BufReader::new(std::fs::File::open(log)?);
    let (mut line, mut count) = (Vec::new(), 0);
    while lines.read_until(b'\n', &mut line)? > 0 {
        count += u64::from(line.windows(text.len()).any(|part| part == text.as_bytes()));
        line.clear();
    }
    Ok(count)
}
