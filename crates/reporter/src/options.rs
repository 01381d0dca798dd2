//! What the options say about how warnings look. The runtime has read them too and refused what cannot be understood, so here a
//! strange value leaves the default in place.

use rashomon_abi::flags::{Flags, boolean};
use rashomon_report::frame::FRAME_FORMAT;
use rashomon_report::{Format, tsan::Tsan};

#[derive(Clone, Debug)]
pub struct Options {
    pub format: &'static dyn Format,
    /// What the format asks.
    pub look: rashomon_report::Options,
    pub symbolize: bool,
    pub demangle: bool,
    pub inline_frames: bool,
    pub print_suppressions: bool,
    pub report_bugs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: &Tsan,
            look: rashomon_report::Options { folder: current_folder(), ..rashomon_report::Options::default() },
            symbolize: true,
            demangle: true,
            inline_frames: true,
            print_suppressions: false,
            report_bugs: true,
        }
    }
}

/// Of the program when it was first reported on.
fn current_folder() -> String {
    std::env::current_dir().map_or_else(|_| String::new(), |folder| folder.to_string_lossy().into_owned())
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
                b"symbolize_vs_style" => &mut self.look.vs_style,
                b"print_summary" => &mut self.look.print_summary,
                b"print_suppressions" => &mut self.print_suppressions,
                b"second_deadlock_stack" => &mut self.look.second_deadlock_stack,
                b"report_bugs" => &mut self.report_bugs,
                b"strip_path_prefix" => {
                    self.look.strip_path_prefix = text();
                    continue;
                }
                b"stack_trace_format" => {
                    self.look.stack_trace_format = if value == b"DEFAULT" { FRAME_FORMAT.to_owned() } else { text() };
                    continue;
                }
                b"color" => {
                    self.look.colour = value == b"always" || value == b"auto" && self.look.colour;
                    continue;
                }
                b"format" => {
                    self.format = std::str::from_utf8(value).ok().and_then(rashomon_report::named).unwrap_or(&Tsan);
                    continue;
                }
                _ => continue,
            };
            *switch = boolean(value).unwrap_or(*switch);
        }
    }
}
