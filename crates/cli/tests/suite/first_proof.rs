//! The first proof, as a terminal shows it. `docs/tutorial/first-proof.cast` is a recording of the real tool's output, for
//! asciinema's player, and `first-proof.md` shows the screen that it leaves. Here the cast has to lead to that screen, and the
//! tool has to print the same today, numbers and ids apart. With `RASHOMON_TESTS_RECORD=1` both are made anew.

use crate::support::terminal::{self, Printed};
use serde_json::{Value, json};
use std::fs;
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

const COLUMNS: NonZero<u16> = NonZero::new(100).unwrap();
const ROWS: NonZero<u16> = NonZero::new(60).unwrap();
const COMMAND: &str = "rashomon check examples/listing1.c";
const TITLE: &str = "The first proof";

fn document(extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial/first-proof").with_extension(extension)
}

/// Where the page shows the screen.
fn shown(page: &str) -> Range<usize> {
    const FENCE: &str = "```text\n";
    let begin = page.find(FENCE).expect("the page has a block of text") + FENCE.len();
    begin..begin + page[begin..].find("```").expect("the block ends")
}

/// What the tool printed, with the seconds since it began.
fn session() -> Vec<(f64, String)> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let examples = folder.path().join("examples");
    fs::create_dir(&examples).expect("the temporary folder is writable");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/listing1.c");
    fs::copy(example, examples.join("listing1.c")).expect("the example can be copied");

    let tool = Path::new(env!("CARGO_BIN_EXE_rashomon"));
    let tools = tool.parent().expect("the tool is in a folder");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths([tools.to_path_buf()].into_iter().chain(std::env::split_paths(&paths)));
    let mut command = Command::new("rashomon");
    command.args(COMMAND.split(' ').skip(1)).current_dir(folder.path());
    command.env("PATH", paths.expect("folders of tests have no colons"));
    let Printed { pieces, code } = terminal::run(command, COLUMNS.get(), ROWS.get());
    assert_eq!(code, Some(66), "the race of Listing 1 is proven: {pieces:?}");
    let home = folder.path().to_string_lossy().into_owned();
    pieces.into_iter().map(|(seconds, text)| (seconds, text.replace(&home, "~/rashomon"))).collect()
}

/// What the user typed.
fn prompt() -> String {
    format!("$ {COMMAND}\r\n")
}

/// What stands there in the end, in rows without what they end with.
fn screen<'a>(printed: impl IntoIterator<Item = &'a str>) -> String {
    let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
    printed.into_iter().for_each(|text| terminal.process(text.as_bytes()));
    let rows: Vec<String> = terminal.screen().rows(0, COLUMNS.get()).map(|row| row.trim_end().to_owned()).collect();
    format!("{}\n", rows.join("\n").trim_end())
}

/// Times, numbers of schedules and ids may be others. Where a line breaks depends on them; words and their order do not.
fn words(screen: &str) -> Vec<&str> {
    let without = |word: &'_ str| match word.find("race-") {
        Some(id) => id,
        None => word.find(|letter: char| letter.is_ascii_digit()).unwrap_or(word.len()),
    };
    screen.split_whitespace().map(|word| &word[..without(word)]).collect()
}

fn record() {
    let header = json!({
        "version": 2, "width": COLUMNS, "height": ROWS, "command": COMMAND, "title": TITLE, "env": { "TERM": "xterm-256color" },
    });
    let mut cast = format!("{header}\n{}\n", json!([0.0, "o", prompt()]));
    let printed = session();
    for (seconds, text) in &printed {
        cast.push_str(&format!("{}\n", json!([(seconds * 1000.0).round() / 1000.0, "o", text])));
    }
    let screen = screen([&*prompt()].into_iter().chain(printed.iter().map(|(_, text)| &**text)));
    fs::write(document("cast"), cast).expect("the documents are writable");
    let mut page = fs::read_to_string(document("md")).expect("there is a page");
    page.replace_range(shown(&page), &screen);
    fs::write(document("md"), page).expect("the documents are writable");
}

#[test]
fn a_terminal_shows_what_the_documents_say() {
    if std::env::var_os("RASHOMON_TESTS_RECORD").is_some() {
        record();
    }
    let page = fs::read_to_string(document("md")).expect("there is a page");
    let text = &page[shown(&page)];
    let cast = fs::read_to_string(document("cast")).expect("the cast is stored");
    let events = cast.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("events are JSON"));
    let stored: Vec<String> = events.map(|event| event[2].as_str().expect("the text comes third").to_owned()).collect();
    assert_eq!(screen(stored.iter().map(String::as_str)), *text, "the cast leads to another screen");

    let printed = session();
    let today = screen([&*prompt()].into_iter().chain(printed.iter().map(|(_, text)| &**text)));
    assert_eq!(words(&today), words(text), "the tool prints something else today:\n{today}");
}
