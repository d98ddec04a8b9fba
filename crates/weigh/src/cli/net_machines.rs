//! The machines that are black boxes, for all commands that measure cells of a grid.

use clap::Args;

use weigh_net::far_host::FarHosts;

/// Heading of these options.
const MACHINES: &str = "Three machines";

/// Machines of both black boxes. Without these options both run on this machine.
#[derive(Debug, Args)]
pub struct NetMachines {
    /// For the network (weigh net, -w net:GRID): run W_active, the peer in every transfer, on USER@HOST
    /// [default: this machine]
    ///
    /// USER must be root. weigh connects by ssh, copies itself there, and makes a network namespace on the
    /// interface that ssh uses. At the end it removes the namespace and its copy (docs/net-machines.md).
    /// Append options as in root@10.1.0.2,port=2222,identity=FILE,known_hosts=FILE.
    #[arg(long, value_name = "USER@HOST", requires = "passive", help_heading = MACHINES)]
    #[arg(hide_short_help = true)]
    active: Option<String>,
    /// For the network: run W_passive, the second peer, on USER@HOST, as --active does [default: this
    /// machine]
    #[arg(long, value_name = "USER@HOST", requires = "active", help_heading = MACHINES)]
    #[arg(hide_short_help = true)]
    passive: Option<String>,
}

impl NetMachines {
    /// The black boxes, where they are other machines.
    pub fn far_hosts(&self) -> Result<Option<FarHosts>, String> {
        match (&self.active, &self.passive) {
            (Some(active), Some(passive)) => FarHosts::read(active, passive).map(Some),
            _ => Ok(None),
        }
    }
}
