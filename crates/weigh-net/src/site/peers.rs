//! Processes on the black boxes: a peer of COMM on each, and the FTP server on W_active.

use std::net::Ipv4Addr;

use super::NetSite;
use crate::ftp::{FTP_PORT, Vsftpd};
use crate::peer::raise_peer;
use crate::site_error::SiteError;
use weigh_testbed::{BlackBox, Via};
use weigh_workload::launcher::{Launcher, LauncherError};
use weigh_workload::place::LaunchPlace;
use weigh_workload::setup::Setup;
use weigh_workload::setup::kind::allowed_cpus::AllowedCpus;

const OWN_FTP: &str = "FTP is served by our own server";

impl NetSite {
    /// Starts the peers, and where anything is fetched by FTP, who serves that. No arm's treatment concerns
    /// them: `neutral` is the set-up of such processes.
    pub fn start_peers(
        &mut self,
        place: &LaunchPlace,
        neutral: &Setup,
        has_ftp: bool,
    ) -> Result<(), SiteError> {
        let port = FTP_PORT.to_string();
        for black_box in BlackBox::ALL {
            let socket = self.socket(black_box);
            let lan = self.address(black_box, Via::Lan, false);
            let lan = lan.filter(|_| has_ftp && black_box == BlackBox::Active);
            let mut ftp = lan.as_deref().map(|lan| (lan, &*port));
            if let Some(far) = self.far.iter_mut().find(|one| one.black_box == black_box) {
                if ftp.is_some() {
                    self.facts.push(format!("{OWN_FTP}, because W_active is a different machine."));
                }
                far.start_peer(&socket, ftp, &self.nonce, &self.interrupted)?;
                continue;
            }
            let Some(host) = self.testbed.ready.host(black_box.host()) else { continue };
            let setup = neutral
                .clone()
                .with(AllowedCpus { cpus: self.other_cpus.clone() })
                .with(host.join.clone());
            let mut launcher = place.start_launcher(&setup, &self.interrupted)?;
            if let Some((lan, _)) = ftp {
                match self.start_vsftpd(&mut launcher, lan)? {
                    Ok(version) => {
                        ftp = None;
                        self.facts.push(format!("FTP is served by vsftpd, {version}."));
                    }
                    Err(why) => self.facts.push(format!("{OWN_FTP}, because {why}.")),
                }
            }
            let executable = place.executable.path();
            let raise = raise_peer(executable, &self.scratch, socket, ftp, &self.nonce);
            launcher.raise(&raise, &self.interrupted)?;
            self.peers.push(launcher);
        }
        Ok(())
    }

    /// Its version, or why it does not serve.
    fn start_vsftpd(
        &self,
        launcher: &mut Launcher,
        lan: &str,
    ) -> Result<Result<String, String>, SiteError> {
        let prepared = Vsftpd::find().and_then(|server| {
            let address =
                lan.parse::<Ipv4Addr>().map_err(|_| format!("`{lan}` is not an IPv4 address"))?;
            let raise = server.raise(&self.scratch, address, &self.nonce);
            Ok((server, raise.map_err(|error| format!("its files could not be written: {error}"))?))
        });
        let (server, raise) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => return Ok(Err(why)),
        };
        match launcher.raise(&raise, &self.interrupted) {
            Ok(_) => Ok(Ok(server.version())),
            Err(LauncherError::Refused(why)) => Ok(Err(why)),
            Err(other) => Err(other.into()),
        }
    }
}
