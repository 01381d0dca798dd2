//! `rashomon cc` and `rashomon c++`: the real compiler, with what a recordable program needs added.
//!
//! - To compile: `-fsanitize=thread -fno-omit-frame-pointer`, and `-g` unless some `-g` is there; for gcc also `-Wno-tsan`; from
//!   clang, that reads are told also where a write of the same place follows.
//! - To assemble, with gcc: `rdtsc` and `rdtscp` call the runtime; `-pipe` is left out.
//! - To link a program: our archive; for gcc in the place of libtsan (`-static-libtsan -B`), for clang no runtime of its own.
//! - To link a shared library: no runtime, as the program has it.
//!
//! A program exports the runtime's names, so that shared libraries and plugins bind to the runtime in it. Calls that
//! neither compile nor link (`--version`, `-E`, `-M`, …) are passed on as they are: configure scripts and build systems see the
//! compiler they expect. Nothing is printed.

use crate::deep::{self, Deep};
use crate::runtime;
use anyhow::{Context as _, Result};
use std::cell::LazyCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    /// By the file's name; `None`: not something that we compile by ourselves.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "c" => Some(Self::C),
            "cc" | "cpp" | "cxx" | "c++" | "C" => Some(Self::Cxx),
            _ => None,
        }
    }

    /// The wrapped compiler: ours first, then (for `check FILE`) the usual variable, then the system's.
    pub fn compiler(self, use_usual_variable: bool) -> OsString {
        let (own, usual, system) = match self {
            Self::C => ("RASHOMON_CC", "CC", "cc"),
            Self::Cxx => ("RASHOMON_CXX", "CXX", "c++"),
        };
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        set(own).or_else(|| use_usual_variable.then(|| set(usual)).flatten()).unwrap_or_else(|| system.into())
    }
}

/// What a call of the compiler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing that concerns us.
    Other,
    /// Objects only.
    Compile,
    /// Perhaps also compiles.
    LinkProgram,
    LinkShared,
}

/// Options whose value is the next argument.
const WITH_VALUE: [&str; 32] = [
    "-o",
    "-x",
    "-I",
    "-L",
    "-D",
    "-U",
    "-l",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "-MF",
    "-MT",
    "-MQ",
    "-T",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-u",
    "-z",
    "-e",
    "-B",
    "-target",
    "-aux-info",
    "--param",
    "-mllvm",
    "-dumpbase",
    "-dumpdir",
];

pub fn step(arguments: &[OsString]) -> Step {
    let (mut inputs, mut objects_only, mut shared) = (false, false, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        match text.as_ref() {
            "-c" | "-S" => objects_only = true,
            "-E" | "-M" | "-MM" | "-fsyntax-only" | "-###" | "--version" | "-r" | "-nostdlib" | "-nodefaultlibs" => {
                return Step::Other;
            }
            "-shared" => shared = true,
            "-" => inputs = true,
            option if WITH_VALUE.contains(&option) => {
                // `-l name` may be all that there is to link.
                inputs |= option == "-l";
                rest.next();
            }
            option if option.starts_with("-print-") || option.starts_with("-dump") || option.starts_with("--print") => {
                return Step::Other;
            }
            option if option.starts_with('-') => {}
            _ => inputs = true,
        }
    }
    match (inputs, objects_only, shared) {
        (false, _, _) => Step::Other,
        (true, true, _) => Step::Compile,
        (true, false, true) => Step::LinkShared,
        (true, false, false) => Step::LinkProgram,
    }
}

/// clang leaves reads out that a write of the same place follows. For races the write is enough; but what was read decides what
/// the program does then, and a prediction that does not know of the read takes orders for possible that are not.
const EVERY_READ: [&str; 4] =
    ["--start-no-unused-arguments", "-mllvm", "-tsan-instrument-read-before-write=1", "--end-no-unused-arguments"];

/// gcc warns that ThreadSanitizer does not understand fences, which ends a build with `-Werror`. Our runtime does understand
/// them.
const FENCES_ARE_UNDERSTOOD: &str = "-Wno-tsan";

/// The arguments to add in front of and behind the user's.
fn additions(
    step: Step,
    arguments: &[OsString],
    folder: impl FnOnce() -> Result<PathBuf>,
    clang: impl FnOnce() -> bool,
) -> Result<(Vec<OsString>, Vec<OsString>)> {
    if step == Step::Other {
        return Ok((Vec::new(), Vec::new()));
    }
    let clang = LazyCell::new(clang);
    let mut before: Vec<OsString> = vec!["-fsanitize=thread".into(), "-fno-omit-frame-pointer".into()];
    if *clang {
        before.extend(EVERY_READ.map(OsString::from));
    } else {
        before.push(FENCES_ARE_UNDERSTOOD.into());
    }
    let debug = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text.starts_with("-g") && !text.starts_with("-gcc") && !text.starts_with("-gno-")
    };
    if !arguments.iter().any(debug) {
        before.push("-g".into());
    }
    let mut behind: Vec<OsString> = match step {
        Step::LinkProgram => {
            // A language that the user names would be that of our archive too.
            let named = arguments.iter().any(|argument| argument.to_string_lossy().starts_with("-x"));
            let reset = if named { &["-x", "none"][..] } else { &[] };
            reset.iter().map(OsString::from).chain(runtime::link_arguments(&folder()?, *clang)).collect()
        }
        // Build systems like to forbid undefined names in shared libraries; those of the runtime are in the program.
        Step::LinkShared if *clang => vec!["-Wl,-z,undefs".into()],
        Step::LinkShared => vec!["-static-libtsan".into(), "-Wl,-z,undefs".into()],
        Step::Compile | Step::Other => Vec::new(),
    };
    // A schedule names the build that it belongs to.
    if matches!(step, Step::LinkProgram | Step::LinkShared) {
        behind.push("-Wl,--build-id".into());
    }
    Ok((before, behind))
}

fn is_clang(compiler: &OsStr) -> bool {
    let name = Path::new(compiler).file_name().unwrap_or(compiler).to_string_lossy().into_owned();
    if name.contains("clang") {
        return true;
    }
    if name.contains("gcc") || name.contains("g++") {
        return false;
    }
    // `cc` may be either.
    let mut parts = compiler.to_string_lossy().split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter();
    let Some(program) = parts.next() else {
        return false;
    };
    Command::new(program)
        .args(parts)
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("clang"))
}

/// Before the compiler's own help: what the wrapper does to the options that are described there.
pub fn say_what_is_added(language: Language, arguments: &[OsString]) {
    let (name, variable) = match language {
        Language::C => ("cc", "RASHOMON_CC"),
        Language::Cxx => ("c++", "RASHOMON_CXX"),
    };
    if arguments.len() == 1 && arguments[0] == "--help" {
        let compiler = language.compiler(false);
        let text = format!(
            "rashomon {name}: calls {}, or what {variable} names, and adds\n  \
             to compile: -fsanitize=thread -fno-omit-frame-pointer, and -g unless the call has a -g of its own\n  \
             to assemble (gcc): rdtsc and rdtscp ask the runtime, and -pipe is left out\n  \
             to link:    the runtime in the place of ThreadSanitizer's, and a build-id\n\
             --deep         compile with clang 19 and the plugin for it, which tells of wait loops and of dependences\n\
             --deep=loops   of wait loops alone\n\
             Everything else is the compiler's own:\n\n",
            compiler.to_string_lossy()
        );
        // Who reads no help has none.
        let _ = crate::terminal::print(&text);
        let _ = crate::terminal::flush();
    }
}

/// The compiler call that does what `arguments` ask for and makes the result recordable.
pub fn command(compiler: &OsStr, arguments: &[OsString]) -> Result<Command> {
    command_with(compiler, &[], arguments)
}

fn command_with(compiler: &OsStr, plugin: &[OsString], arguments: &[OsString]) -> Result<Command> {
    let step = step(arguments);
    let clang = LazyCell::new(|| is_clang(compiler));
    let (before, behind) = additions(step, arguments, runtime::folder, || *clang)?;
    let mut command = without_arguments(compiler);
    if step == Step::Other {
        command.args(arguments);
        return Ok(command);
    }
    let read_first = if may_read_first(compiler, arguments) && !*clang { read_first() } else { None };
    let is_passed = |argument: &&OsString| read_first.is_none() || *argument != PIPE;
    command.args(before).args(read_first.iter().flatten()).args(plugin);
    command.args(arguments.iter().filter(is_passed)).args(behind);
    Ok(command)
}

/// With it gcc gives the assembler no file, which then reads nothing but the files that we name. It saves temporary files, and
/// changes no result.
const PIPE: &str = "-pipe";

/// Whether the assembler may be given a file before that of the compiler: not if the option above may be where it cannot be taken
/// away.
fn may_read_first(compiler: &OsStr, arguments: &[OsString]) -> bool {
    let more = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"@");
    !arguments.iter().any(more) && !compiler.to_string_lossy().split_whitespace().any(|word| word == PIPE)
}

/// What has gcc's assembler take the runtime's counter. A folder that somebody else filled may not have it.
fn read_first() -> Option<[OsString; 2]> {
    let file = runtime::folder().ok()?.join(runtime::COUNTER);
    file.exists().then(|| ["-Xassembler".into(), file.into_os_string()])
}

/// The compiler call as it is.
pub fn plain_command(compiler: &OsStr, arguments: &[OsString]) -> Command {
    let mut command = without_arguments(compiler);
    command.args(arguments);
    command
}

fn without_arguments(compiler: &OsStr) -> Command {
    // The variable may hold options, or a launcher such as ccache, in front of them.
    let text = compiler.to_string_lossy();
    if Path::new(compiler).exists() || !text.contains(' ') {
        return Command::new(compiler);
    }
    let mut words = text.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Becomes the compiler. Returns only if that fails.
pub fn become_compiler(language: Language, arguments: &[OsString]) -> Result<std::convert::Infallible> {
    let (deep, arguments) = Deep::asked(arguments);
    let compiler = if deep == Deep::No { language.compiler(false) } else { deep::compiler(language)? };
    let error = command_with(&compiler, &deep.arguments()?, &arguments)?.exec();
    Err(error).with_context(|| format!("cannot execute the compiler {}", compiler.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn steps_are_told_by_their_options() {
        for (line, expected) in [
            ("-c a.c", Step::Compile),
            ("-O2 -S a.c -o a.s", Step::Compile),
            ("-o a a.c", Step::LinkProgram),
            ("a.o -lm", Step::LinkProgram),
            ("-shared -fPIC a.c -o liba.so", Step::LinkShared),
            ("-shared -c a.c", Step::Compile),
            ("--version", Step::Other),
            ("-v", Step::Other),
            ("-E a.c", Step::Other),
            ("-MM a.c", Step::Other),
            ("-print-file-name=libc.so", Step::Other),
            ("-dumpmachine", Step::Other),
            ("-o a -I dir", Step::Other),
            ("-r a.o b.o -o c.o", Step::Other),
            ("-MD -MF a.d -c a.c", Step::Compile),
            ("-x c -", Step::LinkProgram),
            ("@files", Step::LinkProgram),
        ] {
            assert_eq!(step(&arguments(line)), expected, "{line}");
        }
    }

    fn added(line: &str, clang: bool) -> (Vec<OsString>, Vec<OsString>) {
        let arguments = arguments(line);
        additions(step(&arguments), &arguments, || Ok("/runtime".into()), || clang).unwrap()
    }

    #[test]
    fn debug_information_is_added_only_where_none_is_asked_for() {
        assert!(added("-c a.c", false).0.contains(&"-g".into()));
        assert!(!added("-c -g3 a.c", false).0.contains(&"-g".into()));
        assert!(!added("-ggdb -c a.c", false).0.contains(&"-g".into()));
    }

    #[test]
    fn clang_is_told_to_leave_no_read_out() {
        let told = |line: &str, clang| added(line, clang).0.contains(&EVERY_READ[2].into());
        assert!(told("-O2 -c a.c", true) && told("-O2 a.c -o a", true));
        assert!(!told("-c a.c", false) && !told("--version", true));
    }

    #[test]
    fn gcc_is_told_that_fences_are_understood() {
        assert!(added("-Werror -c a.c", false).0.contains(&FENCES_ARE_UNDERSTOOD.into()));
        assert!(!added("-Werror -c a.c", true).0.contains(&FENCES_ARE_UNDERSTOOD.into()));
    }

    #[test]
    fn the_counter_is_read_first_where_it_does_no_harm() {
        let may = |compiler: &str, line: &str| may_read_first(compiler.as_ref(), &arguments(line));
        assert!(may("cc", "-pipe -c a.c") && may("ccache gcc", "-c a.c"));
        assert!(!may("cc", "-c @options") && !may("gcc -pipe", "-c a.c"));
    }

    #[test]
    fn a_named_language_ends_before_the_runtime() {
        let position =
            |line: &str, what: &str| added(line, true).1.iter().position(|argument| argument.to_string_lossy().contains(what));
        for line in ["-x c++ a.txt -o a", "-xc a.txt"] {
            assert!(position(line, "none").unwrap() < position(line, "/runtime").unwrap(), "{line}");
        }
        assert_eq!(position("a.c", "none"), None);
        assert_eq!(position("-x c -c a.txt", "none"), None);
    }

    #[test]
    fn only_programs_get_the_runtime() {
        let has_runtime =
            |line: &str, clang| added(line, clang).1.iter().any(|argument| argument.to_string_lossy().contains("/runtime"));
        for clang in [false, true] {
            assert!(has_runtime("a.o -o a", clang));
            assert!(!has_runtime("-shared a.o -o liba.so", clang));
            assert!(!has_runtime("-c a.c", clang));
        }
        assert_eq!(added("--version", false), (vec![], vec![]));
    }
}
