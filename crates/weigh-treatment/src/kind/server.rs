//! `server`: settings, a file of configuration, or another build of the servers of its arm. The fixtures of
//! the arm start them so, and prove it by asking the server (`weigh-fixture/tuning.rs`); this proves that
//! there was one.

use std::collections::BTreeSet;
use std::path::Path;

use crate::digest::digest_of_file;
use crate::{Kind, Launch, Parameter, Probe, Treatment, TreatmentError, TreatmentKind};
use weigh_fixture::FIXTURES;
use weigh_fixture::tuning::{self, Tuning};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "server",
        summary: "settings, a configuration file or a different build of the workloads' servers",
        parameters: &[Parameter {
            form: "SERVER.NAME=VALUE",
            help: "one or several: mariadb.max_connections=20, postgres.work_mem=8MB, \
                   mariadb.config=FILE, apache.binary=PATH",
        }],
        probe: || Probe::Available,
    },
    build,
);

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let asked = parameters.named_values()?;
    if asked.is_empty() {
        return Err("`server` needs a setting: server:mariadb.max_connections=20".into());
    }
    let known = servers();
    let mut servers = BTreeSet::new();
    for (key, _) in &asked {
        let server = key.split_once('.').map_or(&**key, |(server, _)| server);
        let Some(server) = known.get(server) else {
            return Err(format!(
                "`server:{key}=…`: unknown server `{server}`; use one of {}, as in \
                 server:mariadb.max_connections=20",
                known.iter().copied().collect::<Vec<_>>().join(", ")
            ));
        };
        servers.insert(*server);
    }
    for server in &servers {
        Tuning::of(parameters, server)?;
    }
    Ok(Box::new(ServersAsked { asked, servers }))
}

/// Returns the servers of which some fixture takes a parameter.
fn servers() -> BTreeSet<&'static str> {
    let forms = FIXTURES.iter().flat_map(|fixture| fixture.kind.parameters);
    forms.filter_map(|known| known.form.split_once('.')).map(|(server, _)| server).collect()
}

struct ServersAsked {
    asked: Vec<(String, String)>,
    servers: BTreeSet<&'static str>,
}

impl ServersAsked {
    /// Each file that is named, with its digest.
    fn files(&self) -> impl Iterator<Item = (&str, String)> {
        let files = self.asked.iter().filter(|(key, _)| tuning::is_file(key));
        files.filter_map(|(_, path)| Some((&**path, digest_of_file(Path::new(path)).ok()?)))
    }
}

impl Treatment for ServersAsked {
    /// Checks that each server ran in the arm; the fixtures with these servers proved the settings.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let has = |server: &str| launch.members.iter().any(|member| member.after.name == server);
        match self.servers.iter().find(|server| launch.is_treated && !has(server)) {
            None => Ok(Evidence::default()),
            Some(missing) => Err(TreatmentError::NoInstance(format!(
                "this workload does not use `{missing}`, so `server:{missing}.…` would change nothing"
            ))),
        }
    }

    fn content(&self) -> Vec<u8> {
        let lines = self.files().map(|(path, digest)| format!("{path} {digest}\n"));
        lines.collect::<String>().into_bytes()
    }

    fn facts(&self) -> Vec<String> {
        let asked: Vec<String> =
            self.asked.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let files = self.files().map(|(path, digest)| format!("{path} has the SHA-256 {digest}."));
        let first = format!("Servers of this arm were started with {}.", asked.join(", "));
        std::iter::once(first).chain(files).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;
    use weigh_workload::member::{MemberDuring, MemberSeen};
    use weigh_workload::setup::Setup;

    #[test]
    fn what_no_server_takes_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(refused("server").contains("server:mariadb.max_connections=20"));
        let unknown = refused("server:oracle.sga=1");
        assert!(
            unknown.contains("unknown server `oracle`; use one of apache, mariadb"),
            "{unknown}"
        );
        assert!(refused("server:mariadb=5").contains("mariadb.NAME=VALUE"));
        assert!(refused("server:mariadb.socket=/x").contains("is reserved"));
        assert!(refused("server:mariadb.a;b=1").contains("not the name of a setting"));
        assert!(refused("server:apache.Timeout=1").contains("apache.config=FILE"));
        assert!(refused("server:mariadb.config=\"\"").contains("takes the path"));
    }

    #[test]
    fn a_sample_without_the_server_is_no_evidence() {
        let mut treatment = parse("server:mariadb.max_connections=20").unwrap().treatment;
        let mut is_believed = |is_treated, name: &str| {
            let seen = MemberSeen { name: name.into(), ..MemberSeen::default() };
            let members = [MemberDuring { before: seen.clone(), after: seen, is_away: false }];
            let (setup, launched) = (&Setup::default(), &Launched::default());
            treatment
                .verify_sample(&Launch { is_treated, setup, launched, members: &members })
                .is_ok()
        };
        assert!(is_believed(true, "mariadb") && is_believed(false, "redis"));
        assert!(!is_believed(true, "redis"));
    }
}
