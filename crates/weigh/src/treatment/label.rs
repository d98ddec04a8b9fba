//! `NAME[:PARAMETER[=VALUE],…]`, as treatments are written on the command line.

use super::Parameter;

/// The parameters of one treatment, in the order written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, Option<String>)>);

impl Parameters {
    /// The value of `name=…`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name)?.1.as_deref()
    }

    /// Whether the bare word was written.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// The value of `name=…` as a whole number within the range.
    ///
    /// # Errors
    /// A sentence with what was written and what is allowed.
    pub fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, String> {
        let Some(text) = self.value(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(format!(
                "{name}={text}: takes a whole number from {} to {}",
                range.start(),
                range.end()
            )),
        }
    }

    /// Refuses what the kind does not know.
    ///
    /// # Errors
    /// A sentence that lists what it does know.
    pub fn check(&self, kind: &str, known: &[Parameter]) -> Result<(), String> {
        for (name, value) in &self.0 {
            let form = if value.is_some() { format!("{name}=") } else { name.clone() };
            let is_known = known.iter().any(|parameter| match parameter.form.split_once('=') {
                Some((head, _)) => form.strip_suffix('=') == Some(head),
                None => form == parameter.form,
            });
            if !is_known {
                let forms: Vec<&str> = known.iter().map(|parameter| parameter.form).collect();
                let takes = if forms.is_empty() { "nothing".into() } else { forms.join(", ") };
                return Err(format!("`{kind}` does not take `{form}`; it takes {takes}"));
            }
        }
        Ok(())
    }
}

/// Splits a label into its name and parameters.
///
/// # Errors
/// A sentence that names the empty or repeated part.
pub fn split(text: &str) -> Result<(&str, Parameters), String> {
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let mut parameters: Vec<(String, Option<String>)> = Vec::new();
    for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
        let (key, value) =
            part.split_once('=').map_or((part, None), |(key, value)| (key, Some(value.to_owned())));
        if key.is_empty() || value.as_deref() == Some("") {
            return Err(format!("`{text}`: a parameter or its value is empty"));
        }
        if parameters.iter().any(|(other, _)| other == key) {
            return Err(format!("`{text}`: `{key}` is given twice"));
        }
        parameters.push((key.to_owned(), value));
    }
    Ok((name, Parameters(parameters)))
}

/// The same label with some of its parameters replaced by one.
pub fn replace(label: &str, names: &[&str], with: &str) -> String {
    let (name, parameters) = label.split_once(':').unwrap_or((label, ""));
    let is_kept = |part: &&str| {
        let key = part.split_once('=').map_or(*part, |(key, _)| key);
        !part.is_empty() && !names.contains(&key)
    };
    let kept: Vec<&str> = parameters.split(',').filter(is_kept).chain([with]).collect();
    format!("{name}:{}", kept.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: &[Parameter] =
        &[Parameter { form: "backlog=N", help: "" }, Parameter { form: "residual", help: "" }];

    #[test]
    fn parameters_have_values_or_are_bare_words() {
        let (name, parameters) = split("audit:backlog=64,residual").unwrap();
        assert_eq!(name, "audit");
        assert_eq!(parameters.number("backlog", 1..=100), Ok(Some(64)));
        assert!(parameters.has("residual"));
        assert!(parameters.check("audit", KNOWN).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(split("audit:").unwrap_err().contains("empty"));
        assert!(split("audit:a=1,a=2").unwrap_err().contains("twice"));
        let (_, parameters) = split("audit:backlog=many,residual=1").unwrap();
        assert!(parameters.number("backlog", 1..=9).unwrap_err().contains("from 1 to 9"));
        assert!(parameters.check("audit", KNOWN).unwrap_err().contains("`residual=`"));
    }

    #[test]
    fn of_several_parameters_one_is_made_and_the_others_stay() {
        assert_eq!(replace("audit", &["sink", "flush"], "sink=none"), "audit:sink=none");
        assert_eq!(
            replace(
                "audit:rules=a.rules,sink=auditd,flush=sync,backlog=64",
                &["sink", "flush"],
                "sink=none"
            ),
            "audit:rules=a.rules,backlog=64,sink=none"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_split_or_refused(text in "\\PC{0,60}") {
            let _ = split(&text);
        }
    }
}
