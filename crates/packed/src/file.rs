//! The packed format: eight bytes an event, in chunks with checksums; `docs/trace-format.md` specifies it.
//!
//! Written as a stream, also into a pipe; read as a stream or mapped. A file whose writer was ended lacks its last chunk, and
//! says so when it is read.

mod layout;
mod read;
mod reseal;
mod write;

pub use read::PackedSource;
#[doc(hidden)]
pub use reseal::reseal;
pub use write::PackedWriter;

pub(crate) use layout::MAGIC;
