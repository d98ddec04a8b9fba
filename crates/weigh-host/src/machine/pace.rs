//! How long work takes while others use the CPUs.

use std::fs::read_to_string;
use std::thread::available_parallelism;
use std::time::Duration;

use weigh_model::format;

/// A phrase such as `about 40 s`, for work that takes `idle` on an idle machine. Under load it also names the
/// time that the work takes if each process gets the same part of the CPUs.
pub fn takes(idle: Duration) -> String {
    let load = read_to_string("/proc/loadavg").ok();
    let load = load
        .as_deref()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map(f64::round);
    let cpus = available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    phrase(idle, load, cpus)
}

fn phrase(idle: Duration, load: Option<f64>, cpus: f64) -> String {
    let time = |seconds: f64| format::clock(seconds);
    let about = format!("about {}", time(idle.as_secs_f64()));
    let share = load.map(|load| ((load + 1.0) / cpus, load));
    match share.filter(|(factor, _)| *factor > 1.0) {
        Some((factor, load)) => {
            let longer = time(factor * idle.as_secs_f64());
            format!("{about}, or up to {longer} while the load average is {load:.0}")
        }
        None => about,
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
