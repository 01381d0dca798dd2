//! The conversation with one process: what it has told so far, and the answer to each of its questions.

use crate::decode;
use crate::error::ReporterError;
use crate::names::Names;
use crate::options::Options;
use crate::suppressions::Suppressions;
use rashomon_abi::report::{HEAD_WORDS, MAX_BODY, VERSION, Writer, item, kind, text_words};
use rashomon_report::warning::Stack;
use rashomon_report::{Format as _, frame, tsan::Tsan};
use std::fmt::Write as _;

#[derive(Default)]
pub struct Session {
    process: u64,
    options: Options,
    suppressions: Suppressions,
    names: Names,
}

/// Bytes of a text that an answer may hold, all its texts together.
const LONGEST_TEXT: usize = (MAX_BODY as usize - 64) * 8;

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub suppressed: bool,
    pub text: Option<String>,
    pub summary: Option<String>,
    pub tail: Option<String>,
    /// First address, size, name.
    pub data: Option<(u64, u64, String)>,
}

impl Answer {
    /// Its message, little-endian.
    pub fn encode(&self) -> Vec<u64> {
        let texts = [(item::TEXT, &self.text), (item::SUMMARY, &self.summary), (item::TAIL, &self.tail)];
        let mut room = LONGEST_TEXT;
        let mut cut = |text: &str| {
            let mut end = text.len().min(room);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            room -= end;
            text[..end].to_owned()
        };
        let texts: Vec<(u32, String)> = texts.into_iter().filter_map(|(code, text)| Some((code, cut(text.as_ref()?)))).collect();
        let data = self.data.as_ref().map(|(start, size, name)| (*start, *size, cut(name)));
        let words = texts.iter().map(|(_, text)| 1 + text_words(text.len())).sum::<usize>();
        let data_words = data.as_ref().map_or(0, |(_, _, name)| 3 + text_words(name.len()));
        let mut buffer = vec![0; HEAD_WORDS + 2 + words + data_words];
        let mut writer = Writer::new(&mut buffer, kind::ANSWER);
        writer.item(item::VERDICT);
        writer.word(u64::from(self.suppressed));
        for (code, text) in &texts {
            writer.item(*code);
            writer.text(text.as_bytes());
        }
        if let Some((start, size, name)) = data {
            writer.item(item::DATA);
            writer.word(start);
            writer.word(size);
            writer.text(name.as_bytes());
        }
        // The buffer was made to measure.
        writer.finish().map(<[u64]>::to_vec).unwrap_or_default()
    }
}

impl Session {
    /// The answer to a message; `None`: it wants none.
    pub fn handle(&mut self, kind: u64, body: &[u64]) -> Result<Option<Answer>, ReporterError> {
        Ok(match kind {
            kind::HELLO => Some(self.hello(body)?),
            kind::MODULES => {
                self.names.set_modules(decode::modules(body));
                None
            }
            kind::WARNING => Some(self.warning(body)),
            kind::SYMBOLIZE => Some(self.symbolize(body)),
            kind::SYMBOLIZE_DATA => Some(self.symbolize_data(body)),
            kind::FINISH => Some(self.finish(decode::finish(body))),
            _ => Some(Answer::default()),
        })
    }

    /// A text in the answer says what is wrong; the program does not run then.
    fn hello(&mut self, body: &[u64]) -> Result<Answer, ReporterError> {
        let hello = decode::hello(body);
        if hello.version != VERSION {
            return Err(ReporterError::Version { found: hello.version, known: VERSION });
        }
        self.process = hello.process;
        for text in &hello.options {
            self.options.read(text);
        }
        if !self.options.demangle {
            self.names.keep_mangled();
        }
        let read = self.suppressions.read(&hello.suppressions).and_then(|()| self.suppressions.read(&hello.default_suppressions));
        Ok(Answer { text: read.err().map(|error| format!("ThreadSanitizer: {error}\n")), ..Answer::default() })
    }

    fn warning(&mut self, body: &[u64]) -> Answer {
        let Some(mut warning) = decode::warning(body) else { return Answer::default() };
        self.names.tell(decode::named(body));
        self.names.resolve(&mut warning);
        if self.suppressions.suppress(&warning) {
            return Answer { suppressed: true, ..Answer::default() };
        }
        if !self.options.symbolize {
            warning.stacks_mut().for_each(forget_names);
        } else if !self.options.inline_frames {
            warning.stacks_mut().for_each(|stack| stack.frames.retain(|frame| !frame.inlined));
        }
        let rendered = self.options.format.warning(&warning, self.process, &self.options.look);
        Answer { text: Some(rendered.text), summary: rendered.summary, tail: Some(rendered.tail), ..Answer::default() }
    }

    /// Frames of return addresses, each ended by a line end; with a format of the program's own, by a zero, and one more at the
    /// end.
    fn symbolize(&mut self, body: &[u64]) -> Answer {
        let (addresses, format) = decode::symbolize(body);
        let mut stack = Stack { addresses, ..Stack::default() };
        self.names.resolve_stack(&mut stack);
        let (format, end) = if format.is_empty() { (self.options.look.stack_trace_format.clone(), '\n') } else { (format, '\0') };
        let mut text = String::new();
        for (number, one) in stack.frames.iter().enumerate() {
            text.push_str(&frame::render(&format, number, one, &self.options.look));
            text.push(end);
        }
        text.push(end);
        Answer { text: Some(text), ..Answer::default() }
    }

    fn symbolize_data(&self, body: &[u64]) -> Answer {
        let (address, format) = decode::symbolize_data(body);
        let Some(variable) = self.names.variable(address) else { return Answer::default() };
        let text = frame::render_variable(&format, &variable, &self.options.look);
        Answer { text: Some(text), data: Some((variable.start, variable.size, variable.name)), ..Answer::default() }
    }

    fn finish(&self, printed: u64) -> Answer {
        let mut text = String::new();
        // Nothing but objects in a file for machines.
        if !self.options.format.is_for_machines() {
            if printed > 0 && self.options.format.name() == Tsan.name() {
                let _ = writeln!(text, "ThreadSanitizer: reported {printed} warnings");
            } else if printed > 0 {
                let _ = writeln!(text, "{printed} {}", if printed == 1 { "warning" } else { "warnings" });
            }
            let hits: u64 = self.suppressions.matched().map(|one| one.hits).sum();
            if self.options.print_suppressions && hits > 0 {
                let _ = writeln!(text, "ThreadSanitizer: Matched {hits} suppressions (pid={}):", self.process);
                for one in self.suppressions.matched() {
                    let _ = writeln!(text, "{} {}:{}", one.hits, one.kind, one.pattern);
                }
            }
        }
        Answer { text: Some(text), ..Answer::default() }
    }
}

/// Module and offset are all that is left.
fn forget_names(stack: &mut Stack) {
    stack.frames.retain(|frame| !frame.inlined);
    for frame in &mut stack.frames {
        (frame.function, frame.file, frame.line, frame.column) = (None, None, None, None);
    }
}
