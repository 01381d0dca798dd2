//! What evaluations share: how programs are built and executed, what an execution took, tables and bars.

pub mod bar;
pub mod bench;
pub mod compile;
pub mod debian;
pub mod detector;
pub mod load;
pub mod measure;
pub mod nats;
pub mod only;
pub mod options;
pub mod plot;
pub mod programs;
pub mod races;
pub mod server;
pub mod stepping;
pub mod suite;
pub mod table;
pub mod trace_size;

/// For the head of a report: what prints it again.
pub fn command_line() -> String {
    std::iter::once("cargo xtask evaluate".to_owned()).chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}
