//! Names of lines in a rule file that are no rules: people hand rules on within scripts, templates and
//! pages.

/// Words that begin a line of a shell script. `auditctl` and others may have a path.
const OF_A_SHELL: &str = "auditctl augenrules sudo cat echo printf tee if then else elif fi for while do \
    done case esac function export set exit source return local rm cp mv mkdir chmod chown sed grep \
    service systemctl EOF";

const TEMPLATE: &str = "it has a template placeholder, such as `{{ … }}`: give weigh the rendered file, or \
    the output of `auditctl -l` on a host that has these rules";
const SHELL: &str = "it is a line of a shell script: give weigh the rules alone, or what `auditctl -l` \
    prints after the script";
const YAML: &str = "it is a line of YAML: give weigh the rule file that is generated from it, such as \
    /etc/audit/audit.rules";
const SETTING: &str = "it is a setting, as in auditd.conf, and not a rule";
const MARKUP: &str =
    "it is a line of HTML or XML: save the file of rules itself, not the page around it";
const JSON: &str = "it is a line of JSON: give weigh the rule file that is generated from it";
const SECTION: &str = "it is the head of a section, as in a unit of systemd, and not a rule: give weigh the \
    rule file";
const SECCOMP: &str = "this is a seccomp profile, not audit rules: `weigh compare seccomp:profile=FILE` \
    measures it";
const CONTAINER: &str = "this is a container's config.json, which has no audit rules: `weigh compare \
    seccomp:profile=FILE` measures its seccomp profile, if it has one";
const KUBERNETES: &str = "this is an object of Kubernetes, which has no audit rules: give weigh the rule \
    file of the node, such as /etc/audit/audit.rules";
const DASH: &str = "its first character is a long dash: write `-`, as `auditctl` does";
const TAB: &str =
    "it begins with a tab, which `auditctl` takes as a part of the first word: remove the tab";
const MARK: &str = "the file begins with a byte-order mark, which `auditctl` takes as a part of the first \
    word: save the file as UTF-8 without it";
const NO_RULE: &str = "it is not a rule";

/// Why a line cannot be read before a template has been filled in.
pub(crate) fn placeholder(text: &str) -> Option<&'static str> {
    ["{{", "{%", "<%", "${", "$("].iter().any(|mark| text.contains(mark)).then_some(TEMPLATE)
}

/// Names a file of another kind by its lines, if rules are taken for such files.
pub(crate) fn named_file<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> Option<&'static str> {
    let has = |mark: &str| lines.clone().any(|line| line.contains(mark));
    // A policy of minijail has a call and its condition in each line.
    let is_of_minijail = |line: &str| {
        let rule = line.split_once(": ").filter(|(name, _)| is_name(name)).map(|(_, rule)| rule);
        let values = ["1", "allow", "arg", "return ", "kill", "trap", "trace", "log"];
        line.starts_with("@include ")
            || line.starts_with("@frequency ")
            || rule.is_some_and(|rule| values.iter().any(|value| rule.starts_with(value)))
    };
    if has("SCMP_ACT_") || has("SystemCallFilter=") || lines.clone().all(is_of_minijail) {
        lines.clone().next().map(|_| SECCOMP)
    } else if has("\"ociVersion\"") {
        Some(CONTAINER)
    } else if has("apiVersion") && has("kind") {
        Some(KUBERNETES)
    } else {
        None
    }
}

/// Names a line that is neither a rule nor an option of `auditctl`.
pub(crate) fn described(text: &str) -> &'static str {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_of_yaml = first == "-" || first == "---" || (first.len() > 1 && first.ends_with(':'));
    let name = first.rsplit('/').next().unwrap_or_default();
    if let Some(template) = placeholder(text) {
        template
    } else if text.starts_with('\t') && described(text.trim_start()) == NO_RULE {
        TAB
    } else if text.starts_with('\u{feff}') {
        MARK
    } else if text.starts_with(['–', '—', '−']) {
        DASH
    } else if text.starts_with('<') {
        MARKUP
    } else if text.starts_with('[') && text.ends_with(']') && is_name(&text[1..text.len() - 1]) {
        SECTION
    } else if text.starts_with(['{', '[', '"', ']']) || text == "}" || text == "}," {
        JSON
    } else if is_of_yaml {
        YAML
    } else if OF_A_SHELL.split(' ').any(|word| word == name) || text.starts_with('$') {
        SHELL
    } else if text.split_once('=').is_some_and(|(name, _)| is_name(name.trim())) {
        SETTING
    } else {
        NO_RULE
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_that_are_no_rules_are_called_what_they_are() {
        for (text, said) in [
            ("{% for path in paths %}", TEMPLATE),
            ("-w {{ path }} -p wa -k x", TEMPLATE),
            ("{{{ bash_instantiate_variables('x') }}}", TEMPLATE),
            ("-w <%= @path %> -p wa", TEMPLATE),
            ("-b ${BACKLOG}", TEMPLATE),
            ("/sbin/auditctl -w /etc/passwd -p wa", SHELL),
            ("sudo auditctl -a always,exit -S open", SHELL),
            ("cat <<EOF >/etc/audit/rules.d/my.rules", SHELL),
            ("done", SHELL),
            ("$AUDITCTL -D", SHELL),
            ("\u{feff}-a always,exit -S getppid", MARK),
            ("---", YAML),
            ("- name: rules", YAML),
            ("audit_rules:", YAML),
            ("- -w /etc/passwd -p wa", YAML),
            ("log_file = /var/log/audit/audit.log", SETTING),
            ("<!DOCTYPE html>", MARKUP),
            ("\"rules\": [", JSON),
            ("[Service]", SECTION),
            ("[1, 2]", JSON),
            ("[", JSON),
            ("}", JSON),
            ("},", JSON),
            ("–w /etc/passwd -p wa", DASH),
            ("\t-w /etc/passwd -p wa", TAB),
            ("\techo done", SHELL),
            ("rubbish", NO_RULE),
            ("rub-bish = x", NO_RULE),
            ("= x", NO_RULE),
            ("", NO_RULE),
            (": x", NO_RULE),
        ] {
            assert_eq!(described(text), said, "{text}");
        }
        for text in ["-w /etc/passwd -p wa -k a", "-a always,exit -F path=/a$b -S open"] {
            assert_eq!(placeholder(text), None, "{text}");
        }
    }

    #[test]
    fn files_of_another_kind_are_called_what_they_are() {
        let object = "{\"apiVersion\":\"x/v1\",\"kind\":\"SeccompProfile\",\
            \"spec\":{\"defaultAction\":\"SCMP_ACT_LOG\"}}";
        for (text, said) in [
            ("{\n\"defaultAction\": \"SCMP_ACT_ERRNO\"\n}", Some(SECCOMP)),
            (object, Some(SECCOMP)),
            ("{\"ociVersion\":\"1.0.2\",\"linux\":{}}", Some(CONTAINER)),
            ("kind: SeccompProfile\nspec:\n  defaultAction: SCMP_ACT_LOG", Some(SECCOMP)),
            ("apiVersion: v1\nkind: Pod", Some(KUBERNETES)),
            ("[Service]\nSystemCallFilter=@system-service", Some(SECCOMP)),
            ("@include /x\nread: 1\nioctl: arg1 == 0x5401\nopen: return ENOENT", Some(SECCOMP)),
            ("read: 1\n- name: x", None),
            ("-D\n-e 1", None),
            ("", None),
        ] {
            assert_eq!(named_file(text.lines()), said, "{text}");
        }
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in "[\\t\\PC]{0,60}") {
            let _ = (described(&text), placeholder(&text), named_file(text.lines()));
        }
    }
}
