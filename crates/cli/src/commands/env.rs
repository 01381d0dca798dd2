//! `rashomon env`: what a shell evaluates so that builds go through the wrappers.

use super::tool;
use crate::exit::Exit;
use crate::terminal::print;
use anyhow::Result;
use rashomon_pipeline::store::run::pasted;
use std::path::PathBuf;

/// Where the wrappers can be found under names of one word.
pub fn env() -> Result<Exit> {
    let tool = PathBuf::from(tool()?);
    let quoted = pasted(tool.as_os_str());
    print(&format!(
        "export CC='{quoted} cc'\nexport CXX='{quoted} c++'\n\
         # cmake: -DCMAKE_C_COMPILER=rashomon-cc -DCMAKE_CXX_COMPILER=rashomon-cxx, \
         which are installed beside rashomon\n"
    ))?;
    Ok(Exit::Success)
}
