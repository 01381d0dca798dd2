//! `rashomon completions`, `rashomon man`, and the command-line reference of the book: all made from the definition of the
//! command line.

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::terminal::{self, print, written};
use anyhow::{Context as _, Result, bail};
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Columns of help texts in the book.
const COLUMNS: usize = 100;

/// The command line with the names of nested commands written out (`rashomon trace stat`).
fn whole() -> Command {
    let mut command = Arguments::command();
    command.build();
    command
}

pub fn completions(shell: Shell) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "rashomon", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}

/// The page of a command, or all pages into a folder.
pub fn man(names: &[String], output: Option<&Path>) -> Result<Exit> {
    let whole = whole();
    if let Some(folder) = output {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (title, command) in visible(&whole) {
            let path = folder.join(format!("{title}.1"));
            std::fs::write(&path, page(&title, command)?).with_context(|| format!("cannot write {}", path.display()))?;
        }
        return Ok(Exit::Success);
    }
    let title = ["rashomon"].into_iter().chain(names.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
    let Some((_, command)) = visible(&whole).into_iter().find(|(known, _)| *known == title) else {
        bail!("no command {}; rashomon --help lists them", names.join(" "));
    };
    written(terminal::output().write_all(&page(&title, command)?))?;
    Ok(Exit::Success)
}

fn page(title: &str, command: &Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).title(title.to_uppercase()).render(&mut text)?;
    Ok(text)
}

/// Every command that help lists, with the name of its page, outermost first.
fn visible(command: &Command) -> Vec<(String, &Command)> {
    let mut all = vec![(command.get_name().to_owned(), command)];
    let mut next = 0;
    while let Some((title, outer)) = all.get(next).cloned() {
        let inner = outer.get_subcommands().filter(|command| !command.is_hide_set());
        all.extend(inner.map(|command| (format!("{title}-{}", command.get_name()), command)));
        next += 1;
    }
    all
}

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
