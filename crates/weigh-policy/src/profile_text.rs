//! Finds the profile in a file: people have it alone, within the configuration of a container's runtime, or
//! as an object of Kubernetes. Other forms are named as what they are.

use super::minijail;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// Keys that tell the forms apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    default_action: Option<IgnoredAny>,
    linux: Option<IgnoredAny>,
    kind: Option<String>,
    spec: Option<IgnoredAny>,
}

/// `config.json` of the OCI runtime specification.
#[derive(Deserialize)]
struct RuntimeConfig<P> {
    linux: LinuxConfig<P>,
}

#[derive(Deserialize)]
struct LinuxConfig<P> {
    seccomp: Option<P>,
}

/// An object of Kubernetes' security profiles operator.
#[derive(Deserialize)]
struct SeccompProfileObject<P> {
    spec: P,
}

const SEE_POD: &str = "not a profile: copy the profile that its `localhostProfile` names from \
    /var/lib/kubelet/seccomp on the node";
const PROFILE_AS_JSON: &str =
    "a profile in the OCI's JSON, as `docker run --security-opt seccomp=FILE` takes it";

/// Reads the profile, and what the report says of the rest of the file.
///
/// # Errors
/// A sentence that says what the file is instead, or what is wrong in it.
pub fn profile<P: DeserializeOwned>(text: &str) -> Result<(P, &'static str), String> {
    if is_policy(text) {
        let profile = serde_json::from_value(minijail::as_oci(text)?);
        return profile
            .map(|profile| (profile, "a policy of minijail: "))
            .map_err(|error| broken(&error));
    }
    let head: Head = serde_json::from_str(text).map_err(|error| match of_text(text) {
        Some(what) => what,
        None => broken(&error),
    })?;
    match head {
        Head { default_action: None, linux: Some(_), .. } => {
            let config: RuntimeConfig<P> = parsed(text)?;
            let profile = config.linux.seccomp.ok_or(
                "this config.json has no linux.seccomp, so its container runs without a filter",
            )?;
            Ok((profile, "only linux.seccomp of this config.json is used: "))
        }
        Head { default_action: None, kind: Some(kind), spec, .. } => match kind.as_str() {
            "SeccompProfile" if spec.is_some() => {
                let object: SeccompProfileObject<P> = parsed(text)?;
                Ok((object.spec, "spec of a SeccompProfile: "))
            }
            _ => Err(format!("this is an object of Kubernetes of the kind {kind:?}, {SEE_POD}")),
        },
        _ => Ok((parsed(text)?, "")),
    }
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| broken(&error))
}

fn broken(error: &serde_json::Error) -> String {
    format!("{error}; is this a seccomp profile?")
}

/// Lines with content.
fn lines(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns true for a policy of minijail: each line is a rule of it.
fn is_policy(text: &str) -> bool {
    let mut lines = lines(text).peekable();
    lines.peek().is_some() && lines.all(is_of_minijail)
}

/// Names a text that is not JSON.
fn of_text(text: &str) -> Option<String> {
    let mut lines = lines(text).peekable();
    lines.peek()?;
    let is_json = lines.peek().is_some_and(|line| line.starts_with('{'));
    let has = |beginning: &str| lines.clone().any(|line| line.starts_with(beginning));
    if is_json {
        None
    } else if has("-w ") || has("-a ") || has("auditctl ") {
        Some("these are audit rules, not a seccomp profile: audit:rules=FILE measures them".into())
    } else if has("apiVersion:") && has("kind: SeccompProfile") {
        Some(
            "this is a SeccompProfile as YAML, which weigh does not read: save it with `kubectl get \
             seccompprofile NAME -o json`"
                .into(),
        )
    } else if has("apiVersion:") {
        Some(format!("this is Kubernetes YAML, {SEE_POD}"))
    } else if has("SystemCallFilter=") {
        Some(format!(
            "this is a unit of systemd, whose SystemCallFilter= weigh does not read: write \
             {PROFILE_AS_JSON}"
        ))
    } else {
        Some(format!("this is not JSON, so it is not a seccomp profile: give {PROFILE_AS_JSON}"))
    }
}

/// `read: 1`, `ioctl: arg1 == 0x5401`, `@include /path`
fn is_of_minijail(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.split('[').next().unwrap_or_default().trim();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_rule = |rule: &str| {
        let words = ["1", "allow", "arg", "return", "kill", "trap", "trace", "log", "user-notify"];
        words.iter().any(|word| rule.trim_start_matches([' ', '{']).starts_with(word))
    };
    line.starts_with("@include ")
        || line.starts_with("@default ")
        || line.starts_with("@frequency ")
        || line.split_once(':').is_some_and(|(name, rule)| is_name(name) && is_rule(rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Simple {
        default_action: String,
    }

    const PROFILE: &str = r#"{"defaultAction":"A"}"#;

    fn read(text: &str) -> Result<(String, &'static str), String> {
        profile::<Simple>(text).map(|(profile, rest)| (profile.default_action, rest))
    }

    #[test]
    fn a_profile_is_found_where_people_have_it() {
        assert_eq!(read(PROFILE), Ok(("A".into(), "")));
        let config = format!(
            r#"{{"ociVersion":"1.0.2","process":{{}},"linux":{{"namespaces":[],"seccomp":{PROFILE}}}}}"#
        );
        let (action, rest) = read(&config).unwrap();
        assert!(action == "A" && rest.contains("only linux.seccomp of this"), "{rest}");
        let object = format!(
            r#"{{"apiVersion":"security-profiles-operator.x-k8s.io/v1beta1","kind":"SeccompProfile",
                "metadata":{{"name":"x"}},"spec":{PROFILE}}}"#
        );
        assert_eq!(read(&object).unwrap().0, "A");
        let (action, rest) = read("# c\nread: 1\nioctl: arg1 == 0x5401 || arg1 == 2\n").unwrap();
        assert_eq!((&*action, rest), ("SCMP_ACT_KILL_PROCESS", "a policy of minijail: "));
    }

    #[test]
    fn what_is_not_read_is_named() {
        for (text, said) in [
            (r#"{"ociVersion":"1.0.2","linux":{}}"#, "this config.json has no linux.seccomp"),
            (r#"{"apiVersion":"v1","kind":"Pod","spec":{}}"#, "of the kind \"Pod\", not a profile"),
            ("apiVersion: v1\nkind: Pod\nspec:\n", "this is Kubernetes YAML"),
            (
                "---\napiVersion: x/v1\nkind: SeccompProfile\nspec:\n  defaultAction: A\n",
                "this is a SeccompProfile as YAML",
            ),
            ("@include /usr/share/policy/x\nopen[arch=x86_64]: return ENOENT\n", "of minijail"),
            ("[Service]\nSystemCallFilter=@system-service\n", "this is a unit of systemd"),
            ("{\n\"defaultAction\": }", "line 2"),
            ("# x\n-w /etc/passwd -p wa\n", "these are audit rules, not a seccomp profile"),
            ("#!/bin/sh\nauditctl -a always,exit -S open\n", "these are audit rules"),
            ("- name: x\n", "this is not JSON"),
            ("hello\n", "give a profile in the OCI's JSON"),
            ("", "is this a seccomp profile?"),
            ("{}", "missing field `defaultAction`"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(said), "{text}: {problem}");
        }
    }
}
