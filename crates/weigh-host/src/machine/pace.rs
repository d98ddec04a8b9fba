//! How long work takes while others use the CPUs.

use std::fs::read_to_string;
use std::thread::available_parallelism;
use std::time::Duration;

use weigh_model::format;

/// A phrase such as `about 40 s`, for work that takes `idle` on an idle machine. Under load it also names the
/// time that the work takes if each process gets the same part of the CPUs.
pub fn takes(idle: Duration) -> String {
    phrase(idle, load(), cpus())
}

/// How long such work takes at the present load.
pub fn at_load(idle: Duration) -> Duration {
    idle.mul_f64(factor(load().unwrap_or(0.0), cpus()))
}

fn load() -> Option<f64> {
    let text = read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse::<f64>().ok().map(f64::round)
}

fn cpus() -> f64 {
    available_parallelism().map_or(1.0, |cpus| cpus.get() as f64)
}

fn factor(load: f64, cpus: f64) -> f64 {
    ((load + 1.0) / cpus).max(1.0)
}

fn phrase(idle: Duration, load: Option<f64>, cpus: f64) -> String {
    let time = |seconds: f64| format::clock(seconds);
    let about = format!("about {}", time(idle.as_secs_f64()));
    match load.map(|load| (factor(load, cpus), load)) {
        Some((factor, load)) if factor > 1.0 => {
            let longer = time(factor * idle.as_secs_f64());
            format!("{about}, or up to {longer} while the load average is {load:.0}")
        }
        _ => about,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_who_use_the_cpus_make_it_longer() {
        let phrase = |load| phrase(Duration::from_secs(40), load, 2.0);
        assert_eq!(phrase(None), "about 40 s");
        assert_eq!(phrase(Some(0.9)), "about 40 s");
        assert_eq!(
            phrase(Some(9.0)),
            "about 40 s, or up to 3 min 20 s while the load average is 9"
        );
    }
}
