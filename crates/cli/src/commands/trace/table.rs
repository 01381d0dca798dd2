//! Traces as tables of events, for SQL.

use super::super::Ui;
use super::files::{is_file, open_checked, tell_notices};
use super::loaded;
use crate::arguments::Reading;
use crate::exit::Exit;
use crate::progress::Counter;
use crate::terminal::{binary_output, say};
use anyhow::{Context as _, Result, bail};
use rashomon_event::counted;
use rashomon_pipeline::Binaries;
use rashomon_pipeline::table::{ExportError, Exported, TableError, of_file, of_recording};
use rashomon_pipeline::trace::file::Source as _;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a file goes that is of no use before its end is written.
enum Output {
    /// A pipe, a device, standard output: what is there cannot be replaced.
    Stream(Box<dyn Write + Send>),
    /// A regular file, under another name beside its own until it is whole. Removed unless it came to that.
    New { file: NamedTempFile, name: PathBuf },
}

impl Output {
    fn create(name: &Path) -> io::Result<Self> {
        if name == Path::new("-") {
            return Ok(Self::Stream(Box::new(binary_output())));
        }
        // Through links, which stay.
        let name = match name.canonicalize() {
            Ok(real) if real.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(real) if !real.is_file() => return Ok(Self::Stream(Box::new(File::options().write(true).open(real)?))),
            Ok(real) => {
                // Who may not write a file may not replace it either.
                File::options().write(true).open(&real)?;
                real
            }
            Err(error) if error.kind() == ErrorKind::NotFound => name.to_path_buf(),
            Err(error) => return Err(error),
        };
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Says why it cannot be there, if it cannot.
        folder.metadata()?;
        // As any new file, less what the user's mask takes away.
        let permissions = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new().prefix(".rashomon-").suffix(".part").permissions(permissions).tempfile_in(folder);
        // Its own name says nothing to the user.
        Ok(Self::New { file: file.map_err(|error| error.kind()).map_err(io::Error::from)?, name })
    }

    /// Under its name from here on.
    fn finish(self) -> io::Result<()> {
        match self {
            Self::Stream(mut out) => out.flush(),
            Self::New { file, name } => file.persist(name).map(drop).map_err(|error| error.error),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(out) => out.write(bytes),
            Self::New { file, .. } => file.as_file_mut().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(out) => out.flush(),
            Self::New { file, .. } => file.as_file_mut().flush(),
        }
    }
}

/// A recording or a trace file as a Parquet file.
pub fn parquet(ui: Ui, trace: &Path, reading: &Reading, output: &Path) -> Result<Exit> {
    if trace == output && trace != Path::new("-") {
        bail!("{} cannot be read and written at the same time", trace.display());
    }
    let failed = || format!("cannot write {}", output.display());
    let result = if is_file(trace) {
        let mut source = open_checked(trace, reading)?;
        let out = Output::create(output).with_context(failed)?;
        let mut counter = Counter::new(ui.quiet, "events", source.events());
        let result = of_file(&mut source, out, |events| counter.reached(events));
        counter.finish();
        tell_notices(&source);
        result
    } else {
        let loaded = loaded(trace)?;
        let out = Output::create(output).with_context(failed)?;
        let mut counter = Counter::new(ui.quiet, "events", Some(loaded.trace.events.len() as u64));
        let result = of_recording(&loaded, &Binaries::new(), out, |events| counter.reached(events));
        counter.finish();
        result
    };
    let (Exported { events, rows }, out) = match result {
        Ok(written) => written,
        // A reader that went away has seen enough.
        Err(ExportError::Table(TableError::Io(error))) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Success),
        Err(ExportError::Table(error)) => return Err(error).with_context(failed),
        Err(ExportError::Trace(error)) => return Err(error.into()),
    };
    out.finish().with_context(failed)?;
    if !ui.quiet {
        say!("{} in {} → {}", counted(events, "event"), counted(rows, "row"), output.display());
    }
    Ok(Exit::Success)
}
