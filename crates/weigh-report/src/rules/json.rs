//! The documented JSON (`docs/json.md`): the [`RuleReport`] as it is.

use weigh_model::result::rules::RuleReport;

/// The whole document, indented, with a newline at its end; what is no finite number is a `null`.
///
/// # Errors
/// None today; as for the other formats.
pub fn write(r: &RuleReport) -> Result<String, String> {
    let text = serde_json::to_string_pretty(r).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::sample;
    use super::*;

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
        let text = write(&sample::nginx()).expect("a report is JSON");
        let mut found = BTreeSet::new();
        fields(&serde_json::from_str(&text).expect("and back"), &mut found);
        assert!(found.len() > 40, "{found:?}");
        let document = include_str!("../../../../docs/json.md");
        let (_, document) = document.split_once("# The JSON of `weigh rules`").expect("a chapter");
        for field in found {
            assert!(document.contains(&format!("| `{field}` ")), "`{field}` is not described");
        }
    }

    #[test]
    fn numbers_that_are_none_are_null() {
        let text = write(&sample::hostile()).expect("a report is JSON");
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
