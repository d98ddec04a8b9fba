//! Completions and man pages, generated from the command line's own types.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use super::output;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  weigh completions bash > /etc/bash_completion.d/weigh
  weigh completions zsh > ~/.zfunc/_weigh
  weigh completions fish > ~/.config/fish/completions/weigh.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  weigh man | man -l -                       read it
  weigh man --directory /usr/share/man/man1  one page per command";

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    shell: Shell,
}

/// Print the man page, or write one per command
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct Man {
    /// Write weigh.1, weigh-compare.1, … here
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

impl Completions {
    pub fn run(self, command: &mut Command) -> Result<u8, String> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, command, "weigh", &mut text);
        output::print(&String::from_utf8_lossy(&text))?;
        Ok(0)
    }
}

impl Man {
    pub fn run(self, command: &Command) -> Result<u8, String> {
        let Some(directory) = self.directory else {
            output::print(&page(command)?)?;
            return Ok(0);
        };
        write(&directory, "weigh", command)?;
        for subcommand in command.get_subcommands() {
            let name = format!("weigh-{}", subcommand.get_name());
            // The synopsis is to say how the command is typed.
            let typed = format!("weigh {}", subcommand.get_name());
            write(&directory, &name, &subcommand.clone().name(&name).bin_name(typed))?;
        }
        Ok(0)
    }
}

fn write(directory: &Path, name: &str, command: &Command) -> Result<(), String> {
    output::write_report(&directory.join(format!("{name}.1")), &page(command)?)
}

fn page(command: &Command) -> Result<String, String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| format!("the man page: {error}"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
