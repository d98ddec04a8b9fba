//! Which CPUs the hosts have.

use super::site_error::SiteError;

/// Where this process may run.
pub fn allowed() -> Result<Vec<usize>, SiteError> {
    let allowed = rustix::thread::sched_getaffinity(None)
        .map_err(|error| SiteError::Failed(format!("which CPUs are allowed: {error}")))?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

/// The CPUs of W_test, and those of all else: the first half, and the second.
pub fn halves(cpus: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    if cpus.len() < 2 {
        return (cpus.clone(), cpus);
    }
    let (first, second) = cpus.split_at(cpus.len() / 2);
    (first.to_vec(), second.to_vec())
}
