//! The C compiler as one word, for build systems that want that: becomes `rashomon cc …`.
#![forbid(unsafe_code)]

mod beside;

use std::process::ExitCode;

fn main() -> ExitCode {
    beside::become_tool("rashomon-cc", "cc", std::env::args_os().skip(1))
}
