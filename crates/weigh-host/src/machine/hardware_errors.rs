//! Errors that the hardware has reported since the boot: of memory and of PCIe links. The count of SCSI
//! errors (`ioerr_cnt`) also has refused commands of healthy devices, so it is no sign.

use std::collections::BTreeMap;

use crate::machine::source::Source;

/// Number of errors by part, for the parts whose errors the kernel counts.
pub(super) fn hardware_errors(source: Source) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let mut add = |part: &str, count: Option<u64>| {
        let sum = counts.entry(part.to_owned()).or_insert(Some(0));
        *sum = sum.zip(count).map(|(sum, count)| sum.saturating_add(count));
    };
    for count in below(source, "/sys/devices/system/edac/mc", &["ce_count", "ue_count"]) {
        add("memory (ECC)", count.parse().ok());
    }
    const LINKS: [&str; 3] = ["aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"];
    for text in below(source, "/sys/bus/pci/devices", &LINKS) {
        // The last line is the total of those above it.
        let total = text.lines().rfind(|line| line.starts_with("TOTAL_"));
        add("PCIe", total.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()));
    }
    // A part with a count that is no number is not known to be without errors.
    counts.into_iter().filter_map(|(part, count)| Some((part, count?))).collect()
}

/// The texts of these files in each directory below another.
fn below<'a>(
    source: Source<'a>,
    directory: &'a str,
    files: &'a [&'a str],
) -> impl Iterator<Item = String> + 'a {
    source.names(directory).into_iter().flat_map(move |name| {
        let text = |file: &&str| source.text(&format!("{directory}/{name}/{file}"));
        files.iter().filter_map(text).collect::<Vec<String>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::source::tests::root_with;

    fn of(files: &[(&str, &str)]) -> Vec<(String, u64)> {
        let root = root_with(files);
        hardware_errors(Source::new(root.path())).into_iter().collect()
    }

    #[test]
    fn errors_are_summed_by_part_and_parts_without_a_count_are_left_out() {
        let memory = "/sys/devices/system/edac/mc";
        let link = "/sys/bus/pci/devices/0000:00:01.0";
        let found = of(&[
            (&format!("{memory}/mc0/ce_count"), "3\n"),
            (&format!("{memory}/mc0/ue_count"), "1\n"),
            (&format!("{memory}/mc1/ce_count"), "0\n"),
            (&format!("{link}/aer_dev_correctable"), "RxErr 2\nBadTLP 0\nTOTAL_ERR_COR 2\n"),
        ]);
        let expected = [("PCIe", 2), ("memory (ECC)", 4)];
        assert_eq!(found, expected.map(|(part, count)| (part.to_owned(), count)));
        assert_eq!(of(&[("/sys/block/vda/size", "1\n")]), []);
        let ce_count = format!("{memory}/mc0/ce_count");
        assert_eq!(of(&[(&ce_count, "0\n"), (&format!("{memory}/mc1/ce_count"), "soon\n")]), []);
    }
}
