//! Whether a process that is known by its number and its start still lives.

/// When a living process was started, in clock ticks since boot; `None` for one that has ended, also
/// where nobody has reaped it.
pub fn process_start(pid: u32) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, so fields are counted from behind it: the
    // state is the first, the start the twentieth (proc(5)).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// Whose child a process is.
pub fn process_parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_one_that_ended_does_not() {
        assert!(process_start(std::process::id()).is_some_and(|ticks| ticks > 0));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        assert_eq!(process_parent(pid), Some(std::process::id()));
        rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(process_start(pid), None, "it has ended, but is not reaped");
        child.wait().unwrap();
        assert_eq!(process_start(pid), None);
    }
}
