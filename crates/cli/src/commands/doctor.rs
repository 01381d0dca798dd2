//! `rashomon doctor`: what works here, and whether a program can be recorded.

use crate::deep;
use crate::exit::Exit;
use crate::program::{self, Instrumentation};
use crate::runtime;
use crate::terminal::print;
use crate::wrapper::Language;
use anyhow::Result;
use rashomon_pipeline::analyse::modules::{is_instrumented, is_synchronisation};
use rashomon_pipeline::replay::debugger::lldb;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn doctor(program: Option<PathBuf>) -> Result<Exit> {
    let mut out = String::new();
    let mut sound = true;
    tools(&mut out);
    deep(&mut out);
    machine(&mut out);
    let folder = match runtime::folder() {
        Ok(folder) => {
            let _ = writeln!(out, "runtime           {}", folder.display());
            Some(folder)
        }
        Err(error) => {
            sound = false;
            let _ = writeln!(out, "runtime           cannot be unpacked: {error:#}");
            None
        }
    };
    installed(&mut out);
    if let Some(program) = program {
        sound &= examine(&mut out, &program, folder.as_deref())?;
    }
    print(&out)?;
    Ok(if sound { Exit::Success } else { Exit::Different })
}

fn version_of(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

fn tools(out: &mut String) {
    for (what, language) in [("C compiler", Language::C), ("C++ compiler", Language::Cxx)] {
        let compiler = language.compiler(false);
        let compiler = compiler.to_string_lossy();
        let found = version_of(&compiler).unwrap_or_else(|| "not found".into());
        let _ = writeln!(out, "{what:<17} {compiler}: {found}");
    }
    for (what, program) in [("also", "clang"), ("debugger", "gdb")] {
        let found = version_of(program).unwrap_or_else(|| "not found".into());
        let _ = writeln!(out, "{what:<17} {program}: {found}");
    }
    let found = match lldb::find("lldb") {
        Some(path) => path.to_str().and_then(version_of).unwrap_or_else(|| format!("{} does not start", path.display())),
        None => "not found (replay --lldb needs it)".into(),
    };
    let _ = writeln!(out, "{:<17} lldb: {found}", "debugger");
    let found = lldb::find("lldb-dap").map_or_else(|| "not found (replay --vscode)".into(), |path| path.display().to_string());
    let _ = writeln!(out, "{:<17} lldb-dap: {found}", "for editors");
}

/// What `cc --deep` needs. Nothing else does.
fn deep(out: &mut String) {
    for (what, language) in [("clang 19 for C", Language::C), ("clang 19 for C++", Language::Cxx)] {
        let found = deep::compiler(language);
        let _ = match found {
            Ok(compiler) => writeln!(out, "{what:<17} {}", compiler.to_string_lossy()),
            Err(error) => writeln!(out, "{what:<17} {error:#}"),
        };
    }
    let _ = match deep::plugin() {
        Ok(path) => writeln!(out, "plugin            {}", path.display()),
        Err(error) => writeln!(out, "plugin            {error:#}"),
    };
}

fn machine(out: &mut String) {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let aslr = match read("/proc/sys/kernel/randomize_va_space").as_deref() {
        Some("0") => "off (no matter)",
        Some(_) => "on (no matter: schedules do not name addresses)",
        None => "unknown",
    };
    let _ = writeln!(out, "ASLR              {aslr}");
    let ptrace = match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
        None | Some("0" | "1") => "allowed for children, as gdb and lldb need",
        Some("2") => "for administrators only: debuggers of replay need them",
        Some(_) => "forbidden: replay --gdb and --lldb will not work",
    };
    let _ = writeln!(out, "ptrace            {ptrace}");
    let personality = if Command::new("setarch").args(["-R", "true"]).output().is_ok_and(|output| output.status.success()) {
        "can be set (--aslr off works)"
    } else {
        "cannot be set: --aslr off has no effect"
    };
    let _ = writeln!(out, "personality       {personality}");
}

/// What an installation may have below the prefix of the tool. Packages have all of it; `cargo install` has programs alone.
fn installed(out: &mut String) {
    let tool = std::env::current_exe().unwrap_or_default();
    let prefix = tool.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let beside = |name: &str| tool.with_file_name(name).is_file();
    for (what, places, cure) in [
        ("manual pages", &["share/man/man1/rashomon.1.gz", "share/man/man1/rashomon.1"][..], "rashomon man --output DIR"),
        ("completions", &["share/bash-completion/completions/rashomon"], "rashomon completions SHELL"),
        (
            "CMake module",
            &["share/cmake/Rashomon/RashomonConfig.cmake"],
            "cmake -DRashomon_DIR=\"$(rashomon runtime-path)\" finds the tool's own",
        ),
        ("pkg-config", &["share/pkgconfig/rashomon.pc"], "the compilers are `rashomon cc` and `rashomon c++`"),
    ] {
        let found = places.iter().map(|place| prefix.join(place)).find(|path| path.is_file());
        let _ = match found {
            Some(path) => writeln!(out, "{what:<17} {}", path.display()),
            None => writeln!(out, "{what:<17} not installed below {}; instead: {cure}", prefix.display()),
        };
    }
    for name in ["cargo-rashomon", "rashomon-cc", "rashomon-cxx"].into_iter().filter(|name| !beside(name)) {
        let _ = writeln!(out, "{name:<17} not beside the tool; a link to it with this name does the same");
    }
}

const OPTIMISATION: &str = "from -O1 on, compilers remove reads whose value nobody uses, before they are instrumented: races of \
    such reads are not seen; with -O0 they are";

/// `false`: it cannot be recorded.
fn examine(out: &mut String, program: &Path, folder: Option<&Path>) -> Result<bool> {
    let inspection = match program::inspect(program.as_os_str(), false) {
        Ok(inspection) => inspection,
        Err(reason) => {
            let _ = writeln!(out, "program           {reason}");
            return Ok(false);
        }
    };
    let how = match inspection.instrumentation {
        Instrumentation::Loaded => "instrumented, loads libtsan: our runtime takes its place",
        Instrumentation::Linked => "our runtime is linked in",
        Instrumentation::Script => "a script",
        Instrumentation::Preloaded => "without instrumentation",
    };
    let _ = writeln!(out, "program           {}: {how}", inspection.path.display());
    for note in &inspection.notes {
        let _ = writeln!(out, "note              {note}");
    }
    if inspection.instrumentation == Instrumentation::Script {
        return Ok(true);
    }
    let _ = writeln!(out, "optimisation      {OPTIMISATION}");
    let libraries = loaded_libraries(&inspection.path, folder);
    let foreign: Vec<&PathBuf> = libraries.iter().filter(|path| !is_system(path) && !is_instrumented(path)).collect();
    if foreign.is_empty() {
        let _ = writeln!(out, "libraries         none beside the system's is without instrumentation");
    }
    for path in foreign {
        let _ = writeln!(out, "not instrumented  {}", path.display());
    }
    if let Some(folder) = folder {
        let known: BTreeSet<String> = runtime::intercepted(folder)?.into_iter().collect();
        for path in std::iter::once(&inspection.path).chain(libraries.iter().filter(|path| !is_system(path))) {
            let imported = program::imported(path).unwrap_or_default();
            for name in imported.iter().filter(|name| is_synchronisation(name) && !known.contains(*name)) {
                let _ = writeln!(out, "unknown symbol    {name}, used by {}: what it orders is not seen", path.display());
            }
        }
    }
    Ok(true)
}

fn is_system(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ["libc.", "libm.", "libstdc++.", "libgcc_s.", "ld-linux", "libpthread.", "librt.", "libdl.", "libtsan.", "librashomon"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// What the loader would load. It is asked instead of run: `ldd` would execute the program's own loader.
fn loaded_libraries(program: &Path, folder: Option<&Path>) -> Vec<PathBuf> {
    let mut command = Command::new("/lib64/ld-linux-x86-64.so.2");
    if let Some(folder) = folder {
        command.arg("--library-path").arg(folder);
    }
    let Ok(output) = command.arg("--list").arg(program).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut paths: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| {
            let path = line.split("=>").last()?.split_whitespace().next()?;
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}
