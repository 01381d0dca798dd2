//! The tool as rustc and as the C and C++ compilers of build scripts.
//!
//! Cargo calls the wrapper of rustc for everything. What is for the target is instrumented, and programs get the runtime; build
//! scripts and procedural macros, which are for the host, stay as they are: cargo names a target only for the former. The user's
//! own flags, wherever they are configured, are in the call already. Unstable options need `RUSTC_BOOTSTRAP`, which only the
//! compiler sees, not build scripts; and crates that try what the compiler can do find the features that they would find without
//! us (`-Zallow-features=`).
//!
//! Build scripts compile C code with what the `cc` crate finds in `CC_<target>`. A build script that itself belongs to the host
//! writes to a folder without the target's name, and its C code must not be instrumented: it is linked into a build script or
//! procedural macro.

use super::session::{Role, Session, Settings};
use crate::wrapper;
use anyhow::{Context as _, Result};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Becomes the compiler. Returns only if that fails.
pub fn become_compiler(role: Role, arguments: &[OsString]) -> Result<Infallible> {
    let settings = Session::current()?.settings()?;
    let mut command = match role {
        Role::Cc | Role::Cxx => {
            let compiler = OsStr::new(if role == Role::Cc { &settings.cc } else { &settings.cxx });
            if is_for_target(std::env::var_os("OUT_DIR").as_deref(), &settings.triple) {
                wrapper::command(compiler, arguments)?
            } else {
                wrapper::plain_command(compiler, arguments)
            }
        }
        Role::Rustc | Role::Runner => rustc(&settings, arguments),
    };
    let error = command.exec();
    Err(error).with_context(|| format!("cannot execute {}", Path::new(command.get_program()).display()))
}

/// `target/<triple>/debug/build/…/out` belongs to the target, `target/debug/build/…/out` to the host.
fn is_for_target(out: Option<&OsStr>, triple: &str) -> bool {
    out.is_some_and(|out| Path::new(out).iter().any(|part| part == triple))
}

fn rustc(settings: &Settings, arguments: &[OsString]) -> Command {
    // The first argument is the compiler itself.
    let mut words = settings.wrapper.iter().map(OsString::from).chain(arguments.iter().cloned());
    let mut command = Command::new(words.next().unwrap_or_else(|| "rustc".into()));
    command.args(words);
    let call = Call::of(arguments);
    if call.target.as_deref() == Some(settings.triple.as_str()) {
        command.args(&settings.compile).env("RUSTC_BOOTSTRAP", "1");
        if call.compiles {
            if !call.has_debug_information {
                command.arg("-Cdebuginfo=line-tables-only");
            }
            command.arg("-Cstrip=none");
        }
        if call.links_program {
            command.args(&settings.link);
        }
    }
    command
}

/// What a call of rustc is for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Call {
    target: Option<String>,
    compiles: bool,
    links_program: bool,
    has_debug_information: bool,
}

impl Call {
    fn of(arguments: &[OsString]) -> Self {
        let mut call = Self::default();
        let texts: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        for (number, text) in texts.iter().enumerate() {
            let next = || texts.get(number + 1).map_or("", |next| next.as_ref());
            let value = |name: &str| match text.strip_prefix(name) {
                Some("") => Some(next()),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            if let Some(triple) = value("--target") {
                call.target = Some(triple.to_owned());
            } else if let Some(kinds) = value("--crate-type") {
                call.compiles = true;
                call.links_program |= kinds.split(',').any(|kind| kind == "bin");
            } else if text == "--test" {
                call.compiles = true;
                call.links_program = true;
            }
            let codegen = if text == "-C" { next() } else { text.strip_prefix("-C").unwrap_or_default() };
            if let Some(level) = codegen.strip_prefix("debuginfo=") {
                call.has_debug_information = !["0", "none"].contains(&level);
            } else if text == "-g" {
                call.has_debug_information = true;
            }
        }
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn settings() -> Settings {
        Settings {
            triple: "t".into(),
            compile: vec!["-Zsanitizer=thread".into()],
            link: vec!["-Clink-arg=runtime".into()],
            wrapper: None,
            cc: "cc".into(),
            cxx: "c++".into(),
            options: Vec::new(),
            stores: "stores".into(),
            tests: false,
            quiet: false,
        }
    }

    fn line(settings: &Settings, call: &str) -> String {
        let command = rustc(settings, &words(call));
        let parts = std::iter::once(command.get_program()).chain(command.get_args());
        parts.map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_what_is_for_the_target_is_instrumented() {
        let settings = settings();
        assert_eq!(line(&settings, "rustc -vV"), "rustc -vV");
        let script = "rustc --crate-name build_script_build build.rs --crate-type bin";
        assert_eq!(line(&settings, script), script);
        assert_eq!(line(&settings, "rustc - --target t --print=cfg"), "rustc - --target t --print=cfg -Zsanitizer=thread");
        assert_eq!(
            line(&settings, "rustc a.rs --crate-type lib --target t -C debuginfo=2"),
            "rustc a.rs --crate-type lib --target t -C debuginfo=2 -Zsanitizer=thread -Cstrip=none"
        );
    }

    #[test]
    fn only_programs_get_the_runtime() {
        let settings = settings();
        let has_runtime = |call: &str| line(&settings, call).contains("-Clink-arg=runtime");
        assert!(has_runtime("rustc a.rs --crate-type bin --target=t"));
        assert!(has_runtime("rustc a.rs --test --target t"));
        for kind in ["lib", "cdylib", "dylib", "cdylib,rlib", "staticlib"] {
            assert!(!has_runtime(&format!("rustc a.rs --crate-type {kind} --target t")), "{kind}");
        }
        assert!(!has_runtime("rustc a.rs --crate-type bin --target u"));
    }

    #[test]
    fn debug_information_is_added_only_where_none_is_asked_for() {
        let settings = settings();
        let adds =
            |options: &str| line(&settings, &format!("rustc a.rs --test --target t {options}")).contains("line-tables-only");
        for (options, expected) in
            [("", true), ("-C debuginfo=0", true), ("-Cdebuginfo=1", false), ("-g", false), ("-C opt-level=3", true)]
        {
            assert_eq!(adds(options), expected, "{options}");
        }
    }

    #[test]
    fn a_wrapper_of_the_user_stays_around_the_compiler() {
        let settings = Settings { wrapper: Some("sccache".into()), ..settings() };
        assert_eq!(line(&settings, "rustc -vV"), "sccache rustc -vV");
    }

    #[test]
    fn c_code_of_build_scripts_is_not_instrumented() {
        for (out, expected) in [
            (Some("/p/target/rashomon/t/debug/build/a-1/out"), true),
            (Some("/p/target/rashomon/debug/build/a-1/out"), false),
            (None, false),
        ] {
            assert_eq!(is_for_target(out.map(OsStr::new), "t"), expected, "{out:?}");
        }
    }
}
