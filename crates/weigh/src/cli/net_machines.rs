//! The machines that are black boxes, for all commands that measure cells of a grid.

use clap::Args;

use weigh_net::far_host::FarHosts;

/// Machines of both black boxes. Without these options both run on this machine.
#[derive(Debug, Args)]
pub struct NetMachines {
    /// Run W_active, the busy peer, on USER@HOST over ssh as root [default: this machine]
    ///
    /// Append options as for `host:`, such as root@10.1.0.2,port=2222,identity=FILE,known_hosts=FILE.
    #[arg(long, value_name = "USER@HOST", requires = "passive", help_heading = "Three machines")]
    active: Option<String>,
    /// Run W_passive on USER@HOST over ssh as root [default: this machine]
    #[arg(long, value_name = "USER@HOST", requires = "active", help_heading = "Three machines")]
    passive: Option<String>,
}

impl NetMachines {
    /// The black boxes, where they are other machines.
    ///
    /// # Errors
    /// Where one is not a destination of ssh.
    pub fn far_hosts(&self) -> Result<Option<FarHosts>, String> {
        match (&self.active, &self.passive) {
            (Some(active), Some(passive)) => FarHosts::read(active, passive).map(Some),
            _ => Ok(None),
        }
    }
}
