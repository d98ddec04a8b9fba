//! Activity of the host alongside COMM: a workload with a copy per CPU of W_test, or a mix of jobs
//! with one per user (`load:shared:users=8`).

use weigh_model::result::work_name::WorkName;
use weigh_model::workload::mix;
use weigh_model::workload::mix::{JobMix, JobSizes, PREFIX};

/// A mix under a load.
#[derive(Clone, Debug, PartialEq)]
pub struct BesideLoad {
    mix: JobMix,
    pub users: usize,
}

impl BesideLoad {
    /// `None` of an activity that is a workload.
    pub fn parse(activity: &str) -> Result<Option<BesideLoad>, String> {
        if !activity.starts_with(PREFIX) {
            return Ok(None);
        }
        let names = WorkName::parse(activity)?;
        let [name] = names.as_slice() else {
            return Err(format!(
                "the activity `{activity}` has several numbers of users: give one"
            ));
        };
        let users = name.users().ok_or_else(|| {
            format!("the activity needs a number of users, such as `{}:users=8`", name.name)
        })?;
        let wanted = name.name.strip_prefix(PREFIX).unwrap_or_default();
        let mixes = mix::embedded()?;
        let known: Vec<String> = mixes.iter().map(|mix| mix.name.clone()).collect();
        let mix = mixes
            .into_iter()
            .find(|mix| mix.name == wanted)
            .ok_or_else(|| format!("unknown mix `{wanted}`; known: {}", known.join(", ")))?;
        if mix.think_ms.is_some() || mix.resident_mib.is_some() || !mix.commands.is_empty() {
            return Err(format!(
                "`{activity}` cannot be an activity: its users wait, keep memory or start programs, which \
                 activities do not"
            ));
        }
        Ok(Some(BesideLoad { mix, users: users.get() }))
    }

    /// How COMM is told, with so many jobs of each user.
    pub fn arguments(&self, units: u64) -> Vec<String> {
        let sizes = JobSizes::default();
        let jobs = self.mix.jobs_per_user(sizes.jobs_of(&self.mix));
        let jobs = jobs.into_iter().filter(|(_, count)| *count > 0);
        let mut argv: Vec<String> = jobs
            .flat_map(|(test, count)| ["--beside-job".into(), format!("{test}={count}")])
            .collect();
        argv.extend(["--beside-units".into(), units.to_string()]);
        argv.extend(["--beside-copies".into(), self.users.to_string()]);
        argv.extend(["--file-kib".into(), sizes.kib_of(self.users, &self.mix).to_string()]);
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_told_by_its_jobs_and_users() {
        let load = BesideLoad::parse("load:shared:users=8").unwrap().unwrap();
        let told = load.arguments(50).join(" ");
        assert!(
            told.contains("--beside-job ") && told.contains("--beside-units 50 --beside-copies 8")
        );
        assert_eq!(BesideLoad::parse("activity-cpu"), Ok(None));
    }

    #[test]
    fn what_is_no_load_is_said() {
        let said = |activity: &str| BesideLoad::parse(activity).unwrap_err();
        assert!(said("load:shared").contains("`load:shared:users=8`"));
        assert!(said("load:shared:users=1,2").contains("several"));
        assert!(said("load:memory:users=2").contains("keep memory"));
        assert!(said("load:nonesuch:users=1").contains("known: "));
    }
}
