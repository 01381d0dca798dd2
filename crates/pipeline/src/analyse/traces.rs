//! The traces behind a path: of all recordings of a store, of one recording, or of a file in any format.

use crate::error::PipelineError;
use crate::store::Store;
use rashomon_abi::HEADER_FILE;
use rashomon_event::Trace;
use rashomon_packed::checked::{CheckOptions, Checked};
use rashomon_packed::{OpenOptions, open, to_trace};
use rashomon_trace::{Recording, processes};
use std::path::Path;

/// Hands over one after the other, so that only one is in memory.
pub fn each_trace(path: &Path, mut with: impl FnMut(&Trace)) -> Result<(), PipelineError> {
    let mut session = |folder: &Path| -> Result<(), PipelineError> {
        for process in processes(folder)? {
            with(&Recording::open(&process.folder)?.load()?.trace);
        }
        Ok(())
    };
    if path.join(HEADER_FILE).is_file() {
        return session(path);
    }
    if path.is_file() {
        let mut source = Checked::new(open(path, &OpenOptions::default())?, CheckOptions::default());
        with(&to_trace(&mut source)?.trace);
        return Ok(());
    }
    let store = Store::open(path)?;
    let (run, _) = store.run_and_origin()?;
    for number in 0..run.recordings.len() as u32 {
        session(&store.recording(number))?;
    }
    Ok(())
}
