//! Races on correlated variables in a recording that has ways of control. Nothing is executed: what is found are suspicions.

use crate::check::prove::load_until;
use crate::error::PipelineError;
use crate::findings::compose::Composer;
use crate::findings::correlated::Unjudged;
use crate::findings::declared::{Declarations, Declared, declared_of, not_accessed, of_program};
use crate::findings::symbols::Symbols;
use rashomon_event::{Deadline, Finding};
use rashomon_flow::judge;
use rashomon_trace::processes;
use rashomon_units::Options;
use std::collections::BTreeMap;
use std::path::Path;

/// Of all recordings of a session: one finding for each correlated set, and what could not be judged, in words. Where nothing is
/// declared, recordings without ways of control are nothing to talk of.
pub fn judge_dependences<S: Symbols + ?Sized>(
    sessions: &[&Path],
    symbols: &S,
    given: &Declarations,
    deadline: Deadline,
) -> Result<(Vec<Finding>, Vec<String>), PipelineError> {
    let mut found: BTreeMap<String, Finding> = BTreeMap::new();
    let (mut unjudged, mut missing, mut judged_any) = (Unjudged::default(), None, false);
    let mut notes = given.complaints.clone();
    for session in sessions {
        for process in processes(session)? {
            // What cannot be read or takes too long was told by whoever analyses the recording.
            let Ok(loaded) = load_until(&process.folder, deadline) else { continue };
            if loaded.flow.is_empty() {
                continue;
            }
            let composer = Composer::new(&loaded, symbols, 0);
            let program = loaded.trace.modules.first().map(|module| rashomon_event::path_of(&module.path));
            let own = program.map(|path| of_program(&path)).unwrap_or_default();
            let declared: Vec<Declared> = given.sets.iter().cloned().chain(own).collect();
            let (ranges, absent) = composer.declared(&declared, deadline);
            missing = Some(missing.map_or_else(|| absent.clone(), |known| &known & &absent));
            let Some(judged) = judge(&loaded, &Options::default(), &ranges, deadline) else {
                notes.push("there was no time to judge correlated variables".to_owned());
                continue;
            };
            judged_any = true;
            composer.unjudged(&judged, &mut unjudged);
            for race in &judged.races {
                let mut finding = composer.of_extended_race(race);
                finding.notes.extend(declared_of(race, &declared, &ranges));
                found.entry(finding.subject.clone()).or_insert(finding);
            }
        }
    }
    if !judged_any && !given.sets.is_empty() {
        let what =
            "declared sets of variables are not judged: nothing was recorded with `record --dependences` of a program that";
        notes.push(format!("{what} was built with `rashomon cc --deep`"));
    }
    notes.extend(missing.as_ref().and_then(not_accessed));
    notes.extend(unjudged.notes());
    Ok((found.into_values().collect(), notes))
}
