//! What analyses found: one object, `"format": "rashomon-analysis"`, `"version": 2`. A field may be added without a new version;
//! a field that changes its meaning or goes away needs one.

use crate::analysis::Analysis;
use rashomon_event::harmless::harmless_json;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    #[serde(flatten)]
    analysis: &'a Analysis,
}

pub fn render(analysis: &Analysis) -> String {
    let document = Document { format: "rashomon-analysis", version: 2, analysis };
    // Text and numbers: serialising them cannot fail.
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    let mut text = harmless_json(&text).into_owned();
    text.push('\n');
    text
}
