//! `acct`: the kernel writes a record of each process that ends (process accounting, acct(2)).
//!
//! It is on during each treated sample. For the other samples it is switched on and off again before they
//! begin, so both arms differ by the accounting alone.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event_receiver::prove;
use crate::{
    ApplyContext, Kind, Launch, Occupied, Parameter, Probe, Role, Treatment, TreatmentError,
    TreatmentKind, Turns, only_word,
};
use weigh_host::undo::guard::Guard;
use weigh_model::evidence::Evidence;
use weigh_model::label::Parameters;
use weigh_model::result::quantity::EvidenceQuantity;
use weigh_model::result::quantity::{QuantityKind::Made, QuantityUnit::Count};
use weigh_sensor::{accounting, short_process};

pub static KIND: TreatmentKind = TreatmentKind {
    undo,
    ..TreatmentKind::of(
        Kind {
            name: NAME,
            summary: "process accounting: the kernel writes a record of each process that ends",
            parameters: &[Parameter { form: "off", help: "no records: two identical arms" }],
            probe,
        },
        build,
    )
};

const NAME: &str = "acct";
/// Records of all processes that end, also of those that the workload did not start.
const RECORDS: EvidenceQuantity =
    EvidenceQuantity::new("acct_records", "accounting records", Count, Made, None);
const TURN_OFF: &str = "turn it off with `accton off`";

fn probe() -> Probe {
    match accounting::may_switch() {
        Ok(()) => found_off().map_or_else(Probe::Broken, |()| Probe::Available),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM) => {
                Probe::NeedsRoot("process accounting needs root (CAP_SYS_PACCT); use sudo".into())
            }
            Some(libc::ENOSYS) => Probe::Broken(
                "this kernel lacks process accounting (CONFIG_BSD_PROCESS_ACCT)".into(),
            ),
            _ => Probe::Broken(format!("cannot switch process accounting: {error}")),
        },
    }
}

/// A second file would replace the first, which nobody could put back.
fn found_off() -> Result<(), String> {
    match accounting::current_file()? {
        None => Ok(()),
        Some(_) => Err(format!(
            "process accounting is already on, and weigh could not put it back: {TURN_OFF}"
        )),
    }
}

/// Content of the journal: the file into which the kernel writes our records.
#[derive(Serialize, Deserialize)]
struct RecordsFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl RecordsFile {
    fn of(path: PathBuf) -> io::Result<RecordsFile> {
        let found = path.metadata()?;
        Ok(RecordsFile { path, device: found.dev(), inode: found.ino() })
    }

    fn is(&self, found: &Metadata) -> bool {
        (self.device, self.inode) == (found.dev(), found.ino())
    }

    /// Returns true if accounting writes into it.
    fn is_in_use(&self) -> Result<bool, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.path.display());
        match File::open(&self.path) {
            Ok(opened) if self.is(&opened.metadata().map_err(failed)?) => is_written(&opened),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            // Removed with the scratch directory, once accounting was off; or by somebody else before.
            _ => Ok(accounting::current_file()?.is_some_and(|found| self.is(&found))),
        }
    }
}

/// Returns true if accounting writes into this file of ours. Nobody but the kernel writes it.
fn is_written(file: &File) -> Result<bool, String> {
    accounting::is_written(file)
        .map_err(|error| format!("cannot find out whether process accounting is on: {error}"))
}

fn undo(state: &Value) -> Result<(), String> {
    let file: RecordsFile = serde_json::from_value(state.clone())
        .map_err(|error| format!("the journal's file of process accounting is damaged: {error}"))?;
    if file.is_in_use()? {
        turn_off()?;
    }
    match file.is_in_use()? {
        false => Ok(()),
        true => Err(format!("process accounting is still on: {TURN_OFF}")),
    }
}

/// Turns accounting off, also that of somebody else: look first whose it is.
fn turn_off() -> Result<(), String> {
    accounting::switch(None).map_err(|error| format!("cannot turn process accounting off: {error}"))
}

fn build(parameters: &Parameters) -> Result<Box<dyn Treatment>, String> {
    let is_recorded = only_word(parameters) != Some("off");
    Ok(Box::new(Accounted { is_recorded, arm: 0, file: PathBuf::new(), turns: Rc::default() }))
}

/// Turns at the accounting of this machine.
#[derive(Default)]
struct AccountingTurns(Turns);

struct Accounted {
    /// False for two identical arms.
    is_recorded: bool,
    arm: usize,
    /// Where the kernel writes its records: the same file for all arms.
    file: PathBuf,
    turns: Rc<AccountingTurns>,
}

impl Accounted {
    /// Switches accounting on and looks whether a record comes, and then off again unless it is to stay on.
    fn switch(&self, stays_on: bool) -> Result<(), String> {
        // Before each sample: somebody may switch it on during the experiment.
        found_off()?;
        self.empty()?;
        accounting::switch(Some(&self.file))
            .map_err(|error| format!("cannot turn process accounting on: {error}"))?;
        // With the first record, the kernel looks for space and logs that it begins: not within the sample.
        let ended = short_process::end_one()?;
        if !accounting::processes(&self.file)?.contains(&ended) {
            return Err(format!(
                "the kernel wrote no accounting record. It writes none while less than 4 % of the file \
                 system of {} is free (kernel.acct): set TMPDIR to a different disk",
                self.file.display()
            ));
        }
        if !stays_on {
            self.stop()?;
        }
        self.empty()
    }

    /// Switches our accounting off; `false` if it was off, or somebody else's is on in its place.
    fn stop(&self) -> Result<bool, String> {
        let failed = |error: io::Error| format!("{}: {error}", self.file.display());
        let is_on = is_written(&File::open(&self.file).map_err(failed)?)?;
        if is_on {
            turn_off()?;
        }
        Ok(is_on)
    }

    /// Looks after the sample whether accounting was on until its end, and whether somebody else's is on.
    fn end_sample(&self, is_treated: bool) -> Result<(), String> {
        let was_on = self.stop()?;
        if accounting::current_file()?.is_some() {
            return Err(format!(
                "another program switched process accounting on during the experiment: {TURN_OFF}, and \
                 measure again"
            ));
        }
        match (was_on, is_treated && self.is_recorded) {
            (false, true) => Err("another program switched process accounting off during the \
                                  treated sample"
                .into()),
            (true, false) => {
                Err("process accounting was on in a sample without the treatment".into())
            }
            _ => Ok(()),
        }
    }

    fn empty(&self) -> Result<(), String> {
        let emptied = OpenOptions::new().write(true).create(true).truncate(true).open(&self.file);
        emptied.map(drop).map_err(|error| format!("{}: {error}", self.file.display()))
    }

    /// A record of the process shows that accounting was on until its end.
    fn prove(&self, is_treated: bool, pid: u32, records: &[u32]) -> Result<(), TreatmentError> {
        prove(
            is_treated && self.is_recorded,
            records.contains(&pid),
            records.len() as u64,
            || "the kernel wrote no accounting record of the treated process".into(),
            "the kernel wrote accounting records of a process without the treatment",
        )
    }
}

impl Treatment for Accounted {
    fn occupies(&self) -> Vec<Occupied> {
        vec![Occupied { what: "process accounting", can_alternate: true }]
    }

    fn prepare(
        &mut self,
        context: &ApplyContext,
        _: &mut Guard,
    ) -> Result<Vec<String>, TreatmentError> {
        self.file = context.place.scratch.join("accounting-records");
        self.turns = context.commons.of();
        self.arm = self.turns.0.enlist();
        Ok(Vec::new())
    }

    fn apply(&mut self, _: &ApplyContext, guard: &mut Guard) -> Result<(), TreatmentError> {
        self.empty().map_err(TreatmentError::Unavailable)?;
        let written = RecordsFile::of(self.file.clone())
            .and_then(|file| guard.write_down(NAME, NAME, json!(file)));
        written.map_err(|error| {
            TreatmentError::Unavailable(format!("cannot write the journal: {error}"))
        })?;
        self.switch(false).map_err(TreatmentError::Unavailable)
    }

    fn take_turn(&mut self, role: Role) -> Result<(), TreatmentError> {
        // The last sample had no result, so nobody asked for its proof.
        if self.turns.0.end(self.arm) {
            self.stop().map_err(TreatmentError::NotInForce)?;
        }
        if role == Role::Treated {
            self.turns.0.take(self.arm);
        }
        Ok(())
    }

    fn begin_sample(&mut self, role: Role) -> Result<(), TreatmentError> {
        let done = match role {
            Role::Treated => self.switch(self.is_recorded),

            Role::Paired if self.turns.0.is_free() => self.switch(false),
            _ => Ok(()),
        };
        done.map_err(TreatmentError::NotInForce)
    }

    fn verify_sample(&mut self, launch: &Launch) -> Result<Evidence, TreatmentError> {
        // The arm that has its turn proves it.
        if !launch.is_treated && !self.turns.0.is_free() {
            return Ok(Evidence::default());
        }
        let failed = TreatmentError::NotInForce;
        self.turns.0.end(self.arm);
        self.end_sample(launch.is_treated).map_err(failed)?;
        let records = accounting::processes(&self.file).map_err(failed)?;
        self.empty().map_err(failed)?;
        self.prove(launch.is_treated, launch.launched.pid, &records)?;
        let count = launch.is_treated.then_some(records.len() as u64);
        Ok(Evidence::default().with(&RECORDS, count))
    }

    fn quantities(&self) -> Vec<EvidenceQuantity> {
        vec![RECORDS]
    }

    fn facts(&self) -> Vec<String> {
        vec![match self.is_recorded {
            true => "The kernel writes a record of each process of the machine that ends during a treated \
                     sample."
                .into(),
            false => "The kernel writes no accounting records.".into(),
        }]
    }

    fn restore(&mut self, guard: &mut Guard) -> Result<(), TreatmentError> {
        guard.undo(NAME, NAME).map_err(TreatmentError::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_receiver::assert_proof;
    use crate::parse;

    #[test]
    fn a_sample_counts_if_its_end_was_recorded_and_another_if_nothing_was() {
        let is_believed = |is_recorded, is_treated, others, has_record| {
            let (file, turns) = (PathBuf::new(), Rc::default());
            let arm = Accounted { is_recorded, arm: 0, file, turns };
            let mut records = vec![4; others as usize];
            records.extend(Some(7).filter(|_| has_record));
            arm.prove(is_treated, 7, &records).is_ok()
        };
        assert_proof(is_believed, &true, &false, &[]);
        assert!(parse("acct:on").is_err());
    }

    /// Accounting of the whole machine is neither looked for nor switched where a file is not in use.
    #[test]
    fn a_file_that_nobody_writes_is_undone_already() {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        assert_eq!(undo(&json!(RecordsFile::of(file.to_path_buf()).unwrap())), Ok(()));
        assert!(undo(&Value::Null).unwrap_err().contains("damaged"));
    }
}
