//! Programs built with gcc's `-fsanitize=thread` ask the loader for this name.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtsan.so.2");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
