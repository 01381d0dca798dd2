//! `rashomon runtime-path`: where the runtime that this tool carries was put.

use crate::exit::Exit;
use crate::runtime;
use crate::terminal::print;
use anyhow::Result;

pub fn runtime_path() -> Result<Exit> {
    print(&format!("{}\n", runtime::folder()?.display()))?;
    Ok(Exit::Success)
}
