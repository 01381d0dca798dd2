//! What happens to a program between two checks: its text changes, its file moves, it is compiled otherwise, or looked at
//! otherwise. None of it mends or makes a bug, but the one that says so.

/// The functions that a program defines, as `tests/programs` is written: at the beginning of a line, with the brace behind.
const DEFINITION: &str = ") {";

#[derive(Clone, Copy, Debug)]
pub struct Edit {
    pub name: &'static str,
    /// The text afterwards; the second are functions of findings, which keep their names.
    pub text: fn(&str, &[String]) -> String,
    pub file: &'static str,
    /// Of C, and of C++.
    pub compilers: (&'static str, &'static str),
    pub flags: &'static [&'static str],
    /// Of the check.
    pub options: &'static [&'static str],
    /// Of the function that another bug is in.
    pub adds: Option<&'static str>,
}

/// Where another bug is added.
const ADDED: &str = "added_by_hand";

/// As the program is before all edits.
pub const NONE: Edit = Edit {
    name: "none",
    text: |text, _| text.to_owned(),
    file: "program",
    compilers: ("gcc", "g++"),
    flags: &["-O1"],
    options: &[],
    adds: None,
};

const CLANG: (&str, &str) = ("clang-19", "clang++-19");

pub const ALL: [Edit; 20] = [
    Edit { name: "40 lines above", text: |text, _| "// Further above.\n".repeat(40) + text, ..NONE },
    Edit { name: "a function above", text: |text, _| after_includes(text, &helper("helper_above")), ..NONE },
    Edit { name: "a function before main", text: |text, _| before_main(text, &helper("helper_between")), ..NONE },
    Edit { name: "a comment in each function", text: |text, _| in_each_function(text, "    // Further down."), ..NONE },
    Edit { name: "a statement in each function", text: |text, _| in_each_function(text, STATEMENT), ..NONE },
    Edit { name: "a line after each statement", text: |text, _| after_statements(text), ..NONE },
    Edit { name: "braces on their own lines", text: |text, _| text.replace(") {\n", ")\n{\n"), ..NONE },
    Edit { name: "functions beside renamed", text: renamed, ..NONE },
    Edit { name: "a thread before all", text: |text, _| with_thread(text, false), ..NONE },
    Edit { name: "another race beside", text: |text, _| with_thread(text, true), adds: Some(ADDED), ..NONE },
    Edit { name: "file renamed and moved", file: "elsewhere/renamed", ..NONE },
    Edit { name: "gcc -O0", flags: &["-O0"], ..NONE },
    Edit { name: "gcc -O2", flags: &["-O2"], ..NONE },
    Edit { name: "gcc -O3", flags: &["-O3"], ..NONE },
    Edit { name: "gcc, DWARF 4", flags: &["-O1", "-gdwarf-4"], ..NONE },
    Edit { name: "clang -O0", compilers: CLANG, flags: &["-O0"], ..NONE },
    Edit { name: "clang -O1", compilers: CLANG, ..NONE },
    Edit { name: "clang -O2", compilers: CLANG, flags: &["-O2"], ..NONE },
    Edit { name: "another seed", options: &["--seed", "77"], ..NONE },
    Edit { name: "another engine first", options: &["--engines", "explore,provoke"], ..NONE },
];

const STATEMENT: &str = "    { volatile int added = 0; (void)added; }";

fn helper(name: &str) -> String {
    format!("int {name}(int number);\nint {name}(int number) {{\n    return number + 1;\n}}\n\n")
}

fn joined(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

fn after_includes(text: &str, added: &str) -> String {
    let last =
        text.lines().enumerate().filter(|(_, line)| line.starts_with("#include")).map(|(number, _)| number).last().unwrap_or(0);
    let line = |(number, line): (usize, &str)| if number == last { format!("{line}\n{added}") } else { line.to_owned() };
    joined(text.lines().enumerate().map(line))
}

fn before_main(text: &str, added: &str) -> String {
    text.replacen("\nint main(", &format!("\n{added}int main("), 1)
}

/// The name of the function that begins in the line.
fn defined(line: &str) -> Option<&str> {
    let head = line.strip_suffix(DEFINITION).filter(|_| !line.starts_with([' ', '#', '}', '/']))?;
    let before = head.split('(').next()?;
    let name = before.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    Some(name).filter(|name| !name.is_empty())
}

fn in_each_function(text: &str, added: &str) -> String {
    joined(text.lines().map(|line| if defined(line).is_some() { format!("{line}\n{added}") } else { line.to_owned() }))
}

fn after_statements(text: &str) -> String {
    let is_statement = |line: &str| line.starts_with("    ") && line.ends_with(';');
    joined(text.lines().map(|line| if is_statement(line) { format!("{line}\n") } else { line.to_owned() }))
}

/// Functions of no finding get another name.
fn renamed(text: &str, kept: &[String]) -> String {
    let others = text.lines().filter_map(defined).filter(|name| *name != "main" && !kept.iter().any(|kept| kept == name));
    others.fold(text.to_owned(), |text, name| replace_word(&text, name, &format!("{name}_renamed")))
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        result.push_str(before);
        result.push_str(if is_whole { by } else { word });
        rest = after;
    }
    result + rest
}

/// Before all else main starts a thread and waits for it; both do the same, with a lock or, if it is to be a race, without.
fn with_thread(text: &str, races: bool) -> String {
    let (take, give) =
        if races { ("", "") } else { ("pthread_mutex_lock(&added_lock); ", " pthread_mutex_unlock(&added_lock);") };
    let functions = format!(
        "#include <pthread.h>\nstatic int added_counter;\n{lock}static void *{ADDED}(void *unused) {{\n    {take}\
         added_counter++;{give}\n    return unused;\n}}\n\n",
        lock = if races { "" } else { "static pthread_mutex_t added_lock = PTHREAD_MUTEX_INITIALIZER;\n" },
    );
    let calls = format!(
        "    pthread_t added_thread;\n    pthread_create(&added_thread, 0, {ADDED}, 0);\n    {ADDED}(0);\n    \
         pthread_join(added_thread, 0);"
    );
    let in_main = |line: &str| if defined(line) == Some("main") { format!("{line}\n{calls}") } else { line.to_owned() };
    before_main(&joined(text.lines().map(in_main)), &functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "#include <pthread.h>\n\nstatic int x;\nstatic void *task(void *unused) {\n    x++;\n    \
                           return 0;\n}\n\n\
                           int main(void) {\n    task(0);\n    return 0;\n}\n";

    #[test]
    fn edits_of_the_text_change_it_and_none_is_called_as_another() {
        for edit in ALL {
            let changes = (edit.text)(PROGRAM, &[]) != PROGRAM;
            let otherwise = edit.file != NONE.file || edit.flags != NONE.flags || edit.compilers != NONE.compilers;
            assert!(changes != (otherwise || !edit.options.is_empty()), "{}", edit.name);
        }
        let mut names = ALL.map(|edit| edit.name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn functions_of_findings_keep_their_names() {
        assert_eq!(renamed(PROGRAM, &["task".into()]), PROGRAM);
        let text = renamed(PROGRAM, &[]);
        assert!(text.contains("*task_renamed(void *unused)") && text.contains("    task_renamed(0);"));
        assert_eq!(replace_word("task tasks a_task task", "task", "t"), "t tasks a_task t");
    }

    #[test]
    fn statements_come_into_functions_and_threads_into_main() {
        assert_eq!(in_each_function(PROGRAM, STATEMENT).matches(STATEMENT).count(), 2);
        let text = with_thread(PROGRAM, true);
        assert!(text.contains("    added_counter++;\n") && text.contains("int main(void) {\n    pthread_t added_thread;"));
    }
}
