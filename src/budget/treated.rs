//! A treatment in force, and launches of its arm alone.

use std::path::Path;

use crate::audit::netlink::Client;
use crate::audit::status::Status;
use crate::experiment::platform::Stop;
use crate::treatment::audit::needs;
use crate::treatment::guard::Guard;
use crate::treatment::{Bench, Evidence, Launch, Named, Role, parse};
use crate::workload::launcher::{Job, Launched, Launcher, Setup};

/// A receiver that stands still for half a second does not do so every time.
const TRIES: usize = 5;

/// Until it is taken down, or the guard undoes it.
pub struct Treated<'a> {
    pub bench: Bench<'a>,
    pub client: Client,
    named: Named,
    launcher: Launcher,
    setup: Setup,
}

impl<'a> Treated<'a> {
    /// Applies a treatment. `announce` is told what a person should know before that.
    ///
    /// # Errors
    /// Where it cannot be applied; what was applied is the guard's to undo.
    pub fn set_up(
        bench: Bench<'a>,
        label: &str,
        guard: &mut Guard,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Treated<'a>, Stop> {
        let mut named = parse(label).map_err(Stop::Failed)?;
        for sentence in named.treatment.prepare(&bench, guard)? {
            announce(&sentence);
        }
        named.treatment.apply(&bench, guard)?;
        let setup = named.treatment.setup(true);
        let launcher = Launcher::start(&setup, bench.interrupted)?;
        let client = Client::open().map_err(needs)?;
        Ok(Treated { bench, client, named, launcher, setup })
    }

    /// Launches a job, and proves that it was audited and nobody interfered.
    ///
    /// # Errors
    /// Where that proof fails.
    pub fn launch_proved(&mut self, job: &Job) -> Result<(Launched, Evidence), Stop> {
        self.named.treatment.before(Role::Treated)?;
        let launched = self.launch(job)?;
        let launch = Launch { is_treated: true, setup: &self.setup, launched: &launched };
        let evidence = self.named.treatment.after(&launch)?;
        Ok((launched, evidence))
    }

    /// Launches a job until all the records of it were counted.
    ///
    /// # Errors
    /// As [`Treated::launch_proved`]; where some may have been missed each time.
    pub fn launch_counted(&mut self, job: &Job) -> Result<(Launched, Evidence), Stop> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let (launched, evidence) = self.launch_proved(job)?;
            match evidence.why_not_counted() {
                None => return Ok((launched, evidence)),
                Some(reason) => why = reason.to_owned(),
            }
        }
        Err(Stop::Failed(format!(
            "the records cannot be counted, {TRIES} launches one after the other: {why}. Try it with fewer \
             programs running, or with a faster disk below the directory for temporary files (TMPDIR)"
        )))
    }

    /// Launches a job without that, for when we change the settings ourselves.
    ///
    /// # Errors
    /// Where it cannot be launched.
    pub fn launch(&mut self, job: &Job) -> Result<Launched, Stop> {
        Ok(self.launcher.run(job, self.bench.interrupted)?)
    }

    /// The kernel's audit status now.
    ///
    /// # Errors
    /// Where the kernel does not tell it, or auditing is off.
    pub fn status(&mut self) -> Result<Status, Stop> {
        let status = self.client.status().map_err(needs)?;
        match status.enabled {
            0 => Err(Stop::Failed("auditing was switched off while we measured".into())),
            _ => Ok(status),
        }
    }

    /// The file whose opening is audited whatever the rules are.
    ///
    /// # Errors
    /// The treatment has none.
    pub fn canary(&self) -> Result<&Path, Stop> {
        let missing = || Stop::Failed("this treatment makes no audit records".into());
        self.setup.canary.as_deref().ok_or_else(missing)
    }

    pub fn facts(&self) -> Vec<String> {
        self.named.treatment.facts()
    }

    /// Takes the treatment back.
    ///
    /// # Errors
    /// What is left, and how to undo it.
    pub fn take_down(self, guard: &mut Guard) -> Result<(), Stop> {
        let Treated { launcher, mut named, .. } = self;
        drop(launcher);
        Ok(named.treatment.restore(guard)?)
    }
}
