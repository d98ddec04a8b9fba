//! From the names that a user gave to what is launched.

use std::collections::BTreeSet;
use std::num::NonZero;

use super::background_load::BackgroundLoad;
use super::job_options;
use super::net_work::{NetPart, NetWork};
use super::request::LoadRamp;
use super::selection::Selection;
use super::surroundings::Surroundings;
use super::work::{LoadRole, UserLoad, Work};
use weigh_fixture::{FIXTURES, FixtureKind, Service, services};
use weigh_model::result::work_name::{BESIDE, NET, WorkName};
use weigh_model::workload::mix;
use weigh_model::workload::mix::{JobMix, JobSizes, MixFromFile, PREFIX};
use weigh_model::workload::mix_label::{COLD, MixLabel};
use weigh_model::workload::suite;
use weigh_model::workload::suite::{Member, Suite};
use weigh_net::activity::BesideLoad;
use weigh_net::grid::Grid;
use weigh_station::client::WhoIsTreated;
use weigh_verdict::ramp::default_points;
use weigh_workload::catalogue::{Workload, near_or_all, similar};
use weigh_workload::executable::Executable;
use weigh_workload::interpreted::{GROUP, Interpreted};

/// The works that a user named, none twice.
pub fn resolve(asked_for: &Selection, executable: &Executable) -> Result<Vec<Work>, String> {
    let Selection { names, suites: files, .. } = *asked_for;
    let workloads = executable.workloads()?;
    let ours = suite::embedded()?;
    let by_name = ours.iter().map(|suite| (suite.name.as_str(), suite));
    let by_file = files.iter().map(|own| (own.file.as_str(), &own.suite));
    let suites: Vec<(&str, &Suite)> = by_name.chain(by_file).collect();
    let resolver = Resolver { asked_for, workloads: &workloads, suites: &suites };
    let mut works: Vec<Work> = Vec::new();
    for name in WorkName::parse_all(names)? {
        for work in resolver.works(&name)? {
            if !works.iter().any(|other| other.name() == work.name()) {
                works.push(work);
            }
        }
    }
    let mut activities = Vec::new();
    for name in WorkName::parse_all(asked_for.beside)? {
        activities.extend(resolver.activities(&name)?);
    }
    job_options::check_used(asked_for.sizes, &works, &workloads)?;
    each_beside(works, &activities)
}

fn each_beside(works: Vec<Work>, activities: &[BackgroundLoad]) -> Result<Vec<Work>, String> {
    let mut all: Vec<Work> = Vec::new();
    for work in works {
        let beside = activities.iter().map(|activity| work.clone().beside(activity));
        let beside: Vec<Work> = beside.collect::<Result<_, _>>()?;
        all.push(work);
        all.extend(beside);
    }
    Ok(all)
}

/// Known names, and the request of the user.
struct Resolver<'a> {
    asked_for: &'a Selection<'a>,
    workloads: &'a [Workload],
    /// The words that name one, and what each names.
    suites: &'a [(&'a str, &'a Suite)],
}

impl Resolver<'_> {
    fn works(&self, name: &WorkName) -> Result<Vec<Work>, String> {
        if let Some(grid) = name.name.strip_prefix(NET) {
            return Ok(vec![sweep(name, grid, self.workloads)?]);
        }
        if name.name.starts_with(mix::PREFIX) {
            return loads(name, self.asked_for, self.workloads);
        }
        if let Some((workload, activity)) = self.split(&name.name) {
            let activity = WorkName { name: activity.to_owned(), load: name.load.clone() };
            let workload = self.as_cold_as_asked(&workload.into())?;
            let works = self.copied(&workload, self.asked_for.copies)?;
            let mut all = Vec::new();
            for activity in self.activities(&activity)? {
                let beside = works.iter().map(|work| work.clone().beside(&activity));
                all.extend(beside.collect::<Result<Vec<Work>, String>>()?);
            }
            return Ok(all);
        }
        self.copied(&self.as_cold_as_asked(name)?, self.asked_for.copies)
    }

    /// `WORKLOAD/ACTIVITY`; a path to a file is none.
    fn split<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        let is_file = self.suites.iter().any(|(word, _)| *word == name);
        let (workload, activity) = name.split_once(BESIDE).filter(|_| !is_file)?;
        let Selection { surroundings, .. } = self.asked_for;
        resolve_one(workload, self.workloads, self.suites, surroundings).ok()?;
        Some((workload, activity))
    }

    fn copied(&self, name: &WorkName, copies: &[usize]) -> Result<Vec<Work>, String> {
        let Selection { surroundings, .. } = self.asked_for;
        let own = name.load.is_some().then(|| vec![name.copies()]);
        let mut works = Vec::new();
        for work in resolve_one(&name.name, self.workloads, self.suites, surroundings)? {
            for copies in own.as_deref().unwrap_or(copies) {
                if *copies != 1 && matches!(work, Work::Interpreted(_)) {
                    return Err(format!(
                        "`{}` runs as one process: remove the number of copies",
                        work.name()
                    ));
                }
                works.push(work.clone().with_copies(*copies));
            }
        }
        Ok(works)
    }

    /// With `--cold`, the one that begins with what it reads not in the page cache.
    fn as_cold_as_asked(&self, name: &WorkName) -> Result<WorkName, String> {
        if !self.asked_for.sizes.is_cold || name.name.ends_with(COLD) {
            return Ok(name.clone());
        }
        let cold = format!("{}{COLD}", name.name);
        if self.workloads.iter().any(|workload| workload.name == cold) {
            return Ok(WorkName { name: cold, load: name.load.clone() });
        }
        Err(format!(
            "--cold has no effect on `{}`: it applies to mixes (`load:disk`) and to {}",
            name.name,
            job_options::can_be_cold(self.workloads).collect::<Vec<_>>().join(", ")
        ))
    }

    /// Returns the activities that can be done alongside a workload. Whatever the arms have, an
    /// activity uses servers of its own.
    fn activities(&self, name: &WorkName) -> Result<Vec<BackgroundLoad>, String> {
        let alone = Selection { copies: &[1], seeks_peaks: false, ..self.asked_for.clone() };
        let alone = Selection { surroundings: Surroundings::default(), ..alone };
        let resolver = Resolver { asked_for: &alone, ..*self };
        let works = match name.name.starts_with(mix::PREFIX) || name.name.starts_with(NET) {
            // With whatever users; what is done beside says how many.
            true => resolver.works(name)?.into_iter().take(1).collect(),
            false => resolver.copied(&name.name.as_str().into(), &[1])?,
        };
        available(works).iter().map(|work| activity(work, name)).collect()
    }
}

/// Returns the activity that repeats a work alongside another, in as many copies as were asked for.
fn activity(work: &Work, asked_for: &WorkName) -> Result<BackgroundLoad, String> {
    let workload = match work {
        Work::Builtin { .. } | Work::Interpreted(_) => work.name().name,
        Work::Load(load) => load.label.clone(),
        Work::Command { .. } | Work::CommandComparison { .. } | Work::Net(_) => {
            return Err(format!("`{asked_for}` cannot run alongside a workload"));
        }
    };
    let copies = asked_for.load.as_ref().map(|load| format!(",copies={}", load.value));
    let label = format!("beside:workload={workload}{}", copies.unwrap_or_default());
    let name = WorkName { name: workload, load: asked_for.load.clone() }.to_string();
    Ok(BackgroundLoad { name, label })
}

/// Keeps the works with an available server, among works that differ in their server alone. Keeps
/// all works if no server is available.
fn available(works: Vec<Work>) -> Vec<Work> {
    let is_there = |work: &Work| work.server().is_none_or(can_be_had);
    match works.iter().any(is_there) {
        true => works.into_iter().filter(is_there).collect(),
        false => works,
    }
}

fn can_be_had(service: &'static Service) -> bool {
    let of_it = |fixture: &&&FixtureKind| fixture.services.contains(service);
    FIXTURES.iter().find(of_it).is_some_and(|found| (found.kind.probe)().obstacle().is_none())
}

/// The most users of a mix whose peak is sought.
const MOST_SOUGHT: usize = 1 << 14;

pub fn cells_of(label: &str, grid: &Grid, executable: &Executable) -> Result<Vec<Work>, String> {
    let workloads = executable.workloads()?;
    let checked = grid.activities.iter().try_for_each(|name| check_activity(name, &workloads));
    checked.map_err(|problem| format!("an activity of the grid is invalid: {problem}"))?;
    let cells = NetWork::cells_of(label, grid);
    Ok(cells.into_iter().map(|cell| Work::Net(Box::new(cell))).collect())
}

/// Checks that a workload or a mix can be the activity of a grid.
pub fn check_activity(name: &str, workloads: &[Workload]) -> Result<(), String> {
    if name.starts_with(PREFIX) {
        return BesideLoad::parse(name).map(|_| ());
    }
    match workloads.iter().find(|workload| workload.name == name) {
        None => Err(unknown(name, workloads, &[])),
        Some(Workload { needs: Some(_), .. }) => {
            Err(format!("`{name}` needs a server, which activities do not have"))
        }
        Some(_) => Ok(()),
    }
}

/// All cells of a grid, or those of the size that was named.
fn sweep(name: &WorkName, grid: &str, workloads: &[Workload]) -> Result<Work, String> {
    let mut grid = Grid::find_if(grid, &|activity| check_activity(activity, workloads))?;
    let class_bytes = name.bytes();
    if let Some(bytes) = class_bytes {
        let sizes: Vec<String> = grid.classes.iter().map(|class| class.bytes.to_string()).collect();
        grid.classes.retain(|class| class.bytes == bytes);
        if grid.classes.is_empty() {
            return Err(format!("`{name}`: the sizes of this grid are {} bytes", sizes.join(", ")));
        }
    }
    let part = NetPart::Sweep { class_bytes };
    Ok(Work::Net(Box::new(NetWork { label: name.name.clone(), grid, part })))
}

/// A mix under the load that was named. Or else its peak, with the points that may be it, where that is
/// sought; otherwise with one user, one per CPU, and four per CPU.
fn loads(
    name: &WorkName,
    asked_for: &Selection,
    workloads: &[Workload],
) -> Result<Vec<Work>, String> {
    let load = loaded(&name.name, asked_for, workloads)?;
    if name.users().is_none() && asked_for.seeks_peaks {
        let candidates = default_points(MOST_SOUGHT).into_iter().filter_map(NonZero::new);
        let candidates = candidates.map(|users| load(users, LoadRole::Candidate));
        let peak = load(NonZero::<usize>::MIN, LoadRole::Peak);
        return Ok(std::iter::once(peak).chain(candidates).collect());
    }
    let cpus = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let four_per_cpu = cpus.saturating_mul(const { NonZero::new(4).unwrap() });
    let by_default = BTreeSet::from([NonZero::<usize>::MIN, cpus, four_per_cpu]);
    let users = name.users().map_or(by_default, |users| BTreeSet::from([users]));
    Ok(users.into_iter().map(|users| load(users, LoadRole::Named)).collect())
}

pub fn load_points(
    ramp: &LoadRamp,
    surroundings: Surroundings,
    executable: &Executable,
) -> Result<Vec<Work>, String> {
    let workloads = executable.workloads()?;
    let alone = Selection::of(&[], &ramp.job_sizes);
    let asked_for = Selection { mixes: &ramp.mixes, surroundings, ..alone };
    let names = WorkName::parse(&ramp.mix)?;
    let [WorkName { name, load: None }] = &names[..] else {
        return Err(format!(
            "`{}` is not a mix: name one mix, without a number of users (`weigh list mixes`)",
            ramp.mix
        ));
    };
    let load = loaded(name, &asked_for, &workloads)?;
    let works = ramp.users.iter().map(|users| load(*users, LoadRole::Named));
    let works: Vec<Work> = works.collect();
    job_options::check_used(asked_for.sizes, &works, &workloads)?;
    Ok(works)
}

/// Returns a function that makes the work of a mix from its users and its role.
fn loaded(
    name: &str,
    asked_for: &Selection,
    workloads: &[Workload],
) -> Result<impl Fn(NonZero<usize>, LoadRole) -> Work + use<>, String> {
    let typed = MixLabel::of(name);
    let is_cold = typed.is_cold || asked_for.sizes.is_cold;
    let beyond_cache_pct = typed.beyond_cache_pct.or(asked_for.sizes.beyond_cache_pct);
    let block_kib = typed.block_kib.or(asked_for.sizes.block_kib);
    let label = MixLabel { block_kib, is_cold, beyond_cache_pct, ..typed };
    let mix = find_mix(label.name, asked_for.mixes)?;
    check_tests(&mix, workloads, asked_for)?;
    job_options::check_reads(&mix, &label, workloads)?;
    let common_kib = beyond_cache_pct.map(job_options::kib_of_memory).transpose()?;
    let common_kib = common_kib.or(asked_for.sizes.common_kib);
    let label = label.to_string();
    let sizes =
        JobSizes { block_kib, is_cold, beyond_cache_pct, common_kib, ..asked_for.sizes.clone() };
    Ok(move |users, role| {
        let (label, mix, sizes) = (label.clone(), mix.clone(), sizes.clone());
        Work::Load(Box::new(UserLoad { label, mix, users, sizes, role }))
    })
}

fn check_tests(mix: &JobMix, workloads: &[Workload], asked_for: &Selection) -> Result<(), String> {
    let Selection { surroundings, treated, .. } = asked_for;
    for test in mix.tests.keys() {
        let of_it = |workload: &&Workload| workload.name == *test && workload.group != GROUP;
        let Some(workload) = workloads.iter().find(of_it) else {
            return Err(format!(
                "the mix `{}` has a test that does not exist: {}",
                mix.name,
                unknown(test, workloads, &[])
            ));
        };
        let Some(need) = workload.needs.as_deref() else { continue };
        if !surroundings.have(need)? {
            return Err(format!(
                "the mix `{}` has the job `{test}`, which needs a fixture for `{need}`: add one with \
                 --fixture",
                mix.name
            ));
        }
        if *treated != WhoIsTreated::Both {
            return Err(format!(
                "the mix `{}` has the job `{test}`, which needs a `{need}` server. Users of a mix run on \
                 this machine and get the treatment of their servers: use --treat both, without --client",
                mix.name
            ));
        }
    }
    Ok(())
}

fn find_mix(label: &str, files: &[MixFromFile]) -> Result<JobMix, String> {
    let name = label.strip_prefix(mix::PREFIX).unwrap_or(label);
    if let Some(own) = files.iter().find(|own| own.file == name) {
        return Ok(own.mix.clone());
    }
    let mixes = mix::embedded()?;
    if let Some(mix) = mixes.iter().find(|mix| mix.name == name) {
        return Ok(mix.clone());
    }
    let names: Vec<&str> = mixes.iter().map(|mix| mix.name.as_str()).collect();
    Err(format!("there is no mix `{name}`; {} (`weigh list mixes`)", near_or_all(name, &names)))
}

/// `suites` are the words that name one, and what each names.
fn resolve_one(
    name: &str,
    workloads: &[Workload],
    suites: &[(&str, &Suite)],
    surroundings: &Surroundings,
) -> Result<Vec<Work>, String> {
    let find = |name: &str, member: Option<Member>| -> Result<Vec<Work>, String> {
        if let Some(one) = Interpreted::named(name) {
            return Ok(vec![Work::Interpreted(one)]);
        }
        let (base, server) = name.split_once('@').unwrap_or((name, ""));
        let asks = |workload: &&Workload| workload.name == base && workload.needs.is_some();
        if let Some(workload) = workloads.iter().find(asks) {
            return with_servers(workload, member.as_ref(), server, surroundings);
        }
        let found = workloads.iter().find(|workload| workload.name == name);
        Ok(found.map(|workload| builtin(workload, member, None)).into_iter().collect())
    };
    let found = find(name, None)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let of_language =
        |one: &Interpreted| one.name().strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let programs: Vec<Work> =
        Interpreted::all().filter(of_language).map(Work::Interpreted).collect();
    if !programs.is_empty() {
        return Ok(programs);
    }
    // One of two processes is a row per placement: NAME@same-cpu and NAME@cross-cpu.
    let placed: Vec<Work> = workloads
        .iter()
        .filter(|workload| {
            workload.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('@'))
        })
        .map(|workload| builtin(workload, None, None))
        .collect();
    if !placed.is_empty() {
        return Ok(placed);
    }
    let (_, suite) = suites
        .iter()
        .find(|(word, _)| *word == name)
        .ok_or_else(|| unknown(name, workloads, suites))?;
    let mut works = Vec::new();
    for member in &suite.members {
        let found = find(&member.name, Some(member.clone()))?;
        if found.is_empty() {
            let problem = unknown(&member.name, workloads, &[]);
            return Err(match member.line {
                // That of an experiment which is gone on with.
                0 => format!("the suite {name}: {problem}"),
                line => format!("{name}:{line}: {problem}"),
            });
        }
        works.extend(found);
    }
    Ok(works)
}

fn builtin(workload: &Workload, member: Option<Member>, server: Option<&'static Service>) -> Work {
    Work::Builtin { workload: Box::new(workload.clone()), member, copies: 1, server, beside: None }
}

/// A workload that asks a server: what all arms have, or else a row per server that there is, `NAME@SERVER`,
/// or that which was named.
fn with_servers(
    workload: &Workload,
    member: Option<&Member>,
    wanted: &str,
    surroundings: &Surroundings,
) -> Result<Vec<Work>, String> {
    let need = workload.needs.as_deref().unwrap_or_default();
    if wanted.is_empty() && surroundings.have(need)? {
        return Ok(vec![builtin(workload, member.cloned(), None)]);
    }
    let of = |service| builtin(workload, member.cloned(), Some(service));
    let is_wanted = |service: &&Service| wanted.is_empty() || service.name == wanted;
    let works: Vec<Work> = services(need).filter(is_wanted).map(of).collect();
    match works.is_empty() {
        false => Ok(works),
        true => {
            let known: Vec<&str> = services(need).map(|service| service.name).collect();
            let name = &workload.name;
            Err(format!(
                "there is no {need} `{wanted}`; choose one of {}, for example `{name}@{}`",
                known.join(", "),
                known.first().unwrap_or(&"")
            ))
        }
    }
}

fn unknown(name: &str, workloads: &[Workload], suites: &[(&str, &Suite)]) -> String {
    if name.is_empty() {
        return "the name of the workload is empty; is a shell variable unset?".into();
    }
    let known =
        workloads.iter().map(|w| w.name.as_str()).chain(suites.iter().map(|(word, _)| *word));
    let near = similar(name, known);
    let hint = match near.is_empty() {
        true => "see `weigh list workloads` and `weigh list suites`; a command goes after `--` of `weigh \
                 compare`, or to `weigh versus`"
            .to_owned(),
        false => format!("did you mean `{}`?", near.join("` or `")),
    };
    format!("there is no workload or suite `{name}`; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Workload {
        Workload {
            name: name.into(),
            group: "ipc".into(),
            unit: "ops/s".into(),
            units_per_op: 1.0,
            syscalls_per_op: Some(4.0),
            ..Workload::default()
        }
    }

    #[test]
    fn an_empty_name_is_said_to_be_empty() {
        assert!(
            resolve_one("", &[], &[], &Surroundings::default())
                .unwrap_err()
                .contains("the name of the workload is empty")
        );
    }

    #[test]
    fn a_workload_of_two_processes_is_a_row_per_placement() {
        let known = ["pipe", "pong@cross-cpu", "pong@same-cpu", "pongs@same-cpu"].map(named);
        let rows = |name: &str| -> Vec<String> {
            let works = resolve_one(name, &known, &[], &Surroundings::default()).unwrap();
            works.iter().map(|work| work.name().to_string()).collect()
        };
        assert_eq!(rows("pong"), ["pong@cross-cpu", "pong@same-cpu"]);
        assert_eq!(rows("pong@same-cpu"), ["pong@same-cpu"]);
        assert_eq!(rows("pipe"), ["pipe"]);
    }
}
