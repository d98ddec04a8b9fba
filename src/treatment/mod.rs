//! Changes that are applied to a system or a process tree: one file per kind in `kind/`, found by
//! `build.rs`. The engine calls them in this order, and nothing else does:
//!
//! ```text
//! build → prepare → apply → setup per arm → (before → sample → after) per sample → restore
//! ```
//!
//! `prepare` and `apply` write down how to undo a change, in the [`guard::Guard`], before they make it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::workload::kernels::Kernels;
use crate::workload::launcher::{Launched, Setup};

pub mod audit_residual;
pub mod audit_state;
pub mod audit_stream;
pub mod bpf;
pub mod guard;
pub mod label;
pub mod oci_profile;
pub mod state_dir;

include!(concat!(env!("OUT_DIR"), "/treatments.rs"));

/// Why a treatment could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be applied here; the sentence says what is missing.
    #[error("{0}")]
    Unavailable(String),
    /// It was applied, but did not show itself where it should (or did where it should not): what
    /// was measured meanwhile is not evidence of anything.
    #[error("{0}")]
    NotInForce(String),
    #[error("interrupted")]
    Interrupted,
}

/// What it would take to apply a kind of treatment on this machine, found out by trying.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "why", rename_all = "kebab-case")]
pub enum Probe {
    Available,
    NeedsRoot(String),
    /// Something on this host is in the way.
    Conflict(String),
    /// The kernel cannot, or answers in a way that we do not understand.
    Broken(String),
}

impl Probe {
    /// The sentence that says why not; `None` where it works.
    pub fn obstacle(&self) -> Option<&str> {
        match self {
            Probe::Available => None,
            Probe::NeedsRoot(why) | Probe::Conflict(why) | Probe::Broken(why) => Some(why),
        }
    }
}

/// A parameter, as `weigh list treatments` explains it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameter {
    /// As it is written: `backlog=N`, or a bare word.
    pub form: &'static str,
    pub help: &'static str,
}

/// A kind of treatment: what `audit` or `seccomp` stands for before it has parameters.
pub trait Kind: Sync {
    fn name(&self) -> &'static str;
    /// One line.
    fn summary(&self) -> &'static str;
    fn parameters(&self) -> &'static [Parameter];
    /// Tries what the treatment needs, and changes nothing.
    fn probe(&self) -> Probe;
    /// Makes a treatment of parameters that the user wrote.
    ///
    /// # Errors
    /// A sentence that says which parameter is wrong, and what it takes.
    fn build(&self, parameters: &label::Parameters) -> Result<Box<dyn Treatment>, String>;
    /// Undoes what a treatment of this kind wrote into the journal; also in another process, later.
    ///
    /// # Errors
    /// A sentence that says what is left, and how to undo it by hand.
    fn undo(&self, state: &serde_json::Value) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
}

/// What a treatment may use.
pub struct Bench<'a> {
    pub kernels: &'a Kernels,
    /// A private directory, removed after the experiment.
    pub scratch: &'a Path,
    pub interrupted: &'a AtomicBool,
}

/// A treatment with its parameters. The defaults are those of one that does nothing.
pub trait Treatment {
    /// A name for what two treatments cannot both have in one experiment.
    fn occupies(&self) -> Option<&'static str> {
        None
    }

    /// Looks at the host before it is changed; the sentences are shown at once.
    ///
    /// # Errors
    /// Where the treatment cannot be applied here.
    fn prepare(&mut self, bench: &Bench, guard: &mut guard::Guard) -> Result<Vec<String>, Error> {
        let _ = (bench, guard);
        Ok(Vec::new())
    }

    /// Changes the system as far as that concerns more than the treated processes.
    ///
    /// # Errors
    /// Where that fails; the guard's journal undoes what was done.
    fn apply(&mut self, bench: &Bench, guard: &mut guard::Guard) -> Result<(), Error> {
        let _ = (bench, guard);
        Ok(())
    }

    /// How processes of the treated arm differ, and of the others.
    fn setup(&self, is_treated: bool) -> Setup {
        let _ = is_treated;
        Setup::default()
    }

    /// Called before each sample of this treatment's pairs.
    ///
    /// # Errors
    /// [`Error::NotInForce`]
    fn before(&mut self, is_treated: bool) -> Result<(), Error> {
        let _ = is_treated;
        Ok(())
    }

    /// Called after each: proves that the treatment was in force if and only if it should have been.
    ///
    /// # Errors
    /// [`Error::NotInForce`]
    fn after(&mut self, is_treated: bool, launched: &Launched) -> Result<Evidence, Error> {
        let _ = (is_treated, launched);
        Ok(Evidence::default())
    }

    /// What was done, in whole sentences, for the report; after [`Treatment::apply`].
    fn facts(&self) -> Vec<String> {
        Vec::new()
    }

    /// What kind of baseline the untreated arm is, where that is a question.
    fn baseline_state(&self) -> Option<String> {
        None
    }

    /// Undoes it and looks whether it is undone.
    ///
    /// # Errors
    /// A sentence that says what is left; the journal stays for `weigh restore`.
    fn restore(&mut self, guard: &mut guard::Guard) -> Result<(), Error> {
        let _ = guard;
        Ok(())
    }
}

/// What a treatment produced during one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Audit records of the worker and its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Bytes that these take in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Records that the kernel dropped, of anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Time that processes waited for room in the audit backlog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_wait_s: Option<f64>,
    #[serde(flatten)]
    pub other: BTreeMap<String, String>,
}

/// The kind of this name.
pub fn find(name: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.name() == name)
}

/// A treatment as it was written on the command line.
pub struct Named {
    pub label: String,
    pub treatment: Box<dyn Treatment>,
}

/// Makes a treatment of `NAME[:PARAMETER[=VALUE],…]`.
///
/// # Errors
/// A sentence that says what is wrong and what there is.
pub fn parse(text: &str) -> Result<Named, String> {
    let (name, parameters) = label::split(text)?;
    let kind = find(name).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
        format!(
            "there is no treatment `{name}`; there are {} (`weigh list treatments` explains them). \
             To weigh a command, put it after `--`",
            known.join(", ")
        )
    })?;
    parameters.check(name, kind.parameters())?;
    let treatment = kind.build(&parameters)?;
    Ok(Named { label: text.to_owned(), treatment })
}

/// The directory of the file that a parameter names, made absolute, so that a later process finds it.
pub(crate) fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{path}: {error}"))
}
