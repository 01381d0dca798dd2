//! How each of the three projects is built and tested, as its users do it.

use super::{BUDGET, Bug, TESTS};
use crate::common::compile::succeed;
use crate::common::only::Only;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use xtask::workspace::root;

/// What a round of tests said.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub red: BTreeSet<String>,
    pub tests: usize,
    pub exit_code: i32,
}

pub trait Project {
    fn name(&self) -> &'static str;
    fn bugs(&self) -> [Bug; 5];
    /// With these bugs, by their switches.
    fn build(&self, switches: &[&str]) -> Result<()>;
    /// These tests, or all, each a check.
    fn test(&mut self, only: &[&str]) -> Result<Ran>;
    fn place(&self) -> &Place;
    /// Where the last round has put its stores, below the project's folder.
    fn stores(&self) -> &'static str;

    /// Puts all that the last round has found into the baseline, which holds from then on.
    fn accept_all(&self) -> Result<()> {
        self.place().accept_all(self.stores())
    }

    fn forget_baseline(&self) -> Result<()> {
        self.place().forget_baseline()
    }

    /// The exit code of the last round's gate if an entry of the baseline that nothing matches is an error.
    fn strict(&mut self, _only: &[&str]) -> Result<i32> {
        self.place().merge_strictly(self.stores())
    }
}

/// Those whose names contain the part, each in a folder of its own.
pub fn all(tool: &Path, folder: &Path, part: Option<&str>) -> Result<Vec<Box<dyn Project>>> {
    let only = Only::of(part);
    let mut projects: Vec<Box<dyn Project>> = Vec::new();
    let place = |name: &str, from: &str| Place::new(tool, &folder.join(name), from);
    if only.wants("ctest") {
        projects.push(Box::new(CTest(place("ctest", "cpp")?)));
    }
    if only.wants("googletest") {
        projects.push(Box::new(GoogleTest(place("googletest", "cpp")?)));
    }
    if only.wants("nextest") {
        projects.push(Box::new(Nextest { place: place("nextest", "rust")?, switches: std::cell::RefCell::default() }));
    }
    only.check()?;
    Ok(projects)
}

/// Of C++.
const BUGS: [Bug; 5] = [
    Bug { name: "data race", switch: "BUG_RACE", test: "statistics_of_two" },
    Bug { name: "deadlock", switch: "BUG_DEADLOCK", test: "transfer_both_ways" },
    Bug { name: "atomicity violation", switch: "BUG_ATOMICITY", test: "cache_of_same" },
    Bug { name: "lost wake-up", switch: "BUG_WAKE_UP", test: "event_of_two" },
    Bug { name: "use after free", switch: "BUG_LIFETIME", test: "registry_of_two" },
];
const BUGS_OF_RUST: [Bug; 5] = [
    Bug { name: "data race", switch: "race", test: "statistics_of_two" },
    Bug { name: "deadlock", switch: "deadlock", test: "transfer_both_ways" },
    Bug { name: "atomicity violation", switch: "atomicity", test: "cache_of_same" },
    Bug { name: "lost wake-up", switch: "wake-up", test: "event_of_two" },
    Bug { name: "relaxed publication", switch: "publication", test: "slot_of_two" },
];

const BASELINE: &str = "known.txt";

/// A copy of a project, and the tool.
pub struct Place {
    tool: PathBuf,
    folder: PathBuf,
}

impl Place {
    fn new(tool: &Path, folder: &Path, from: &str) -> Result<Self> {
        copy(&root().join("tests/gates").join(from), folder)?;
        let place = Self { tool: tool.to_path_buf(), folder: folder.to_path_buf() };
        place.forget_baseline()?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn forget_baseline(&self) -> Result<()> {
        let _ = fs::remove_file(self.path(BASELINE));
        self.write("rashomon.toml", &format!("budget = {BUDGET}\n"))
    }

    fn baseline_holds(&self) -> Result<()> {
        self.write("rashomon.toml", &format!("budget = {BUDGET}\nbaseline = \"{BASELINE}\"\n"))
    }

    /// In the project's folder, with nothing that this process happens to have set for tests.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null()).env("RUST_BACKTRACE", "0");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["NEXTEST", "CARGO", "RUSTFLAGS", "RUST_TEST", "GTEST"].iter().any(|start| text.starts_with(start))
                && text != "CARGO_HOME"
            {
                command.env_remove(&name);
            }
        }
        command
    }

    fn rashomon(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.tool);
        command.args(arguments);
        command
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.tool.with_file_name(name)
    }

    /// Of all stores below a folder.
    fn accept_all(&self, stores: &str) -> Result<()> {
        for store in self.stores(stores)? {
            succeed(self.rashomon(&["accept", "--baseline", BASELINE, "--all", "--store"]).arg(store))?;
        }
        self.baseline_holds()
    }

    fn stores(&self, folder: &str) -> Result<Vec<PathBuf>> {
        let folder = self.path(folder);
        let listed = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut stores = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        stores.retain(|path| path.is_dir() && !path.is_symlink());
        stores.sort();
        Ok(stores)
    }

    /// One gate for the stores of all tests.
    fn merge_strictly(&self, stores: &str) -> Result<i32> {
        let mut merge = self.rashomon(&["merge", "--strict", "--quiet", "--baseline", BASELINE]);
        merge.args(self.stores(stores)?);
        Ok(output(&mut merge)?.status.code().unwrap_or(-1))
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let into = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == "target" => {}
            true => copy(&entry.path(), &into)?,
            false => fs::copy(entry.path(), &into).map(drop).with_context(|| format!("cannot write {}", into.display()))?,
        }
    }
    Ok(())
}

fn output(command: &mut Command) -> Result<Output> {
    command.output().with_context(|| format!("cannot start {command:?}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What was executed has to be what was asked for.
fn ran(red: BTreeSet<String>, tests: usize, only: &[&str], said: &Output) -> Result<Ran> {
    let wanted = if only.is_empty() { TESTS } else { only.len() };
    if tests != wanted {
        bail!("{tests} tests were executed, and {wanted} are there\n{}", text(said));
    }
    Ok(Ran { red, tests, exit_code: said.status.code().unwrap_or(-1) })
}

struct CTest(Place);

impl Project for CTest {
    fn name(&self) -> &'static str {
        "ctest"
    }

    fn bugs(&self) -> [Bug; 5] {
        BUGS
    }

    fn build(&self, switches: &[&str]) -> Result<()> {
        let options = [
            format!("-DCMAKE_CXX_COMPILER={}", self.0.beside("rashomon-cxx").display()),
            format!("-DRASHOMON_EXECUTABLE={}", self.0.tool.display()),
            format!("-DRashomon_DIR={}", root().join("crates/cli/cmake").display()),
            format!("-DBUGS={}", switches.join(";")),
        ];
        succeed(self.0.command("cmake").args(["-S", ".", "-B", "build", "-DCMAKE_CXX_FLAGS=-g -O1"]).args(options))?;
        succeed(self.0.command("cmake").args(["--build", "build"]))
    }

    fn test(&mut self, only: &[&str]) -> Result<Ran> {
        let _ = fs::remove_dir_all(self.0.path("build/.rashomon"));
        let mut ctest = self.0.command("ctest");
        ctest.args(["--test-dir", "build", "--parallel", "2"]);
        if !only.is_empty() {
            ctest.args(["--tests-regex", &format!("^({})$", only.join("|"))]);
        }
        let output = output(&mut ctest)?;
        let (mut red, mut tests) = (BTreeSet::new(), 0);
        // ` 3/24 Test  #2: statistics_of_two ....***Failed  3.86 sec`
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((_, test)) = line.split_once(" Test ").and_then(|(_, rest)| rest.split_once(": ")) else { continue };
            tests += 1;
            if !test.contains(" Passed ") {
                red.extend(test.split(' ').next().map(str::to_owned));
            }
        }
        ran(red, tests, only, &output)
    }

    fn place(&self) -> &Place {
        &self.0
    }

    fn stores(&self) -> &'static str {
        "build/.rashomon"
    }
}

struct GoogleTest(Place);

impl GoogleTest {
    fn check(&self, only: &[&str], more: &[&str]) -> Result<Output> {
        let _ = fs::remove_dir_all(self.0.path(".rashomon"));
        let mut check = self.0.rashomon(&["check", "--quiet", "--per-test-case", "--report", "junit=races.xml"]);
        check.args(more).args(["--", "./google"]);
        if !only.is_empty() {
            let names: Vec<String> = only.iter().map(|test| format!("Parts.{test}")).collect();
            check.arg(format!("--gtest_filter={}", names.join(":")));
        }
        output(&mut check)
    }
}

impl Project for GoogleTest {
    fn name(&self) -> &'static str {
        "googletest"
    }

    fn bugs(&self) -> [Bug; 5] {
        BUGS
    }

    fn build(&self, switches: &[&str]) -> Result<()> {
        let mut compile = self.0.command(self.0.beside("rashomon-cxx"));
        compile.args(["-g", "-O1", "-std=c++17", "-pthread", "google.cpp", "-o", "google", "-lgtest", "-lgtest_main"]);
        succeed(compile.args(switches.iter().map(|switch| format!("-D{switch}"))))
    }

    fn test(&mut self, only: &[&str]) -> Result<Ran> {
        let output = self.check(only, &[])?;
        let report = fs::read_to_string(self.0.path("races.xml")).with_context(|| text(&output))?;
        let (mut red, mut tests, mut case) = (BTreeSet::new(), 0, "");
        for line in report.lines().map(str::trim) {
            if let Some((_, rest)) = line.split_once("<testcase ").and_then(|(_, rest)| rest.split_once(" name=\"")) {
                case = rest.split('"').next().unwrap_or_default();
                tests += 1;
            }
            if line.starts_with("<failure") || line.starts_with("<error") {
                red.insert(case.trim_start_matches("Parts.").to_owned());
            }
        }
        ran(red, tests, only, &output)
    }

    fn place(&self) -> &Place {
        &self.0
    }

    fn stores(&self) -> &'static str {
        ".rashomon"
    }

    fn strict(&mut self, only: &[&str]) -> Result<i32> {
        Ok(self.check(only, &["--strict"])?.status.code().unwrap_or(-1))
    }
}

struct Nextest {
    place: Place,
    /// Features of the last build.
    switches: std::cell::RefCell<String>,
}

impl Nextest {
    const STORES: &str = "target/rashomon/stores";

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(self.place.beside("cargo-rashomon"));
        command.args(["rashomon", "nextest"]).args(arguments).args(["--features", &self.switches.borrow()]);
        command
    }
}

impl Project for Nextest {
    fn name(&self) -> &'static str {
        "nextest"
    }

    fn bugs(&self) -> [Bug; 5] {
        BUGS_OF_RUST
    }

    fn build(&self, switches: &[&str]) -> Result<()> {
        *self.switches.borrow_mut() = switches.join(",");
        succeed(&mut self.command(&["list"]))
    }

    fn test(&mut self, only: &[&str]) -> Result<Ran> {
        let _ = fs::remove_dir_all(self.place.path(Self::STORES));
        let mut run = self.command(&["run", "--no-fail-fast"]);
        if !only.is_empty() {
            let names: Vec<String> = only.iter().map(|test| format!("test(={test})")).collect();
            run.args(["-E", &names.join(" + ")]);
        }
        let output = output(&mut run)?;
        let said = text(&output);
        let Some((each, summary)) = said.split_once("Summary") else { bail!("nextest printed no summary\n{said}") };
        let named = |text: &str, start: &str| -> BTreeSet<String> {
            let lines = text.lines().filter(|line| line.trim_start().starts_with(start));
            lines.filter_map(|line| line.split(' ').next_back().map(str::to_owned)).collect()
        };
        let red = named(summary, "FAIL");
        let tests = named(each, "PASS").len() + red.len();
        ran(red, tests, only, &output)
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn stores(&self) -> &'static str {
        Self::STORES
    }
}
