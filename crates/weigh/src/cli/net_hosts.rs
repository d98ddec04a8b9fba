//! The machines that are black boxes, for all commands that measure cells of a grid.

use std::path::PathBuf;

use clap::Args;

use crate::far::{Agent, read_secret};
use crate::net::far_host::Agents;

/// Both, or none: then they are on this machine.
#[derive(Debug, Args)]
pub struct NetHosts {
    /// The machine that is W_active of `net:`, HOST or HOST:PORT; `weigh agent` runs there. W_test is here
    #[arg(long, value_name = "HOST", requires_all = ["passive", "token_file"])]
    #[arg(help_heading = "Three machines")]
    active: Option<String>,
    /// The machine that is W_passive, likewise
    #[arg(long, value_name = "HOST", requires_all = ["active", "token_file"])]
    #[arg(help_heading = "Three machines")]
    passive: Option<String>,
    /// The token that the agents have; nobody but the file's owner may be able to read it
    #[arg(long, value_name = "FILE", requires_all = ["active", "passive"])]
    #[arg(help_heading = "Three machines")]
    token_file: Option<PathBuf>,
}

impl NetHosts {
    /// The agents, where there are to be such.
    ///
    /// # Errors
    /// Where the token file is none.
    pub fn agents(&self) -> Result<Option<Agents>, String> {
        let (Some(active), Some(passive), Some(file)) =
            (&self.active, &self.passive, &self.token_file)
        else {
            return Ok(None);
        };
        read_secret(file)?;
        // It may be read again from another directory.
        let token_file = std::path::absolute(file).map_err(|error| error.to_string())?;
        let agent =
            |address: &String| Agent { address: address.clone(), token_file: token_file.clone() };
        Ok(Some(Agents { active: agent(active), passive: agent(passive) }))
    }
}
