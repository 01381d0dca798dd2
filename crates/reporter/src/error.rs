//! Why a conversation with a runtime ends early, and what suppressions cannot say.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ReporterError {
    #[error("cannot read from the runtime: {0}")]
    Read(std::io::Error),

    #[error("cannot answer the runtime: {0}")]
    Write(std::io::Error),

    #[error("message {number}: not a message of a runtime (first words {first:#x} {second:#x})")]
    NoMessage { number: u64, first: u64, second: u64 },

    #[error(
        "the runtime speaks version {found} of the report protocol, this tool version {known}; build both from the same sources"
    )]
    Version { found: u64, known: u64 },
}

/// A line of a suppression file that is none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("failed to parse suppressions: line {line}: '{text}' {fault}")]
pub struct SuppressionError {
    /// From 1.
    pub line: usize,
    pub text: String,
    pub fault: &'static str,
}
