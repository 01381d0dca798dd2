//! What is written down: streams of events, the filters in front of them, the folders of the session's processes, external
//! inputs. Nothing here decides who runs.
//!
//! Calls: `system`, `detect`.

pub mod chunk;
pub mod connections;
pub mod counted;
pub mod external;
pub mod filter;
pub mod flow;
pub mod frames;
pub mod kept;
pub mod limit;
pub mod origin;
pub mod owner;
pub mod places;
pub mod process_tree;
pub mod reach;
pub mod recorder;
pub mod tree;
pub mod values;
mod words;
