//! Earlier use of auditing on this host, which would change a baseline without our care.

use super::context::cost_of_context;
use super::state::Snapshot;
use super::{BASELINE_LOGINUID, needs};
use crate::{ApplyContext, TreatmentError};
use linux_audit::netlink::Client;
use linux_audit::rule::Rule;
use weigh_host::undo::guard::Guard;

/// A process with an audit context takes 1.6 to 2.2 times as long for `getppid`; identical ones
/// differ by a few per cent at most.
pub const CONTEXT_RATIO: f64 = 1.15;

/// Earlier use of auditing on this host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostAuditing {
    /// New processes carry no audit context: auditing was never enabled since boot.
    Clean,
    /// Auditing is off, but new processes still carry a context, which makes `getppid` this many
    /// times as long.
    Residual {
        ratio: f64,
    },
    Audited,
}

/// Finds out what state this host is in; loads the rules that exempt the baseline on the way.
pub fn look_at_host(
    context: &ApplyContext,
    guard: &mut Guard,
    client: &mut Client,
    snapshot: &mut Snapshot,
) -> Result<HostAuditing, TreatmentError> {
    snapshot.added = Some(Snapshot::ours([]));
    snapshot.write_down(guard)?;
    for rule in [Rule::never_task(BASELINE_LOGINUID), Rule::never_user(BASELINE_LOGINUID)] {
        client.add_rule(&rule).map_err(needs)?;
    }
    if snapshot.status.enabled != 0 {
        return Ok(HostAuditing::Audited);
    }
    let ratio = cost_of_context(context)?;
    Ok(if ratio > CONTEXT_RATIO { HostAuditing::Residual { ratio } } else { HostAuditing::Clean })
}

impl HostAuditing {
    /// Describes it for the user before the experiment, and for a reader afterwards.
    pub fn sentence(&self) -> String {
        match self {
            HostAuditing::Clean => "Auditing has not been enabled on this host since it booted. Enabling \
                                    auditing leaves an audit context in every process started later, \
                                    until the next boot; `weigh compare audit:residual` measures this \
                                    cost."
                .into(),
            HostAuditing::Residual { ratio } => format!(
                "Auditing was enabled at some time since this host booted. So new processes carry an \
                 audit context even with auditing off, and getppid takes {ratio:.2} times as long. `weigh` \
                 starts the processes of arms without `audit` without this context."
            ),
            HostAuditing::Audited => {
                "Auditing was already on; the rules of this host stay in force.".into()
            }
        }
    }
}
