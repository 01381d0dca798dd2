//! `rashomon-book SOURCE FOLDER`: the book as HTML, and whether its links lead anywhere. Called by `cargo xtask book`.

#![forbid(unsafe_code)]

mod links;

use anyhow::{Context as _, Result, bail};
use mdbook_driver::MDBook;
use std::path::{Path, PathBuf};

/// Builds the book of `source`, the folder of its `book.toml`, in `folder`.
fn build(source: &Path, folder: &Path) -> Result<()> {
    let mut book = MDBook::load(source).map_err(|e| e.context(format!("cannot read the book in {}", source.display())))?;
    book.config.build.build_dir = folder.to_owned();
    book.build().map_err(|e| e.context(format!("cannot build the book in {}", folder.display())))
}

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [source, folder] = arguments.as_slice() else { bail!("expected: rashomon-book SOURCE FOLDER") };
    build(source, folder)?;
    let broken = links::broken(folder).with_context(|| format!("cannot check the links in {}", folder.display()))?;
    for link in &broken {
        eprintln!("{link}");
    }
    if !broken.is_empty() {
        bail!("{} links of the book lead nowhere", broken.len());
    }
    println!("built: {}", folder.join("index.html").display());
    Ok(())
}
