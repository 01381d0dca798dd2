//! Stacks in a short form: the frames of the program and of packages that it is built from; what libraries do is folded.

use super::{Look, clean, names};
use rashomon_event::Frame;
use rashomon_event::finding::Origin;
use std::fmt::Write as _;

/// Frames of a stack without any of the program's that are shown.
const OF_A_LIBRARY: usize = 2;

/// `function file:line:column`, or module and offset where debug information is missing.
pub fn frame_words(frame: &Frame) -> String {
    words(frame, frame.function.as_deref(), "")
}

/// The function, or, where no symbol has the place, module and offset.
fn name_of(frame: &Frame) -> String {
    match &frame.function {
        Some(function) => names::path_of_function(function),
        None => in_module(frame),
    }
}

fn in_module(frame: &Frame) -> String {
    let module = frame.module.rsplit('/').next().unwrap_or(&frame.module);
    format!("{module}+{:#x}", frame.offset)
}

/// A frame within a sentence, seen from the folder.
pub fn place_words(frame: &Frame, folder: &str) -> String {
    let function = frame.function.as_deref().map(names::path_of_function);
    words(&Frame { inlined: false, ..frame.clone() }, function.as_deref(), folder)
}

fn words(frame: &Frame, function: Option<&str>, folder: &str) -> String {
    let mut text = function.map(clean).unwrap_or_default();
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            let space = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{space}{}:{line}", clean(&names::path(file, folder)));
            if let Some(column) = frame.column.filter(|column| *column > 0) {
                let _ = write!(text, ":{column}");
            }
        }
        _ if text.is_empty() => text = clean(&in_module(frame)),
        _ => {
            let _ = write!(text, " ({})", clean(&in_module(frame)));
        }
    }
    if frame.inlined {
        text.push_str(" (inlined)");
    }
    text
}

impl Look<'_> {
    /// A frame: whole, or with a short name.
    pub fn frame(&self, frame: &Frame) -> String {
        let function = frame.function.as_deref();
        if self.full_stacks {
            return words(frame, function, self.folder);
        }
        words(&Frame { inlined: false, ..frame.clone() }, function.map(names::function).as_deref(), self.folder)
    }

    /// The one frame that stands for a stack.
    pub fn innermost(&self, stack: &[Frame]) -> String {
        Frame::best_known(stack).map_or_else(|| "an unknown place".to_owned(), |frame| self.place(frame))
    }

    /// A frame within a sentence: the line tells functions of one name apart.
    pub fn place(&self, frame: &Frame) -> String {
        if self.full_stacks { self.frame(frame) } else { place_words(frame, self.folder) }
    }

    /// A stack, a line each frame or fold.
    pub fn stack(&self, out: &mut String, indent: &str, frames: &[Frame]) {
        if frames.is_empty() {
            let _ = writeln!(out, "{indent}(no stack)");
        }
        if self.full_stacks {
            for (number, frame) in frames.iter().enumerate() {
                let _ = writeln!(out, "{indent}#{number} {}", self.frame(frame));
            }
            return;
        }
        for line in self.folded(frames) {
            self.line(out, indent, &line);
        }
    }

    fn folded(&self, frames: &[Frame]) -> Vec<String> {
        let is_library = |frame: &Frame| frame.origin() == Origin::Library;
        let numbered = |(number, frame): (usize, &Frame)| format!("#{number} {}", self.frame(frame));
        if frames.iter().all(is_library) {
            let mut lines: Vec<String> = frames.iter().enumerate().take(OF_A_LIBRARY).map(numbered).collect();
            lines.extend((frames.len() > OF_A_LIBRARY).then(|| folded_words(&frames[OF_A_LIBRARY..])));
            return lines;
        }
        let mut lines = Vec::new();
        let mut rest = frames;
        while !rest.is_empty() {
            let at = frames.len() - rest.len();
            let foreign = rest.iter().take_while(|frame| is_library(frame)).count();
            let (fold, behind) = rest.split_at(foreign);
            match (fold, behind.first()) {
                ([], Some(own)) => {
                    lines.push(numbered((at, own)));
                    rest = &behind[1..];
                }
                // What a library does for the user happens at the user's line.
                ([.., called], Some(own)) if at == 0 => {
                    let deeper = if foreign == 1 { String::new() } else { format!(" ({foreign} frames)") };
                    lines.push(format!("{}, in {}{deeper}", numbered((foreign, own)), clean(&name_of(called))));
                    rest = &behind[1..];
                }
                _ => {
                    lines.push(folded_words(fold));
                    rest = behind;
                }
            }
        }
        lines
    }
}

fn folded_words(frames: &[Frame]) -> String {
    let many = if frames.len() == 1 { "" } else { "s" };
    // The program's own code may have been compiled without -g.
    let unknown = frames.iter().any(|frame| frame.line.is_none() && !frame.module.contains(".so"));
    let whose = if unknown { "of libraries or without line numbers" } else { "of libraries" };
    format!("… {} frame{many} {whose}", frames.len())
}
