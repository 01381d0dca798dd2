//! One warning, one file a format.

pub mod frame;
pub mod json;
pub mod text;
pub mod tsan;

use crate::model::Warning;
use crate::options::{Format, Options};

/// A warning as text, in the parts in which the runtime prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// A line without its end; the program may want to print it itself.
    pub summary: Option<String>,
    pub tail: String,
}

pub fn render(warning: &Warning, process: u64, options: &Options) -> Rendered {
    match options.format {
        Format::Tsan => tsan::render(warning, process, options),
        Format::Text => Rendered { text: text::render(warning, process, options), ..Rendered::default() },
        Format::Json => Rendered { text: json::render(warning, process), ..Rendered::default() },
    }
}
