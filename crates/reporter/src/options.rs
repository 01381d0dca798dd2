//! What the options say about how warnings look. The runtime has read them too and refused what cannot be understood, so here a
//! strange value leaves the default in place.

use rashomon_abi::flags::{Flags, boolean};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// ThreadSanitizer's text.
    #[default]
    Tsan,
    /// Ours.
    Text,
    /// One object a line.
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub format: Format,
    pub colour: bool,
    pub symbolize: bool,
    pub demangle: bool,
    pub inline_frames: bool,
    pub strip_path_prefix: String,
    pub stack_trace_format: String,
    pub vs_style: bool,
    pub print_summary: bool,
    pub print_suppressions: bool,
    pub second_deadlock_stack: bool,
    pub report_bugs: bool,
}

/// How ThreadSanitizer prints frames.
pub const FRAME_FORMAT: &str = "    #%n %f %S %M";

impl Default for Options {
    fn default() -> Self {
        Self {
            format: Format::Tsan,
            colour: false,
            symbolize: true,
            demangle: true,
            inline_frames: true,
            strip_path_prefix: String::new(),
            stack_trace_format: FRAME_FORMAT.to_owned(),
            vs_style: false,
            print_summary: true,
            print_suppressions: false,
            second_deadlock_stack: false,
            report_bugs: true,
        }
    }
}

impl Options {
    /// Takes over what a text says.
    pub fn read(&mut self, text: &[u8]) {
        for (name, value) in Flags::new(text).flatten() {
            let text = || String::from_utf8_lossy(value).into_owned();
            let switch = match name {
                b"symbolize" => &mut self.symbolize,
                b"demangle" => &mut self.demangle,
                b"symbolize_inline_frames" => &mut self.inline_frames,
                b"symbolize_vs_style" => &mut self.vs_style,
                b"print_summary" => &mut self.print_summary,
                b"print_suppressions" => &mut self.print_suppressions,
                b"second_deadlock_stack" => &mut self.second_deadlock_stack,
                b"report_bugs" => &mut self.report_bugs,
                b"strip_path_prefix" => {
                    self.strip_path_prefix = text();
                    continue;
                }
                b"stack_trace_format" => {
                    self.stack_trace_format = if value == b"DEFAULT" { FRAME_FORMAT.to_owned() } else { text() };
                    continue;
                }
                b"color" => {
                    self.colour = value == b"always" || value == b"auto" && self.colour;
                    continue;
                }
                b"format" => {
                    self.format = match value {
                        b"text" => Format::Text,
                        b"json" => Format::Json,
                        _ => Format::Tsan,
                    };
                    continue;
                }
                _ => continue,
            };
            *switch = boolean(value).unwrap_or(*switch);
        }
    }
}
