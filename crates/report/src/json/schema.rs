//! The JSON schemas of what this format writes (JSON Schema, draft 2020-12), made from the types that are written.
//!
//! `docs/reference` has them as they were published, one file for each version of each document. A test compares the two: what a
//! reader of the published schema relies on stays, or the document gets a new version.

use super::{Document, analysis, warning};
use rashomon_event::harmless::harmless_json;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// A kind of document, and its schema.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// As users ask for it.
    pub name: &'static str,
    /// `format` of the document.
    pub format: &'static str,
    pub version: u32,
    make: fn() -> Schema,
}

/// Every kind of document.
pub const DESCRIBED: [Described; 3] = [
    Described { name: "report", format: super::FORMAT, version: super::VERSION, make: of::<Document<'_>> },
    Described { name: "warning", format: warning::FORMAT, version: warning::VERSION, make: of::<warning::View<'_>> },
    Described { name: "analysis", format: analysis::FORMAT, version: analysis::VERSION, make: of::<analysis::Document<'_>> },
];

impl Described {
    /// The schema as text, ending in a newline.
    pub fn text(&self) -> String {
        let mut schema = (self.make)();
        schema.insert("title".into(), format!("{}, version {}", self.format, self.version).into());
        // A schema is maps, lists and texts: serialising it cannot fail.
        let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        let mut text = harmless_json(&text).into_owned();
        text.push('\n');
        text
    }

    /// Under which it is published and installed.
    pub fn file_name(&self) -> String {
        format!("{}-{}.schema.json", self.format, self.version)
    }
}

/// Of what is written: a field that may be left out is not required, one that may be null is.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
