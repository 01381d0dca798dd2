//! Why a module's file cannot explain its addresses.

use std::path::PathBuf;
use thiserror::Error;

#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum SymbolizeError {
    #[error("cannot read module {}: {cause}; put the file back to see its function names", path.display())]
    Unreadable { path: PathBuf, cause: String },

    #[error("{} is no object file that can be read: {cause}", path.display())]
    NotAnObject { path: PathBuf, cause: String },

    #[error("{} has build-id {found} now, the recording was made with {recorded}; record again, or put the recorded file \
        back", path.display())]
    BuildIdMismatch { path: PathBuf, recorded: String, found: String },
}
