//! `weigh` killed at any moment while arms are in other root file systems: no mount, loop device, directory
//! or process is left.

use std::time::Duration;

use crate::support::roots::{mounts, squashfs, tar, tiny};
use crate::support::{Home, Turn, wait_until};
use rand::{RngExt, SeedableRng};

#[test]
fn killed_at_random_moments_it_leaves_no_mount_and_no_file() {
    let _turn = Turn::share();
    let seed = 13;
    let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let home = Home::new();
    let root = tiny(&home, "root");
    let packed = format!("rootfs:{}", tar(&root, "tar", "").display());
    let other = squashfs(&root).unwrap_or(root);
    let other = format!("rootfs:{}", other.display());
    let mut measured = 0;
    for kill in 0..crate::support::hard(6, 60) {
        let before = home.samples();
        let arguments = ["compare", &packed, "--base", &other, "-w", "getppid", "--budget", "60s"];
        let mut running = home.start(home.weigh(&arguments));
        let moment = Duration::from_millis(chance.random_range(10..800));
        // Every other one when it surely measures.
        home.wait_for_samples(before + (kill % 2) as i64, &mut running);
        std::thread::sleep(moment);
        assert!(!running.has_ended(), "{}", running.said());
        running.kill();
        let outcome = running.finish();
        assert_eq!(outcome.signal, Some(9), "{outcome:#?}");
        let is_gone = || home.processes().is_empty();
        let all_gone = wait_until(Duration::from_secs(20), is_gone);
        assert!(all_gone, "kill {kill} after {moment:?}: {:#?}", home.describe_processes());
        // The kernel takes a namespace down a moment after its last process.
        let no_mounts = wait_until(Duration::from_secs(10), || mounts(&home).is_empty());
        assert!(no_mounts, "kill {kill} after {moment:?}: {:#?}", mounts(&home));
        let left = home.leftovers();
        assert_eq!(left, Vec::<std::path::PathBuf>::new(), "kill {kill} after {moment:?}");
        measured += i64::from(home.samples() > before);
    }
    assert!(measured > 0, "no kill came while it measured");
}
