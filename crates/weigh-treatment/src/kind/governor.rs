//! `governor`: how the clock rate of all CPUs is chosen, for each treated sample.

use std::path::Path;

use crate::switched::{Switch, Switched};
use crate::{Kind, Parameter, Probe, Treatment, TreatmentKind, only_word, writable};
use weigh_host::machine::fix::{CPUFREQ, governors, policies};
use weigh_host::undo::claim::CPUS;
use weigh_model::label::Parameters;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "governor",
        summary: "the governor that chooses the clock rate of all CPUs",
        parameters: &[Parameter {
            form: "NAME",
            help: "a governor of the driver, such as performance, powersave or schedutil",
        }],
        probe,
    },
    build,
);

fn probe() -> Probe {
    match policies(Path::new("/")).first() {
        Some(policy) => writable(&format!("{CPUFREQ}/{policy}/scaling_governor")),
        None => Probe::Broken(format!(
            "this system shows no governor ({CPUFREQ}): its firmware or hypervisor sets the clock \
             rate"
        )),
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let wanted =
        only_word(parameters).ok_or("`governor` takes one governor: governor:performance")?;
    Ok(Box::new(switched(Path::new("/"), wanted)?))
}

fn switched(root: &Path, wanted: &str) -> Result<Switched, String> {
    let switches = governors(root, wanted)?.into_iter().map(|setting| {
        let policy = setting.file.parent().and_then(Path::file_name).unwrap_or_default();
        let name = format!("the governor of {}", policy.to_string_lossy());
        Switch { name, setting }
    });
    Ok(Switched::new(CPUS, switches.collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::rc::Rc;

    use super::*;
    use crate::Role;
    use weigh_host::undo::settings;

    /// No machine that this is made on has a governor.
    #[test]
    fn all_policies_are_switched_and_put_back_from_a_journal() {
        let root = tempfile::tempdir().unwrap();
        let file = |policy: usize, name: &str| {
            root.path().join(format!(".{CPUFREQ}/policy{policy}/{name}"))
        };
        for policy in [0, 4] {
            fs::create_dir_all(file(policy, "x").parent().unwrap()).unwrap();
            fs::write(file(policy, "scaling_governor"), "powersave\n").unwrap();
            let known = "performance powersave\n";
            fs::write(file(policy, "scaling_available_governors"), known).unwrap();
        }
        let read = || [0, 4].map(|policy| fs::read_to_string(file(policy, "scaling_governor")));
        let are = |wanted: &str| read().into_iter().all(|found| found.unwrap().trim() == wanted);
        let refused = switched(root.path(), "ondemand").err().unwrap();
        assert!(refused.contains("governor `ondemand`; available: performance powersave"));
        let mut arm = switched(root.path(), "performance").unwrap();
        arm.look(Rc::default()).unwrap();
        arm.try_out().unwrap();
        assert!(are("powersave"));
        arm.begin_sample(Role::Treated).unwrap();
        assert!(are("performance"));
        let journalled = arm.settings().map(|setting| serde_json::json!([setting]));
        journalled.for_each(|state| settings::undo(&state, root.path()).unwrap());
        assert!(are("powersave"));
        let said = arm.begin_sample(Role::Paired).unwrap_err().to_string();
        assert!(said.contains("the governor of policy0 was changed"), "{said}");
    }
}
