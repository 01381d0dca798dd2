//! Units of a check, handed out to workers on other machines.
//!
//! A *job* is one check; its *units* are the shards of that, and before them one that makes the recording which they all begin
//! with, so that they deal out the same leads. The coordinator lays the program and its files into the queue, each under the hash
//! of its content, publishes the unit of the recording, ships what came of it as it ships files, publishes the other units, and
//! waits for an outcome of each. A worker takes a unit, keeps it by renewing its lease, executes it, and lays down the store that
//! came of it, as an archive. The first outcome of a unit counts.
//!
//! What may happen to the queue in between (a worker is killed, the server is, a message is lost or comes twice) is what
//! [`Exchange`] says, and what the coordinator and the worker make of it is tested without a server. [`Nats`] is the exchange
//! over NATS JetStream.
#![forbid(unsafe_code)]

mod address;
pub mod archive;
mod cache;
mod content;
mod coordinate;
mod error;
mod exchange;
mod message;
mod nats;
#[cfg(test)]
mod pretend;
#[cfg(test)]
mod tests;
mod work;

pub use address::{Access, Address};
pub use content::Hash;
pub use coordinate::{Accept, Coordinator, Distributed, Progress};
pub use error::QueueError;
pub use exchange::{Exchange, Taken};
pub use message::{MOST_UNITS, PROTOCOL, RECORDING, ShippedFile, Unit};
pub use nats::Nats;
pub use work::{Deed, Execute, Task, Unmade, Worker};
