//! The documentation of the JSON of rules (`docs/json.md`) is complete.

use std::collections::BTreeSet;

use serde_json::Value;

use super::sample;
use crate::formats::json::document;

#[test]
fn the_documentation_describes_every_field() {
    fn fields(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| {
                found.insert(key.clone());
                // What a machine knows of itself differs from one to the next.
                if key != "machine" {
                    fields(value, found);
                }
            }),
            Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
            _ => {}
        }
    }
    let text = document(&sample::nginx()).expect("a report is JSON");
    let mut found = BTreeSet::new();
    fields(&serde_json::from_str(&text).expect("and back"), &mut found);
    assert!(found.len() > 40, "{found:?}");
    let document = include_str!("../../../../docs/json.md");
    let (_, document) = document.split_once("# The JSON of `weigh rules`").expect("a chapter");
    for field in found {
        assert!(document.contains(&format!("| `{field}` ")), "`{field}` is not described");
    }
}
