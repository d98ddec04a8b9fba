//! The sources of the workloads, embedded with what the build did with them: `weigh` is one file to copy, and
//! builds them again elsewhere.

/// Path and text of each file.
pub static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
/// The commands of `workloads/Makefile` for the dynamic build, one a line, with `{CC}`, `{CFLAGS}`,
/// `{LDFLAGS}` and `{OUT}` in place of what these variables have.
pub static RECIPE: &str = include_str!(concat!(env!("OUT_DIR"), "/recipe.txt"));
/// Version line of the compiler of the embedded build.
pub const COMPILER: &str = env!("WEIGH_WORKLOAD_COMPILER");
/// The flags that it was given.
pub const FLAGS: &str = env!("WEIGH_WORKLOAD_FLAGS");

/// Directory with the objects of the embedded workloads, for tests that link them again.
#[cfg(any(test, feature = "example"))]
pub const OBJECTS: &str = concat!(env!("OUT_DIR"), "/workloads");
