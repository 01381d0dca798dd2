//! `rashomon completions`: for a shell, made from the definition of the command line.

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::terminal::print;
use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

pub fn completions(shell: Shell) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "rashomon", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Success)
}
