use parquet::errors::ParquetError;
use std::io;

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error(transparent)]
    Io(io::Error),
    /// What the format has no room for, such as more than 2^15 groups of rows.
    #[error("the Parquet format does not allow it: {0}")]
    Format(String),
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(error) => Self::Io(*error),
                Err(other) => Self::Format(other.to_string()),
            },
            other => Self::Format(other.to_string()),
        }
    }
}

impl From<io::Error> for TableError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
