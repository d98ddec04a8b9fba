//! What the benchmarks share: two programs in turns, tables, the machine, the launcher's role.

pub mod duel;
pub mod end;
pub mod hogs;
pub mod machine;
pub mod role;
pub mod table;

use std::path::PathBuf;

/// The `weigh` beside the benchmark: target/release/weigh.
///
/// # Panics
/// `weigh` is not built: cargo does not build the programs of another package.
pub fn program() -> PathBuf {
    let own = std::env::current_exe().expect("/proc is mounted");
    let weigh = own.ancestors().nth(2).expect("it is in target/PROFILE/deps").join("weigh");
    assert!(weigh.exists(), "{} is missing: cargo build --release", weigh.display());
    weigh
}
