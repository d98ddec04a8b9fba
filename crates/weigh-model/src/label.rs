//! The one grammar of what is named on the command line, of arms and of workloads; docs/labels.md has it.
//!
//! ```text
//! arm       = { place "::" } treatment { "+" treatment }
//! place     = name [ ":" parameter { "," parameter } ]
//! treatment = name [ ":" parameter { "," parameter } ]
//! parameter = key [ "=" value ]
//! workload  = name [ ":" axis "=" value { "," axis "=" value } ]
//! ```
//!
//! A label is parsed to data and printed back in one canonical form. What it names is for others to know.

use std::fmt::Write as _;

use crate::printable;

/// The axes that a workload's load can be on: how many copies of it there are, how many users of a mix, and
/// how many bytes a cell of a grid writes at a time.
pub const AXES: [&str; 3] = ["copies", "users", "bytes"];

/// Characters that end a name or a key.
const DELIMITERS: [char; 5] = [':', ',', '+', '=', '"'];

/// A name and what is said of it: a place, a treatment, or a workload with its loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    pub name: String,
    pub parameters: Parameters,
}

/// An arm: treatments at a place, the innermost place last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmLabel {
    pub places: Vec<Term>,
    pub treatments: Vec<Term>,
}

/// Parameters in the order written, none of them twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, Option<String>)>);

/// Where a label cannot be read, and what to do about it. It is shown beneath, with a mark at the character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{}", pointer(.shown, *.character))]
pub struct LabelError {
    problem: String,
    shown: String,
    /// From 1.
    character: usize,
}

/// Returns the label and a pointer to one of its characters, on two lines; empty for an empty
/// label.
fn pointer(shown: &str, character: usize) -> String {
    match shown.is_empty() {
        true => String::new(),
        // A width in a format has 16 bits.
        false => {
            let before = " ".repeat(character.saturating_sub(1));
            format!("\n  {shown}\n  {before}^ character {character}")
        }
    }
}

impl From<LabelError> for String {
    fn from(error: LabelError) -> String {
        error.to_string()
    }
}

impl Parameters {
    /// Each with its value, where it has one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_deref()))
    }

    /// Each as `NAME=VALUE`, for who takes any name; an empty value where there is none.
    pub fn named_values(&self) -> Result<Vec<(String, String)>, String> {
        let pair = |(name, value): (&str, Option<&str>)| {
            let value = value.unwrap_or_default();
            match value.contains('\0') {
                true => Err(format!("the value of {name} has a NUL in it")),
                false => Ok((name.to_owned(), value.to_owned())),
            }
        };
        self.iter().map(pair).collect()
    }

    /// The value of `name=…`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter().find(|(key, _)| *key == name)?.1
    }

    /// Returns true if the parameter was written, with a value or without.
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|(key, _)| key == name)
    }

    /// The value of `name=…` as a whole number within the range.
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

    /// These words, each once and without a value.
    pub fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Parameters {
        let mut all: Vec<(String, Option<String>)> = Vec::new();
        for word in words {
            if all.iter().all(|(known, _)| known != word) {
                all.push((word.to_owned(), None));
            }
        }
        Parameters(all)
    }

    /// As in a label, behind its name: values are in quotes where they have to be.
    pub fn written(&self, is_treatment: fn(&str) -> bool) -> String {
        let mut written = String::new();
        for (index, (key, value)) in self.iter().enumerate() {
            written.push_str(if index == 0 { "" } else { "," });
            written.push_str(key);
            if let Some(value) = value {
                let _ = write!(written, "={}", value_written(value, is_treatment));
            }
        }
        written
    }

    /// Returns the parameters with `key=value` in place of all of `names`.
    pub fn replaced(&self, names: &[&str], key: &str, value: &str) -> Parameters {
        let kept = self.0.iter().filter(|(key, _)| !names.contains(&key.as_str())).cloned();
        Parameters(kept.chain([(key.to_owned(), Some(value.to_owned()))]).collect())
    }
}

/// Reads an arm. A `+` in a bare value separates two treatments only where one that `is_treatment` follows,
/// so that `auditd+dispatcher` and `/src/c++/a.rules` are values.
pub fn arm(text: &str, is_treatment: fn(&str) -> bool) -> Result<ArmLabel, LabelError> {
    let (mut places, mut from) = (Vec::new(), 0);
    while let Some(end) = end_of_place(text, from) {
        let mut scanner = Scanner { whole: text, at: from, end };
        places.push(scanner.term(|_| false)?);
        scanner.finish()?;
        from = end + 2;
    }
    let mut scanner = Scanner { whole: text, at: from, end: text.len() };
    let mut treatments = vec![scanner.term(is_treatment)?];
    while scanner.take('+') {
        treatments.push(scanner.term(is_treatment)?);
    }
    scanner.finish()?;
    Ok(ArmLabel { places, treatments })
}

/// Reads workloads with their loads, separated by commas. A name may be a path, or two words: a `:` in it
/// begins no loads unless `AXIS=` follows. `NAME x 4` is how four copies were written once.
pub fn workloads(text: &str) -> Result<Vec<Term>, LabelError> {
    let mut scanner = Scanner { whole: text, at: 0, end: text.len() };
    let mut terms = vec![scanner.workload()?];
    while scanner.take(',') {
        terms.push(scanner.workload()?);
    }
    scanner.finish()?;
    Ok(terms)
}

impl ArmLabel {
    /// In the one form that is read back as the same: values are in quotes where they have to be.
    pub fn written(&self, is_treatment: fn(&str) -> bool) -> String {
        let places = self.places.iter().map(|place| place.written(|_| false) + "::");
        let treatments: Vec<String> =
            self.treatments.iter().map(|treatment| treatment.written(is_treatment)).collect();
        places.collect::<String>() + &treatments.join("+")
    }
}

impl Term {
    fn written(&self, is_treatment: fn(&str) -> bool) -> String {
        self.name.clone() + &self.written_parameters(is_treatment)
    }

    /// A workload with its loads, in the one form that is read back as the same.
    pub fn workload_written(&self) -> String {
        let is_plain = |c: char| !DELIMITERS.contains(&c) && !needs_quotes(c);
        let name = match !self.name.is_empty() && self.name.chars().all(is_plain) {
            true => self.name.clone(),
            false => in_quotes(&self.name),
        };
        name + &self.written_parameters(|_| false)
    }

    fn written_parameters(&self, is_treatment: fn(&str) -> bool) -> String {
        match self.parameters.written(is_treatment) {
            written if written.is_empty() => written,
            written => format!(":{written}"),
        }
    }
}

fn needs_quotes(c: char) -> bool {
    c == ',' || c == '"' || c == '\\' || c.is_whitespace() || c.is_control()
}

fn value_written(value: &str, is_treatment: fn(&str) -> bool) -> String {
    let is_place = value.contains("::") || value.starts_with(':') || value.ends_with(':');
    let combines = |(at, _): (usize, &str)| is_treatment(combined_name(&value[at + 1..]));
    let is_bare = !value.is_empty()
        && !value.contains(needs_quotes)
        && !is_place
        && !value.match_indices('+').any(combines);
    if is_bare { value.to_owned() } else { in_quotes(value) }
}

fn in_quotes(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The name that would be combined, if what stands before this were the `+` for that.
fn combined_name(rest: &str) -> &str {
    rest.split([':', '+']).next().unwrap_or_default()
}

/// Where the `::` is that ends the place which begins here.
fn end_of_place(text: &str, from: usize) -> Option<usize> {
    let mut rest = &text[from..];
    loop {
        let quote = rest.find("=\"").unwrap_or(rest.len());
        if let Some(at) = rest[..quote].find("::") {
            return Some(text.len() - rest.len() + at);
        }
        rest = rest.get(quote + 2..)?;
        rest = &rest[end_of_quote(rest)?..];
    }
}

/// How long a quoted text is with the quote that ends it, from behind the one that begins it.
fn end_of_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let mut is_end = |c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    text.find(&mut is_end).map(|at| at + 1)
}

/// A label, and how far it was read.
struct Scanner<'a> {
    whole: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.whole[self.at..self.end]
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.rest().starts_with(wanted);
        self.at += if is_next { wanted.len_utf8() } else { 0 };
        is_next
    }

    /// So many bytes of what is left.
    fn advance(&mut self, length: usize) -> &'a str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    fn word(&mut self) -> &'a str {
        self.advance(self.rest().find(DELIMITERS).unwrap_or(self.rest().len()))
    }

    fn problem(&self, at: usize, problem: impl Into<String>) -> LabelError {
        let character = self.whole[..at].chars().count() + 1;
        LabelError { problem: problem.into(), shown: printable::line(self.whole), character }
    }

    /// Checks that the whole label was read.
    fn finish(&self) -> Result<(), LabelError> {
        let why = match self.rest().chars().next() {
            None => return Ok(()),
            Some(',') => {
                "a `:` begins the parameters, and `,` only separates them: NAME:PARAMETER,PARAMETER"
            }
            Some('=') => "a value belongs to a parameter: NAME:PARAMETER=VALUE",
            Some(':') => "there is one `:` before the parameters, and a `,` between them",
            Some('"') => {
                "quotes enclose the whole value, right after the `=`; inside, \\\" is a quote: \
                 NAME:PARAMETER=\"VALUE\""
            }
            Some('+') => "a `+` combines treatments, but a place comes before the `::`",
            Some(_) => "after a quoted value comes `,` and a further parameter, or the end",
        };
        Err(self.problem(self.at, why))
    }

    fn term(&mut self, is_treatment: fn(&str) -> bool) -> Result<Term, LabelError> {
        let begin = self.at;
        let name = self.word().to_owned();
        if name.is_empty() {
            let missing =
                "a name is missing here: NAME or NAME:PARAMETER=VALUE; is a shell variable unset?";
            return Err(self.problem(begin, missing));
        }
        let mut parameters = Parameters::default();
        if self.take(':') {
            self.parameter(&mut parameters, is_treatment)?;
            while self.take(',') {
                self.parameter(&mut parameters, is_treatment)?;
            }
        }
        Ok(Term { name, parameters })
    }

    fn parameter(
        &mut self,
        parameters: &mut Parameters,
        is_treatment: fn(&str) -> bool,
    ) -> Result<(), LabelError> {
        let begin = self.at;
        let key = self.word();
        if key.is_empty() {
            let empty =
                "a parameter is empty here: write a parameter, or remove the `:` or `,` before it";
            return Err(self.problem(begin, empty));
        }
        if parameters.has(key) {
            return Err(self.problem(begin, format!("`{key}` is given twice: remove one")));
        }
        let value = match self.take('=') {
            true => Some(self.value(key, is_treatment)?),
            false => None,
        };
        parameters.0.push((key.to_owned(), value));
        Ok(())
    }

    fn value(&mut self, key: &str, is_treatment: fn(&str) -> bool) -> Result<String, LabelError> {
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        let rest = self.rest();
        let ends = |&(at, c): &(usize, char)| match c {
            ',' | '"' => true,
            '+' => is_treatment(combined_name(&rest[at + 1..])),
            _ => false,
        };
        let length = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
        if length > 0 || rest.starts_with('"') {
            return Ok(self.advance(length).to_owned());
        }
        let empty = format!(
            "the value of `{key}` is empty: write a value, or `{key}=\"\"` for an empty value"
        );
        Err(self.problem(self.at, empty))
    }

    fn quoted(&mut self) -> Result<String, LabelError> {
        let inner = &self.rest()[1..];
        let Some(length) = end_of_quote(inner) else {
            let open = "this quote is not closed: write a \" at the end of the value";
            return Err(self.problem(self.at, open));
        };
        self.advance(1 + length);
        let (mut value, mut is_escaped) = (String::new(), false);
        for c in inner[..length - 1].chars() {
            is_escaped = c == '\\' && !is_escaped;
            if !is_escaped {
                value.push(c);
            }
        }
        Ok(value)
    }

    fn workload(&mut self) -> Result<Term, LabelError> {
        let (begin, rest) = (self.at, self.rest());
        let is_quoted = rest.starts_with('"');
        let name = if is_quoted {
            self.quoted()?
        } else {
            let ends =
                |&(at, c): &(usize, char)| c == ',' || (c == ':' && are_loads(&rest[at + 1..]));
            let length = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
            self.advance(length).to_owned()
        };
        if name.is_empty() {
            let empty = "the name of the workload is empty; is a shell variable unset?";
            return Err(self.problem(begin, empty));
        }
        let mut parameters = Parameters::default();
        if self.take(':') {
            self.axis(&mut parameters)?;
            while is_axis(self.rest().strip_prefix(',')) {
                self.take(',');
                self.axis(&mut parameters)?;
            }
        } else if !is_quoted && let Some((name, copies)) = old_copies(&name) {
            let parameters = Parameters::default().replaced(&[], "copies", copies);
            return Ok(Term { name: name.to_owned(), parameters });
        }
        Ok(Term { name, parameters })
    }

    fn axis(&mut self, loads: &mut Parameters) -> Result<(), LabelError> {
        self.parameter(loads, |_| false)?;
        match loads.0.last() {
            Some((axis, None)) => {
                Err(self.problem(self.at, format!("`{axis}` has no value: write {axis}=NUMBER")))
            }
            _ => Ok(()),
        }
    }
}

/// Returns true if the `:` before `rest` begins loads, and is not part of a path.
fn are_loads(rest: &str) -> bool {
    let end = rest.find(|c: char| DELIMITERS.contains(&c) || "/.".contains(c));
    let word = &rest[..end.unwrap_or(rest.len())];
    // Of `load:shared` the second word is part of the name.
    let is_nothing = word.is_empty() && !rest.starts_with(['/', '.']);
    rest[word.len()..].starts_with('=') || is_nothing || AXES.contains(&word)
}

fn is_axis(rest: Option<&str>) -> bool {
    rest.is_some_and(|rest| {
        are_loads(rest) && rest.find(DELIMITERS).is_some_and(|at| rest[at..].starts_with('='))
    })
}

/// `NAME x 4`
fn old_copies(name: &str) -> Option<(&str, &str)> {
    let (name, copies) = name.rsplit_once(" x ")?;
    let is_number = !copies.is_empty() && copies.bytes().all(|digit| digit.is_ascii_digit());
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    (is_number && is_name).then_some((name, copies))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TREATMENTS: [&str; 3] = ["audit", "seccomp", "none"];

    fn is_treatment(name: &str) -> bool {
        TREATMENTS.contains(&name)
    }

    fn term(name: &str, parameters: &[(&str, Option<&str>)]) -> Term {
        let own = |(key, value): &(&str, Option<&str>)| (key.to_string(), value.map(String::from));
        Term { name: name.into(), parameters: Parameters(parameters.iter().map(own).collect()) }
    }

    fn read(text: &str) -> ArmLabel {
        arm(text, is_treatment).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn labels_of_before_are_what_they_were() {
        let one = |text| read(text).treatments.remove(0);
        assert_eq!(one("audit"), term("audit", &[]));
        assert_eq!(
            one("audit:backlog=64,live"),
            term("audit", &[("backlog", Some("64")), ("live", None)])
        );
        let sink = one("audit:sink=auditd+dispatcher,flush=sync");
        assert_eq!(sink.parameters.value("sink"), Some("auditd+dispatcher"));
        let path = one("audit:rules=/src/c++/my rules=a:b@c.rules");
        assert_eq!(path.parameters.value("rules"), Some("/src/c++/my rules=a:b@c.rules"));
        for text in
            ["audit:sink=auditd+dispatcher", "seccomp:profile=/a:b=c@d+e", "planted:share=1%"]
        {
            assert_eq!(read(text).written(is_treatment), text);
        }
    }

    #[test]
    fn treatments_are_combined_and_places_come_before() {
        assert_eq!(
            read("audit:backlog=64+seccomp:compares=5+none").treatments,
            [
                term("audit", &[("backlog", Some("64"))]),
                term("seccomp", &[("compares", Some("5"))]),
                term("none", &[])
            ]
        );
        assert_eq!(read("audit:live+seccomp").treatments.len(), 2);
        let guest = read(r#"vm:kernel="/a::b, c"::root:x=fe80:1::audit:rules="a+seccomp"+seccomp"#);
        assert_eq!(
            guest.places,
            [term("vm", &[("kernel", Some("/a::b, c"))]), term("root", &[("x", Some("fe80:1"))])]
        );
        assert_eq!(
            guest.treatments,
            [term("audit", &[("rules", Some("a+seccomp"))]), term("seccomp", &[])]
        );
    }

    #[test]
    fn workloads_have_loads_and_may_be_paths() {
        let read = |text: &str| workloads(text).unwrap_or_else(|error| panic!("{error}"));
        let copies = [("copies", Some("4"))];
        assert_eq!(read("pipe:copies=4"), [term("pipe", &copies)]);
        assert_eq!(read("pipe x 4"), [term("pipe", &copies)]);
        assert_eq!(read("bw-pipe@same-cpu"), [term("bw-pipe@same-cpu", &[])]);
        let two = [term("pipe", &[copies[0], ("bytes", Some("64k"))]), term("stat", &[])];
        assert_eq!(read("pipe:copies=4,bytes=64k,stat"), two);
        assert_eq!(read("getppid,open-close").len(), 2);
        let users = [("users", Some("8"))];
        assert_eq!(read("load:shared"), [term("load:shared", &[])]);
        let mixes = [term("load:shared", &users), term("load:/a.b/mix", &[])];
        assert_eq!(read("load:shared:users=8,load:/a.b/mix"), mixes);
        assert_eq!(read("dir:x/a.toml:copies=4"), [term("dir:x/a.toml", &copies)]);
        assert_eq!(read(r#""a, b:copies=1.toml":copies=4"#), [term("a, b:copies=1.toml", &copies)]);
        for text in ["pipe:copies=4,bytes=64k", "/tmp/my.toml", r#""a b x 4""#] {
            assert_eq!(read(text)[0].workload_written(), text);
        }
    }

    #[test]
    fn an_error_points_at_the_character_and_says_the_way_out() {
        for (text, character, way_out) in [
            ("", 1, "a name is missing"),
            ("audit+", 7, "a name is missing"),
            ("audit:", 7, "a parameter is empty"),
            ("audit:live,", 12, "remove the `:` or `,`"),
            ("audit:backlog=", 15, "backlog=\"\""),
            ("audit:backlog=,live", 15, "write a value"),
            ("audit:a=1,a=2", 11, "`a` is given twice"),
            ("audit,live", 6, "a `:` begins the parameters"),
            ("audit=5", 6, "NAME:PARAMETER=VALUE"),
            ("audit:a:b", 8, "a `,` between them"),
            ("audit:rules=a\"b", 14, "quotes enclose the whole value"),
            ("audit:rules=\"a b", 13, "not closed"),
            ("audit:rules=\"a\\\"", 13, "not closed"),
            ("audit:rules=\"a\"b", 16, "or the end"),
            ("vm+audit::audit", 3, "combines treatments"),
            ("vm::", 5, "a name is missing"),
        ] {
            let error = arm(text, is_treatment).unwrap_err();
            assert_eq!(error.character, character, "{text}: {error}");
            assert!(error.to_string().contains(way_out), "{text}: {error}");
        }
        for (text, character, way_out) in [
            ("", 1, "the name of the workload is empty"),
            ("a,,b", 3, "is a shell variable unset"),
            ("pipe:", 6, "a parameter is empty"),
            ("pipe:copies", 12, "write copies=NUMBER"),
            ("pipe:copies=", 13, "the value of `copies` is empty"),
            ("pipe:copies=1,copies=2", 15, "given twice"),
        ] {
            let error = workloads(text).unwrap_err();
            assert_eq!(error.character, character, "{text}: {error}");
            assert!(error.to_string().contains(way_out), "{text}: {error}");
        }
        let empty = workloads("").unwrap_err().to_string();
        assert!(!empty.contains('^'), "there is nothing to point at: {empty}");
        let shown = arm("µ:a\n=1,", is_treatment).unwrap_err().to_string();
        assert!(shown.ends_with("\n  µ:a\u{fffd}=1,\n         ^ character 8"), "{shown}");
        let long = arm(&format!("{}:", "a".repeat(70_000)), is_treatment).unwrap_err().to_string();
        assert!(long.ends_with("^ character 70002"), "{}", &long[long.len() - 50..]);
    }

    #[test]
    fn numbers_are_held_within_their_range_and_parameters_replaced() {
        let label = read("audit:backlog=64,sink=auditd,flush=sync,wait=x").treatments.remove(0);
        assert_eq!(label.parameters.number("backlog", 1..=100), Ok(Some(64)));
        assert_eq!(label.parameters.number("none", 1..=100), Ok(None));
        assert!(label.parameters.number("backlog", 1..=9).unwrap_err().contains("from 1 to 9"));
        assert!(label.parameters.number("wait", 1..=9).unwrap_err().contains("wait=x"));
        let replaced = label.parameters.replaced(&["sink", "flush"], "sink", "none");
        let parameters = [("backlog", Some("64")), ("wait", Some("x")), ("sink", Some("none"))];
        assert_eq!(replaced, term("", &parameters).parameters);
    }

    fn parameters(needs_value: bool) -> impl Strategy<Value = Parameters> {
        let value = prop_oneof![
            any::<String>(),
            "[a-z+:=@,\" \\\\]{0,12}",
            "[a-z]{0,3}\\+(audit|seccomp|none)([:+, ][a-z]{0,3})?",
        ];
        let value = match needs_value {
            true => value.prop_map(Some).boxed(),
            false => proptest::option::of(value).boxed(),
        };
        proptest::collection::btree_map("[a-z-]{1,8}", value, 0..4)
            .prop_map(|map| Parameters(map.into_iter().collect()))
    }

    fn terms(
        name: &'static str,
        count: std::ops::Range<usize>,
    ) -> impl Strategy<Value = Vec<Term>> {
        let term =
            (name, parameters(false)).prop_map(|(name, parameters)| Term { name, parameters });
        proptest::collection::vec(term, count)
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            places in terms("[a-z@ ./-]{1,9}", 0..3),
            treatments in terms("audit|seccomp|none", 1..4),
        ) {
            let label = ArmLabel { places, treatments };
            let written = label.written(is_treatment);
            prop_assert_eq!(arm(&written, is_treatment).map_err(String::from), Ok(label), "{}", written);
        }

        #[test]
        fn workloads_that_are_printed_are_read_back(
            terms in proptest::collection::vec((any::<String>(), parameters(true)), 1..4)
        ) {
            let terms: Vec<Term> = terms
                .into_iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, parameters)| Term { name, parameters })
                .collect();
            prop_assume!(!terms.is_empty());
            let written: Vec<String> = terms.iter().map(Term::workload_written).collect();
            prop_assert_eq!(workloads(&written.join(",")).map_err(String::from), Ok(terms));
        }

        #[test]
        fn any_text_is_read_or_refused_and_the_printed_form_stays(
            text in prop_oneof!["\\PC{0,60}", "(audit|seccomp|a|:|::|\\+|,|=|\"|\\\\| x 4){0,20}"]
        ) {
            if let Ok(label) = arm(&text, is_treatment) {
                let written = label.written(is_treatment);
                prop_assert_eq!(arm(&written, is_treatment).map_err(String::from), Ok(label));
            }
            if let Ok(terms) = workloads(&text) {
                let written: Vec<String> = terms.iter().map(Term::workload_written).collect();
                prop_assert_eq!(workloads(&written.join(",")).map_err(String::from), Ok(terms));
            }
        }
    }
}
