//! Inputs changed at random until the time is up, for whatever reads foreign bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Odd bytes to insert, besides the bytes of the inputs themselves.
const ODD: [&[u8]; 20] = [
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\"",
    b"'",
    b"\\",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"null",
    b"18446744073709551616",
    b"9223372036854775807",
    b"{",
    b"[",
    b"|",
    "\u{1b}[31m\u{202e}µ".as_bytes(),
];
const LONGEST: usize = 1 << 16;

/// Changes inputs until the time is up.
pub fn fuzz(name: &str, inputs: &[Vec<u8>], mut parse: impl FnMut(&[u8])) {
    let seed: u64 = match std::env::var("WEIGH_SEED") {
        Ok(seed) => seed.parse().expect("WEIGH_SEED is a number"),
        Err(_) => rand::random(),
    };
    let time = Duration::from_secs(super::hard(1, 600));
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let (started, mut tried) = (Instant::now(), 0_u64);
    // As they are, first.
    let mut next = inputs.to_vec();
    while started.elapsed() < time {
        let input = next.pop().unwrap_or_else(|| changed(inputs, &mut chance));
        if catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err() {
            panic!("{name}, WEIGH_SEED={seed}, input {tried}: {}", input.escape_ascii());
        }
        tried += 1;
    }
    println!("{name}: {tried} inputs in {time:?}, WEIGH_SEED={seed}");
    assert!(tried > inputs.len() as u64, "{name}: not even the inputs themselves were read");
}

/// One of the inputs, with one to eight changes.
fn changed(inputs: &[Vec<u8>], chance: &mut ChaCha8Rng) -> Vec<u8> {
    let any = |chance: &mut ChaCha8Rng| inputs[chance.random_range(0..inputs.len())].clone();
    let mut input = any(chance);
    for _ in 0..chance.random_range(1..=8) {
        let from = chance.random_range(0..=input.len());
        let to = (from + chance.random_range(0..=16)).min(input.len());
        match chance.random_range(0..7) {
            0 if from < input.len() => input[from] ^= 1 << chance.random_range(0..8),
            1 => drop(input.drain(from..to)),
            2 => drop(input.splice(from..to, ODD[chance.random_range(0..ODD.len())].to_vec())),
            3 => input.truncate(from),
            4 => {
                let again = input[from..to].repeat(chance.random_range(1..64));
                drop(input.splice(to..to, again));
            }
            // The end of another, or of itself.
            5 => {
                let other = any(chance);
                let at = chance.random_range(0..=other.len());
                input.truncate(from);
                input.extend_from_slice(&other[at..]);
            }
            _ => drop(input.splice(from..to, [chance.random()])),
        }
        input.truncate(LONGEST);
    }
    input
}

/// Inputs that are text.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
