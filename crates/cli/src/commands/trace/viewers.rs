//! Recordings for viewers of traces.

use super::super::Ui;
use super::files::is_file;
use super::loaded;
use crate::exit::Exit;
use crate::terminal::{binary_output, say};
use anyhow::{Context as _, Result, bail};
use rashomon_event::counted;
use rashomon_pipeline::perfetto::{Exported, export};
use rashomon_pipeline::{Binaries, Store};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

/// A recording as a Perfetto trace, with the findings of its store.
pub fn perfetto(ui: Ui, trace: &Path, output: &Path) -> Result<Exit> {
    if is_file(trace) {
        bail!("{} is a trace file; --to perfetto takes a recording or a store", trace.display());
    }
    let loaded = loaded(trace)?;
    let findings = match Store::open(trace) {
        Ok(store) => store.findings()?,
        Err(_) => Vec::new(),
    };
    let to_output = output == Path::new("-");
    let mut out: Box<dyn Write> = if to_output {
        Box::new(BufWriter::new(binary_output()))
    } else {
        Box::new(BufWriter::new(File::create(output).with_context(|| format!("cannot write {}", output.display()))?))
    };
    let exported = match export(&loaded, &findings, &Binaries::new(), &mut *out) {
        Ok(exported) => exported,
        // A reader that went away has seen enough.
        Err(error) if to_output && error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Success),
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", output.display())),
    };
    if !ui.quiet {
        let Exported { threads, slices, flows, accesses } = exported;
        let (threads, slices) = (counted(threads, "thread"), counted(slices, "slice"));
        let (flows, accesses) = (counted(flows, "flow"), counted(accesses, "instant"));
        say!("{threads}, {slices}, {flows}, {accesses} of findings → {}", output.display());
    }
    Ok(Exit::Success)
}
