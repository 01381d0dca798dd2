//! pytest: Python's tests, here of extension modules. A test case is a node id, such as `test_queue.py::test_push[2]`.

use std::ffi::OsString;
use std::path::Path;

/// Lists node ids, however quiet or talkative the other options are.
pub const LIST: [&str; 3] = ["--collect-only", "--verbosity=-1", "--color=no"];

/// Options whose value is the word behind them, if no `=` is in theirs.
const WITH_VALUE: [&str; 32] = [
    "-c",
    "-k",
    "-m",
    "-n",
    "-o",
    "-p",
    "-r",
    "-W",
    "--basetemp",
    "--capture",
    "--color",
    "--confcutdir",
    "--config-file",
    "--deselect",
    "--durations",
    "--durations-min",
    "--ignore",
    "--ignore-glob",
    "--import-mode",
    "--junit-prefix",
    "--junit-xml",
    "--junitxml",
    "--log-cli-level",
    "--log-file",
    "--log-level",
    "--maxfail",
    "--override-ini",
    "--pythonwarnings",
    "--rootdir",
    "--show-capture",
    "--tb",
    "--verbosity",
];

/// Whether the program is `pytest`, or Python that executes its module.
pub fn is_run_by(program: &Path, arguments: &[OsString]) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    matches!(&*name, "pytest" | "py.test" | "pytest-3") || own(arguments) > 0
}

/// Where pytest's own arguments begin: behind `-m pytest`.
fn own(arguments: &[OsString]) -> usize {
    let module = arguments.windows(2).position(|two| two[0] == "-m" && (two[1] == "pytest" || two[1] == "py.test"));
    module.map_or(0, |at| at + 2)
}

/// Lines with node ids; others tell of warnings and errors.
pub fn names(text: &str) -> Vec<String> {
    let is_id = |line: &&str| line.split_once("::").is_some_and(|(file, test)| file.ends_with(".py") && !test.is_empty());
    // Behind the list errors may name test cases again.
    text.lines().take_while(|line| !line.trim().is_empty()).filter(is_id).map(str::to_owned).collect()
}

/// Ids are seen from the folder of the project's configuration, and arguments from where pytest is started.
pub fn argument(id: &str) -> String {
    let (file, test) = id.split_once("::").unwrap_or((id, ""));
    let here = std::env::current_dir().unwrap_or_default();
    let root = here.ancestors().find(|folder| folder.join(file).is_file());
    match root {
        Some(root) if root != here => format!("{}::{test}", root.join(file).display()),
        _ => id.to_owned(),
    }
}

/// Without files, folders and node ids, which select test cases beside the one that is meant.
pub fn unselected(arguments: &[OsString]) -> Vec<OsString> {
    let own = own(arguments);
    let mut kept = arguments[..own].to_vec();
    let mut is_value = false;
    for argument in &arguments[own..] {
        let text = argument.to_string_lossy();
        let file = text.split("::").next().unwrap_or_default();
        if is_value || text.starts_with('-') || !Path::new(file).exists() {
            kept.push(argument.clone());
        }
        is_value = !is_value && WITH_VALUE.contains(&&*text);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn pytest_is_known_by_its_name_and_as_a_module() {
        assert!(is_run_by(Path::new("/usr/bin/pytest"), &[]));
        assert!(is_run_by(Path::new("/usr/bin/python3"), &words("-X dev -m pytest -q")));
        assert!(!is_run_by(Path::new("/usr/bin/python3"), &words("-m unittest")));
    }

    #[test]
    fn ids_are_told_from_what_else_is_printed() {
        let text = "tests/test_queue.py::test_push[2]\ntests/test_queue.py::Test::test_pop\n\n2 tests collected in 0.01s\n\
                    ERROR tests/test_other.py::x\n";
        assert_eq!(names(text), ["tests/test_queue.py::test_push[2]", "tests/test_queue.py::Test::test_pop"]);
        assert!(names("no tests ran in 0.00s\n").is_empty());
    }

    #[test]
    fn what_selects_test_cases_is_left_out() {
        // Files that are there.
        let line = "-m pytest -q src Cargo.toml::test -k Cargo.toml --rootdir src --tb=short nowhere";
        let kept = "-m pytest -q -k Cargo.toml --rootdir src --tb=short nowhere";
        assert_eq!(unselected(&words(line)), words(kept));
        assert_eq!(unselected(&words("src -x")), words("-x"));
    }
}
