//! `cargo rashomon test|run|bench|…`: cargo, building instrumented programs and running them under `check`.
//!
//! Cargo itself is used as it is. It is told to name its target (so that build scripts and procedural macros are built apart), to
//! put a wrapper around rustc ([`compilers`]) and to run programs through a runner ([`runner`]); everything else that the user
//! has configured or asks for on the command line stays cargo's business. Results of such builds are in a folder of their own
//! below the target folder, `target/rashomon/NAME`, the name telling the runtime and the flags: cargo does not see what the
//! wrapper adds, so builds of different kinds must not meet. Stores are in `target/rashomon/stores`.
//!
//! nextest, and other subcommands that are not cargo's own, take target and runner from the environment. nextest executes each
//! test in a process of its own, so that each is a check.
//!
//! Limits: documentation tests are not run (rustdoc compiles them without asking the wrapper); a runner that the user has
//! configured is not used.

pub mod arguments;
pub mod compilers;
pub mod runner;
pub mod session;
pub mod standard;
pub mod toolchain;

use crate::exit::Exit;
use crate::runtime;
use crate::settings::complete_options;
use crate::terminal::{say, show, tell};
use anyhow::{Context as _, Result, bail};
use arguments::RunnerOptions;
use clap::{CommandFactory as _, Parser as _};
use session::{CleanUp, ProgramResult, Role, Session, Settings};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use toolchain::{Standard, Toolchain};

const ABOUT: &str = "\
Build with cargo and check every program that it runs

Usage: cargo rashomon [OPTIONS] <test|nextest run|run|bench|build|…> [CARGO'S OPTIONS] [-- ARGUMENTS]

Cargo's command and options are cargo's own. Ours may stand anywhere in front of `--`:
";

/// Everything behind `cargo rashomon`.
pub fn cargo(words: &[String], quiet: bool) -> Result<Exit> {
    let asks = |word: &String| ["--help", "-h"].contains(&word.as_str());
    let of_command = words.iter().take_while(|word| *word != "--").any(asks);
    if words.is_empty() || words[0] == "help" || of_command {
        let options = RunnerOptions::command().disable_help_flag(true).render_long_help().to_string();
        let options = options.find("Options:").map_or("", |at| &options[at..]);
        crate::terminal::print(&format!("{ABOUT}\n{options}\n{}\n", crate::exit::HELP))?;
        let own = words.first().filter(|word| !asks(word) && *word != "help");
        return own.map_or(Ok(Exit::Success), |command| help_of_cargo(command));
    }
    let split = match arguments::split(words) {
        Ok(split) => split,
        Err(error) => {
            tell("cargo rashomon", &format!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    let options =
        match RunnerOptions::try_parse_from(std::iter::once("cargo rashomon").chain(split.ours.iter().map(String::as_str))) {
            Ok(options) => options,
            Err(error) => {
                error.print()?;
                return Ok(Exit::Usage);
            }
        };
    if split.cargo.iter().take_while(|word| *word != "--").any(|word| word == "--doc") {
        bail!("documentation tests are not instrumented; run them with cargo alone");
    }
    let quiet = quiet || split.cargo.iter().take_while(|word| *word != "--").any(|word| word == "-q" || word == "--quiet");
    let toolchain = Toolchain::find()?;
    if !toolchain.host.starts_with("x86_64-") || !toolchain.host.ends_with("-linux-gnu") {
        bail!("the toolchain makes programs for {}; only those for x86_64-unknown-linux-gnu can be recorded", toolchain.host);
    }
    let standard = toolchain.standard(options.cargo.standard, || {
        if !quiet {
            say!("instrumenting the toolchain's standard library (once)");
        }
    })?;
    if let Standard::Plain { reason } = &standard {
        say!(
            "Rust's standard library is not instrumented ({reason}); what it orders is not seen, so nothing is predicted and \
             nothing proven unordered. The component rust-src cures that."
        );
    }
    let call = Call { split, toolchain, standard, quiet };
    let (exit, results) = call.run()?;
    if !quiet && !results.is_empty() {
        show(&summary(&results));
    }
    merged(&call.split.ours, &results)?;
    Ok(if results.iter().any(|result| result.met) {
        Exit::Findings
    } else if results.iter().any(|result| result.failure.is_some()) {
        Exit::Failed
    } else {
        exit
    })
}

/// One report of all programs, in files; the terminal has had its own.
fn merged(ours: &[String], results: &[ProgramResult]) -> Result<()> {
    let line: Vec<OsString> = std::iter::once("rashomon").chain(ours.iter().map(String::as_str)).map(Into::into).collect();
    let here = std::env::current_dir().context("the working directory is gone")?;
    let options = RunnerOptions::try_parse_from(complete_options(&RunnerOptions::command(), &line, &here.join("package"))?)?;
    let files = &options.cargo.merged;
    if files.is_empty() {
        return Ok(());
    }
    let stores: Vec<(String, PathBuf)> =
        results.iter().filter_map(|result| Some((result.name(), result.store.clone()?))).collect();
    if stores.is_empty() {
        say!("nothing was recorded: there is no merged report");
        return Ok(());
    }
    crate::commands::merge::write_files(&stores, files, &options.report)
}

/// What cargo says of its command, behind what we add to it.
fn help_of_cargo(command: &str) -> Result<Exit> {
    crate::terminal::print("\nWhat cargo says of its own options:\n\n")?;
    crate::terminal::flush()?;
    let status = Command::new("cargo").args([command, "--help"]).status().context("cannot execute cargo")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(Exit::Failed, Exit::Program))
}

struct Call {
    split: arguments::Split,
    toolchain: Toolchain,
    standard: Standard,
    quiet: bool,
}

impl Call {
    fn run(&self) -> Result<(Exit, Vec<ProgramResult>)> {
        let folder = self.target_folder()?.join("rashomon");
        let settings = self.settings(&folder)?;
        let spaced = folder.to_string_lossy().contains(char::is_whitespace);
        if spaced && !is_of_cargo(&self.split.subcommand) {
            let (folder, name) = (folder.display(), &self.split.subcommand);
            bail!("{folder}: cargo {name} starts no program from a path with spaces; set CARGO_TARGET_DIR to a folder without");
        }
        let session = Session::create(&folder, &settings)?;
        let _clean_up = CleanUp(&session);
        let kind = [&[runtime::hash().to_owned()][..], &settings.compile, &settings.link].concat().join("\n");
        let mut cargo = self.command(&settings, &session, &folder.join(runtime::short_hash(kind.as_bytes())));
        let status = cargo.status().context("cannot execute cargo")?;
        let exit = status.code().and_then(|code| u8::try_from(code).ok()).map_or(Exit::Failed, Exit::Program);
        Ok((exit, session.results()?))
    }

    fn settings(&self, folder: &Path) -> Result<Settings> {
        let mut compile = self.toolchain.flags(&self.standard)?;
        if !self.toolchain.is_unstable() && self.standard != Standard::Source {
            compile.push("-Zallow-features=".into());
        }
        let runtime = runtime::folder()?;
        let runtime = runtime.to_str().with_context(|| format!("{}: rustc takes no such path", runtime.display()))?;
        let link = [
            format!("{runtime}/{}", runtime::ARCHIVE),
            format!("-Wl,--dynamic-list={runtime}/{}", runtime::EXPORTS),
            "-Wl,--build-id".into(),
            "-lpthread".into(),
            "-lm".into(),
            "-ldl".into(),
        ];
        let triple = self.toolchain.target(&self.standard);
        Ok(Settings {
            compile,
            link: link.map(|argument| format!("-Clink-arg={argument}")).into(),
            wrapper: set("RUSTC_WRAPPER"),
            cc: c_compiler("CC", &triple).unwrap_or_else(|| "cc".into()),
            cxx: c_compiler("CXX", &triple).unwrap_or_else(|| "c++".into()),
            triple,
            options: self.split.ours.clone(),
            stores: folder.join("stores"),
            tests: ["test", "t", "bench", "nextest"].contains(&self.split.subcommand.as_str()),
            quiet: self.quiet,
        })
    }

    fn command(&self, settings: &Settings, session: &Session, target_folder: &Path) -> Command {
        let mut cargo = Command::new(program());
        let subcommand = self.split.subcommand.as_str();
        let upper = settings.triple.to_uppercase().replace('-', "_");
        let runner = session.role(Role::Runner);
        cargo.env(format!("CARGO_TARGET_{upper}_RUNNER"), &runner);
        if is_of_cargo(subcommand) {
            // As a list, so that the path may hold spaces.
            cargo.arg("--config").arg(format!("target.{}.runner=[{}]", settings.triple, toml_string(&runner)));
            cargo.arg(subcommand).args(["--target", &settings.triple]);
        } else {
            // Where the options of a foreign subcommand stand is its own business.
            cargo.arg(subcommand).env("CARGO_BUILD_TARGET", &settings.triple);
        }
        if self.standard == Standard::Source {
            cargo.arg("-Zbuild-std").env("RUSTC_BOOTSTRAP", "1");
        }
        if ["test", "t"].contains(&subcommand) && !self.chooses_targets() {
            // All that plain `cargo test` runs but documentation tests.
            cargo.arg("--tests");
        }
        cargo.args(&self.split.cargo);
        cargo.env("CARGO_TARGET_DIR", target_folder).env("RUSTC_WRAPPER", session.role(Role::Rustc));
        cargo.env(session::VARIABLE, &session.folder);
        for (name, role) in [("CC", Role::Cc), ("CXX", Role::Cxx)] {
            cargo.env(format!("{name}_{}", settings.triple.replace('-', "_")), session.role(role));
        }
        // Objects of the instrumented standard library hold no bitcode.
        for profile in self.profiles() {
            cargo.env(format!("CARGO_PROFILE_{profile}_LTO"), "off");
        }
        cargo
    }

    /// Whether the user says which kinds of targets are meant.
    fn chooses_targets(&self) -> bool {
        const KINDS: [&str; 9] =
            ["--lib", "--bin", "--bins", "--example", "--examples", "--test", "--tests", "--bench", "--benches"];
        let chosen = |word: &String| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            KINDS.contains(&name) || name == "--all-targets"
        };
        self.split.cargo.iter().take_while(|word| *word != "--").any(chosen)
    }

    fn profiles(&self) -> Vec<String> {
        let mut names: Vec<String> = ["DEV", "TEST", "RELEASE", "BENCH"].map(str::to_owned).into();
        names.extend(self.option("--profile").map(|name| name.to_uppercase().replace('-', "_")));
        names
    }

    /// The value of an option of cargo's.
    fn option(&self, name: &str) -> Option<&str> {
        let words = self.split.cargo.iter().take_while(|word| *word != "--").map(String::as_str).collect::<Vec<_>>();
        words.iter().enumerate().find_map(|(number, word)| match word.strip_prefix(name)? {
            "" => words.get(number + 1).copied(),
            rest => rest.strip_prefix('='),
        })
    }

    /// Where cargo would build without us.
    fn target_folder(&self) -> Result<PathBuf> {
        if let Some(folder) = self.option("--target-dir") {
            return Ok(std::path::absolute(folder)?);
        }
        let mut cargo = Command::new(program());
        cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        if let Some(path) = self.option("--manifest-path") {
            cargo.args(["--manifest-path", path]);
        }
        let output = cargo.output().context("cannot execute cargo")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata cannot be read")?;
        let folder = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
        Ok(folder.into())
    }
}

fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Commands that are in cargo itself.
fn is_of_cargo(subcommand: &str) -> bool {
    ["test", "t", "run", "r", "bench", "build", "b", "rustc", "check", "c"].contains(&subcommand)
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What the `cc` crate would take.
fn c_compiler(name: &str, triple: &str) -> Option<String> {
    let names = [format!("{name}_{triple}"), format!("{name}_{}", triple.replace('-', "_")), format!("HOST_{name}"), name.into()];
    names.iter().find_map(|name| set(name))
}

fn toml_string(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn quoted(store: &Path) -> String {
    rashomon_pipeline::store::run::quoted(store.as_os_str()).to_string_lossy().into_owned()
}

/// One line a program with findings, and one for all.
fn summary(results: &[ProgramResult]) -> String {
    let mut text = String::new();
    let mut total = (0, 0);
    for result in results {
        let counts = &result.counts;
        total = (total.0 + counts.proven, total.1 + counts.predicted);
        if let Some(failure) = &result.failure {
            text.push_str(&format!("rashomon: {}: not checked: {failure}\n", result.name()));
        } else if counts.proven + counts.predicted > 0 {
            let store = quoted(result.store.as_deref().unwrap_or(Path::new("")));
            text.push_str(&format!(
                "rashomon: {}: {} proven, {} predicted: rashomon report --store {store}\n",
                result.name(),
                counts.proven,
                counts.predicted
            ));
        } else if result.met {
            text.push_str(&format!("rashomon: {}: findings of online detection, above\n", result.name()));
        }
    }
    let stores = results.iter().filter(|result| result.counts.proven + result.counts.predicted > 0);
    let stores: Vec<String> = stores.filter_map(|result| result.store.as_deref().map(quoted)).collect();
    if stores.len() > 1 {
        text.push_str(&format!("rashomon: all of them: rashomon merge {}\n", stores.join(" ")));
    }
    let what = if results.iter().all(|result| result.test.is_some()) { "test" } else { "program" };
    let programs = if results.len() == 1 { format!("1 {what}") } else { format!("{} {what}s", results.len()) };
    if results.iter().any(|result| result.store.is_some()) {
        text.push_str(&format!("rashomon: {programs}: {} proven, {} predicted\n", total.0, total.1));
    } else {
        let met = results.iter().filter(|result| result.met).count();
        text.push_str(&format!("rashomon: {programs}, {met} with findings\n"));
    }
    text
}

/// The tool under one of the names that cargo knows it by.
pub fn act_as(role: Role, arguments: &[OsString]) -> Result<Exit> {
    match role {
        Role::Runner => runner::run(arguments),
        Role::Rustc | Role::Cc | Role::Cxx => compilers::become_compiler(role, arguments).map(|never| match never {}),
    }
}
