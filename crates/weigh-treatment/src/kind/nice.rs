//! `nice`: how nice the workload is to others that want the CPU.

use crate::{
    Kind, Launch, Parameter, Probe, Reach, Treatment, TreatmentError, TreatmentKind, only_word,
};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::nice_level::NiceLevel;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "nice",
        summary: "niceness of the workload (CPU priority)",
        parameters: &[Parameter { form: "N", help: "niceness, -20 to 19; lowering it needs root" }],
        probe: || Probe::Available,
    },
    build,
);

const LEVELS: std::ops::RangeInclusive<i32> = -20..=19;

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let word = only_word(parameters).ok_or("`nice` takes one level: nice:5")?;
    let level = word.parse().ok().filter(|level| LEVELS.contains(level));
    let level = level.ok_or_else(|| {
        format!("nice:{word}: takes a whole number from {} to {}", LEVELS.start(), LEVELS.end())
    })?;
    Ok(Box::new(Niceness { level, others: None }))
}

struct Niceness {
    level: i32,
    /// Niceness of processes without a level of ours, as first seen.
    others: Option<String>,
}

impl Treatment for Niceness {
    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn setup(&self, is_treated: bool) -> Setup {
        Setup::default().with(NiceLevel { level: is_treated.then_some(self.level) })
    }

    /// When it was executed and when it had ended. In between it may have been another, as somebody would
    /// have to change it twice.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let own = launch.setup.get::<NiceLevel>().and_then(|step| step.level);
        if launch.is_treated && own != Some(self.level) {
            return Err(TreatmentError::NotInForce(format!(
                "weigh did not set niceness {} for the treated process",
                self.level
            )));
        }
        let at_start = launch.seen(NiceLevel::SEEN[0])?.into_iter();
        let at_end = launch.launched.seen(NiceLevel::SEEN[1])?;
        let at_start = at_start.map(|found| (found, "when it was executed"));
        for (found, when) in at_start.chain([(at_end, "at its end")]) {
            let wanted = match own {
                Some(level) => level.to_string(),
                None => self.others.get_or_insert_with(|| found.to_owned()).clone(),
            };
            if found != wanted {
                return Err(TreatmentError::NotInForce(format!(
                    "the {} process should have had niceness {wanted}, but had {found} {when}: a \
                     different process or the program itself changed it",
                    launch.whose()
                )));
            }
        }
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        vec![format!("The processes of this arm have niceness {}.", self.level)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    fn launched(seen: [&str; 2]) -> Launched {
        let seen = NiceLevel::SEEN.into_iter().zip(seen).map(|(n, v)| (n.into(), v.into()));
        Launched { seen: seen.collect(), ..Launched::default() }
    }

    #[test]
    fn a_sample_of_another_niceness_is_no_evidence() {
        let mut treatment = parse("nice:-5").unwrap().treatment;
        let mut is_believed = |is_treated, level, seen| {
            let setup = Setup::default().with(NiceLevel { level });
            let launched = launched(seen);
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        assert!(is_believed(true, Some(-5), ["-5", "-5"]));
        assert!(!is_believed(true, Some(-5), ["0", "-5"]));
        assert!(!is_believed(true, Some(-5), ["-5", "3"]));
        assert!(!is_believed(true, None, ["0", "0"]));
        assert!(is_believed(false, None, ["0", "0"]));
        assert!(!is_believed(false, None, ["3", "3"]), "not as the first was");
        assert!(is_believed(false, Some(7), ["7", "7"]), "another arm");
        assert!(!is_believed(false, Some(7), ["0", "0"]));
    }

    #[test]
    fn what_is_no_level_is_refused() {
        let refused = |label: &str| parse(label).err().unwrap();
        for label in ["nice:20", "nice:-21", "nice:high", "nice:1.5"] {
            assert!(refused(label).contains("from -20 to 19"), "{label}");
        }
        for label in ["nice", "nice:1,2"] {
            assert!(refused(label).contains("takes one level"), "{label}");
        }
        assert!(refused("nice:n=5").contains("does not take `n=`"));
    }
}
