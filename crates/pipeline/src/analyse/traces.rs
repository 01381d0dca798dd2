//! The traces behind a path: of all recordings of a store, of one recording, or of a file in any format.

use crate::error::PipelineError;
use crate::store::Store;
use rashomon_abi::HEADER_FILE;
use rashomon_event::{ProcessPath, Trace};
use rashomon_packed::checked::{CheckOptions, Checked};
use rashomon_packed::{OpenOptions, open, to_trace};
use rashomon_trace::{Recording, RunState, processes};
use std::collections::BTreeSet;
use std::path::Path;

/// What is missing in the recordings behind a path, each said once: a model of them decides nothing about it. Of traces of other
/// tools nothing is known.
pub fn losses(path: &Path) -> Result<Vec<String>, PipelineError> {
    let mut losses = BTreeSet::new();
    let mut session = |folder: &Path| -> Result<(), PipelineError> {
        for process in processes(folder)? {
            let header = Recording::open(&process.folder)?.header;
            losses.extend(header.losses());
            if header.state == RunState::Running {
                losses
                    .insert(String::from("what comes behind the end of the recording: the program was ended before it was done"));
            }
            if header.notes.thinned() {
                losses.insert(String::from("accesses that came again and again were no longer kept"));
            }
            if header.notes.places() {
                losses.insert(String::from("in recordings of a few places alone, all plain accesses of others"));
            }
            if header.notes.filtered() {
                losses.insert(String::from("accesses that are redundant for detectors of races were left out (--filter)"));
            }
        }
        Ok(())
    };
    if path.join(HEADER_FILE).is_file() {
        session(path)?;
    } else if !path.is_file() {
        let store = Store::open(path)?;
        let (run, _) = store.run_and_origin()?;
        (0..run.recordings.len() as u32).try_for_each(|number| session(&store.recording(number)))?;
    }
    Ok(losses.into_iter().collect())
}

/// Hands over one after the other, so that only one is in memory.
pub fn each_trace(path: &Path, mut with: impl FnMut(&Trace)) -> Result<(), PipelineError> {
    each_process(path, |_, trace| with(trace))
}

/// The same, with the process of its recording that each is of.
pub fn each_process(path: &Path, mut with: impl FnMut(&ProcessPath, &Trace)) -> Result<(), PipelineError> {
    let mut session = |folder: &Path| -> Result<(), PipelineError> {
        for process in processes(folder)? {
            with(&process.path, &Recording::open(&process.folder)?.load()?.trace);
        }
        Ok(())
    };
    if path.join(HEADER_FILE).is_file() {
        return session(path);
    }
    if path.is_file() {
        let mut source = Checked::new(open(path, &OpenOptions::default())?, CheckOptions::default());
        with(&ProcessPath::default(), &to_trace(&mut source)?.trace);
        return Ok(());
    }
    let store = Store::open(path)?;
    let (run, _) = store.run_and_origin()?;
    for number in 0..run.recordings.len() as u32 {
        session(&store.recording(number))?;
    }
    Ok(())
}
