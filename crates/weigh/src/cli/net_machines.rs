//! The machines that are black boxes, for all commands that measure cells of a grid.

use clap::Args;

use crate::net::far_host::FarHosts;

/// Both, or none: then they are on this machine.
#[derive(Debug, Args)]
pub struct NetMachines {
    /// Machine that is W_active of `net:`, the busy peer, reached by ssh as root; W_test is here
    ///
    /// After commas, port=N, identity=FILE and known_hosts=FILE, as for `host:`.
    #[arg(long, value_name = "USER@HOST", requires = "passive", help_heading = "Three machines")]
    active: Option<String>,
    /// Machine that is W_passive, likewise
    #[arg(long, value_name = "USER@HOST", requires = "active", help_heading = "Three machines")]
    passive: Option<String>,
}

impl NetMachines {
    /// The black boxes, where they are other machines.
    ///
    /// # Errors
    /// Where one is not a destination of ssh.
    pub fn far_hosts(&self) -> Result<Option<FarHosts>, String> {
        let (Some(active), Some(passive)) = (&self.active, &self.passive) else { return Ok(None) };
        let hosts = FarHosts { active: active.clone(), passive: passive.clone() };
        hosts.check()?;
        Ok(Some(hosts))
    }
}
