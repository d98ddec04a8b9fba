//! The pairs of commands: of what the second does against the first, all is known.

use std::path::Path;

use support::spin::Spin;
use tempfile::TempDir;

/// Two commands.
pub struct Pair {
    /// Work of the second command.
    pub name: &'static str,
    pub commands: [String; 2],
    /// True if the answer does not depend on chance.
    pub is_certain: bool,
    /// Options that the answer needs, of `weigh`.
    pub options: &'static [&'static str],
}

/// Where the program is that they run.
pub struct Commands {
    directory: TempDir,
    spin: Spin,
}

impl Commands {
    /// Compiles it, and finds out how much it does in a run.
    pub fn new() -> Result<Commands, String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let spin = Spin::new(directory.path())?;
        Ok(Commands { directory, spin })
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The pairs, the equal ones first.
    pub fn pairs(&self) -> Vec<Pair> {
        let chance = |name, commands| Pair { name, commands, is_certain: false, options: &[] };
        let differs =
            |name, more| chance(name, [self.spin.command(0.0, 0), self.spin.command(more, 0)]);
        let skewed =
            |name, more| chance(name, [self.spin.command(0.0, 100), self.spin.command(more, 100)]);
        let certain = |name, second: &str, options| {
            let commands = [self.spin.command(0.0, 0), second.to_owned()];
            Pair { name, commands, is_certain: true, options }
        };
        vec![
            differs("equal", 0.0),
            skewed("equal, skewed", 0.0),
            differs("1 % more", 0.01),
            differs("3 % more", 0.03),
            differs("3 % less", -0.03),
            skewed("3 % more, skewed", 0.03),
            differs("10 % more", 0.1),
            certain("fails", "false", &[]),
            certain("hangs", "sleep 3600", &["--timeout", "2s"]),
            certain("writes something else", "echo other", &["--same-output"]),
        ]
    }
}
