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

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in "[\\t\\PC]{0,60}") {
            let _ = (described(&text), placeholder(&text));
        }
    }
}
