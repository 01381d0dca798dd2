//! `rashomon schema`: what readers of our JSON may rely on.

use crate::exit::Exit;
use crate::terminal::print;
use anyhow::{Context as _, Result};
use rashomon_report::json::schema::DESCRIBED;

/// The schema of a kind of document.
pub fn schema(document: &str) -> Result<Exit> {
    let described = DESCRIBED.into_iter().find(|described| described.name == document);
    print(&described.with_context(|| format!("no schema of `{document}`"))?.text())?;
    Ok(Exit::Success)
}
