//! `rashomon reference`: the command-line reference of the book, made from the definition of the command line.

use super::man::{visible, whole};
use crate::exit::Exit;
use crate::terminal::print;
use anyhow::Result;
use std::fmt::Write as _;

/// Columns of help texts in the book.
const COLUMNS: usize = 100;

/// The reference: the help text of every command.
pub fn reference() -> Result<Exit> {
    let whole = whole().term_width(COLUMNS);
    let mut text = String::from(
        "<!-- Made by `cargo xtask book` from the definition of the command line. Change the help texts, not this file. -->\n\n\
         # Command line\n",
    );
    for (title, command) in visible(&whole) {
        let name = if title == "rashomon" { title } else { title.replacen('-', " ", 1).replace("trace-", "trace ") };
        let mut command = command.clone().term_width(COLUMNS);
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    }
    print(&text)?;
    Ok(Exit::Success)
}
