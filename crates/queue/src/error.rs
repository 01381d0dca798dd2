//! What goes wrong, and what helps.

use std::path::PathBuf;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum QueueError {
    #[error("{address} is no queue: {reason}; write nats://HOST:PORT, or tls://HOST:PORT for an encrypted connection")]
    Address { address: String, reason: String },
    #[error("the queue {address} cannot be reached: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("the queue {address} refuses the credentials; --queue-credentials FILE names others")]
    Refused { address: String },
    #[error("the queue did not answer: {reason}")]
    NoAnswer { reason: String },
    #[error("the queue has no room left ({reason}); raise the limits of its storage, or remove what is left of older jobs")]
    Full { reason: String },
    #[error("the queue has no {what}")]
    Missing { what: String },
    #[error("{what} is damaged: {reason}")]
    Damaged { what: String, reason: String },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the unit is of {theirs}, and this worker of {ours}; start a worker of the same version")]
    OtherVersion { theirs: String, ours: String },
    #[error("{0}")]
    TooLarge(String),
}

impl QueueError {
    /// Whether the same may succeed a little later.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn damaged(what: &str, reason: impl Into<String>) -> Self {
        Self::Damaged { what: what.into(), reason: reason.into() }
    }
}
