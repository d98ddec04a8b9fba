//! Landlock policies in the TOML or JSON of [landlockconfig], the format of Landlock's maintainer.
//!
//! [landlockconfig]: https://github.com/landlock-lsm/landlockconfig

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use trust::user_file;
use weigh_model::format;
use weigh_model::workload::toml_problem;
use weigh_workload::landlock::Handled;
use weigh_workload::setup::kind::landlock_policy::LandlockPolicy;

const LONGEST_FILE: u64 = 1 << 20;
/// Rules for paths, after each variable has been replaced; and rules for ports.
const MOST_RULES: usize = 10_000;
/// Bytes, as in `PATH_MAX`.
const LONGEST_PATH: usize = 4096;
/// The newest version whose groups (`abi.all`) are known here; 7 adds no right.
const NEWEST: u32 = 7;

/// A policy that was read.
#[derive(Debug, PartialEq)]
pub struct Policy {
    /// One layer of it.
    pub step: LandlockPolicy,
    /// Version of Landlock that has all of its rights.
    pub needs: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    abi: Option<u32>,
    #[serde(default)]
    variable: Vec<Variable>,
    #[serde(default)]
    ruleset: Vec<Rights>,
    #[serde(default, alias = "pathBeneath")]
    path_beneath: Vec<PathBeneath>,
    #[serde(default, alias = "netPort")]
    net_port: Vec<NetPort>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    literal: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rights {
    #[serde(default, alias = "handledAccessFs")]
    handled_access_fs: Vec<FileRight>,
    #[serde(default, alias = "handledAccessNet")]
    handled_access_net: Vec<PortRight>,
    #[serde(default)]
    scoped: Vec<Scope>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathBeneath {
    #[serde(alias = "allowedAccess")]
    allowed_access: Vec<FileRight>,
    parent: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetPort {
    #[serde(alias = "allowedAccess")]
    allowed_access: Vec<PortRight>,
    port: Vec<u16>,
}

/// In the order of the kernel's bits, then the groups.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum FileRight {
    Execute,
    WriteFile,
    ReadFile,
    ReadDir,
    RemoveDir,
    RemoveFile,
    MakeChar,
    MakeDir,
    MakeReg,
    MakeSock,
    MakeFifo,
    MakeBlock,
    MakeSym,
    Refer,
    Truncate,
    IoctlDev,
    #[serde(rename = "abi.all")]
    All,
    #[serde(rename = "abi.read_execute")]
    ReadExecute,
    #[serde(rename = "abi.read_write")]
    ReadWrite,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum PortRight {
    BindTcp,
    ConnectTcp,
    #[serde(rename = "abi.all")]
    All,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Scope {
    AbstractUnixSocket,
    Signal,
    #[serde(rename = "abi.all")]
    All,
}

const EXECUTE: u64 = 1;
const READ_EXECUTE: u64 = EXECUTE | 1 << 2 | 1 << 3 | 1 << 13;
/// Rights of files that came after the first version, by the first version that has them.
const LATER_RIGHTS: [(u32, u64); 3] = [(2, 1 << 13), (3, 1 << 14), (5, 1 << 15)];
const FIRST_RIGHTS: u64 = (1 << 13) - 1;
const VERSION_OF_PORTS: u32 = 4;
const VERSION_OF_SCOPES: u32 = 6;

/// Reads a policy: JSON if the name ends in `.json`, otherwise TOML.
///
/// # Errors
/// A sentence with the file, the line where there is one, and what is wrong.
pub fn read(path: &Path) -> Result<Policy, String> {
    let name = path.display().to_string();
    let text = user_file::read_text(path, LONGEST_FILE)
        .map_err(|error| format!("cannot read the policy {name}: {error}"))?;
    let config: Config = match path.extension().is_some_and(|extension| extension == "json") {
        true => serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?,
        false => {
            toml::from_str(&text).map_err(|error| toml_problem::sentence(&name, &text, &error))?
        }
    };
    config.policy().map_err(|problem| format!("{name}: {problem}"))
}

impl Config {
    fn policy(&self) -> Result<Policy, String> {
        if let Some(abi) = self.abi.filter(|abi| !(1..=NEWEST).contains(abi)) {
            return Err(format!("abi = {abi} is not supported: use 1 to {NEWEST}"));
        }
        let mut handled = Handled::default();
        for ruleset in &self.ruleset {
            handled.files |= self.files(&ruleset.handled_access_fs)?;
            handled.ports |= self.ports(&ruleset.handled_access_net)?;
            handled.scopes |= self.scopes(&ruleset.scoped)?;
        }
        let variables: Variables =
            self.variable.iter().map(|it| (it.name.as_str(), it.literal.as_slice())).collect();
        let (mut paths, mut ports) = (Vec::new(), Vec::new());
        for rule in &self.path_beneath {
            let rights = self.files(granted("path_beneath", &rule.allowed_access)?)?;
            handled.files |= rights;
            for parent in &rule.parent {
                let parent = Parent::parse(parent, &variables)?;
                check_count(paths.len().saturating_add(parent.count), "paths")?;
                for index in 0..parent.count {
                    paths.push((PathBuf::from(parent.path(index)?), rights));
                }
            }
        }
        for rule in &self.net_port {
            let rights = self.ports(granted("net_port", &rule.allowed_access)?)?;
            handled.ports |= rights;
            check_count(ports.len() + rule.port.len(), "ports")?;
            ports.extend(rule.port.iter().map(|port| (*port, rights)));
        }
        if handled == Handled::default() {
            return Err("the policy restricts nothing: add a [[ruleset]] or a rule".into());
        }
        let step = LandlockPolicy { layers: 1, handled, paths, ports, is_rehearsal: false };
        Ok(Policy { step, needs: version_of(&handled) })
    }

    /// The bits of a group, or why it has none.
    fn group(&self, name: &str, bits: impl Fn(u32) -> u64) -> Result<u64, String> {
        let abi = self.abi.ok_or_else(|| {
            format!("`{name}` needs a version of Landlock: add abi = N at the top")
        })?;
        match bits(abi) {
            0 => Err(format!("`{name}` has no rights here with abi = {abi}: use a newer version")),
            bits => Ok(bits),
        }
    }

    fn files(&self, rights: &[FileRight]) -> Result<u64, String> {
        let all = |abi| FIRST_RIGHTS | bits_until(abi, &LATER_RIGHTS);
        union(rights.iter().map(|right| match right {
            FileRight::All => self.group("abi.all", all),
            FileRight::ReadExecute => self.group("abi.read_execute", |abi| all(abi) & READ_EXECUTE),
            FileRight::ReadWrite => self.group("abi.read_write", |abi| all(abi) & !EXECUTE),
            right => Ok(1 << *right as u32),
        }))
    }

    fn ports(&self, rights: &[PortRight]) -> Result<u64, String> {
        union(rights.iter().map(|right| match right {
            PortRight::All => {
                self.group("abi.all", |abi| bits_until(abi, &[(VERSION_OF_PORTS, 3)]))
            }
            right => Ok(1 << *right as u32),
        }))
    }

    fn scopes(&self, scopes: &[Scope]) -> Result<u64, String> {
        union(scopes.iter().map(|scope| match scope {
            Scope::All => self.group("abi.all", |abi| bits_until(abi, &[(VERSION_OF_SCOPES, 3)])),
            scope => Ok(1 << *scope as u32),
        }))
    }
}

/// The literals of each variable.
type Variables<'a> = BTreeMap<&'a str, &'a [String]>;

/// A parent that stands for one path for each choice of the literals of its variables.
struct Parent<'a> {
    /// The text before each variable, and the variable's literals.
    parts: Vec<(&'a str, &'a [String])>,
    rest: &'a str,
    /// Number of its paths; a huge one is known without making them.
    count: usize,
}

impl<'a> Parent<'a> {
    fn parse(path: &'a str, variables: &Variables<'a>) -> Result<Parent<'a>, String> {
        // Limits the number of its variables too.
        check_length(path)?;
        let (mut parts, mut rest, mut count) = (Vec::new(), path, 1_usize);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("parent `{path}`: a variable without its `}}`"))?;
            let literals = *variables
                .get(name)
                .ok_or_else(|| format!("parent `{path}`: there is no [[variable]] `{name}`"))?;
            count = count.saturating_mul(literals.len());
            parts.push((before, literals));
            rest = after;
        }
        Ok(Parent { parts, rest, count })
    }

    /// One of its paths; the literals of its last variable change fastest.
    fn path(&self, index: usize) -> Result<String, String> {
        let (mut path, mut stride) = (String::new(), self.count);
        for (before, literals) in &self.parts {
            stride /= literals.len();
            path.push_str(before);
            path.push_str(&literals[index / stride % literals.len()]);
            check_length(&path)?;
        }
        path.push_str(self.rest);
        check_length(&path)?;
        Ok(path)
    }
}

fn check_length(path: &str) -> Result<(), String> {
    match path.len() <= LONGEST_PATH {
        true => Ok(()),
        false => Err("a parent is longer than any path".into()),
    }
}

fn check_count(count: usize, of: &str) -> Result<(), String> {
    match count <= MOST_RULES {
        true => Ok(()),
        false => Err(format!("it has more than {MOST_RULES} rules for {of}: remove some")),
    }
}

/// The rights of a rule, of which the kernel requires one.
fn granted<'a, R>(table: &str, rights: &'a [R]) -> Result<&'a [R], String> {
    match rights.is_empty() {
        true => {
            Err(format!("a [[{table}]] has an empty allowed_access: add a right, or remove it"))
        }
        false => Ok(rights),
    }
}

fn union(mut bits: impl Iterator<Item = Result<u64, String>>) -> Result<u64, String> {
    bits.try_fold(0, |sum, bits| Ok(sum | bits?))
}

fn bits_until(abi: u32, rights: &[(u32, u64)]) -> u64 {
    rights.iter().filter(|(since, _)| *since <= abi).fold(0, |sum, (_, bits)| sum | bits)
}

fn version_of(handled: &Handled) -> u32 {
    let of_files = LATER_RIGHTS.iter().filter(|(_, bits)| handled.files & bits != 0);
    let of_ports = (handled.ports != 0).then_some(VERSION_OF_PORTS);
    let of_scopes = (handled.scopes != 0).then_some(VERSION_OF_SCOPES);
    of_files.map(|(since, _)| *since).chain(of_ports).chain(of_scopes).max().unwrap_or(1)
}

/// Summary of a policy for the report.
pub fn description(LandlockPolicy { handled, paths, ports, .. }: &LandlockPolicy) -> String {
    let count = |count: usize, noun| (count != 0).then(|| format::plural(count, noun));
    let bits = |bits: u64, noun| count(bits.count_ones() as usize, noun);
    let parts = [
        bits(handled.files, "file right"),
        bits(handled.ports, "port right"),
        bits(handled.scopes, "scope"),
        count(paths.len(), "path rule"),
        count(ports.len(), "port rule"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(file: &str, text: &str) -> Result<Policy, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|said| said.replace(&format!("{}/", directory.path().display()), ""))
    }

    #[test]
    fn variables_groups_and_used_rights_make_the_bits_of_the_kernel() {
        let text = "abi = 4\n[[variable]]\nname = \"t\"\nliteral = [\"/a\", \"/b\"]\n\
                    [[ruleset]]\nhandled_access_net = [\"abi.all\"]\nscoped = [\"signal\"]\n\
                    [[path_beneath]]\nallowed_access = [\"abi.read_execute\"]\nparent = [\"${t}/x\"]\n\
                    [[net_port]]\nallowed_access = [\"bind_tcp\"]\nport = [80]\n";
        let policy = parsed("p.toml", text).unwrap();
        let rights = 0b1101 | 1 << 13;
        assert_eq!(policy.step.handled, Handled { files: rights, ports: 3, scopes: 2 });
        let paths = [("/a/x".into(), rights), ("/b/x".into(), rights)];
        assert_eq!((policy.step.paths, policy.step.ports), (paths.into(), vec![(80, 1)]));
        assert_eq!(policy.needs, VERSION_OF_SCOPES);
    }

    #[test]
    fn json_and_toml_mean_the_same() {
        let json = "{\"abi\": 1, \"pathBeneath\": [{\"allowedAccess\": [\"abi.read_write\"],\n\
                    \"parent\": [\"/tmp\"]}]}";
        let toml =
            "abi = 1\n[[path_beneath]]\nallowed_access = [\"abi.read_write\"]\nparent = [\"/tmp\"]";
        let policy = parsed("p.json", json).unwrap();
        assert_eq!(policy, parsed("p", toml).unwrap());
        assert_eq!((policy.needs, policy.step.handled.files), (1, FIRST_RIGHTS & !EXECUTE));
    }

    #[test]
    fn an_unknown_word_is_refused_by_name_with_its_line() {
        let said = |file, text| parsed(file, text).unwrap_err();
        let key = said("p", "abi = 1\n[[ruleset]]\nquiet = 1\n");
        assert!(key.starts_with("p:3: unknown field `quiet`, expected one of"), "{key}");
        let right =
            said("p", "[[path_beneath]]\nallowed_access = [\n\"raed_file\"]\nparent = []\n");
        assert!(right.starts_with("p:3: unknown variant `raed_file`"), "{right}");
        let json = said("p.json", "{\"abi\": 1,\n\"audit\": 2}");
        assert!(json.contains("unknown field `audit`") && json.contains("line 2"), "{json}");
        assert!(said("p", "abi = 1\n").contains("restricts nothing"));
        assert!(said("p", "abi = 9\n").contains("1 to 7"));
        assert!(said("p", "[[ruleset]]\nscoped = [\"abi.all\"]").contains("add abi = N"));
        let early = said("p", "abi = 5\n[[ruleset]]\nscoped = [\"abi.all\"]");
        assert!(early.contains("no rights here with abi = 5"), "{early}");
        let variable = "[[path_beneath]]\nallowed_access = [\"refer\"]\nparent = [\"${no}\"]";
        assert!(said("p", variable).contains("no [[variable]] `no`"));
    }

    #[test]
    fn rules_without_rights_are_refused() {
        for (table, of) in [("path_beneath", "parent = [\"/\"]"), ("net_port", "port = [80]")] {
            let text = format!("abi = 4\n[[{table}]]\nallowed_access = []\n{of}\n");
            let said = parsed("p", &text).unwrap_err();
            assert!(said.contains(&format!("a [[{table}]] has an empty allowed_access")), "{said}");
        }
    }

    /// The largest product would not fit into any memory.
    #[test]
    fn too_many_rules_and_too_long_paths_are_refused_at_once() {
        let literals = vec!["\"/abcd\""; 1000].join(",");
        let said = |parent: &str| {
            let text = format!(
                "[[variable]]\nname = \"v\"\nliteral = [{literals}]\n\
                 [[path_beneath]]\nallowed_access = [\"refer\"]\nparent = [\"{parent}\"]\n"
            );
            parsed("p", &text).unwrap_err()
        };
        assert!(said(&"${v}".repeat(1000)).contains("more than 10000 rules for paths"));
        assert!(said(&"x".repeat(LONGEST_PATH + 1)).contains("longer than any path"));
        let rest = format!("${{v}}{}", "x".repeat(LONGEST_PATH - 4));
        assert!(said(&rest).contains("longer than any path"));
        let ports = vec!["1"; MOST_RULES + 1].join(",");
        let text = format!("[[net_port]]\nallowed_access = [\"bind_tcp\"]\nport = [{ports}]\n");
        assert!(parsed("p", &text).unwrap_err().contains("rules for ports"));
    }
}
