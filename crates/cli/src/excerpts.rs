//! Sources for reports that show lines of them.

use rashomon_event::Finding;
use rashomon_report::{Format, Options, sources::Excerpts};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// Longest source that is read, in bytes. Longer ones are generated, and nobody reads them.
const LONGEST: u64 = 8 << 20;

/// The look with the sources that the format shows. What cannot be read is not shown.
pub fn with_sources(format: &dyn Format, findings: &[Finding], look: Options) -> Options {
    if !format.shows_sources() {
        return look;
    }
    let mut excerpts = Excerpts::default();
    for file in Excerpts::wanted(findings) {
        if let Some(text) = source(Path::new(file)) {
            excerpts.add(file, &text);
        }
    }
    Options { excerpts, ..look }
}

/// The text of a regular file. Whatever else has that name may wait for somebody who writes to it.
fn source(path: &Path) -> Option<String> {
    let is_source = fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() <= LONGEST);
    let mut bytes = Vec::new();
    File::open(path).ok().filter(|_| is_source)?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
