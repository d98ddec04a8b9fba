//! Policies of minijail (minijail0(5)), as the profile of an OCI runtime that does the same.
//!
//! A policy has a line per call. What weigh does not read is refused by its name, because a filter
//! without it would cost less.

use serde_json::{Value, json};

/// Errors that policies return by name.
const ERRORS: [(&str, i32); 8] = [
    ("EPERM", libc::EPERM),
    ("ENOENT", libc::ENOENT),
    ("EBADF", libc::EBADF),
    ("EACCES", libc::EACCES),
    ("EINVAL", libc::EINVAL),
    ("ENOTTY", libc::ENOTTY),
    ("ENOSYS", libc::ENOSYS),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
];
const COMPARISONS: [(&str, &str); 6] = [
    ("==", "SCMP_CMP_EQ"),
    ("!=", "SCMP_CMP_NE"),
    ("<=", "SCMP_CMP_LE"),
    (">=", "SCMP_CMP_GE"),
    ("<", "SCMP_CMP_LT"),
    (">", "SCMP_CMP_GT"),
];

/// Returns the profile. Other calls kill the process, unless the policy has a `@default`.
///
/// # Errors
/// The line, and the part of it that is not read.
pub fn as_oci(text: &str) -> Result<Value, String> {
    let mut default = action("kill-process").expect("it is an action");
    let mut rules = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let on_line =
            |problem: String| format!("line {} of this policy of minijail: {problem}", at + 1);
        match line.strip_prefix("@default ") {
            Some(word) => {
                default = action(word.trim()).ok_or_else(|| on_line(unread(word)))?;
            }
            None => rules.extend(of_line(line).map_err(on_line)?),
        }
    }
    let Value::Object(mut profile) = json!({"syscalls": rules}) else { unreachable!("an object") };
    profile.insert("defaultAction".into(), default[0].clone());
    profile.insert("defaultErrnoRet".into(), default[1].clone());
    Ok(Value::Object(profile))
}

fn unread(what: &str) -> String {
    format!("weigh does not read `{}`", what.trim())
}

/// The rules of `NAME: ACTION`; one for each alternative of a condition.
fn of_line(line: &str) -> Result<Vec<Value>, String> {
    let (name, rule) = line.split_once(':').ok_or_else(|| unread(line))?;
    let (name, rule) = (name.trim(), rule.trim());
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(unread(name));
    }
    if let Some([action, errno]) = action(rule) {
        return Ok(vec![json!({"names": [name], "action": action, "errnoRet": errno})]);
    }
    let alternative = |all: &str| {
        let arguments: Vec<Value> = all.split("&&").map(argument).collect::<Result<_, _>>()?;
        Ok(json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": arguments}))
    };
    rule.split("||").map(alternative).collect()
}

/// An action with its error number, if it has one.
fn action(word: &str) -> Option<[Value; 2]> {
    let plain = |name: &str| Some([json!(name), Value::Null]);
    match word {
        "1" | "allow" => plain("SCMP_ACT_ALLOW"),
        "kill" | "kill-thread" => plain("SCMP_ACT_KILL_THREAD"),
        "kill-process" => plain("SCMP_ACT_KILL_PROCESS"),
        "trap" => plain("SCMP_ACT_TRAP"),
        "log" => plain("SCMP_ACT_LOG"),
        _ => {
            let error = word.strip_prefix("return ")?.trim();
            let known = ERRORS.iter().find(|(name, _)| *name == error);
            let number = known.map(|(_, number)| *number as u64).or_else(|| decimal(error));
            let number = number.filter(|number| (1..4096).contains(number))?;
            Some([json!("SCMP_ACT_ERRNO"), json!(number)])
        }
    }
}

/// A decimal number. minijail reads one that begins with 0 as octal, so that is refused.
fn decimal(text: &str) -> Option<u64> {
    let is_octal = text.len() > 1 && text.starts_with('0');
    text.parse().ok().filter(|_| !is_octal)
}

/// `argN OPERATOR NUMBER`
fn argument(text: &str) -> Result<Value, String> {
    let read = || {
        let rest = text.trim().strip_prefix("arg")?;
        let (word, op) = COMPARISONS.iter().find(|(word, _)| rest.contains(word))?;
        let (index, value) = rest.split_once(word)?;
        let index: u32 = index.trim().parse().ok().filter(|index| *index < 6)?;
        let value = value.trim();
        let number = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => decimal(value)?,
        };
        Some(json!({"index": index, "value": number, "op": op}))
    };
    read().ok_or_else(|| unread(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_rule_and_each_alternative_one_of_its_own() {
        let policy =
            "# c\nread: 1\nopenat: return ENOENT\nioctl: arg1 == 0x10 && arg0 < 3 || arg1 != 2\n";
        let profile = as_oci(policy).unwrap();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_KILL_PROCESS");
        let rules = profile["syscalls"].as_array().unwrap();
        assert_eq!(rules.len(), 4);
        assert_eq!(rules[1]["errnoRet"], libc::ENOENT);
        assert_eq!(rules[2]["args"][0], json!({"index": 1, "value": 16, "op": "SCMP_CMP_EQ"}));
        assert_eq!(rules[2]["args"][1]["op"], "SCMP_CMP_LT");
        assert_eq!(rules[3]["args"].as_array().unwrap().len(), 1);
        let with_default = as_oci("@default return 38\nread: allow\n").unwrap();
        assert_eq!(with_default["defaultErrnoRet"], 38);
    }

    #[test]
    fn what_is_not_read_is_named_with_its_line() {
        for (policy, said) in [
            ("read: 1\n@include /usr/share/x\n", "line 2 of this policy of minijail"),
            ("prctl: arg0 == PR_SET_NAME\n", "does not read `arg0 == PR_SET_NAME`"),
            ("ioctl: arg1 == 1; return EPERM\n", "does not read `arg1 == 1; return EPERM`"),
            ("mmap: arg2 in 0x3\n", "does not read `arg2 in 0x3`"),
            ("open[arch=x86_64]: 1\n", "does not read `open[arch=x86_64]`"),
            ("read: trace\n", "does not read `trace`"),
            ("read: return EWHAT\n", "does not read `return EWHAT`"),
            ("read: arg6 == 1\n", "does not read `arg6 == 1`"),
            ("read: arg1 == 010\n", "does not read `arg1 == 010`"),
            ("read: return 010\n", "does not read `return 010`"),
        ] {
            let problem = as_oci(policy).unwrap_err();
            assert!(problem.contains(said), "{policy}: {problem}");
        }
    }
}
