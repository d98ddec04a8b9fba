//! The workloads' histogram, in C, against the numbers that were put into it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use paired::histogram::Histogram;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Reads numbers from stdin, prints their histogram.
const PROGRAM: &str = r#"
#include "driver.h"
#include <stdio.h>

int main(void)
{
	unsigned long long value;

	while (scanf("%llu", &value) == 1)
		histogram_add(value);
	histogram_print();
	return 0;
}
"#;

fn counted(values: &[u64]) -> Vec<(u64, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let [source, program] = ["main.c", "main"].map(|name| directory.path().join(name));
    std::fs::write(&source, PROGRAM).unwrap();
    let workloads = Path::new(env!("WORKSPACE")).join("workloads");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-fsanitize=undefined,bounds", "-I"])
        .arg(&workloads)
        .args(["-I".as_ref(), workloads.join("driver").as_os_str()])
        .args([workloads.join("driver/histogram.c"), source])
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text: Vec<String> = values.iter().map(u64::to_string).collect();
    child.stdin.take().unwrap().write_all(text.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_quantile_is_within_a_64th() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    // Of every size alike, the ends of the range and of each power of two among them.
    let mut values: Vec<u64> =
        (0..20_000).map(|_| rng.random::<u64>() >> rng.random_range(0..64)).collect();
    for bits in 0..64 {
        values.extend([1 << bits, (1 << bits) - 1, (1 << bits) + 1]);
    }
    values.extend([0, u64::MAX]);
    let buckets = counted(&values);
    values.sort_unstable();

    let histogram = Histogram::new(buckets.iter().copied());
    assert_eq!(histogram.count(), values.len() as u64);
    for (rank, exact) in (1..).zip(&values) {
        // Half a rank back: within the values of one bucket, whichever it is.
        let found = histogram.quantile((rank as f64 - 0.5) / values.len() as f64).unwrap();
        let exact = *exact as f64;
        assert!((found - exact).abs() <= 1.0 + exact / 64.0, "{found} is not {exact}");
    }
}

#[test]
fn buckets_are_sparse_ascending_and_hold_what_begins_in_them() {
    assert_eq!(counted(&[]), []);
    assert_eq!(counted(&[63, 64, 127, 64]), [(63, 1), (64, 2), (127, 1)]);
    assert_eq!(counted(&[128, 129, 130, 255, 256]), [(128, 2), (130, 1), (254, 1), (256, 1)]);
    assert_eq!(counted(&[u64::MAX]), [(0xfe00_0000_0000_0000, 1)]);
}
