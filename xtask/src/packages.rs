//! What the tests need besides Rust: both compilers, LLVM's headers for the plugin, the debuggers, a linker, make, Meson,
//! pytest, and Python's venv, into which tests install a server from PyPI. Installed on Debian when we may.

use std::process::{Command, Stdio};

const NEEDED: [&str; 16] = [
    "clang-19",
    "libclang-rt-19-dev",
    "llvm-19-dev",
    "lld-19",
    "gdb",
    "lldb-19",
    "gcc",
    "g++",
    "make",
    "cmake",
    "libgtest-dev",
    "catch2",
    "doctest-dev",
    "python3-venv",
    "meson",
    "python3-pytest",
];

/// Installs what is missing, if allowed and possible. Says what is missing after that.
pub fn provide(may_install: bool) -> Option<String> {
    let Some(lacking) = missing() else {
        return Some(format!("not a Debian system: cannot tell whether {} are there", NEEDED.join(", ")));
    };
    if lacking.is_empty() {
        return None;
    }
    if may_install && rustix::process::geteuid().is_root() {
        eprintln!("== packages: installing {}", lacking.join(" "));
        // All at once is quickest; one that cannot be had must not keep the others away.
        if apt(&["update"]) && !install(&lacking) {
            for package in &lacking {
                install(&[package]);
            }
        }
    }
    let lacking = missing().unwrap_or_default();
    if lacking.is_empty() {
        return None;
    }
    let names = lacking.join(" ");
    Some(format!("not installed: {names}. Tests that need them skip or fail. Cure: apt-get install {names}"))
}

/// `None`: no dpkg here.
fn missing() -> Option<Vec<&'static str>> {
    let installed = |package: &&str| {
        let query = Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]).stderr(Stdio::null()).output();
        query.ok().map(|output| output.stdout == b"installed")
    };
    NEEDED
        .iter()
        .map(|package| Some((*package, installed(package)?)))
        .collect::<Option<Vec<_>>>()
        .map(|all| all.into_iter().filter(|(_, there)| !there).map(|(package, _)| package).collect())
}

pub fn install(packages: &[&str]) -> bool {
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt(arguments: &[&str]) -> bool {
    let status = Command::new("apt-get")
        .args(["-q", "-o", "DPkg::Lock::Timeout=120"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        // Standard output is for what a command is about.
        .stdout(std::io::stderr())
        .status();
    status.is_ok_and(|status| status.success())
}
