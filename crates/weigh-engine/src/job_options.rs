//! Options of what users do that nothing uses are refused: who gave one would take the numbers for those of
//! what it says.

use super::work::Work;
use weigh_host::machine::memory::memory_kib;
use weigh_model::workload::mix::{JobMix, JobPace, JobSizes};
use weigh_model::workload::mix_label::{COLD, MixLabel};
use weigh_treatment::Named;
use weigh_workload::catalogue::{JobFiles, Workload};

/// Property that an option requires of a mix.
enum Needs {
    Nothing,
    Files,
    Test(&'static str),
}

pub fn check_used(sizes: &JobSizes, works: &[Work], workloads: &[Workload]) -> Result<(), String> {
    let given = [
        ("--jobs", sizes.jobs.is_some(), Needs::Nothing),
        ("--period", sizes.period_ms.is_some(), Needs::Nothing),
        ("--think", matches!(sizes.pace, JobPace::Thinking(_)), Needs::Nothing),
        ("--rate", matches!(sizes.pace, JobPace::Arriving(_)), Needs::Nothing),
        ("--disk-dir", !sizes.disk_directories.is_empty(), Needs::Nothing),
        ("--beyond-cache", sizes.beyond_cache_pct.is_some(), Needs::Nothing),
        ("--block-size", sizes.block_kib.is_some(), Needs::Files),
        ("--file-size", sizes.file_kib.is_some(), Needs::Files),
        ("--pool-size", sizes.pool_kib.is_some(), Needs::Files),
        ("--disk-tree", sizes.disk_tree.is_some(), Needs::Test("disk_src")),
        ("--resident", sizes.resident_mib.is_some(), Needs::Test("resident")),
    ];
    for (option, _, needs) in given.into_iter().filter(|(_, is_given, _)| *is_given) {
        let is_used = |mix: &JobMix| match needs {
            Needs::Nothing => true,
            Needs::Files => has_test(mix, workloads, |test| test.files.is_some()),
            Needs::Test(name) => has_test(mix, workloads, |test| test.name == name),
        };
        if !works.iter().any(|work| matches!(work, Work::Load(load) if is_used(&load.mix))) {
            let of = match needs {
                Needs::Nothing => String::new(),
                Needs::Files => " with jobs on files, such as `load:disk`".into(),
                Needs::Test(name) => format!(" with the job `{name}`"),
            };
            return Err(format!(
                "{option} has no effect on these workloads: it applies to mixes (load:NAME){of}"
            ));
        }
    }
    Ok(())
}

/// Refuses `--disk-dir` with arms whose processes see other directories than those of this system.
pub fn check_disks(works: &[Work], treatments: &[Named]) -> Result<(), String> {
    let has_disks =
        |work: &Work| matches!(work, Work::Load(load) if !load.sizes.disk_directories.is_empty());
    if works.iter().any(has_disks) { check_all_here(treatments) } else { Ok(()) }
}

fn check_all_here(treatments: &[Named]) -> Result<(), String> {
    let is_elsewhere = |named: &&Named| named.treatment_kinds().any(|kind| kind.is_place);
    match treatments.iter().find(is_elsewhere) {
        None => Ok(()),
        Some(named) => Err(format!(
            "--disk-dir makes a directory on this system, but the processes of `{}` have another root file \
             system or run on another machine, where it is not: remove --disk-dir",
            named.label
        )),
    }
}

pub fn check_reads(mix: &JobMix, label: &MixLabel, workloads: &[Workload]) -> Result<(), String> {
    let name = &mix.name;
    if label.is_cold
        && !has_test(mix, workloads, |test| can_be_cold(workloads).any(|one| one == test.name))
    {
        return Err(format!(
            "--cold has no effect on the mix `{name}`: it applies to the jobs {}",
            can_be_cold(workloads).collect::<Vec<_>>().join(", ")
        ));
    }
    let is_common = |test: &Workload| test.files == Some(JobFiles::Common);
    if label.beyond_cache_pct.is_some() && !has_test(mix, workloads, is_common) {
        let those = workloads.iter().filter(|test| is_common(test) && !test.name.ends_with(COLD));
        return Err(format!(
            "--beyond-cache has no effect on the mix `{name}`: it applies to the jobs {}",
            those.map(|test| test.name.as_str()).collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(())
}

fn has_test(mix: &JobMix, workloads: &[Workload], is_one: impl Fn(&Workload) -> bool) -> bool {
    workloads.iter().any(|workload| mix.tests.contains_key(&workload.name) && is_one(workload))
}

/// The workloads of which there is one that begins with what it reads not in the page cache.
pub fn can_be_cold(workloads: &[Workload]) -> impl Iterator<Item = &str> {
    workloads.iter().filter_map(|workload| workload.name.strip_suffix(COLD))
}

/// So large a share of this machine's memory.
pub fn kib_of_memory(share_pct: f64) -> Result<u64, String> {
    let kib = memory_kib()
        .ok_or("--beyond-cache: cannot read the size of the memory from /proc/meminfo")?;
    Ok((kib as f64 * share_pct / 100.0).max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_of_this_system_is_not_for_an_arm_that_is_elsewhere() {
        let arms = |labels: &[&str]| -> Vec<Named> {
            labels.iter().map(|label| weigh_treatment::parse(label).unwrap()).collect()
        };
        assert_eq!(check_all_here(&arms(&["none", "seccomp+nice:5"])), Ok(()));
        for elsewhere in ["rootfs:/", "host:other", "vm", "rootfs:/::seccomp"] {
            let refused = check_all_here(&arms(&["none", elsewhere])).unwrap_err();
            assert!(refused.contains(&format!("`{elsewhere}`")), "{refused}");
        }
    }
}
