//! `tests/quick`, what `make test` runs of the end-to-end tests: a name that is none would run nothing, and
//! pass.

use std::fs;
use std::path::Path;

#[test]
fn every_name_is_one_of_a_test() {
    let root = Path::new(env!("WORKSPACE")).join("tests");
    let of_tests = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let groups: Vec<_> = of_tests.filter(|group| group.join("main.rs").exists()).collect();
    let text_of = |file: &str| {
        let files = groups.iter().map(|group| group.join(format!("{file}.rs")));
        files.filter(|path| path.exists()).map(|path| fs::read_to_string(path).unwrap()).next()
    };
    let quick = fs::read_to_string(root.join("quick")).unwrap();
    let names = quick.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for name in names {
        let (file, test) = name.split_once("::").unwrap_or_else(|| panic!("{name}: no `file::`"));
        let text = text_of(file).unwrap_or_else(|| panic!("{name}: no file tests/*/{file}.rs"));
        let is_test = text.contains(&format!("#[test]\nfn {test}()")) || test.is_empty();
        assert!(is_test, "{name}: the file has no such test that is not ignored");
    }
}
