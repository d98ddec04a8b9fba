//! A command against others: the arm that runs it. No kind, as no label could name it: `weigh versus` makes
//! one of each command.

use super::{Evidence, Launch, Treatment, TreatmentError};
use crate::workload::setup::Setup;
use crate::workload::setup::kind::run_command::RunCommand;

/// An arm whose processes run this.
pub struct Contender {
    pub argv: Vec<String>,
    /// What a reader should know of it, in whole sentences.
    pub facts: Vec<String>,
}

impl Treatment for Contender {
    fn setup(&self, is_treated: bool) -> Setup {
        match is_treated {
            true => Setup::default().with(RunCommand { argv: self.argv.clone() }),
            false => Setup::default(),
        }
    }

    /// What the launcher executed in this arm. Another arm may run the same command, and has its own proof.
    fn after(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let executed = &launch.launched.executed;
        if !launch.is_treated || *executed == self.argv {
            return Ok(Evidence::default());
        }
        let [executed, own] = [executed, &self.argv].map(|words| words.join(" "));
        Err(TreatmentError::NotInForce(format!("`{executed}` was executed in place of `{own}`")))
    }

    fn facts(&self) -> Vec<String> {
        self.facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::launcher::Launched;

    #[test]
    fn a_sample_of_another_command_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut own = Contender { argv: words("old --x"), facts: Vec::new() };
        let setup = own.setup(true);
        assert_eq!(setup.get::<RunCommand>().unwrap().argv, ["old", "--x"]);
        let mut is_believed = |is_treated, executed| {
            let launched = Launched { executed: words(executed), ..Launched::default() };
            own.after(&Launch { is_treated, setup: &setup, launched: &launched, members: &[] })
                .is_ok()
        };
        assert!(is_believed(true, "old --x") && is_believed(false, "new --x"));
        assert!(!is_believed(true, "new --x") && !is_believed(true, "old"));
    }
}
