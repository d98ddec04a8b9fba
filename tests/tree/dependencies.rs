//! The licences and sources of all dependencies are those that `deny.toml` allows. `cargo deny check`, which
//! takes minutes to compile and advisories from the network, is a part of `make check-hard`; this needs
//! neither.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn deny() -> toml::Table {
    let path = Path::new(env!("WORKSPACE")).join("deny.toml");
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn allowed(section: &str, list: &str) -> Vec<String> {
    let found = deny()[section][list].as_array().unwrap().clone();
    found.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("WORKSPACE"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Returns true if the expression allows a choice of allowed licences only. It is an SPDX
/// expression of OR, AND and parentheses, or two names with a stroke between them, the old form.
/// AND binds closer.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_allowed = all_of(words, allowed);
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        // Both sides are read, whatever the first one is.
        is_allowed |= all_of(words, allowed);
    }
    is_allowed
}

fn all_of(words: &mut &[&str], allowed: &[String]) -> bool {
    let mut is_allowed = one(words, allowed);
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        is_allowed &= one(words, allowed);
    }
    is_allowed
}

fn one(words: &mut &[&str], allowed: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    *words = rest;
    if *first == "(" {
        let is_allowed = any_of(words, allowed);
        let is_closed = words.first() == Some(&")");
        *words = words.get(1..).unwrap_or_default();
        return is_allowed && is_closed;
    }
    let mut name = (*first).to_owned();
    if words.first() == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(1).unwrap_or(&""));
        *words = words.get(2..).unwrap_or_default();
    }
    allowed.contains(&name)
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let allowed = allowed("licenses", "allow");
    let packages = packages();
    assert!(packages.len() > 50, "{}", packages.len());
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        let name = &package["name"];
        assert!(is_allowed(licence, &allowed), "{name}: `{licence}` is not in deny.toml");
    }
}

#[test]
fn every_source_is_one_that_is_allowed() {
    let registries = allowed("sources", "allow-registry");
    for package in packages() {
        // The packages of this workspace have none.
        let Some(source) = package["source"].as_str() else {
            let manifest = Path::new(package["manifest_path"].as_str().unwrap());
            assert!(manifest.starts_with(env!("WORKSPACE")), "{}", package["name"]);
            continue;
        };
        let registry = source.strip_prefix("registry+").unwrap_or(source);
        assert!(registries.iter().any(|known| known == registry), "{}: {source}", package["name"]);
    }
}

#[test]
fn a_licence_has_to_be_one_of_them() {
    let allowed = ["MIT".to_owned(), "Apache-2.0".to_owned(), "Unicode-3.0".to_owned()];
    for good in [
        "MIT",
        "Unlicense OR MIT",
        "GPL-3.0/MIT",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR MIT",
    ] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "GPL-3.0 OR (MIT AND LGPL-3.0)",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT",
        "MIT Apache-2.0",
    ] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}
