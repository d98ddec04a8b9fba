//! `with`: words in place of `{NAME}` in the command that is weighed.

use crate::digest::digest_of_file;
use crate::{
    Kind, Launch, Parameter, Place, Probe, Reach, Treatment, TreatmentError, TreatmentKind,
};
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_workload::executable::Executable;
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::filled_command::FilledCommand;
use weigh_workload::setup::look::{COMMAND_LINE, is_command_line};

pub static KIND: TreatmentKind = TreatmentKind::of(
    Kind {
        name: "with",
        summary: "values for each {NAME} in the command, or an interpreter for interp:NAME",
        parameters: &[Parameter {
            form: "NAME=VALUE",
            help: "one or several, with the same names in all arms and in --base; for interp:NAME, \
                 perl=PATH and the like",
        }],
        probe: || Probe::Available,
    },
    build,
);

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let values = parameters.named_values()?;
    if let Some((name, _)) = values.iter().find(|(name, _)| name.contains(['{', '}'])) {
        return Err(format!(
            "with:{name}=…: write the name without braces; braces belong in the command, as in \
             {{threads}}"
        ));
    }
    match values.is_empty() {
        true => Err("`with` needs a name and a value: with:threads=8".into()),
        false => Ok(Box::new(Filling { values })),
    }
}

struct Filling {
    values: Vec<(String, String)>,
}

impl Treatment for Filling {
    fn reach(&self) -> Reach {
        Reach::Processes
    }

    fn places(&mut self) -> Vec<&mut dyn Place> {
        vec![self]
    }

    fn setup(&self, is_treated: bool) -> Setup {
        let values = if is_treated { self.values.clone() } else { Vec::new() };
        Setup::default().with(FilledCommand { values })
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        let values = launch.setup.get::<FilledCommand>().map_or(&[][..], |step| &step.values);
        let seen = launch.launched.seen(COMMAND_LINE)?;
        let executed = &launch.launched.executed;
        if (launch.is_treated && values != self.values) || !is_command_line(seen, executed) {
            return Err(TreatmentError::NotInForce(format!(
                "the {} process should have had the command line `{}`, but had `{}`",
                launch.whose(),
                executed.join(" "),
                seen.replace('\0', " ").trim_end()
            )));
        }
        if launch.is_treated {
            self.is_executed(launch).map_err(TreatmentError::NotInForce)?;
        }
        Ok(Evidence::default())
    }

    /// The programs that values name.
    fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        for (name, file) in (FilledCommand { values: self.values.clone() }).programs() {
            let digest = digest_of_file(&file).unwrap_or_else(|error| format!("unread: {error}"));
            content.extend(format!("{name} {digest}\n").into_bytes());
        }
        content
    }

    fn facts(&self) -> Vec<String> {
        let show = |(name, value): &(String, String)| format!("{{{name}}} is `{value}`");
        let all: Vec<String> = self.values.iter().map(show).collect();
        vec![format!("In the executed command, {}.", all.join(", "))]
    }
}

impl Place for Filling {
    /// Uses each value as the interpreter of the language that its name is, for programs of ours.
    fn launch_place(&self, place: LaunchPlace) -> LaunchPlace {
        let is_here = place.is_here();
        let own = |executable: Executable, (language, value): &(String, String)| {
            executable.with_interpreter(language, &found_from_anywhere(value, is_here))
        };
        let executable = self.values.iter().fold(place.executable, own);
        LaunchPlace { executable, ..place }
    }
}

impl Filling {
    /// Proves that a program that was executed in place of a name is the file that the value names.
    fn is_executed(&self, launch: &Launch) -> Result<(), String> {
        let Some(program) = launch.launched.executed.first() else { return Ok(()) };
        let is_this = |(_, value): &&(String, String)| {
            [value.clone(), found_from_anywhere(value, true)].contains(program)
        };
        let Some((name, value)) = self.values.iter().find(is_this) else { return Ok(()) };
        let seen = |name: &str| launch.launched.seen.get(name);
        match (seen(&FilledCommand::wanted(name)), seen(FilledCommand::PROGRAM)) {
            (Some(wanted), Some(found)) if wanted != found => {
                Err(format!("`{value}` is {wanted}, but the kernel executed {found}"))
            }
            _ => Ok(()),
        }
    }
}

/// A path that programs of ours, which are executed in another directory, can be given.
fn found_from_anywhere(value: &str, is_here: bool) -> String {
    let path = (is_here && value.contains('/')).then(|| std::path::absolute(value).ok()).flatten();
    path.map_or(value.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weigh_workload::launcher::Launched;

    #[test]
    fn a_sample_of_another_command_line_is_no_evidence() {
        let mut treatment = parse("with:n=x8").unwrap().treatment;
        let mut is_believed = |is_treated, n: &str, seen: Option<&str>| {
            let values = vec![("n".to_owned(), n.to_owned())];
            let setup = Setup::default().with(FilledCommand { values });
            let executed = setup.command_line(&["prog".into(), "{n}".into()]);
            let seen = seen.map(|seen| (COMMAND_LINE.to_owned(), seen.to_owned()));
            let seen = seen.into_iter().collect();
            let launched = Launched { executed, seen, ..Launched::default() };
            treatment.verify_sample(&Launch::of_worker(is_treated, &setup, &launched)).is_ok()
        };
        assert!(is_believed(true, "x8", Some("prog\0x8\0")));
        assert!(!is_believed(true, "x8", Some("prog\0x1\0")));
        assert!(!is_believed(true, "x1", Some("prog\0x1\0")), "set up as another");
        assert!(is_believed(false, "x1", Some("prog\0x1\0")));
        assert!(!is_believed(false, "x1", Some("prog\0x8\0")) && !is_believed(true, "x8", None));
    }

    #[test]
    fn what_fills_nothing_is_refused() {
        assert!(parse("with").err().unwrap().contains("with:threads=8"));
        assert!(parse("with:n").err().unwrap().contains("it takes NAME=VALUE"));
        assert!(parse("with:{n}=8").err().unwrap().contains("braces belong in the command"));
    }
}
