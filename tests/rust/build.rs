//! C code in a Rust crate, compiled by whom the cc crate would ask.
use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=c/tally.c");
    let target = env::var("TARGET").unwrap().replace('-', "_");
    let compiler = env::var(format!("CC_{target}")).or_else(|_| env::var("CC")).unwrap_or_else(|_| "cc".into());
    let object = format!("{}/tally.o", env::var("OUT_DIR").unwrap());
    let status = Command::new(compiler).args(["-O1", "-fPIC", "-c", "c/tally.c", "-o", &object]).status();
    assert!(status.is_ok_and(|status| status.success()), "the C code does not compile");
    println!("cargo::rustc-link-arg-tests={object}");
    println!("cargo::rustc-link-arg-bins={object}");
}
