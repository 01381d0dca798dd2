//! The program under test, and the processes that this one starts: what a program that asks for a use case has to say and do.

pub use rashomon_confirm::{Client, Ending, Forcing, Input, Outcome, Output, Program, keep, kill_running, quit_terminates};
