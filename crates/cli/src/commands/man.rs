//! `rashomon man`: manual pages, made from the definition of the command line.

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::terminal::{self, written};
use anyhow::{Context as _, Result, bail};
use clap::{Command, CommandFactory as _};
use std::io::Write as _;
use std::path::Path;

/// The command line with the names of nested commands written out (`rashomon trace stat`).
pub(super) fn whole() -> Command {
    let mut command = Arguments::command();
    command.build();
    command
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
pub(super) fn visible(command: &Command) -> Vec<(String, &Command)> {
    let mut all = vec![(command.get_name().to_owned(), command)];
    let mut next = 0;
    while let Some((title, outer)) = all.get(next).cloned() {
        let inner = outer.get_subcommands().filter(|command| !command.is_hide_set());
        all.extend(inner.map(|command| (format!("{title}-{}", command.get_name()), command)));
        next += 1;
    }
    all
}
