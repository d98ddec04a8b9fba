//! A range of a number: an arm for each of a few numbers, and one line through them.

use crate::support::{Home, Turn};

#[test]
fn a_range_of_comparisons_has_a_slope_in_every_form_of_the_report() {
    let _turn = Turn::share();
    let home = Home::new();
    let words = "compare seccomp:compares=1..1000 -w getppid --pairs 12 --no-detail --html a.html \
                 --markdown a.md --name dose --json a.json";
    home.run(words).assert_says(&["Cost by dose", "Each further 1 of `compares`, from 1 to 1,000"]);
    let report = home.json();
    let curves = report["doses"].as_array().expect("doses");
    assert_eq!(curves.len(), 1, "{report:#}");
    let curve = &curves[0];
    assert_eq!(curve["treatment"], "seccomp:compares=N");
    assert_eq!((&curve["parameter"], &curve["unit"]), (&"compares".into(), &"ns".into()));
    let doses = curve["points"].as_array().unwrap().iter().map(|point| point["dose"].as_f64());
    assert_eq!(doses.collect::<Vec<_>>(), [1.0, 6.0, 32.0, 178.0, 1000.0].map(Some));
    let slope = |end: &str| curve["per_unit"][end].as_f64().unwrap();
    assert!(0.0 < slope("low") && slope("low") <= slope("added"), "{curve:#}");
    assert!(slope("added") <= slope("high"), "{curve:#}");
    for page in ["a.html", "a.md"] {
        let page = std::fs::read_to_string(home.path(page)).unwrap();
        assert!(page.contains("Cost by dose") && page.contains("compares=N"), "{page}");
    }
    let shown = home.succeed("export dose --json").json();
    assert_eq!(shown["doses"], report["doses"], "the same from the stored samples");
}

#[test]
fn a_range_that_is_none_is_refused_before_anything_is_measured() {
    let home = Home::new();
    home.run("compare seccomp:compares=9..2 -w getppid")
        .assert_error(&["compares=9..2: takes two whole numbers, the lower one first"]);
    home.run("compare landlock:layers=1..4,rules=1..4 -w getppid")
        .assert_error(&["has several ranges: write one"]);
    assert!(!home.database().exists());
}
