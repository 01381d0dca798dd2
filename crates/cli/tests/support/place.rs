//! A folder of one test, and commands that run in it. None may hang: what does not end is killed, and the test fails.

use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any command of a test takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Between two looks at a child. Nothing depends on it but how soon its end is noticed.
const PAUSE: Duration = Duration::from_millis(2);

/// Two accesses to `x` that nothing orders: lines 3 and 7.
pub const RACE: &str = "#include <pthread.h>
static int x;
static void *task(void *unused) { x++; return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    x++;
    pthread_join(thread, 0);
    return 0;
}
";

/// The program of the manifest's folder, as text.
pub fn program_text(path: &str) -> String {
    fs::read_to_string(super::manifest::folder().join(path)).expect("the program is part of the sources")
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    /// As a shell tells it: 128 + signal.
    pub code: i32,
    pub out: String,
    pub err: String,
    /// The most memory that it had resident whenever it was looked at.
    pub peak_kilobytes: u64,
}

impl Ended {
    /// Fails the test unless the command ended so and said all of this on standard error.
    #[track_caller]
    pub fn expect(self, code: i32, said: &[&str]) -> Self {
        assert_eq!(self.code, code, "exit code; {self}");
        for words in said {
            assert!(self.err.contains(words), "nothing of `{words}`; {self}");
        }
        assert!(!self.err.contains("panicked"), "{self}");
        self
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = |text: &str| text.chars().take(6000).collect::<String>();
        write!(f, "code {}\n--- standard output\n{}\n--- standard error\n{}", self.code, start(&self.out), start(&self.err))
    }
}

/// A command that has been started.
pub struct Started {
    pub child: Child,
    out: PathBuf,
    err: PathBuf,
    line: String,
}

impl Started {
    /// What it has written to standard output so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// And to standard error.
    pub fn complained(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    pub fn finish(mut self) -> Ended {
        let start = Instant::now();
        let mut peak_kilobytes = 0;
        let status = loop {
            peak_kilobytes = peak_kilobytes.max(peak_of(self.child.id()));
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                break status;
            }
            if start.elapsed() > TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let said = fs::read_to_string(&self.err).unwrap_or_default();
                panic!("did not end within {TIMEOUT:?}: {}\n{said}", self.line);
            }
            std::thread::sleep(PAUSE);
        };
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ended { code, out: text(&self.out), err: text(&self.err), peak_kilobytes }
    }
}

/// `VmHWM`: it only grows, so that the last look sees nearly everything. The most of a process and those of its descendants that
/// run the same program (the tool works in a process under its keeper).
fn peak_of(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let own = line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let program = |process: u32| fs::read_link(format!("/proc/{process}/exe")).ok();
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let same =
        children.split_whitespace().filter_map(|child| child.parse().ok()).filter(|&child| program(child) == program(process));
    same.map(peak_of).fold(own, u64::max)
}

/// Waits until `condition` gives something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < TIMEOUT, "waited {TIMEOUT:?} for {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Set by `cargo xtask ci` where everything that tests need is installed: a test that would skip itself fails.
pub const MUST_NOT_SKIP: &str = "RASHOMON_TESTS_MUST_NOT_SKIP";

/// Says that the test which calls this tests nothing, or not all, and why.
#[track_caller]
pub fn skipped(why: &str) {
    assert!(std::env::var_os(MUST_NOT_SKIP).is_none(), "{why}, and {MUST_NOT_SKIP} is set");
    eprintln!("SKIPPED: {why}");
}

/// Whether a program is installed. Says so if not: the test that asks then tests nothing.
#[track_caller]
pub fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// Whether gdb may follow programs here; containers can forbid it. Says so if not.
pub fn gdb_works(place: &Place) -> bool {
    if !is_installed("gdb") {
        return false;
    }
    let ended = place.run(place.command("gdb", &["-nx", "-batch", "-ex", "run", "--args", "true"]));
    let works = ended.out.contains("exited normally");
    if !works {
        skipped("gdb cannot run programs here");
    }
    works
}

/// The same of lldb, under whichever of these names it is there.
pub fn lldb_works(place: &Place) -> bool {
    let version = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    let Some(lldb) = ["lldb", "lldb-19"].into_iter().find(version) else {
        skipped("lldb is not installed");
        return false;
    };
    let ended = place.run(place.command(lldb, &["--no-lldbinit", "-b", "-o", "run", "true"]));
    let works = ended.out.contains("exited with status = 0");
    if !works {
        skipped("lldb cannot run programs here");
    }
    works
}

pub struct Place {
    folder: TempDir,
    commands: AtomicU64,
}

impl Place {
    pub fn new() -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the scratch folder is writable");
        Self { folder, commands: AtomicU64::new(0) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("names are below the folder")).expect("the folder is writable");
        fs::write(&path, text).expect("the folder is writable");
        path
    }

    /// The tool, to be run here.
    pub fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = super::rashomon();
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        for variable in ["CC", "CXX", "RASHOMON_CC", "RASHOMON_CXX", "LD_LIBRARY_PATH", "CFLAGS", "LDFLAGS"] {
            command.env_remove(variable);
        }
        command
    }

    /// Another program, to be run here.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).env_remove("RASHOMON_SESSION");
        command
    }

    pub fn start(&self, mut command: Command) -> Started {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.path(&format!("out-{number}")), self.path(&format!("err-{number}")));
        let file = |path: &Path| File::create(path).expect("the folder is writable");
        command.stdout(file(&out)).stderr(file(&err));
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
        Started { child, out, err, line }
    }

    pub fn run(&self, command: Command) -> Ended {
        self.start(command).finish()
    }

    /// Runs the tool here.
    pub fn rashomon(&self, arguments: &[&str]) -> Ended {
        self.run(self.tool(arguments))
    }

    /// Runs what must succeed.
    #[track_caller]
    pub fn must(&self, program: &str, arguments: &[&str]) -> Ended {
        self.run(self.command(program, arguments)).expect(0, &[])
    }

    /// Writes `NAME.c` and compiles it to `NAME` through the wrapper.
    #[track_caller]
    pub fn compile(&self, name: &str, source: &str) {
        let file = format!("{name}.c");
        self.write(&file, source);
        self.rashomon(&["cc", "-O1", "-w", "-pthread", "-o", name, &file]).expect(0, &[]);
    }

    /// The same for C++.
    #[track_caller]
    pub fn compile_cxx(&self, name: &str, source: &str) {
        let file = format!("{name}.cpp");
        self.write(&file, source);
        self.rashomon(&["c++", "-O1", "-w", "-std=c++17", "-pthread", "-o", name, &file]).expect(0, &[]);
    }

    pub fn json(&self, name: &str) -> Value {
        let bytes = fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

/// Ids and statuses of a report's findings.
pub fn statuses(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.map(|finding| (text(&finding["id"]), text(&finding["verdict"]))).collect()
}
