//! Builds the runtime, which is a workspace of its own, and packs it into the tool, so that installing the tool is the whole
//! installation. The runtime's sources are beside the crates, and inside of this one where it was packaged (`cargo xtask package
//! crates`). `RASHOMON_PREBUILT_RUNTIME` names a folder with `librashomon_runtime.a` and `.so` to pack instead (for
//! distributions that build the two separately).

use rashomon_abi::numbers::Fnv;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const LIBRARIES: [&str; 2] = ["librashomon_runtime.a", "librashomon_runtime.so"];
/// Beside the libraries: what CMake finds there, and what the assembler reads.
const OTHERS: [&str; 2] = ["cmake/RashomonConfig.cmake", "assembly/counter.s"];
/// In a package, the runtime and the crates that it uses. Cargo packages no folder with a manifest, so these have a longer name.
const BUNDLED: &str = "bundled";
const BUNDLED_MANIFEST: &str = "Cargo.toml.bundled";
const PREBUILT: &str = "RASHOMON_PREBUILT_RUNTIME";
/// Enough to make the tool small, fast enough for a build.
const LEVEL: i32 = 12;

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-env-changed={PREBUILT}");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = match env::var_os(PREBUILT) {
        Some(folder) => PathBuf::from(folder),
        None => {
            let workspace = workspace(&own, &out);
            let runtime = workspace.join("runtime");
            for watched in ["src", "build.rs", "Cargo.toml", "Cargo.lock"] {
                println!("cargo::rerun-if-changed={}", runtime.join(watched).display());
            }
            for shared in ["abi", "logic"] {
                println!("cargo::rerun-if-changed={}", workspace.join("crates").join(shared).join("src").display());
            }
            build(&runtime, &place(&out))
        }
    };
    // It names the folder into which this very runtime is unpacked.
    let mut hash = Fnv::EMPTY;
    for other in OTHERS {
        println!("cargo::rerun-if-changed={other}");
        hash = hash.with(&fs::read(other).unwrap_or_else(|error| panic!("cannot read {other}: {error}")));
    }
    for name in LIBRARIES {
        let path = folder.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        hash = hash.with(&bytes);
        let packed = zstd::encode_all(bytes.as_slice(), LEVEL).unwrap_or_else(|error| panic!("cannot compress {name}: {error}"));
        let to = out.join(format!("{name}.zst"));
        fs::write(&to, packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
    }
    println!("cargo::rustc-env=RASHOMON_RUNTIME_HASH={:016x}", hash.0);
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// The folder with `runtime` and `crates`.
fn workspace(own: &Path, out: &Path) -> PathBuf {
    let around = own.join("../..");
    if around.join("runtime/Cargo.toml").is_file() {
        return around;
    }
    let bundled = own.join(BUNDLED);
    let unpacked = out.join(BUNDLED);
    println!("cargo::rerun-if-changed={}", bundled.display());
    if let Err(error) = unpack(&bundled, &unpacked) {
        panic!("the runtime's sources are neither in {} nor in {}: {error}", around.display(), bundled.display());
    }
    unpacked
}

/// A copy in which manifests are called as cargo calls them.
fn unpack(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            unpack(&entry.path(), &to.join(&name))?;
        } else {
            let name = if name == BUNDLED_MANIFEST { "Cargo.toml".into() } else { name };
            fs::write(to.join(name), fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Where the runtime is built: beside the profiles of the outer build, so that all of them, and the project's checks, build it
/// once. Cargo marks the folder that they are in: TARGET/[TRIPLE/]PROFILE/build/PACKAGE/out.
fn place(out: &Path) -> PathBuf {
    let target = out.ancestors().take(6).find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.unwrap_or(out).join("runtime")
}

/// Runs cargo on the runtime as if it had been called by hand: nothing of the outer build (flags, wrappers, coverage,
/// target folder) may leak into the library that goes into other people's programs.
fn build(runtime: &Path, target: &Path) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.current_dir(runtime).args(["build", "--release", "--quiet", "--target-dir"]).arg(target);
    let kept = ["CARGO_HOME", "CARGO_NET_OFFLINE"];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let leaks = text.starts_with("CARGO") && !kept.contains(&text.as_ref())
            || text.starts_with("RUSTC")
            || ["RUSTFLAGS", "RUSTDOCFLAGS", "TARGET", "HOST", "LLVM_PROFILE_FILE"].contains(&text.as_ref());
        if leaks {
            cargo.env_remove(&name);
        }
    }
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot start cargo for the runtime: {error}"));
    assert!(status.success(), "the runtime in {} does not build ({status})", runtime.display());
    target.join("release")
}
