//! Compiles what LLVM offers in C++ only. `RASHOMON_LLVM_CONFIG` names the `llvm-config` of LLVM 19 if it is not where
//! Debian puts it.

use std::process::{Command, exit};

const VARIABLE: &str = "RASHOMON_LLVM_CONFIG";
const DEBIAN: &str = "/usr/lib/llvm-19/bin/llvm-config";

fn main() {
    println!("cargo::rerun-if-changed=src/shim.cpp");
    println!("cargo::rerun-if-changed=src/counted.cpp");
    println!("cargo::rerun-if-changed=src/nest.hpp");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let config = std::env::var(VARIABLE).unwrap_or_else(|_| DEBIAN.into());
    let ask = |what: &str| {
        let output = Command::new(&config).arg(what).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = ask("--version").filter(|version| version.starts_with("19."));
    let (Some(_), Some(include)) = (version, ask("--includedir")) else {
        eprintln!("the plugin needs LLVM 19: {config} is no llvm-config of it.");
        eprintln!("On Debian: apt install clang-19 llvm-19-dev g++. Elsewhere name its llvm-config in {VARIABLE}.");
        exit(1);
    };
    // As LLVM itself is built on Debian. Its symbols, and those of the C++ library, are the compiler's that loads the plugin.
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/shim.cpp")
        .file("src/counted.cpp")
        .include(include)
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-Wno-unused-parameter")
        .flag("-Wno-deprecated-declarations")
        .cpp_link_stdlib(None)
        .compile("rashomon_shim");
}
