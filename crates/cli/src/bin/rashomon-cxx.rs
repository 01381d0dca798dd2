//! The C++ compiler as one word, for build systems that want that: becomes `rashomon c++ …`.
#![forbid(unsafe_code)]

mod beside;

use std::process::ExitCode;

fn main() -> ExitCode {
    beside::become_tool("rashomon-cxx", "c++", std::env::args_os().skip(1))
}
