//! Parts that several benchmarks use: two programs in turns, tables, the machine, the launcher's role, a
//! command of known length.

pub mod duel;
pub mod end;
pub mod hogs;
pub mod machine;
pub mod role;
pub mod spin;
pub mod table;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `weigh` of this tree, target/release/weigh: built first, so that no benchmark measures an older one.
///
/// # Panics
/// It does not build.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        // cargo builds no programs of another package, and tells its own path to what it runs.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--locked", "--release", "--quiet", "-p", "weigh", "--bin", "weigh"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(
            built.is_ok_and(|status| status.success()),
            "`cargo build --release -p weigh` failed"
        );
        let own = std::env::current_exe().expect("/proc is mounted");
        own.ancestors().nth(2).expect("it is in target/release/deps").join("weigh")
    })
}
