//! The interpreters of an experiment, asked in every arm what they are.

use super::{ArmsError, Host, Stop};
use crate::interpreters::{self, InterpreterBuild};
use crate::request::ProgressSink;
use weigh_model::ids::{ArmId, RowId, WorkId};
use weigh_model::result::warning::Warning;
use weigh_workload::launcher::LauncherError;

impl Host<'_> {
    /// Has the interpreter of every language tell in each arm how it was built, and stores what it told, with
    /// what differs. Of works that are `broken`, a work and an arm each, it is not asked.
    ///
    /// # Errors
    /// Where a treatment was not in force, or nothing can be stored.
    pub fn ask_interpreters(
        &mut self,
        broken: &[RowId],
        progress_sink: &mut dyn ProgressSink,
    ) -> Result<(), Stop> {
        let mut facts: Vec<Vec<String>> = self.arms.ids().map(|arm| self.facts(arm)).collect();
        let works = self.site.works.iter().enumerate();
        let works = works
            .filter(|(work, _)| !broken.contains(&(WorkId(*work), ArmId::BASELINE)))
            .map(|(_, work)| work);
        let languages = interpreters::languages(works);
        if languages.is_empty() {
            return Ok(());
        }
        for language in languages {
            let mut baseline: Option<InterpreterBuild> = None;
            for (arm, facts) in self.arms.ids().zip(&mut facts) {
                self.arms.need(arm, &[]);
                let job = interpreters::job(language, self.arms.place(arm));
                let launched = match self.arms.launch(arm, arm, &job) {
                    Ok(proved) => proved.launched,
                    // The programs themselves tell what is wrong with it.
                    Err(ArmsError::Launcher(LauncherError::Refused(_))) => continue,
                    Err(error) => return Err(error.into()),
                };
                let Some(own) = interpreters::read(&launched) else { continue };
                let Some(first) = &baseline else {
                    facts.push(interpreters::sentence(language, &own));
                    baseline = Some(own);
                    continue;
                };
                let Some((sentence, factors)) = interpreters::difference(language, first, &own)
                else {
                    continue;
                };
                facts.extend([interpreters::sentence(language, &own), sentence]);
                if factors.len() > 1 {
                    let (arm, language) =
                        (self.arms.label(arm).to_owned(), language.name.to_string());
                    let warning = Warning::InterpreterDiffers { arm, language, factors };
                    progress_sink.announce(&warning.to_string());
                    self.site.store.add_warning(self.site.id, &warning)?;
                }
            }
        }
        for ((arm, named), facts) in self.arms.ids().zip(self.arms.treatments()).zip(facts) {
            self.site.store.set_facts(self.site.id, arm, &facts, &named.treatment.quantities())?;
        }
        Ok(())
    }
}
