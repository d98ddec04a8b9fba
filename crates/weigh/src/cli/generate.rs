//! `weigh completions` and `weigh man`: generated from the command line's own types.

use std::path::{Path, PathBuf};

use clap::{Args, Command, ValueEnum};

use super::{man, output};

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  weigh completions bash | sudo tee /etc/bash_completion.d/weigh > /dev/null
  weigh completions zsh > ~/.zfunc/_weigh
  weigh completions fish > ~/.config/fish/completions/weigh.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  weigh man | man -l -                            read the page
  sudo weigh man --directory /usr/share/man/man1  write one page per command";

/// Functions that ask `weigh __complete`. Where it knows nothing, the shell completes files.
const SCRIPTS: [(Shell, &str); 3] = [
    (Shell::Bash, include_str!("completions/weigh.bash")),
    (Shell::Zsh, include_str!("completions/weigh.zsh")),
    (Shell::Fish, include_str!("completions/weigh.fish")),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print the completions for a shell
///
/// Completes commands, options, files, and names: of workloads, suites, mixes, treatments with their
/// parameters, fixtures and experiments.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell to write completions for
    shell: Shell,
}

/// Print the man page, or write one per command
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Write weigh.1, weigh-compare.1, … to this directory [default: print weigh.1]
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

impl CompletionsArgs {
    pub fn run(self) -> Result<u8, String> {
        let script = SCRIPTS.iter().find(|(shell, _)| *shell == self.shell);
        output::print(script.map_or("", |(_, script)| script))?;
        Ok(0)
    }
}

impl ManArgs {
    pub fn run(self, command: &Command) -> Result<u8, String> {
        let Some(directory) = self.directory else {
            output::print(&man::page(command)?)?;
            return Ok(0);
        };
        write_pages(&directory, "weigh", command)?;
        Ok(0)
    }
}

/// The page of a command, and those of its subcommands, which it names.
fn write_pages(directory: &Path, typed: &str, command: &Command) -> Result<(), String> {
    let name = typed.replace(' ', "-");
    // The synopsis is to say how the command is typed.
    write(directory, &name, &command.clone().name(&name).bin_name(typed))?;
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(directory, &format!("{typed} {}", subcommand.get_name()), subcommand)?;
    }
    Ok(())
}

fn write(directory: &Path, name: &str, command: &Command) -> Result<(), String> {
    output::write_report(&directory.join(format!("{name}.1")), &man::page(command)?)
}
