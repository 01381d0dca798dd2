//! `cargo rashomon …`: becomes `rashomon cargo …`.
#![forbid(unsafe_code)]

mod beside;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // Cargo repeats the name of its subcommand.
    let _ = arguments.next_if(|first| first == "rashomon");
    beside::become_tool("cargo-rashomon", "cargo", arguments)
}
