//! What analyses found: one object, `"format": "rashomon-analysis"`, `"version": 2`. A field may be added without a new version;
//! a field that changes its meaning or goes away needs one.

use crate::analysis::Analysis;
use rashomon_event::harmless::harmless_json;
use schemars::JsonSchema;
use serde::Serialize;

pub const FORMAT: &str = "rashomon-analysis";
pub const VERSION: u32 = 2;

/// What analyses found in a trace. Events are numbered from 0.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    #[schemars(extend("const" = FORMAT))]
    format: &'static str,
    #[schemars(extend("const" = VERSION))]
    version: u32,
    #[serde(flatten)]
    analysis: &'a Analysis,
}

pub fn render(analysis: &Analysis) -> String {
    let document = Document { format: FORMAT, version: VERSION, analysis };
    // Text and numbers: serialising them cannot fail.
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    let mut text = harmless_json(&text).into_owned();
    text.push('\n');
    text
}
