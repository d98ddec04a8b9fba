//! The machine's facts as keys and values, read from their JSON: a new fact shows up by itself.

use serde::Serialize;
use serde_json::Value;

use crate::facts::Facts;
use crate::format;

/// Facts that change by themselves, and so explain nothing.
const RESTLESS: [&str; 11] = [
    "interactive users",
    "scratch free",
    "uptime",
    "load 1min",
    "psi cpu avg10",
    "steal ticks",
    "thermal throttles",
    "swap free",
    "worth knowing.CPU heat",
    "worth knowing.Clock corrections",
    "worth knowing.Swap",
];

/// Every fact that is known, nested ones with a dotted key.
pub fn facts(machine: &Facts) -> Vec<(String, String)> {
    let mut found = Vec::new();
    // Facts hold nothing that JSON cannot: were that to change, the table would only be empty.
    let value = serde_json::to_value(machine).unwrap_or(Value::Null);
    flatten("", &value, &mut found);
    found
}

/// The machine in one line: the facts that a reader asks for first.
pub fn line(machine: &Facts) -> String {
    let known = facts(machine);
    // A count or a size of zero is one that could not be read.
    let unread = |value: &str| matches!(value, "0" | "0 B");
    let fact = |name: &str| {
        let found = known.iter().find(|(key, value)| key == name && !unread(value));
        found.map(|(_, value)| value)
    };
    let shown = [
        fact("hostname").cloned(),
        fact("cpu model").cloned(),
        (machine.cpus_online > 0).then(|| machine.cpu_share.of_online(machine.cpus_online)),
        fact("memory").cloned(),
        fact("hypervisor").map(|name| format!("virtual ({name})")),
        fact("kernel").map(|release| format!("Linux {release}")),
        fact("distribution").cloned(),
    ];
    shown.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A fact of the machine; an empty text is one that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactChange {
    pub fact: String,
    pub before: String,
    pub after: String,
}

/// Lists the facts that differ between two machines, or on one machine at two times.
pub fn machine_changes(before: &Facts, after: &Facts) -> Vec<FactChange> {
    let (before, after) = (facts(before), facts(after));
    let value = |facts: &[(String, String)], name: &str| {
        facts
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()
    };
    let added = after.iter().filter(|(key, _)| before.iter().all(|(known, _)| known != key));
    let names = before.iter().chain(added).map(|(key, _)| key.as_str());
    names
        .filter(|name| !RESTLESS.contains(name))
        .map(|name| FactChange {
            fact: name.to_owned(),
            before: value(&before, name),
            after: value(&after, name),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

fn flatten(key: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let (name, value) = with_unit(name, value);
                let name = name.replace('_', " ");
                let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                flatten(&key, &value, found);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            push(key, &items.join(", "), found);
        }
        _ => push(key, &text(value), found),
    }
}

/// A unit at the end of a name becomes part of the value: `memory_bytes`, `uptime_s`.
fn with_unit<'a>(name: &'a str, value: &Value) -> (&'a str, Value) {
    let Some(number) = value.as_f64() else {
        return (name, value.clone());
    };
    if let Some(name) = name.strip_suffix("_bytes_per_s") {
        (name, format!("{}/s", format::bytes(number)).into())
    } else if let Some(name) = name.strip_suffix("_per_s") {
        (name, format!("{} a second", format::integer(number.round() as u64)).into())
    } else if let Some(name) = name.strip_suffix("_bytes") {
        (name, format::bytes(number).into())
    } else if let Some(name) = name.strip_suffix("_s") {
        (name, format::seconds(number).into())
    } else {
        (name, value.clone())
    }
}

fn push(key: &str, value: &str, found: &mut Vec<(String, String)>) {
    if !value.is_empty() {
        found.push((format::label(key), format::label(value)));
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_facts_are_flat_and_unknown_ones_are_left_out() {
        let value = json!({
            "hostname": "vm", "lsm": ["lockdown", "apparmor"], "smt": false,
            "cpu": {"model_name": "x", "count": 2}, "governor": null, "note": "",
            "memory_bytes": 4_294_967_296_u64, "uptime_s": 75.0,
            "disk": {"read_bytes_per_s": 4_294_967_296.0, "random_reads_per_s": 49_272.6}
        });
        let mut found = Vec::new();
        flatten("", &value, &mut found);
        found.sort();
        let expected = [
            ("cpu.count", "2"),
            ("cpu.model name", "x"),
            ("disk.random reads", "49,273 a second"),
            ("disk.read", "4.00 GiB/s"),
            ("hostname", "vm"),
            ("lsm", "lockdown, apparmor"),
            ("memory", "4.00 GiB"),
            ("smt", "no"),
            ("uptime", "1 min 15 s"),
        ];
        let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(found, expected);
    }
}
