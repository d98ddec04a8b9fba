//! `--parameter-list` and `--parameter-scan` of `weigh versus`, with the meanings that hyperfine gave them:
//! each command becomes one command for each value.

use std::collections::BTreeMap;

use clap::{ArgAction, Args};

/// Each is an arm, which takes time and a line of the report.
const MOST_COMMANDS: usize = 100;

/// The heading of these options.
const PARAMETERS: &str = "Parameters";

/// Options that make several commands of one. clap takes `{n}` in a help text for a line break.
#[derive(Debug, Args)]
pub struct ParameterOptions {
    /// Make one command per value by replacing {VAR}. Commas separate the values: -L jobs 1,2 'make -j{jobs}'
    /// compares two commands. Several -L options give all combinations. --prepare, --setup, --cleanup and
    /// --command-name can have {VAR} too; `\,` is a comma within a value
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"], requires = "command")]
    #[arg(allow_hyphen_values = true, help_heading = PARAMETERS)]
    parameter_list: Vec<String>,
    /// Make one command per number from MIN to MAX. Each number replaces {VAR}. Example: -P jobs 1 8
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], requires = "command")]
    #[arg(allow_hyphen_values = true, action = ArgAction::Set, help_heading = PARAMETERS)]
    parameter_scan: Vec<String>,
    /// Step of --parameter-scan, such as 0.5 [default: 1; decimals need a step]
    #[arg(short = 'D', long, value_name = "DELTA", requires = "parameter_scan")]
    #[arg(help_heading = PARAMETERS, hide_short_help = true)]
    parameter_step_size: Option<String>,
}

/// A parameter with its values, in order.
#[derive(Debug, PartialEq)]
struct Parameter {
    name: String,
    values: Vec<String>,
}

/// Values of the parameters in one command, by name.
pub type Values = BTreeMap<String, String>;

/// One of the commands that a command with parameters becomes.
#[derive(Debug, PartialEq)]
pub struct Variant {
    /// Which command it was made of.
    pub of: usize,
    pub values: Values,
}

impl ParameterOptions {
    /// Returns true if there is any parameter.
    pub fn are_given(&self) -> bool {
        !self.parameter_list.is_empty() || !self.parameter_scan.is_empty()
    }

    /// Returns the variants of this many commands, each with every combination of the values: first all
    /// commands with the first combination, as hyperfine orders them.
    pub fn variants(&self, commands: usize, texts: &[&str]) -> Result<Vec<Variant>, String> {
        let parameters = self.parameters()?;
        for Parameter { name, .. } in &parameters {
            if !texts.iter().any(|text| text.contains(&place(name))) {
                return Err(format!(
                    "no command has the parameter {}: write it where its value belongs, or remove it",
                    place(name)
                ));
            }
        }
        let lengths = parameters.iter().map(|parameter| parameter.values.len());
        let count = lengths.fold(commands, usize::saturating_mul);
        if !parameters.is_empty() && count > MOST_COMMANDS {
            return Err(format!(
                "the parameters make {count} commands, and one experiment compares at most \
                 {MOST_COMMANDS}: give fewer values, or measure them in several experiments"
            ));
        }
        let mut combinations = vec![Values::new()];
        // The first parameter changes fastest.
        for Parameter { name, values } in &parameters {
            let with = |value: &String| {
                let one = (name.clone(), value.clone());
                let more = combinations.iter().cloned();
                more.map(move |mut known: Values| {
                    known.insert(one.0.clone(), one.1.clone());
                    known
                })
            };
            combinations = values.iter().flat_map(with).collect();
        }
        let variant = |values: &Values| {
            let values = values.clone();
            (0..commands).map(move |of| Variant { of, values: values.clone() })
        };
        Ok(combinations.iter().flat_map(variant).collect())
    }

    fn parameters(&self) -> Result<Vec<Parameter>, String> {
        let lists = self
            .parameter_list
            .chunks_exact(2)
            .map(|list| Parameter { name: list[0].clone(), values: split(&list[1]) });
        let mut parameters: Vec<Parameter> = lists.collect();
        if let [name, low, high] = &self.parameter_scan[..] {
            let values = scan(low, high, self.parameter_step_size.as_deref())
                .map_err(|problem| format!("--parameter-scan {name} {low} {high}: {problem}"))?;
            parameters.push(Parameter { name: name.clone(), values });
        }
        for (index, Parameter { name, .. }) in parameters.iter().enumerate() {
            if name.is_empty() {
                return Err("a parameter has no name; is a shell variable unset?".into());
            }
            if parameters[..index].iter().any(|other| other.name == *name) {
                return Err(format!(
                    "the parameter `{name}` is given twice: give all of its values to one --parameter-list"
                ));
            }
        }
        Ok(parameters)
    }
}

fn place(name: &str) -> String {
    format!("{{{name}}}")
}

/// The text with the values in their places; a value that looks like a place stays as it is.
pub fn filled(text: &str, values: &Values) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        filled += &rest[..at];
        rest = &rest[at..];
        let known = values.iter().find(|(name, _)| rest.starts_with(&place(name)));
        let (written, length) = match known {
            Some((name, value)) => (value.as_str(), place(name).len()),
            None => ("{", 1),
        };
        filled += written;
        rest = &rest[length..];
    }
    filled + rest
}

/// The parameters that a text has no place for, as ` (n = 1)`; empty if there is none.
pub fn besides(text: &str, values: &Values) -> String {
    let unused = values.iter().filter(|(name, _)| !text.contains(&place(name)));
    let unused: Vec<String> = unused.map(|(name, value)| format!("{name} = {value}")).collect();
    if unused.is_empty() { String::new() } else { format!(" ({})", unused.join(", ")) }
}

/// Splits at commas; a backslash makes a comma or a backslash part of a value.
fn split(list: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut rest = list.chars().peekable();
    while let Some(c) = rest.next() {
        let last = values.last_mut().expect("there is one from the beginning");
        match c {
            ',' => values.push(String::new()),
            '\\' if matches!(rest.peek(), Some(',' | '\\')) => last.extend(rest.next()),
            c => last.push(c),
        }
    }
    values
}

/// A number as it was written: 0.10 is 10 in steps of a hundredth.
#[derive(Clone, Copy)]
struct Decimal {
    units: i64,
    places: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        const MOST_PLACES: usize = 9;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = !fraction.is_empty() || !text.contains('.');
        let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit());
        let units = format!("{whole}{fraction}").parse().ok()?;
        (is_number && is_plain && fraction.len() <= MOST_PLACES)
            .then_some(Decimal { units, places: fraction.len() as u32 })
    }

    /// Returns the number of units if there are so many places.
    fn units(self, places: u32) -> Option<i64> {
        self.units.checked_mul(10_i64.checked_pow(places - self.places)?)
    }

    fn text(units: i64, places: u32) -> String {
        let scale = 10_u64.pow(places);
        let (size, sign) = (units.unsigned_abs(), if units < 0 { "-" } else { "" });
        match places {
            0 => format!("{sign}{size}"),
            _ => format!("{sign}{}.{:02$}", size / scale, size % scale, places as usize),
        }
    }
}

/// The numbers from `low` to `high`.
fn scan(low: &str, high: &str, step: Option<&str>) -> Result<Vec<String>, String> {
    let parse = |text: &str| {
        Decimal::parse(text).ok_or_else(|| format!("`{text}` is not a number, such as 4 or 0.5"))
    };
    let (from, to) = (parse(low)?, parse(high)?);
    if step.is_none() && from.places.max(to.places) > 0 {
        return Err("decimals need --parameter-step-size, such as -D 0.1".into());
    }
    let by = parse(step.unwrap_or("1"))?;
    let places = from.places.max(by.places);
    let compared = places.max(to.places);
    let units = |number: Decimal| {
        number.units(compared).ok_or_else(|| "its numbers are too large".to_owned())
    };
    let (from, to, by) = (units(from)?, units(to)?, units(by)?);
    if by <= 0 {
        return Err("the step must be more than 0".into());
    }
    if from > to {
        return Err("MIN must not be more than MAX".into());
    }
    let count = (i128::from(to) - i128::from(from)) / i128::from(by) + 1;
    if count > MOST_COMMANDS as i128 {
        return Err(format!(
            "it has {count} values, and one experiment compares at most \
                            {MOST_COMMANDS} commands: use a larger step"
        ));
    }
    let scale = 10_i64.pow(compared - places);
    Ok((0..count as i64)
        .map(|number| {
            let value = i128::from(from) + i128::from(number) * i128::from(by);
            Decimal::text(value as i64 / scale, places)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(lists: &[[&str; 2]], scan: &[&str], step: Option<&str>) -> ParameterOptions {
        ParameterOptions {
            parameter_list: lists.iter().flatten().map(|text| (*text).to_owned()).collect(),
            parameter_scan: scan.iter().map(|text| (*text).to_owned()).collect(),
            parameter_step_size: step.map(str::to_owned),
        }
    }

    fn values(low: &str, high: &str, step: Option<&str>) -> String {
        scan(low, high, step).map_or_else(|problem| problem, |values| values.join(" "))
    }

    #[test]
    fn a_scan_is_exact_and_ends_at_its_end() {
        for (low, high, step, expected) in [
            ("1", "4", None, "1 2 3 4"),
            ("-2", "3", Some("2"), "-2 0 2"),
            ("0.1", "0.4", Some("0.1"), "0.1 0.2 0.3 0.4"),
            ("0.3", "0.75", Some("0.2"), "0.3 0.5 0.7"),
            ("1", "2", Some("0.5"), "1.0 1.5 2.0"),
            ("-0.5", "0", Some("0.25"), "-0.50 -0.25 0.00"),
            ("7", "7", None, "7"),
        ] {
            assert_eq!(values(low, high, step), expected);
        }
        for (low, high, step, problem) in [
            ("0.1", "1", None, "decimals need --parameter-step-size"),
            ("2", "1", None, "MIN must not be more than MAX"),
            ("1", "2", Some("0"), "the step must be more than 0"),
            ("1", "2", Some("-1"), "the step must be more than 0"),
            ("a", "2", None, "`a` is not a number"),
            ("1.", "2", None, "`1.` is not a number"),
            ("1", "1e3", None, "`1e3` is not a number"),
            ("1", "101", None, "it has 101 values"),
            ("-9223372036854775808", "9223372036854775807", None, "it has 18446744073709551616"),
            ("9223372036854775807", "9223372036854775807", Some("0.5"), "too large"),
        ] {
            assert!(values(low, high, step).contains(problem), "{}", values(low, high, step));
        }
    }

    #[test]
    fn lists_give_all_combinations_and_the_first_changes_fastest() {
        let given = options(&[["a", "1,2"], ["b", "x,y"]], &[], None);
        let variants = given.variants(2, &["{a} {b}", "c"]).unwrap();
        let found: Vec<String> = variants
            .iter()
            .map(|variant| format!("{}{}", variant.of, filled("{a}{b}", &variant.values)))
            .collect();
        assert_eq!(found, ["01x", "11x", "02x", "12x", "01y", "11y", "02y", "12y"]);
        let none = options(&[], &[], None);
        assert_eq!(none.variants(3, &[]).unwrap().len(), 3);
        assert!(given.are_given() && !none.are_given());
    }

    #[test]
    fn what_no_command_uses_or_is_too_much_is_refused() {
        let refused = |lists: &[[&str; 2]], scan: &[&str], commands: usize| {
            options(lists, scan, None).variants(commands, &["{n} {m}"]).unwrap_err()
        };
        let unused = refused(&[["other", "1"]], &[], 1);
        assert!(unused.contains("no command has the parameter {other}"), "{unused}");
        let many = refused(&[["n", "1,2,3,4,5,6"]], &["m", "1", "10"], 2);
        assert!(many.starts_with("the parameters make 120 commands"), "{many}");
        assert_eq!(options(&[], &[], None).variants(101, &[]).unwrap().len(), 101);
        assert!(refused(&[["n", "1"], ["n", "2"]], &[], 1).contains("given twice"));
        assert!(refused(&[["", "1"]], &[], 1).contains("has no name"));
    }

    #[test]
    fn values_are_put_in_once() {
        let values = Values::from([("a".into(), "{b}".into()), ("b".into(), "2".into())]);
        assert_eq!(filled("x{a}{b} {c} {{b}} {", &values), "x{b}2 {c} {2} {");
        assert_eq!(filled("ü{b}ü", &values), "ü2ü");
        assert_eq!(besides("make {a}", &values), " (b = 2)");
        assert_eq!(besides("make {a}{b}", &values), "");
    }

    #[test]
    fn a_comma_can_be_part_of_a_value() {
        assert_eq!(split(r"a,b\,c,,\\,\d"), ["a", "b,c", "", r"\", r"\d"]);
    }
}
