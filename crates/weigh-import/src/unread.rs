//! Results of programs that are well known, and not read: whoever gives such a file wants to know just that.

use serde::de::IgnoredAny;
use std::collections::HashMap;

/// Returns the name of the format, if the text is of one of these.
pub(super) fn named(text: &str, is_json: bool) -> Option<&'static str> {
    if is_json { of_json(text) } else { of_text(text) }
}

/// By the keys of the whole document.
fn of_json(text: &str) -> Option<&'static str> {
    let keys: HashMap<String, IgnoredAny> = serde_json::from_str(text).ok()?;
    let has = |wanted: &[&str]| wanted.iter().all(|key| keys.contains_key(*key));
    Some(if has(&["fio version"]) {
        "the JSON of fio"
    } else if has(&["start", "intervals", "end"]) {
        "the JSON of iperf3"
    } else if has(&["machine_info", "benchmarks"]) {
        "the JSON of pytest-benchmark"
    } else if has(&["context", "benchmarks"]) {
        "the JSON of Google Benchmark"
    } else {
        return None;
    })
}

/// By what only this program prints.
fn of_text(text: &str) -> Option<&'static str> {
    let has_line = |is: fn(&str) -> bool| text.lines().map(str::trim).any(is);
    Some(if has_line(is_go) {
        "the output of Go's benchmarks"
    } else if has_line(|line| line.starts_with("sysbench ") && line.contains(" (using ")) {
        "the output of sysbench"
    } else if has_line(|line| line.starts_with("[ ID] Interval") && line.contains("Transfer")) {
        "the output of iperf"
    } else if has_line(|line| line.contains(": (g=") && line.contains("): rw=")) {
        "the output of fio"
    } else if has_line(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], ["Benchmark", "Time", "CPU", "Iterations", ..])
    }) {
        "the output of Google Benchmark"
    } else {
        return None;
    })
}

/// `BenchmarkName-8   1000   1234 ns/op`
fn is_go(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    line.starts_with("Benchmark") && words.get(3) == Some(&"ns/op")
}

#[cfg(test)]
mod tests {
    use crate::read;

    #[test]
    fn formats_that_are_not_read_are_named_in_one_line() {
        for (text, name) in [
            (
                "{\"context\": {\"date\": \"x\"}, \"benchmarks\": []}",
                "the JSON of Google Benchmark",
            ),
            ("{\n\"machine_info\": {}, \"benchmarks\": []}", "the JSON of pytest-benchmark"),
            ("{\"fio version\": \"fio-3.33\", \"jobs\": []}", "the JSON of fio"),
            ("{\"start\": {}, \"intervals\": [], \"end\": {}}", "the JSON of iperf3"),
            (
                "Benchmark        Time             CPU   Iterations\n-----\nBM_x  12 ns  12 ns  57000000\n",
                "the output of Google Benchmark",
            ),
            ("seq: (g=0): rw=read, bs=(R) 4096B-4096B\nfio-3.33\n", "the output of fio"),
            (
                "Connecting to host h, port 5201\n[ ID] Interval           Transfer     Bitrate\n",
                "the output of iperf",
            ),
            (
                "sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nRunning the test\n",
                "the output of sysbench",
            ),
            (
                "goos: linux\nBenchmarkRead-8   \t 1000000\t      1234 ns/op\nPASS\n",
                "the output of Go's benchmarks",
            ),
        ] {
            let problem = read("f", text.as_bytes(), None).err().unwrap().to_string();
            assert!(problem.starts_with(&format!("f: this is {name}, which")), "{problem}");
            assert!(problem.lines().count() == 1 && !problem.contains("lmbench"), "{problem}");
        }
    }
}
