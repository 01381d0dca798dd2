//! What ends a phase.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path}: {reason}", path = path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("{path} is not empty; name another folder for the output, or remove it", path = path.display())]
    OutputExists { path: PathBuf },
    #[error("{path} is a link, or no file or folder of ours: a store has none; \
        remove it, or do not use this store", path = path.display())]
    Foreign { path: PathBuf },
    #[error("{path} is in use by {by}; wait until that ends, or use a copy of the store", path = path.display())]
    InUse { path: PathBuf, by: String },
    #[error("no store in {path}; run `rashomon check` or `rashomon record` \
        there first, or name one with --store", path = path.display())]
    NoStore { path: PathBuf },
    #[error("{path} holds no recording to begin with", path = path.display())]
    NoRecordings { path: PathBuf },
    #[error("{path} holds recordings of `{recorded}`, and this is `{given}`: --from takes recordings of the same program with \
        the same arguments", path = path.display())]
    OtherProgram { path: PathBuf, recorded: String, given: String },
    #[error("no finding {id} in {path}; it has: {known}", path = path.display())]
    NoSuchFinding { id: String, path: PathBuf, known: String },
    #[error("{prefix} is ambiguous: it may be {known}")]
    AmbiguousFinding { prefix: String, known: String },
    #[error("finding {id} has no schedule: it was {verdict}, never forced")]
    NoSchedule { id: String, verdict: &'static str },
    #[error("{what} is for another binary: {path} had build-id {expected} and has {found}; \
        run `rashomon check` on the new one", path = path.display())]
    OtherBinary { what: String, path: PathBuf, expected: String, found: String },
    #[error("the program ran without our runtime, so nothing was recorded; `rashomon doctor PROG` says why")]
    NotObserved,
    #[error("the time for the recording was over before the program began; a larger --budget or --timeout gives more")]
    NothingRecorded,
    #[error(
        "nothing is left of the recording: {path} was moved or deleted while the program ran; \
            --output names a folder that the program leaves alone",
        path = path.display()
    )]
    SessionGone { path: PathBuf },
    #[error(
        "the program could not begin its recording in {path} (what it wrote to standard error says \
            why); --output names another folder",
        path = path.display()
    )]
    NotBegun { path: PathBuf },
    #[error("{name} is not installed, or not in PATH; install it, or replay without {option}")]
    NoDebugger { name: &'static str, option: &'static str },
    #[error("`{text}` is not Unicode: scripts for debuggers cannot name it")]
    NotUnicode { text: String },
    #[error("there was no time to {what}; a larger --budget gives more")]
    OutOfTime { what: &'static str },
    #[error(transparent)]
    Trace(#[from] rashomon_trace::TraceError),
    #[error(transparent)]
    TraceFile(#[from] rashomon_packed::TraceError),
    #[error(transparent)]
    Import(#[from] rashomon_packed::ImportError),
    #[error(transparent)]
    Explore(#[from] rashomon_explore::ExploreError),
    #[error(transparent)]
    Confirm(#[from] rashomon_confirm::ConfirmError),
}

impl PipelineError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
