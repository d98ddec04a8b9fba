//! The options that say how a run takes its samples: one for each kind of plan that there is.

use clap::parser::ValueSource;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, FromArgMatches};

use weigh_engine::plan::{PLANS, PlanKind, RunStart};
use weigh_engine::request::Passes;

/// Options that say by themselves how long is measured.
pub const OTHER_ENDS: [&str; 3] = ["lasting", "capacity", "classic"];

/// `--NAME VALUE` of one plan.
#[derive(Clone, Debug)]
pub struct ChosenPlan {
    plan: &'static str,
    value: String,
}

impl ChosenPlan {
    pub fn passes(self) -> Passes {
        Passes::Planned { plan: self.plan.into(), value: self.value }
    }
}

impl FromArgMatches for ChosenPlan {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ChosenPlan, clap::Error> {
        let chosen = |kind: &&PlanKind| {
            let value = matches.get_one::<String>(kind.name)?.clone();
            Some(ChosenPlan { plan: kind.name, value })
        };
        let is_default = |chosen: &ChosenPlan| {
            matches.value_source(chosen.plan) == Some(ValueSource::DefaultValue)
        };
        let chosen = PLANS.iter().filter_map(chosen).min_by_key(is_default);
        Ok(chosen.expect("one plan has a default"))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ChosenPlan::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ChosenPlan {
    fn augment_args(command: Command) -> Command {
        let option = |kind: &&'static PlanKind| {
            let begin = kind.begin;
            let check = move |text: &str| begin(text, RunStart::default()).map(|_| text.to_owned());
            let option = Arg::new(kind.name).long(kind.name).value_name(kind.value).help(kind.help);
            option.default_value(kind.default).value_parser(check).conflicts_with_all(OTHER_ENDS)
        };
        let group = ArgGroup::new("plans").args(PLANS.iter().map(|kind| kind.name));
        command.args(PLANS.iter().map(option)).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ChosenPlan::augment_args(command)
    }
}
