//! `cmd`: whatever weigh does not know, by three commands of the user's.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::{
    ApplyContext, Kind, Launch, Parameter, Probe, Role, Treatment, TreatmentError, TreatmentKind,
};
use weigh_host::undo::guard::Guard;
use weigh_host::undo::running::CurrentCommand;
use weigh_host::undo::undo_command;
use weigh_host::undo::undo_command::UserCommand;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "cmd",
        summary: "any other change: shell commands that apply, undo and verify it",
        parameters: &[
            Parameter {
                form: "apply=COMMAND",
                help: "apply the change; runs before treated samples",
            },
            Parameter {
                form: "undo=COMMAND",
                help: "undo the change; runs before other samples and at the end, even if apply did \
                     nothing or half of it",
            },
            Parameter {
                form: "verify=COMMAND",
                help: "exit with status 0 if the change is in force, with a different status if not",
            },
        ],
        probe: || Probe::Available,
    },
    build,
);

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let directory = std::env::current_dir()
        .map_err(|error| format!("cannot find the current directory: {error}"))?;
    let command = |name: &str, what: &str| match parameters.value(name) {
        Some(line) if !line.trim().is_empty() && !line.contains('\0') => {
            Ok(UserCommand { line: line.to_owned(), directory: directory.clone() })
        }
        _ => Err(format!("`cmd` needs {name}=\"COMMAND\", which {what}")),
    };
    Ok(Box::new(Commanded {
        apply: command("apply", "applies the change")?,
        undo: command("undo", "undoes the change; the guard also runs it if weigh dies")?,
        verify: command("verify", "exits with status 0 only if the change is in force")?,
        turn: Rc::default(),
        arm: 0,
        running: None,
    }))
}

/// Whose change is in force.
#[derive(Default)]
struct CommandTurn {
    arms: Cell<usize>,
    holder: RefCell<Option<(usize, UserCommand)>>,
}

struct Commanded {
    apply: UserCommand,
    undo: UserCommand,
    verify: UserCommand,
    turn: Rc<CommandTurn>,
    arm: usize,
    /// Known when it is prepared.
    running: Option<Rc<CurrentCommand>>,
}

impl Commanded {
    fn is_held_by_us(&self) -> bool {
        self.turn.holder.borrow().as_ref().is_some_and(|(arm, _)| *arm == self.arm)
    }

    fn is_held(&self) -> bool {
        self.turn.holder.borrow().is_some()
    }

    fn running(&self) -> Result<&CurrentCommand, String> {
        self.running.as_deref().ok_or_else(|| "`cmd` was not prepared".to_owned())
    }

    fn write_down(&self, guard: &mut Guard) -> Result<(), String> {
        undo_command::write_down(&format!("cmd {}", self.arm), &self.undo, guard)
    }

    fn strike_out(&self, guard: &mut Guard) -> Result<(), String> {
        undo_command::strike_out(&format!("cmd {}", self.arm), &self.undo, guard)
    }

    /// Applies it; the change of another arm is undone first.
    fn switch_on(&self) -> Result<(), String> {
        if self.is_held_by_us() {
            return Ok(());
        }
        self.switch_off()?;
        self.turn.holder.replace(Some((self.arm, self.undo.clone())));
        self.apply.change(self.running()?)
    }

    fn switch_off(&self) -> Result<(), String> {
        let held = self.turn.holder.borrow().clone();
        let running = self.running()?;
        let undone = held.map_or(Ok(()), |(_, undo)| undo.undo(running));
        undone.map(|()| drop(self.turn.holder.take()))
    }

    fn prove(&self, is_wanted: bool, when: &str) -> Result<(), TreatmentError> {
        let verified = self.verify.ask().map_err(TreatmentError::NotInForce)?;
        match (is_wanted, verified) {
            (true, Err(problem)) => Err(TreatmentError::NotInForce(format!(
                "{when}, the change should have been in force, but {problem}"
            ))),
            (false, Ok(())) => Err(TreatmentError::NotInForce(format!(
                "{when}, the change should not have been in force, but `{}` ended with status 0: it does \
                 not detect the change, or `{}` does not undo it",
                self.verify.line, self.undo.line
            ))),
            _ => Ok(()),
        }
    }
}

impl Treatment for Commanded {
    fn prepare(
        &mut self,
        context: &ApplyContext,
        guard: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.turn = context.commons.of();
        self.running = Some(Rc::clone(guard.running()));
        self.arm = self.turn.arms.replace(self.turn.arms.get() + 1);
        match self.verify.ask().map_err(TreatmentError::Unavailable)? {
            Err(_) => Ok(Vec::new()),
            Ok(()) => Err(TreatmentError::Unavailable(format!(
                "`{}` ends with status 0 before anything was changed: the change is already in force, or \
                 verify= does not detect it",
                self.verify.line
            ))),
        }
    }

    /// Once, and undone twice: as the guard may, which does not know what was done.
    fn apply(&mut self, _: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.write_down(guard).map_err(TreatmentError::Unavailable)?;
        self.switch_on().map_err(TreatmentError::Unavailable)?;
        self.prove(true, "after it was applied")?;
        self.switch_off().map_err(TreatmentError::Unavailable)?;
        self.prove(false, "after it was undone")?;
        let running = self.running().map_err(TreatmentError::Unavailable)?;
        let Err(problem) = self.undo.undo(running) else { return Ok(()) };
        // The guard would fail in the same way, and there is nothing to undo.
        self.strike_out(guard).map_err(TreatmentError::Unavailable)?;
        Err(TreatmentError::Unavailable(format!(
            "undo= must succeed even if there is nothing to undo: {problem}"
        )))
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        if role == Role::Treated {
            self.switch_on().map_err(TreatmentError::NotInForce)?;
            return self.prove(true, "before a treated sample");
        }
        if self.is_held_by_us() {
            self.switch_off().map_err(TreatmentError::NotInForce)?;
        }
        match self.is_held() {
            true => Ok(()),
            false => self.prove(false, "before a sample without it"),
        }
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        // Another arm's change may be seen by this one's command.
        if launch.is_treated {
            self.prove(true, "after a treated sample")?;
        } else if !self.is_held() {
            self.prove(false, "after a sample without it")?;
        }
        Ok(Evidence::default())
    }

    fn facts(&self) -> Vec<String> {
        vec![format!(
            "weigh ran `{}` before treated samples and `{}` before others, whenever the state had to \
             change. `{}` verified the state before and after each sample.",
            self.apply.line, self.undo.line, self.verify.line
        )]
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        // The change of another arm may be seen by this one's command.
        self.switch_off().map_err(TreatmentError::Unavailable)?;
        self.prove(false, "at the end")?;
        self.strike_out(guard).map_err(TreatmentError::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_host::undo::state_dir::StateDir;
    use weigh_model::ids::ArmId;
    use weigh_workload::launcher::Launched;
    use weigh_workload::setup::Setup;

    #[test]
    fn all_three_commands_are_needed() {
        for (label, name) in [
            ("cmd", "apply"),
            ("cmd:apply=a,verify=b", "undo"),
            ("cmd:apply=a,undo=b", "verify"),
            ("cmd:apply=a,undo=b,verify=\" \"", "verify"),
        ] {
            let said = parse(label).err().unwrap();
            assert!(said.contains(&format!("`cmd` needs {name}=\"COMMAND\"")), "{said}");
        }
        assert!(parse("cmd:apply=\"a, b\",undo=c,verify=d").is_ok());
    }

    fn arm(number: usize, turn: &Rc<CommandTurn>, directory: &std::path::Path) -> Commanded {
        let running = CurrentCommand::of(&StateDir::at(directory).unwrap(), "7.journal");
        let command = |line: String| UserCommand { line, directory: directory.to_owned() };
        Commanded {
            apply: command(format!("echo {number} > it")),
            undo: command("rm -f it".into()),
            verify: command(format!("[ \"$(cat it)\" = {number} ]")),
            turn: Rc::clone(turn),
            arm: number,
            running: Some(Rc::new(running)),
        }
    }

    #[test]
    fn two_arms_that_change_the_same_take_turns() {
        let directory = tempfile::tempdir().unwrap();
        let turn = Rc::default();
        let mut arms = [1, 2].map(|number| arm(number, &turn, directory.path()));
        let (setup, launched) = (Setup::default(), Launched::default());
        for (arm, treated) in [(1, 1), (0, 1), (2, 2), (1, 1), (2, 2), (0, 2), (0, 1)] {
            for (index, one) in arms.iter_mut().enumerate() {
                one.begin_sample(Role::of(ArmId(index + 1), ArmId(arm), ArmId(treated))).unwrap();
            }
            let found = std::fs::read_to_string(directory.path().join("it")).unwrap_or_default();
            assert_eq!(found.trim(), if arm == 0 { String::new() } else { arm.to_string() });
            for (index, one) in arms.iter_mut().enumerate() {
                let is_treated = index + 1 == arm;
                one.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).unwrap();
            }
        }
        // From outside, in either direction.
        std::fs::write(directory.path().join("it"), "1").unwrap();
        assert!(
            arms[0].begin_sample(Role::Paired).unwrap_err().to_string().contains("should not have")
        );
        arms[0].begin_sample(Role::Treated).unwrap();
        std::fs::remove_file(directory.path().join("it")).unwrap();
        let launch = Launch::of_worker(true, &setup, &launched);
        assert!(
            arms[0].verify_sample(&launch).unwrap_err().to_string().contains("should have been")
        );
    }
}
