//! Results of programs that are well known, and not read: whoever gives such a file wants to know just that.

use serde::de::IgnoredAny;
use std::collections::HashMap;

/// Returns the name of the format, if the text is of one of these.
pub(super) fn named(text: &str, is_json: bool) -> Option<&'static str> {
    if is_json { of_json(text) } else { of_text(text) }
}

/// By the keys of the whole document, or of the first one where they follow each other.
fn of_json(text: &str) -> Option<&'static str> {
    type Keys = HashMap<String, IgnoredAny>;
    let list: Result<Vec<Keys>, _> = serde_json::from_str(text);
    let keys = match list {
        Ok(list) => list.into_iter().next()?,
        Err(_) => serde_json::Deserializer::from_str(text).into_iter::<Keys>().next()?.ok()?,
    };
    let has = |wanted: &[&str]| wanted.iter().all(|key| keys.contains_key(*key));
    Some(if has(&["fio version"]) {
        "the JSON of fio"
    } else if has(&["start", "intervals", "end"]) {
        "the JSON of iperf3"
    } else if has(&["machine_info", "benchmarks"]) {
        "the JSON of pytest-benchmark"
    } else if has(&["context", "benchmarks"]) {
        "the JSON of Google Benchmark"
    } else if has(&["Action", "Package"]) {
        "the JSON of go test"
    } else if has(&["jmhVersion"]) {
        "the JSON of JMH"
    } else {
        return None;
    })
}

/// By what only this program prints.
fn of_text(text: &str) -> Option<&'static str> {
    let has_line = |is: fn(&str) -> bool| text.lines().map(str::trim).any(is);
    Some(if has_line(is_go) {
        "the output of Go's benchmarks"
    } else if has_line(|line| line.starts_with("name ") && line.contains(" time/op"))
        || has_line(|line| line.contains("│") && line.contains("sec/op"))
    {
        "the output of benchstat"
    } else if has_line(|line| line.starts_with("sysbench ") && line.contains(" (using ")) {
        "the output of sysbench"
    } else if has_line(|line| line.starts_with("stress-ng: ")) {
        "the output of stress-ng"
    } else if has_line(|line| line.contains("\"fio version\"")) {
        "the JSON of fio after other output"
    } else if has_line(|line| line.split(';').nth(1).is_some_and(|cell| cell.starts_with("fio-"))) {
        "the terse output of fio"
    } else if has_line(|line| line.starts_with("name,iterations,real_time,cpu_time,")) {
        "the CSV of Google Benchmark"
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
            ("3;fio-3.33;seq;0;0;1048576;400000;100000;2621;0\n", "the terse output of fio"),
            (
                "fio: a warning\n{\n  \"fio version\" : \"fio-3.33\"\n}\n",
                "the JSON of fio after other output",
            ),
            (
                "name,iterations,real_time,cpu_time,time_unit\n\"BM_x\",1,2,3,ns\n",
                "the CSV of Google Benchmark",
            ),
            ("stress-ng: info:  [1] dispatching hogs: 1 cpu\n", "the output of stress-ng"),
            (
                "name    old time/op  new time/op  delta\nRead-8  1.2µs ± 1%\n",
                "the output of benchstat",
            ),
            (
                "          │ old.txt │\n          │ sec/op  │\nRead-8  1.2µ ± 1%\n",
                "the output of benchstat",
            ),
            (
                "{\"Action\":\"start\",\"Package\":\"x\"}\n{\"Action\":\"pass\",\"Package\":\"x\"}\n",
                "the JSON of go test",
            ),
            ("[{\"jmhVersion\": \"1.36\", \"benchmark\": \"x\"}]", "the JSON of JMH"),
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
