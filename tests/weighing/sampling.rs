//! How samples are launched: what varies from one to the next, and what must not.

use std::collections::BTreeSet;

use crate::support::{Home, Turn};

/// The size of the environment moves the stack, and with it the time.
#[test]
fn every_launch_has_an_environment_of_another_size() {
    let _turn = Turn::share();
    let home = Home::new();
    let line = "echo ${#WEIGH_PADDING} >> sizes";
    let sizes = || -> Vec<usize> {
        let compare = ["compare", "none", "--pairs", "16", "--seed", "5", "--", "sh", "-c", line];
        home.measure(&compare);
        let text = std::fs::read_to_string(home.path("sizes")).unwrap();
        std::fs::remove_file(home.path("sizes")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    let sizes = [sizes(), sizes()];
    assert_eq!(sizes[0], sizes[1], "the seed draws them");
    let stored = home.query_text(
        "SELECT group_concat(padding_bytes, ' ') FROM
            (SELECT padding_bytes FROM sample ORDER BY number)",
    );
    assert_eq!(stored, sizes.concat().iter().map(usize::to_string).collect::<Vec<_>>().join(" "));
    let [sizes, _] = sizes;
    let different: BTreeSet<&usize> = sizes.iter().collect();
    assert_eq!(sizes.len(), 32);
    assert!(different.len() > 24 && sizes.iter().all(|&size| size < 4096), "{sizes:?}");
    assert!(sizes.iter().any(|&size| size >= 1024), "{sizes:?}");
}

/// Slices are what a pilot asks for. It would make the sizes of later pairs depend on the signs of the
/// first, and Wilcoxon's test assumes that they do not.
#[test]
fn only_without_a_fixed_number_of_pairs_do_the_first_choose_the_length() {
    let _turn = Turn::share();
    let home = Home::new();
    let piloted = |how: [&str; 2]| {
        let compare = ["compare", "none", "-w", "getppid", "--no-detail", how[0], how[1]];
        home.measure(&compare);
        let sliced = "SELECT CAST(count(*) AS TEXT) FROM sample WHERE sample LIKE '%slices_ns%'
            AND experiment = (SELECT id FROM experiment ORDER BY rowid DESC LIMIT 1)";
        home.query_text(sliced)
    };
    assert_ne!(piloted(["--budget", "4s"]), "0");
    assert_eq!(piloted(["--pairs", "10"]), "0");
}
