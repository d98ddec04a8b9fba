//! Several treatments in one arm, as `audit+seccomp`: all of them in force at once, each proved with every
//! sample, and taken back in reverse order.

use super::kind::none;
use super::{
    ApplyContext, Launch, Occupied, Place, Reach, Role, Treatment, TreatmentError, build,
    not_elsewhere,
};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Term;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_workload::instance::Instance;
use weigh_workload::setup::Setup;

/// The treatments of one arm, in the order written, each with the name of its kind.
pub struct Combined {
    parts: Vec<(String, Box<dyn Treatment>)>,
}

impl Combined {
    pub fn build(terms: &[Term]) -> Result<Combined, String> {
        for (index, Term { name, .. }) in terms.iter().enumerate() {
            if name == none::KIND.kind.name {
                return Err(format!(
                    "`{name}` cannot be combined with other treatments: remove it from the arm"
                ));
            }
            if terms[..index].iter().any(|other| other.name == *name) {
                return Err(format!(
                    "`{name}` occurs twice in one arm: write two arms, with a blank instead of the `+`"
                ));
            }
        }
        refuse_filtered_tracer(terms)?;
        let build = |term: &Term| Ok((term.name.clone(), build(term)?));
        let parts: Vec<_> = terms.iter().map(build).collect::<Result<_, String>>()?;
        for (index, (name, part)) in parts.iter().enumerate() {
            for (other, their) in &parts[..index] {
                let theirs = their.occupies();
                let is_theirs = |own: &Occupied| theirs.iter().any(|their| their.what == own.what);
                if let Some(both) = part.occupies().into_iter().find(is_theirs) {
                    return Err(format!(
                        "`{other}` and `{name}` cannot be in one arm: both change {}",
                        both.what
                    ));
                }
            }
        }
        let of = |reach| parts.iter().find(|(_, part)| part.reach() == reach);
        let elsewhere = of(Reach::Guest).or_else(|| of(Reach::Elsewhere));
        if let Some(((there, _), (name, _))) = elsewhere.zip(of(Reach::System)) {
            return Err(not_elsewhere(there, name));
        }
        Ok(Combined { parts })
    }

    fn all(&self) -> impl Iterator<Item = &dyn Treatment> {
        self.parts.iter().map(|(_, part)| &**part)
    }
}

/// Refuses filters around strace: the set-up process executes strace after it has installed them, so they
/// would slow strace's own calls, too. A process has one tracer and one supervisor.
fn refuse_filtered_tracer(terms: &[Term]) -> Result<(), String> {
    let is_on = |term: &&Term| !term.parameters.has("off");
    let of = |names: &[&str]| {
        terms.iter().filter(is_on).find(|term| names.contains(&term.name.as_str()))
    };
    let filtered = of(&["strace"]).zip(of(&["seccomp", "seccomp-notify"])).map(|both| {
        let why = "the filter would also be in force for strace itself, so the cost would not be that of \
                   the workload";
        (both, why)
    });
    let supervised = of(&["ptrace"]).zip(of(&["strace", "seccomp-notify"]));
    let supervised =
        supervised.map(|both| (both, "a process can have only one tracer or supervisor"));
    match filtered.or(supervised) {
        None => Ok(()),
        Some(((one, other), why)) => Err(format!(
            "`{}` and `{}` cannot be in one arm: {why}. Write two arms, with a space instead of the `+`",
            one.name, other.name
        )),
    }
}

impl Treatment for Combined {
    fn occupies(&self) -> Vec<Occupied> {
        self.all().flat_map(|part| part.occupies()).collect()
    }

    fn sets_in_late(&self) -> bool {
        self.all().any(|part| part.sets_in_late())
    }

    fn can_interleave(&self) -> bool {
        self.all().all(|part| part.can_interleave())
    }

    fn left_no_async_work(&self, evidence: &Evidence) -> bool {
        self.all().all(|part| part.left_no_async_work(evidence))
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        let is_place =
            |name: &str| super::find_treatment(name).is_some_and(|treatment| treatment.is_place);
        // In a place, programs and CPUs are others.
        let has_place = self.parts.iter().any(|(name, _)| is_place(name));
        let mut checked = self.parts.iter_mut().filter(|(name, _)| !has_place || is_place(name));
        checked.try_for_each(|(_, part)| part.check_inputs())
    }

    fn takes_time(&self) -> Option<String> {
        let all: Vec<String> = self.all().filter_map(|part| part.takes_time()).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let mut sentences = Vec::new();
        for (_, part) in &mut self.parts {
            sentences.extend(part.prepare(context, guard)?);
        }
        Ok(sentences)
    }

    fn apply(&mut self, context: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.apply(context, guard))
    }

    fn places(&mut self) -> Vec<&mut dyn Place> {
        self.parts.iter_mut().flat_map(|(_, part)| part.places()).collect()
    }

    fn reach(&self) -> Reach {
        self.all().map(|part| part.reach()).max().unwrap_or(Reach::Processes)
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let setups = self.all().map(|part| part.setup(is_treated));
        setups.fold(Setup::default(), Setup::overridden_by)
    }

    fn instance(&mut self) -> Result<Instance, TreatmentError> {
        let mut parts = self.parts.iter_mut();
        parts.try_fold(Instance::default(), |all, (_, part)| Ok(all.joined(part.instance()?)))
    }

    fn take_turn(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.take_turn(role))
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.begin_sample(role))
    }

    fn begin_pair(&mut self, roles: [Role; 2]) -> Result<(), TreatmentError> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.begin_pair(roles))
    }

    fn query_servers(&mut self) -> Result<(), TreatmentError> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.query_servers())
    }

    fn verify_exempt(&mut self, launch: &Launch) -> Result<(), TreatmentError> {
        self.parts.iter_mut().try_for_each(|(_, part)| part.verify_exempt(launch))
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let mut evidence = Evidence::default();
        for (_, part) in &mut self.parts {
            evidence = evidence.joined(part.verify_sample(launch)?);
        }
        Ok(evidence)
    }

    fn content(&self) -> Vec<u8> {
        let contents: Vec<_> =
            self.parts.iter().map(|(name, part)| (name, part.content())).collect();
        format!("{contents:?}").into_bytes()
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        self.all().flat_map(|part| part.quantities()).collect()
    }

    fn facts(&self) -> Vec<String> {
        self.all().flat_map(|part| part.facts()).collect()
    }

    fn warnings(&self) -> Vec<String> {
        self.all().flat_map(|part| part.warnings()).collect()
    }

    fn state(&self, is_treated: bool) -> Option<&'static str> {
        self.all().find_map(|part| part.state(is_treated))
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        let parts = self.parts.iter_mut().rev();
        // One that cannot be taken back keeps none of the others from it.
        let mut errors: Vec<TreatmentError> =
            parts.filter_map(|(_, part)| part.restore(guard).err()).collect();
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => {
                let left: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Err(TreatmentError::Unavailable(left.join("\n")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::{Named, PairDraw, parse};
    use weigh_workload::launcher::Launched;
    use weigh_workload::place::LaunchPlace;
    use weigh_workload::setup::kind::login_uid::LoginUid;
    use weigh_workload::setup::kind::planted_share::PlantedShare;

    /// Writes down what is asked of it; its proof fails where there is a reason.
    struct Witness {
        name: &'static str,
        fails: Option<&'static str>,
        log: Rc<RefCell<Vec<String>>>,
    }

    impl Treatment for Witness {
        fn setup(&self, is_treated: bool) -> Setup {
            match self.name {
                "one" => {
                    Setup::default().with(LoginUid { launcher: 0, workers: u32::from(is_treated) })
                }
                _ => Setup::default().with(PlantedShare::evenly(7)),
            }
        }

        fn begin_sample(&mut self, _: Role) -> Result<(), TreatmentError> {
            self.log.borrow_mut().push(format!("begin {}", self.name));
            Ok(())
        }

        fn verify_sample(&mut self, _: &Launch) -> Result<Evidence, TreatmentError> {
            self.log.borrow_mut().push(format!("verify {}", self.name));
            if let Some(why) = self.fails {
                return Err(TreatmentError::NotInForce(why.into()));
            }
            let mut evidence = Evidence::default();
            evidence.amounts.set(self.name, "was there");
            Ok(evidence)
        }

        fn content(&self) -> Vec<u8> {
            self.name.into()
        }

        fn facts(&self) -> Vec<String> {
            vec![self.name.into()]
        }
    }

    fn combined(fails: [Option<&'static str>; 2]) -> (Combined, Rc<RefCell<Vec<String>>>) {
        let log = Rc::default();
        let parts = ["one", "two"].into_iter().zip(fails).map(|(name, fails)| {
            let part: Box<dyn Treatment> = Box::new(Witness { name, fails, log: Rc::clone(&log) });
            (name.into(), part)
        });
        (Combined { parts: parts.collect() }, log)
    }

    #[test]
    fn all_parts_are_told_and_asked_and_their_setups_and_evidence_are_one() {
        let (mut both, log) = combined([None, None]);
        let setup = both.setup(true);
        let login_uid = |setup: &Setup| setup.get::<LoginUid>().map(|uid| uid.workers);
        assert_eq!((login_uid(&setup), login_uid(&both.setup(false))), (Some(1), Some(0)));
        assert_eq!(setup.get::<PlantedShare>(), Some(&PlantedShare::evenly(7)));
        both.begin_sample(Role::Treated).unwrap();
        let launched = Launched::default();
        let launch = Launch::of_worker(true, &setup, &launched);
        let evidence = both.verify_sample(&launch).unwrap();
        let told: Vec<_> = evidence.amounts.texts().map(|(name, _)| name).collect();
        assert_eq!(told, ["one", "two"]);
        assert_eq!(*log.borrow(), ["begin one", "begin two", "verify one", "verify two"]);
        assert_eq!(both.facts(), ["one", "two"]);
        let content = String::from_utf8(both.content()).unwrap();
        assert!(content.contains("one") && content.contains("two"), "{content}");
    }

    #[test]
    fn a_sample_counts_only_where_both_are_in_force() {
        for fails in [[Some("no"), None], [None, Some("no")]] {
            let (mut both, _) = combined(fails);
            let (setup, launched) = (both.setup(true), Launched::default());
            let launch = Launch::of_worker(true, &setup, &launched);
            assert!(matches!(both.verify_sample(&launch), Err(TreatmentError::NotInForce(_))));
        }
    }

    /// A place that is another one for each pair: the directory has the number of the pair.
    struct Moving(&'static str, u32);

    impl Place for Moving {
        fn launch_place(&self, place: LaunchPlace) -> LaunchPlace {
            let own = format!("{}-{}", self.0, self.1);
            LaunchPlace { work_directory: place.work_directory.join(own), ..place }
        }

        fn prepare_pair(&mut self, _: PairDraw) -> Result<(), TreatmentError> {
            self.1 += 1;
            Ok(())
        }
    }

    impl Treatment for Moving {
        fn places(&mut self) -> Vec<&mut dyn Place> {
            vec![self]
        }

        fn verify_sample(&mut self, _: &Launch) -> Result<Evidence, TreatmentError> {
            Ok(Evidence::default())
        }
    }

    #[test]
    fn every_part_is_applied_to_the_place_of_each_pair() {
        let scratch = tempfile::tempdir().unwrap();
        let here = LaunchPlace::here(scratch.path().to_owned()).unwrap();
        let part =
            |name: &'static str| (name.to_owned(), Box::new(Moving(name, 0)) as Box<dyn Treatment>);
        let treatment = Box::new(Combined { parts: vec![part("outer"), part("inner")] });
        let mut named = Named { label: String::new(), kinds: Vec::new(), treatment };
        let below = |place: LaunchPlace| {
            place.work_directory.strip_prefix(&here.work_directory).unwrap().display().to_string()
        };
        assert_eq!(below(named.launch_place(here.clone())), "outer-0/inner-0");
        for pair in 1..3 {
            let place = named.place_for_pair(here.clone(), PairDraw::default()).unwrap();
            assert_eq!(below(place), format!("outer-{pair}/inner-{pair}"));
        }
    }

    #[test]
    fn what_excludes_each_other_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        assert!(
            refused("seccomp:compares=1+seccomp").contains("`seccomp` occurs twice in one arm")
        );
        assert!(refused("audit:backlog=64+audit:live").contains("two arms"));
        assert!(refused("seccomp+none").contains("remove it"));
        assert!(refused("seccomp+audti").contains("unknown treatment `audti`"));
        assert!(parse("audit:backlog=64+seccomp+planted:share=1%").is_ok());
        for name in ["seccomp", "seccomp-notify"] {
            let said = format!("`strace` and `{name}` cannot be in one arm: ");
            for label in [format!("strace:off+{name}"), format!("{name}+strace")] {
                let filtered = parse(&label).err();
                assert_eq!(filtered.is_some(), !label.contains("off"), "{label}");
                assert!(filtered.is_none_or(|why| why.starts_with(&said)), "{label}");
            }
        }
    }
}
