//! Memory: where it is, and whether it is there.

use crate::machine::check::CheckInput;
use weigh_model::finding::Finding;
use weigh_model::finding::Severity::{Good, Note, Warning};

pub(super) fn layout(seen: &CheckInput) -> Option<Finding> {
    let found = |severity, now, effect| Finding::new("Memory layout", severity, now, effect);
    Some(match seen.facts.aslr? {
        2 => found(Good, "random (ASLR is on)", "Effects of memory layout average out over the samples."),
        weaker => found(
            if weaker == 0 { Warning } else { Note },
            if weaker == 0 { "fixed (ASLR is off)" } else { "random except for the heap" },
            "All samples of an arm have the same memory layout, whose influence looks like an effect of the \
             treatment.",
        )
        .fix("Turn ASLR on: `sysctl kernel.randomize_va_space=2`."),
    })
}

pub(super) fn huge_pages(seen: &CheckInput) -> Option<Finding> {
    let mode = seen.facts.transparent_hugepages.as_deref()?;
    let found = |severity, effect| Finding::new("Huge pages", severity, mode, effect);
    Some(if mode == "always" {
        found(
            Note,
            "Whether a program gets huge pages depends on how fragmented memory is at that moment: \
             workloads that use much memory vary more.",
        )
        .fix(
            "Give huge pages only to programs that request them: `echo madvise > \
             /sys/kernel/mm/transparent_hugepage/enabled`.",
        )
    } else {
        found(Good, "No program gets huge pages by chance.")
    })
}

pub(super) fn swap(seen: &CheckInput) -> Option<Finding> {
    let total = seen.facts.swap_bytes?;
    let used = total.saturating_sub(seen.facts.swap_free_bytes.unwrap_or(total));
    let found = |severity, now: String, effect| Finding::new("Swap", severity, now, effect);
    Some(match (total, used) {
        (0, _) => found(Good, "none".into(), "No sample waits for memory to be swapped in."),
        (_, 0) => found(Good, "present, not in use".into(), "No sample waits for swap now."),
        _ => found(
            Note,
            format!("{} MiB in use", used.div_ceil(1 << 20)),
            "A sample that touches swapped memory waits for the disk.",
        )
        .fix("If enough memory is free, `swapoff -a && swapon -a` moves the swapped pages back into memory."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::check::tests::found;

    #[test]
    fn randomisation_must_stay_on() {
        let aslr = |mode| found(&[("/proc/sys/kernel/randomize_va_space", mode)], "Memory layout");
        let severities = ["0", "1", "2"].map(|mode| aslr(mode).unwrap().severity);
        assert_eq!(severities, [Warning, Note, Good]);
        assert!(aslr("0").unwrap().sentence().contains("kernel.randomize_va_space=2"));
    }

    #[test]
    fn huge_pages_and_swap_are_told() {
        let file = "/sys/kernel/mm/transparent_hugepage/enabled";
        let pages = |text| found(&[(file, text)], "Huge pages").unwrap().severity;
        assert_eq!(pages("[always] madvise never"), Note);
        assert_eq!(pages("always [madvise] never"), Good);
        let swap = |text| found(&[("/proc/meminfo", text)], "Swap").unwrap();
        assert_eq!(swap("SwapTotal: 0 kB\nSwapFree: 0 kB").now, "none");
        assert_eq!(swap("SwapTotal: 4096 kB\nSwapFree: 4096 kB").severity, Good);
        assert_eq!(swap("SwapTotal: 4096 kB\nSwapFree: 1024 kB").now, "3 MiB in use");
    }
}
