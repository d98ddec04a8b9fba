//! Settings of the kernel that are switched before each sample: in force for those of a treated arm, and as
//! they were found for the others. Several arms may switch the same, each to something else.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;

use super::{ApplyContext, Launch, Occupied, Role, Treatment, TreatmentError};
use weigh_host::machine::fix::Setting;
use weigh_host::machine::sysctl::can_be_put_back;
use weigh_host::undo::guard::Guard;
use weigh_host::undo::settings;
use weigh_host::undo::settings::SETTINGS;
use weigh_model::evidence::Evidence;

/// Shared knowledge of the arms: the current value of each setting, and the arm that holds it.
#[derive(Default)]
pub struct Switchboard {
    arms: Cell<usize>,
    now: RefCell<BTreeMap<PathBuf, Position>>,
}

struct Position {
    value: String,
    /// `None` where it is as it was found.
    holder: Option<usize>,
}

/// A setting under the name by which a person knows it.
pub struct Switch {
    pub name: String,
    /// The setting. Its original value is read when it is prepared.
    pub setting: Setting,
}

/// Settings that one arm has.
pub struct Switched {
    occupied: &'static str,
    switches: Vec<Switch>,
    /// As each reads when it is in force: the kernel may write a number in another way.
    in_force: Vec<String>,
    board: Rc<Switchboard>,
    arm: usize,
}

impl Switched {
    pub fn new(occupied: &'static str, switches: Vec<Switch>) -> Switched {
        let (in_force, board) = (Vec::new(), Rc::default());
        Switched { occupied, switches, in_force, board, arm: 0 }
    }

    /// Returns the settings that are written down and put back.
    pub(super) fn settings(&self) -> impl DoubleEndedIterator<Item = &Setting> {
        self.switches.iter().map(|switch| &switch.setting)
    }

    /// Reads what they are now, before any arm changes them. Sentences for the person.
    pub(super) fn look(&mut self, board: Rc<Switchboard>) -> Result<Vec<String>, TreatmentError> {
        self.arm = board.arms.replace(board.arms.get() + 1);
        let mut sentences = Vec::new();
        for Switch { name, setting } in &mut self.switches {
            setting.was = setting.read().map_err(|error| unavailable(name, error))?;
            can_be_put_back(&setting.file, &setting.was)
                .map_err(|why| TreatmentError::Unavailable(format!("{name}: {why}")))?;
            if is_same(&setting.was, &setting.wanted) {
                sentences.push(format!(
                    "{name} is already {}: this arm does not change the system.",
                    setting.was
                ));
            }
            let position = Position { value: setting.was.clone(), holder: None };
            board.now.borrow_mut().insert(setting.file.clone(), position);
        }
        self.board = board;
        Ok(sentences)
    }

    /// Changes each and puts it back, once: what that does not leave as it was, is refused.
    pub(super) fn try_out(&mut self) -> Result<(), TreatmentError> {
        for Switch { name, setting } in &self.switches {
            let refused = |problem: String| Err(TreatmentError::Unavailable(problem));
            setting.apply().map_err(|error| unavailable(name, error))?;
            let in_force = setting.read().map_err(|error| unavailable(name, error))?;
            setting.undo().map_err(|error| unavailable(name, error))?;
            let back = setting.read().map_err(|error| unavailable(name, error))?;
            let Setting { was, wanted, .. } = setting;
            if !is_same(&back, was) {
                return refused(format!("cannot restore {name}: it was {was}, but is now {back}"));
            }
            if is_same(&in_force, was) && !is_same(wanted, was) {
                return refused(format!("{name} stays {was} although weigh wrote {wanted}"));
            }
            self.in_force.push(in_force);
        }
        Ok(())
    }

    fn switch(&self, is_treated: bool) -> Result<(), TreatmentError> {
        let mut board = self.board.now.borrow_mut();
        for (Switch { name, setting }, in_force) in self.switches.iter().zip(&self.in_force) {
            let Some(position) = board.get_mut(&setting.file) else { continue };
            let is_ours = position.holder == Some(self.arm);
            let now = setting.read().map_err(|error| unavailable(name, error))?;
            if !is_same(&now, &position.value) {
                return Err(changed(name, &position.value, &now));
            }
            let (done, value, holder) = match is_treated {
                true if !is_ours => (setting.apply(), in_force, Some(self.arm)),
                false if is_ours => (setting.undo(), &setting.was, None),
                _ => continue,
            };
            done.map_err(|error| unavailable(name, error))?;
            *position = Position { value: value.clone(), holder };
        }
        Ok(())
    }

    /// Checks that each setting is as this arm left it, or as it was found if no arm holds it.
    fn prove(&self) -> Result<(), TreatmentError> {
        let board = self.board.now.borrow();
        for Switch { name, setting } in &self.switches {
            let Some(position) = board.get(&setting.file) else { continue };
            // Another arm that has it proves it.
            if position.holder.is_none_or(|holder| holder == self.arm) {
                let now = setting.read().map_err(|error| unavailable(name, error))?;
                if !is_same(&now, &position.value) {
                    return Err(changed(name, &position.value, &now));
                }
            }
        }
        Ok(())
    }
}

impl Treatment for Switched {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: self.occupied, can_alternate: true }]
    }

    fn check_inputs(&mut self) -> Result<(), String> {
        self.switches.iter().try_for_each(|Switch { name, setting }| {
            let read = setting.read().map_err(|error| unavailable(name, error));
            read.map(drop).map_err(|error| error.to_string())
        })
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        let sentences = self.look(context.commons.of())?;
        for setting in self.settings() {
            let instance = setting.file.display().to_string();
            settings::write_down(std::slice::from_ref(setting), &instance, guard)
                .map_err(TreatmentError::Unavailable)?;
        }
        Ok(sentences)
    }

    fn apply(&mut self, _: &ApplyContext, _: &mut Guard) -> Result<(), TreatmentError> {
        self.try_out()
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        self.switch(role == Role::Treated)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let board = self.board.now.borrow();
        let is_held = |switch: &Switch| {
            board.get(&switch.setting.file).is_some_and(|at| at.holder == Some(self.arm))
        };
        if self.switches.iter().any(|switch| is_held(switch) != launch.is_treated) {
            return Err(TreatmentError::NotInForce(format!(
                "{} was not switched for this sample",
                self.occupied
            )));
        }
        self.prove()?;
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        let of_one = |(Switch { name, setting }, in_force): (&Switch, &String)| {
            format!("{name} is {in_force} for each treated sample, and was {} before.", setting.was)
        };
        self.switches.iter().zip(&self.in_force).map(of_one).collect()
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        for setting in self.settings().rev() {
            let instance = setting.file.display().to_string();
            guard.undo(SETTINGS, &instance).map_err(TreatmentError::Unavailable)?;
        }
        Ok(())
    }
}

/// Numbers in a line may be separated by blanks or tabs.
fn is_same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

fn changed(name: &str, should: &str, is: &str) -> TreatmentError {
    TreatmentError::NotInForce(format!(
        "{name} was changed during the measurement: it should be {should}, but is {is}"
    ))
}

fn unavailable(name: &str, error: io::Error) -> TreatmentError {
    let what_to_do = match error.kind() {
        ErrorKind::PermissionDenied => "; this needs root",
        ErrorKind::NotFound => "; this kernel has no such setting",
        ErrorKind::InvalidInput => "; the kernel does not accept this value",
        _ => "",
    };
    TreatmentError::Unavailable(format!("cannot set {name}: {error}{what_to_do}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use weigh_model::ids::ArmId;
    use weigh_workload::launcher::Launched;
    use weigh_workload::setup::Setup;

    fn file(root: &Path, name: &str) -> PathBuf {
        root.join(name)
    }

    /// Arms that switch `a` and `b` below this directory, looked at and tried out.
    fn arms(root: &Path, of_arms: &[&[(&str, &str)]]) -> Vec<Switched> {
        let board: Rc<Switchboard> = Rc::default();
        let arm = |wanted: &&[(&str, &str)]| {
            let switch = |(name, wanted): &(&str, &str)| Switch {
                name: (*name).into(),
                setting: Setting {
                    file: file(root, name),
                    was: String::new(),
                    wanted: (*wanted).into(),
                },
            };
            Switched::new("the settings", wanted.iter().map(switch).collect())
        };
        let mut arms: Vec<Switched> = of_arms.iter().map(arm).collect();
        arms.iter_mut().for_each(|arm| drop(arm.look(Rc::clone(&board)).unwrap()));
        arms.iter_mut().for_each(|arm| arm.try_out().unwrap());
        arms
    }

    /// A launch in an arm, the baseline being 0; `during` is what happens meanwhile.
    fn launch(
        arms: &mut [Switched],
        arm: ArmId,
        treated: ArmId,
        during: impl Fn(),
    ) -> Result<(), TreatmentError> {
        for (index, one) in arms.iter_mut().enumerate() {
            one.begin_sample(Role::of(ArmId(index + 1), arm, treated))?;
        }
        during();
        let (setup, launched) = (Setup::default(), Launched::default());
        for (index, one) in arms.iter_mut().enumerate() {
            let is_treated = ArmId(index + 1) == arm;
            one.verify_sample(&Launch::of_worker(is_treated, &setup, &launched))?;
        }
        Ok(())
    }

    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::write(file(root.path(), "a"), "60\n").unwrap();
        fs::write(file(root.path(), "b"), "4 5\t6\n").unwrap();
        root
    }

    #[test]
    fn arms_take_turns_at_a_setting_and_the_baseline_has_what_was_found() {
        let root = root();
        let mut arms = arms(root.path(), &[&[("a", "10")], &[("a", "90"), ("b", "7 8 9")]]);
        let read = |name| fs::read_to_string(file(root.path(), name)).unwrap();
        for (arm, treated, wanted) in
            [(1, 1, "10"), (2, 2, "90"), (0, 2, "60"), (2, 2, "90"), (1, 1, "10"), (0, 1, "60")]
        {
            let see = || assert_eq!(read("a").trim(), wanted, "arm {arm} of {treated}");
            launch(&mut arms, ArmId(arm), ArmId(treated), see).unwrap();
            assert_eq!(read("b").trim(), if arm == 2 { "7 8 9" } else { "4 5\t6" });
        }
        assert_eq!(arms[0].facts(), ["a is 10 for each treated sample, and was 60 before."]);
    }

    #[test]
    fn what_another_changes_meanwhile_or_in_between_is_found() {
        let root = root();
        let change = || fs::write(file(root.path(), "a"), "33\n").unwrap();
        for (arm, wanted) in [(0, "60"), (1, "10")] {
            let mut arms = arms(root.path(), &[&[("a", "10")]]);
            let mut launch =
                |arm, during: &dyn Fn()| launch(&mut arms, ArmId(arm), ArmId(1), during);
            launch(arm, &|| {}).unwrap();
            let said = launch(arm, &change).unwrap_err().to_string();
            assert!(said.contains(&format!("should be {wanted}, but is 33")), "{said}");
            let said = launch(1 - arm, &|| {}).unwrap_err().to_string();
            assert!(said.contains("but is 33"), "{said}");
            fs::write(file(root.path(), "a"), "60\n").unwrap();
        }
    }

    #[test]
    fn what_is_not_there_or_takes_no_effect_is_refused() {
        let root = root();
        let switch = |name: &str| Switch {
            name: name.into(),
            setting: Setting {
                file: file(root.path(), name),
                was: String::new(),
                wanted: "1".into(),
            },
        };
        let look = |name| Switched::new("x", vec![switch(name)]).look(Rc::default());
        assert!(look("absent").unwrap_err().to_string().contains("no such setting"));
        fs::write(file(root.path(), "empty"), "").unwrap();
        assert!(look("empty").unwrap_err().to_string().contains("not a single line of text"));
        fs::write(file(root.path(), "same"), "1").unwrap();
        assert!(look("same").unwrap()[0].contains("is already 1"));
        let mut ignored = Switched::new("x", vec![switch("a")]);
        ignored.look(Rc::default()).unwrap();
        // A directory takes nothing.
        fs::remove_file(file(root.path(), "a")).unwrap();
        fs::create_dir(file(root.path(), "a")).unwrap();
        assert!(ignored.try_out().is_err());
    }
}
