//! What can go wrong.

use rashomon_confirm::ConfirmError;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is damaged at byte {offset}: {what}", path.display())]
    Damaged { path: PathBuf, offset: u64, what: String },
    #[error("the program ran without our runtime: build it with `rashomon cc`, `rashomon c++` or -fsanitize=thread")]
    NotObserved,
}

impl ExploreError {
    /// Whether an execution left nothing to be read.
    pub const fn is_of_nothing(&self) -> bool {
        use rashomon_trace::TraceError::{NotARecording, NotBegun};
        matches!(self, Self::NotObserved | Self::Confirm(ConfirmError::Trace(NotARecording { .. } | NotBegun { .. })))
    }

    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
