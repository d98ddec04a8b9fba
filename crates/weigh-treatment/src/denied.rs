//! Denied system calls, in words for a report.

use syscalls::Sysno;

use weigh_model::format;
use weigh_workload::seccomp_program;
use weigh_workload::setup::kind::denied_calls::DeniedCall;

/// More names than this are a list that nobody reads.
const MOST_NAMES: usize = 8;

/// Lists the calls, the most frequent first: `` `rseq` (EPERM; glibc works without it) ``. Returns `None`
/// without calls.
pub fn in_words(calls: &[DeniedCall]) -> Option<String> {
    let mut calls: Vec<&DeniedCall> = calls.iter().collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.times));
    let mut words: Vec<String> = calls.iter().take(MOST_NAMES).map(|call| one(call)).collect();
    if calls.len() > MOST_NAMES {
        words.push(format::plural(calls.len() - MOST_NAMES, "other"));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn one(call: &DeniedCall) -> String {
    let number = call.number.map(|number| number as usize);
    let known = number.and_then(Sysno::new);
    let name = match (known, number) {
        (Some(known), _) => format!("`{known}`"),
        (None, Some(number)) => format!("call {number}"),
        (None, None) => "calls of a foreign ABI".to_owned(),
    };
    let answer = answer(call.action);
    match known.and_then(|known| hint(known, &answer)) {
        Some(hint) => format!("{name} ({answer}; {hint})"),
        None => format!("{name} ({answer})"),
    }
}

/// The answer that the program gets instead of the call.
fn answer(action: u32) -> String {
    match action & libc::SECCOMP_RET_ACTION_FULL {
        libc::SECCOMP_RET_ERRNO => match seccomp_program::errno(action) {
            libc::EPERM => "EPERM".into(),
            libc::ENOSYS => "ENOSYS".into(),
            libc::EACCES => "EACCES".into(),
            libc::EINVAL => "EINVAL".into(),
            0 => "no error, but not done".into(),
            other => format!("error {other}"),
        },
        libc::SECCOMP_RET_TRACE => "ENOSYS".into(),
        libc::SECCOMP_RET_TRAP => "SIGSYS".into(),
        libc::SECCOMP_RET_KILL_THREAD => "kills the thread".into(),
        _ => "kills the process".into(),
    }
}

/// Why a program may work all the same, and perhaps faster.
fn hint(call: Sysno, answer: &str) -> Option<&'static str> {
    match call {
        Sysno::rseq => Some("glibc works without it"),
        Sysno::clone3 if answer == "ENOSYS" => Some("glibc uses clone instead"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: Sysno, action: u32, times: u32) -> DeniedCall {
        DeniedCall { number: Some(name as u32), action, times }
    }

    #[test]
    fn the_most_frequent_comes_first_with_its_answer() {
        const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
        let found = [
            call(Sysno::rseq, EPERM, 1),
            call(Sysno::getppid, EPERM, 9),
            call(Sysno::clone3, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, 2),
            DeniedCall { number: None, action: libc::SECCOMP_RET_KILL_PROCESS, times: 1 },
        ];
        assert_eq!(
            in_words(&found).unwrap(),
            "`getppid` (EPERM), `clone3` (ENOSYS; glibc uses clone instead), `rseq` (EPERM; glibc works \
             without it), calls of a foreign ABI (kills the process)"
        );
        assert_eq!(in_words(&[]), None);
    }

    #[test]
    fn the_answer_is_that_of_the_kernel() {
        let large = libc::SECCOMP_RET_ERRNO | 5000;
        assert_eq!(answer(large), "error 4095");
        let killing = [libc::SECCOMP_RET_KILL_THREAD, libc::SECCOMP_RET_KILL_PROCESS].map(answer);
        assert_eq!(killing, ["kills the thread", "kills the process"]);
    }

    #[test]
    fn a_long_list_is_cut() {
        let found: Vec<DeniedCall> = (0..11)
            .map(|number| DeniedCall {
                number: Some(number),
                action: libc::SECCOMP_RET_TRAP,
                times: 1,
            })
            .collect();
        let words = in_words(&found).unwrap();
        assert!(words.contains("`read` (SIGSYS)") && words.ends_with(", 3 others"), "{words}");
    }
}
