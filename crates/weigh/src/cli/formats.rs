//! The options that ask for reports in files: one for each format that there is.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::reproduce::OUTPUT;
use weigh_dialect as dialect;
use weigh_report::hyperfine::EXPORTS;
use weigh_report::{FORMATS, ReportFormat};

/// `--NAME` of one format, or none.
#[derive(Debug)]
pub struct ChosenFormat(pub Option<&'static ReportFormat>);

/// The formats of `weigh export`.
pub fn exportable() -> impl Iterator<Item = &'static ReportFormat> {
    FORMATS.iter().copied().chain(EXPORTS)
}

impl FromArgMatches for ChosenFormat {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ChosenFormat, clap::Error> {
        Ok(ChosenFormat(exportable().find(|format| matches.get_flag(format.name))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ChosenFormat::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ChosenFormat {
    fn augment_args(command: Command) -> Command {
        let option = |format: &'static ReportFormat| {
            let help = format!("Write {}", format.what);
            Arg::new(format.name).long(format.name).help(help).action(ArgAction::SetTrue)
        };
        let names = exportable().map(|format| format.name);
        command.args(exportable().map(option)).group(ArgGroup::new("formats").args(names))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ChosenFormat::augment_args(command)
    }
}

/// `--NAME FILE` of any format.
#[derive(Debug)]
pub struct FormatFiles(pub Vec<(&'static ReportFormat, PathBuf)>);

impl FromArgMatches for FormatFiles {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FormatFiles, clap::Error> {
        Ok(FormatFiles(chosen(FORMATS, matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = FormatFiles::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The group of all such options, for those that exclude them.
pub const FORMAT_FILES: &str = "format_files";

impl Args for FormatFiles {
    fn augment_args(command: Command) -> Command {
        let names = FORMATS.iter().map(|format| format.name);
        let group = ArgGroup::new(FORMAT_FILES).args(names).multiple(true);
        command.group(group).args(FORMATS.iter().map(|format| file_option(format)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        FormatFiles::augment_args(command)
    }
}

/// `--export-json FILE` and the others that hyperfine has.
#[derive(Debug, Default)]
pub struct HyperfineFiles(pub Vec<(&'static ReportFormat, PathBuf)>);

impl FromArgMatches for HyperfineFiles {
    fn from_arg_matches(matches: &ArgMatches) -> Result<HyperfineFiles, clap::Error> {
        Ok(HyperfineFiles(chosen(&EXPORTS, matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = HyperfineFiles::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for HyperfineFiles {
    fn augment_args(command: Command) -> Command {
        let options = EXPORTS.into_iter().map(|format| file_option(format).help_heading(OUTPUT));
        command.args(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        HyperfineFiles::augment_args(command)
    }
}

fn chosen(
    formats: &[&'static ReportFormat],
    matches: &ArgMatches,
) -> Vec<(&'static ReportFormat, PathBuf)> {
    let path = |format: &ReportFormat| matches.get_one::<PathBuf>(format.name).cloned();
    formats.iter().filter_map(|format| Some((*format, path(format)?))).collect()
}

fn file_option(format: &'static ReportFormat) -> Arg {
    let default = match format.name {
        "html" => " [default: in the XDG data directory]",
        _ => "",
    };
    let help = format!("Write {}; `-` is stdout{default}", format.what);
    let is_rare = ["junit", "text"].contains(&format.name);
    let option = Arg::new(format.name).long(format.name).help(help).hide_short_help(is_rare);
    option.value_name("FILE").value_parser(value_parser!(PathBuf))
}

/// Option `--csv` of a command, whose files have one line per `what`.
pub fn csv_of(option: Arg, what: &str) -> Arg {
    option.help(format!("Write one line of CSV per {what}; `-` is stdout"))
}

/// Help of `--as`, which names all tables.
pub fn table_help(verb: &str) -> String {
    let names = dialect::TABLES.iter().map(|table| match table.study_of {
        Some(subject) => format!("{} (a study of {subject})", table.name),
        None => table.name.to_owned(),
    });
    let names: Vec<String> = names.collect();
    let names = names.join(", ");
    format!("{verb} a table of another suite or study, without verdicts (docs/import.md): {names}")
}

#[cfg(test)]
mod tests {
    use weigh_dialect::tables::lmbench;

    use weigh_workload::executable::Executable;

    /// A column of a workload that was renamed would be empty for ever.
    #[test]
    fn every_column_of_lmbench_has_its_workloads() {
        let directory = tempfile::tempdir().unwrap();
        let workloads = Executable::unpack(directory.path()).unwrap().workloads().unwrap();
        for name in lmbench::workloads() {
            let is_it = |row: &str| row.split('@').next() == Some(name);
            assert!(workloads.iter().any(|workload| is_it(&workload.name)), "{name}");
        }
    }
}
