//! Names of measured work: a workload, and the load that it is under. Name, treatment and metric
//! together are the key of a row.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZero;

use serde::{Deserialize, Serialize};

use crate::label;
use crate::label::{AXES, Term};
use crate::workload::mix;

/// Name of the work of a command that is an arm, in rows and failures.
pub const WORK: &str = "command";
/// The axis of how many copies of a workload run at the same time.
pub const COPIES: &str = AXES[0];
/// The workloads' own limit.
pub const MOST_COPIES: usize = 1024;
/// The axis of how many users do the jobs of a mix at the same time.
pub const USERS: &str = AXES[1];
pub const MOST_USERS: usize = 1_000_000;
/// The axis of how many bytes a cell of a grid writes at a time.
pub const BYTES: &str = AXES[2];
const MOST_BYTES: usize = 1 << 20;
/// Between a workload and what is done beside it.
pub const BESIDE: char = '/';
/// Before the name of a workload that asks a server.
pub const APP: &str = "app:";
/// Another way to write which server such a workload asks: `engine=postgres` is `@postgres`.
const ENGINE: &str = "engine";
/// Before the name of a grid.
pub const NET: &str = mix::GRID;

/// How much a workload is loaded: a value on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisValue {
    pub axis: String,
    pub value: f64,
}

/// A workload under a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkName {
    /// Name of the workload, or the words of a command.
    #[serde(rename = "workload")]
    pub name: String,
    /// `None` for the workload as it is: one copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<AxisValue>,
}

impl WorkName {
    /// So many copies of a workload. One is the workload as it is.
    pub fn of_copies(workload: &str, copies: usize) -> WorkName {
        let load = AxisValue { axis: COPIES.into(), value: copies as f64 };
        WorkName { name: workload.to_owned(), load: Some(load).filter(|_| copies != 1) }
    }

    /// So many users of a mix, which is named with `load:` before it.
    pub fn of_users(mix: &str, users: usize) -> WorkName {
        let load = AxisValue { axis: USERS.into(), value: users as f64 };
        WorkName { name: mix.to_owned(), load: Some(load) }
    }

    /// A cell of a grid, or a grid's cells, of one size.
    pub fn of_bytes(name: &str, bytes: u32) -> WorkName {
        let load = AxisValue { axis: BYTES.into(), value: f64::from(bytes) };
        WorkName { name: name.to_owned(), load: Some(load) }
    }

    /// Reads `pipe:copies=4`, or several, as docs/labels.md has it. What is written is kept, one copy too: it
    /// holds whatever `--copies` says.
    pub fn parse(label: &str) -> Result<Vec<WorkName>, String> {
        label::workloads(label)?.iter().map(WorkName::of).collect()
    }

    fn of(term: &Term) -> Result<WorkName, String> {
        let written = term.workload_written();
        let (name, has_engine) = with_engine(term);
        let mut loads = term.parameters.iter().filter(|(key, _)| !(has_engine && *key == ENGINE));
        let Some((axis, value)) = loads.next() else { return Ok((*name).into()) };
        if loads.next().is_some() {
            return Err(format!("`{written}`: a workload has only one load"));
        }
        // Of what is done beside a workload, the load is that.
        let beside = term.name.split_once(BESIDE).map_or("", |(_, beside)| beside);
        let is_mix = |name: &str| name.starts_with(mix::PREFIX);
        let (own, most) = match &term.name {
            name if is_mix(name) || is_mix(beside) => (USERS, MOST_USERS),
            grid if grid.starts_with(NET) => (BYTES, MOST_BYTES),
            _ => (COPIES, MOST_COPIES),
        };
        if axis != own {
            return Err(format!("`{written}`: there is no load `{axis}`; there is `{own}`"));
        }
        let number = value.and_then(|value| value.parse().ok());
        match number.filter(|number| (1..=most).contains(number)) {
            Some(number) => {
                let load = AxisValue { axis: own.into(), value: number as f64 };
                Ok(WorkName { name, load: Some(load) })
            }
            None => Err(format!("`{written}`: {own} is a number from 1 to {most}")),
        }
    }

    pub fn parse_all(labels: &[String]) -> Result<Vec<WorkName>, String> {
        let names: Vec<_> =
            labels.iter().map(|label| WorkName::parse(label)).collect::<Result<_, _>>()?;
        Ok(names.concat())
    }

    /// The names that labels have, without their loads.
    pub fn names_of(labels: &[String]) -> Result<Vec<String>, String> {
        let names = WorkName::parse_all(labels)?;
        Ok(names.into_iter().map(|name| name.name).collect())
    }

    /// How many users there are, of a mix.
    pub fn users(&self) -> Option<NonZero<usize>> {
        let load = self.load.as_ref().filter(|load| load.axis == USERS)?;
        NonZero::new(load.value as usize)
    }

    /// How many bytes are written at a time, of a grid's cells.
    pub fn bytes(&self) -> Option<u32> {
        let load = self.load.as_ref().filter(|load| load.axis == BYTES);
        load.map(|load| load.value as u32)
    }

    /// How many run at the same time.
    pub fn copies(&self) -> usize {
        let load = self.load.as_ref().filter(|load| load.axis == COPIES);
        load.map_or(1, |load| load.value as usize)
    }
}

/// The name with the server that a parameter names, and whether one does. Of a workload beside an
/// application, it is that of the latter.
fn with_engine(term: &Term) -> (String, bool) {
    let last = term.name.rsplit(BESIDE).next().unwrap_or_default();
    match term.parameters.value(ENGINE) {
        Some(engine) if last.starts_with(APP) && !last.contains('@') => {
            (format!("{}@{engine}", term.name), true)
        }
        _ => (term.name.clone(), false),
    }
}

impl From<&str> for WorkName {
    fn from(workload: &str) -> WorkName {
        WorkName { name: workload.to_owned(), load: None }
    }
}

/// As a label: what [`WorkName::parse`] reads.
impl fmt::Display for WorkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.load {
            Some(AxisValue { axis, value }) => write!(f, "{}:{axis}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// No value is NaN: there is none in JSON, and the database has none.
impl Eq for WorkName {}

impl Ord for WorkName {
    fn cmp(&self, other: &WorkName) -> Ordering {
        let key = |name: &WorkName| name.load.as_ref().map(|load| load.axis.clone());
        let value = |name: &WorkName| name.load.as_ref().map_or(1.0, |load| load.value);
        (self.name.cmp(&other.name))
            .then_with(|| key(self).cmp(&key(other)))
            .then_with(|| value(self).total_cmp(&value(other)))
    }
}

impl PartialOrd for WorkName {
    fn partial_cmp(&self, other: &WorkName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(label: &str) -> (String, usize) {
        let name = WorkName::parse(label).unwrap().remove(0);
        (name.name.clone(), name.copies())
    }

    #[test]
    fn a_load_is_read_from_a_label_and_from_what_weigh_wrote_before() {
        assert_eq!(parsed("pipe:copies=4"), ("pipe".into(), 4));
        assert_eq!(parsed("bw-pipe@same-cpu:copies=2"), ("bw-pipe@same-cpu".into(), 2));
        assert_eq!(parsed("pipe x 4"), ("pipe".into(), 4));
        let one = &WorkName::parse("pipe:copies=1").unwrap()[0];
        assert_eq!((one.copies(), one.load.is_some()), (1, true));
        assert_eq!(WorkName::parse("./a:b.toml").unwrap(), ["./a:b.toml".into()]);
        let several = [WorkName::of_copies("pipe", 4), "getppid".into()];
        assert_eq!(WorkName::parse("pipe:copies=4,getppid").unwrap(), several);
    }

    #[test]
    fn an_engine_is_the_server_that_is_asked() {
        let of = |label| WorkName::parse(label).map(|names| names[0].to_string());
        let transaction = "app:db.transaction@postgres";
        assert_eq!(of("app:db.transaction:engine=postgres"), Ok(transaction.into()));
        let four = Ok(format!("{transaction}:copies=4"));
        assert_eq!(of("app:db.transaction:engine=postgres,copies=4"), four);
        assert_eq!(of("app:db.transaction:copies=4,engine=postgres"), four);
        assert_eq!(
            of("feel:spawn/app:db.transaction:engine=postgres"),
            Ok(format!("feel:spawn/{transaction}"))
        );
        for wrong in ["pipe:engine=postgres", "app:db.transaction@sqlite:engine=postgres"] {
            assert!(of(wrong).unwrap_err().contains("no load `engine`"), "{wrong}");
        }
    }

    #[test]
    fn a_load_that_there_is_not_is_said() {
        for (label, said) in [
            ("pipe:users=4", "no load `users`"),
            ("load:shared:copies=4", "there is `users`"),
            ("load:shared:users=0", "from 1 to 1000000"),
            ("pipe:copies=0", "from 1 to 1024"),
            ("pipe:copies=1025", "from 1 to 1024"),
            ("pipe:copies=", "is empty"),
            ("pipe:copies=2,users=3", "one load"),
            ("pipe:copies=1.5", "from 1 to 1024"),
        ] {
            assert!(WorkName::parse(label).unwrap_err().contains(said), "{label}");
        }
    }

    #[test]
    fn rows_are_in_order_of_their_load() {
        let names =
            ["a", "b:copies=10", "b", "b:copies=9"].map(|l| WorkName::parse(l).unwrap().remove(0));
        let mut sorted = names.to_vec();
        sorted.sort();
        let labels: Vec<String> = sorted.iter().map(ToString::to_string).collect();
        assert_eq!(labels, ["a", "b", "b:copies=9", "b:copies=10"]);
    }

    proptest! {
        #[test]
        fn a_label_is_read_back(workload in "[a-z0-9@-]{1,12}", copies in 1_usize..=MOST_COPIES) {
            let name = WorkName::of_copies(&workload, copies);
            prop_assert_eq!(WorkName::parse(&name.to_string()), Ok(vec![name]));
        }

        #[test]
        fn foreign_text_never_panics(text in "\\PC{0,40}") {
            let _ = WorkName::parse(&text);
        }
    }
}
