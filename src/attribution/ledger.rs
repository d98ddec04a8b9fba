//! Which of the rules that are weighed the kernel holds at the moment, and in which order.

use crate::audit::netlink::Client;
use crate::audit::rule::Rule;
use crate::audit::status::Status;
use crate::treatment::Error;
use crate::treatment::audit::{needs, untouched};

/// The kernel's list, as far as it is ours to change.
pub struct Ledger {
    client: Client,
    /// How auditing is set throughout.
    status: Status,
    /// What stays loaded throughout, as the kernel lists it: the host's rules and ours.
    fixed: Vec<Rule>,
    rules: Vec<Rule>,
    /// Indices into `rules`.
    loaded: Vec<usize>,
}

impl Ledger {
    /// With no rules to weigh yet, and all that is loaded now to stay.
    ///
    /// # Errors
    /// Where the kernel does not list its rules.
    pub fn new(mut client: Client) -> Result<Ledger, Error> {
        let fixed = client.rules().map_err(needs)?;
        let status = client.status().map_err(needs)?;
        Ok(Ledger { client, status, fixed, rules: Vec::new(), loaded: Vec::new() })
    }

    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Has exactly these loaded, in this order. What comes behind the first difference is unloaded and
    /// loaded again: rules are added at the end.
    ///
    /// # Errors
    /// Where the kernel refuses a rule that it took before, or misses one that it had.
    pub fn load(&mut self, wanted: &[usize]) -> Result<(), Error> {
        let same = self.loaded.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        // One by one: after an error, too, it is known what is loaded.
        while let Some(index) = self.loaded.get(same..).and_then(<[usize]>::last) {
            self.client.delete_rule(&self.rules[*index]).map_err(interfered)?;
            self.loaded.pop();
        }
        for &index in &wanted[same..] {
            self.client.add_rule(&self.rules[index]).map_err(interfered)?;
            self.loaded.push(index);
        }
        Ok(())
    }

    /// Unloads what is loaded; indices mean these rules from now on.
    ///
    /// # Errors
    /// As [`Ledger::load`].
    pub fn take(&mut self, rules: Vec<Rule>) -> Result<(), Error> {
        self.load(&[])?;
        self.rules = rules;
        Ok(())
    }

    /// Whether the kernel holds what it should, and nothing else.
    ///
    /// # Errors
    /// [`Error::NotInForce`] where somebody else changed the rules or a setting.
    pub fn verify(&mut self) -> Result<(), Error> {
        let status = self.client.status().map_err(needs)?;
        if status.enabled == 0 {
            return Err(Error::NotInForce("auditing was switched off while we measured".into()));
        }
        let changed = untouched::settings(&self.status, &status);
        if !changed.is_empty() {
            return Err(Error::NotInForce(format!(
                "the audit settings were changed while we measured: {}",
                changed.join("; ")
            )));
        }
        let listed = self.client.rules().map_err(needs)?;
        let ours = self.loaded.iter().map(|index| &self.rules[*index]);
        let mut expected: Vec<&Rule> = self.fixed.iter().chain(ours).collect();
        // The kernel lists one filter after the other; within each, in the order of loading.
        expected.sort_by_key(|rule| rule.filter());
        if listed.iter().eq(expected.iter().copied()) {
            return Ok(());
        }
        Err(Error::NotInForce(format!(
            "the audit rules were changed while we measured: {} were loaded, now there are {}",
            expected.len(),
            listed.len()
        )))
    }
}

fn interfered(error: std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EEXIST) => Error::NotInForce(
            "the audit rules were changed by somebody else while we measured".into(),
        ),
        _ => needs(error),
    }
}
