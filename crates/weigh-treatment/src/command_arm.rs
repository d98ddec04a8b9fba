//! A command against others: the arm that runs it. No kind, as no label could name it: `weigh versus` makes
//! one of each command.

use super::{Launch, Treatment, TreatmentError};
use weigh_model::evidence::Evidence;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::command_line_seen::CommandLineSeen;
use weigh_workload::setup::look::{COMMAND_LINE, is_command_line};

pub struct CommandArm {
    pub argv: Vec<String>,
    /// Facts that a reader should know about it, in whole sentences.
    pub facts: Vec<String>,
}

impl Treatment for CommandArm {
    /// Its process is only started with other words.
    fn can_interleave(&self) -> bool {
        true
    }

    fn setup(&self, is_treated: bool) -> Setup {
        match is_treated {
            true => Setup::default().with(CommandLineSeen),
            false => Setup::default(),
        }
    }

    /// Checks the command line that the kernel executed in this arm, not the launcher's order.
    ///
    /// Another arm may run an equal command, and has its own proof.
    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        if !launch.is_treated {
            return Ok(Evidence::default());
        }
        let seen = launch.launched.seen(COMMAND_LINE)?;
        if is_command_line(seen, &self.argv) {
            return Ok(Evidence::default());
        }
        Err(TreatmentError::NotInForce(format!(
            "the kernel executed `{}` instead of `{}`",
            seen.replace('\0', " ").trim_end(),
            self.argv.join(" ")
        )))
    }

    fn facts(&self) -> Vec<String> {
        self.facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_workload::launcher::Launched;

    #[test]
    fn a_sample_of_another_command_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut own = CommandArm { argv: words("old --x"), facts: Vec::new() };
        let setup = own.setup(true);
        let mut is_believed = |is_treated, seen: Option<&str>| {
            let seen = seen.map(|seen| (COMMAND_LINE.to_owned(), seen.to_owned()));
            // The launcher says that it executed what it should have.
            let executed = words("old --x");
            let seen = seen.into_iter().collect();
            let launched = Launched { executed, seen, ..Launched::default() };
            own.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        assert!(is_believed(true, Some("old\0--x\0")) && is_believed(false, Some("new\0--x\0")));
        assert!(!is_believed(true, Some("new\0--x\0")) && !is_believed(true, Some("old\0")));
        assert!(!is_believed(true, None), "nobody saw it");
    }
}
