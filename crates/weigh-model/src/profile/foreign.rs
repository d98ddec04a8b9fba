//! Counts of system calls that other tools print: `strace -c` and `perf trace -s`.

use std::collections::BTreeMap;

/// How often each system call was made, by such a summary; `None` where it is neither.
pub fn parse(text: &str) -> Result<Option<BTreeMap<String, u64>>, String> {
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let is_strace =
        |words: &Vec<&str>| words.starts_with(&["%", "time"]) && words.contains(&"syscall");
    let is_perf = |words: &Vec<&str>| words.starts_with(&["syscall", "calls"]);
    let calls = if lines.iter().any(is_strace) {
        strace(&lines)?
    } else if lines.iter().any(is_perf) {
        perf(&lines, is_perf)?
    } else {
        return Ok(None);
    };
    Ok(Some(calls))
}

/// Rows between lines of dashes: `% time, seconds, usecs/call, calls, errors or nothing, syscall`. One
/// summary per ABI; the last row of each is the total.
fn strace(lines: &[Vec<&str>]) -> Result<BTreeMap<String, u64>, String> {
    let mut calls = BTreeMap::new();
    let mut sum = 0u64;
    let mut is_whole = false;
    let is_other_abi =
        |words: &Vec<&str>| words.starts_with(&["System", "call", "usage", "summary"]);
    if lines.iter().any(is_other_abi) {
        return Err(
            "it covers programs of several ABIs (such as 32-bit ones), whose rules and costs differ: count \
             them separately"
                .into(),
        );
    }
    for words in lines {
        let (Some(name), 5..=6) = (words.last(), words.len()) else { continue };
        let Ok(count) = words[3].parse::<u64>() else { continue };
        if *name == "total" {
            if count != sum {
                return Err(format!(
                    "its calls add up to {sum}, but its total is {count}: the profile was changed"
                ));
            }
            is_whole = true;
        } else {
            sum = sum.checked_add(count).ok_or("its counts are larger than any program's")?;
            add(&mut calls, name, count)?;
        }
    }
    if is_whole { Ok(calls) } else { Err("it has no total: the profile is truncated".into()) }
}

/// A section per thread, each with a heading; rows begin with name and calls, and a blank line ends them.
fn perf(
    lines: &[Vec<&str>],
    is_heading: impl Fn(&Vec<&str>) -> bool,
) -> Result<BTreeMap<String, u64>, String> {
    let mut calls = BTreeMap::new();
    let mut is_within = false;
    for words in lines {
        match words.as_slice() {
            _ if is_heading(words) => is_within = true,
            [] => is_within = false,
            [name, count, _, ..] if is_within => {
                // The second heading, and the line of dashes, have no number there.
                if let Ok(count) = count.parse::<u64>() {
                    add(&mut calls, name, count)?;
                }
            }
            _ => {}
        }
    }
    Ok(calls)
}

fn add(calls: &mut BTreeMap<String, u64>, name: &str, count: u64) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("{name:?} is not a system call"));
    }
    let known = calls.entry(name.to_owned()).or_default();
    *known = known.checked_add(count).ok_or("its counts are larger than any program's")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STRACE: &str = include_str!("../../../../tests/fixtures/profile/strace-c.txt");
    const PERF: &str = include_str!("../../../../tests/fixtures/profile/perf-trace-s.txt");

    #[test]
    fn a_summary_of_strace_is_a_profile() {
        let calls = parse(STRACE).unwrap().unwrap();
        assert_eq!(calls.values().sum::<u64>(), 382, "as its last line says");
        assert_eq!((calls["openat"], calls["statx"]), (77, 3));
        assert!(!calls.contains_key("total"));
    }

    #[test]
    fn a_summary_of_perf_is_the_sum_of_its_threads() {
        let calls = parse(PERF).unwrap().unwrap();
        assert_eq!(calls["execve"], 2, "one of each thread");
        let rows = |name: &str| -> u64 {
            let rows =
                PERF.lines().filter(|line| line.trim_start().starts_with(&format!("{name} ")));
            rows.map(|row| row.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
        };
        assert_eq!(calls["mmap"], rows("mmap"));
        assert!(!calls.contains_key("syscall"));
    }

    #[test]
    fn what_was_cut_or_changed_is_refused() {
        let cut: String = STRACE.lines().take(20).map(|line| line.to_owned() + "\n").collect();
        assert!(parse(&cut).unwrap_err().contains("the profile is truncated"));
        let changed = STRACE.replace("       77        32 openat", "       78        32 openat");
        assert!(parse(&changed).unwrap_err().contains("add up to 383"), "{changed}");
        let both = format!("System call usage summary for 32 bit mode:\n{STRACE}");
        assert!(parse(&both).unwrap_err().contains("several ABIs"));
        assert_eq!(parse("hello"), Ok(None));
    }

    proptest! {
        #[test]
        fn summaries_of_anything_never_panic(text in ".{0,200}", cut in 0usize..4000) {
            for summary in [STRACE, PERF] {
                let end = summary.len().min(cut);
                let _ = parse(&(summary[..end].to_owned() + &text));
            }
        }
    }
}
