//! All that the tool writes to standard output and standard error goes through here.
//!
//! Two things hold for it. What comes from outside (paths, names of the program's, text from stores and traces) cannot act on a
//! terminal: whatever is no printable character, line end or tabulator is shown as an escape, our own colours excepted. And
//! nobody has to read it: a reader that went away (`| head`), or a stream that was closed, is no failure; the exit code tells.

use anyhow::{Context as _, Result};
use rashomon_event::harmless::{harmless, harmless_lines, is_harmful};
use std::io::{ErrorKind, IsTerminal as _, Write};
use std::process::Stdio;

/// The attributes that our reports use.
const OWN: [&str; 5] = ["\x1b[1;31m", "\x1b[1;33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"];

/// A line on standard error, behind the tool's name.
pub fn line(text: &str) {
    tell("rashomon", text);
}

/// A line on standard error, behind a name.
pub fn tell(who: &str, text: &str) {
    // Nobody is left to be told.
    let _ = std::io::stderr().lock().write_all(format!("{who}: {}\n", harmless(text)).as_bytes());
}

/// As `format!`, to [`line`].
macro_rules! say {
    ($($argument:tt)*) => { $crate::terminal::line(&format!($($argument)*)) };
}
pub(crate) use say;

/// Lines to standard error.
pub fn show(text: &str) {
    let _ = std::io::stderr().lock().write_all(with_own_colours(text).as_bytes());
}

/// To standard output. A reader that went away is no failure; a full disk is.
pub fn print(text: &str) -> Result<()> {
    written(std::io::stdout().lock().write_all(with_own_colours(text).as_bytes()))
}

/// Before another program goes on in our place.
pub fn flush() -> Result<()> {
    written(std::io::stdout().lock().flush())
}

/// What became of writing to standard output.
pub fn written(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to standard output"),
        _ => Ok(()),
    }
}

/// Standard output for text that is made piece by piece.
pub fn output() -> Harmless<std::io::BufWriter<std::io::StdoutLock<'static>>> {
    Harmless(std::io::BufWriter::new(std::io::stdout().lock()))
}

/// Standard output for what is no text.
pub fn binary_output() -> std::io::Stdout {
    std::io::stdout()
}

pub fn output_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

pub fn error_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Columns of the terminal that standard error is; what is none has no end.
pub fn error_width() -> usize {
    width(std::io::stderr())
}

/// And standard output.
pub fn output_width() -> usize {
    width(std::io::stdout())
}

fn width(stream: impl std::os::fd::AsFd) -> usize {
    const LEAST: usize = 40;
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if usize::from(size.ws_col) >= LEAST => size.ws_col.into(),
        _ => usize::MAX,
    }
}

/// Standard error for the output of a child.
pub fn error_for_child() -> Stdio {
    std::io::stderr().into()
}

/// A writer of text; what is written at once is whole characters.
pub struct Harmless<W>(W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if bytes.iter().all(plain) {
            self.0.write_all(bytes)?;
        } else {
            self.0.write_all(harmless_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn with_own_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| is_harmful(c) && c != '\n' && c != '\t') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match OWN.iter().find(|own| rest.starts_with(**own)) {
            Some(own) => {
                out.push_str(own);
                own.len()
            }
            None => {
                let length = rest.chars().next().map_or(rest.len(), char::len_utf8);
                out.push_str(&harmless(&rest[..length]));
                length
            }
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_reach_the_terminal() {
        let text = "\x1b[1;31mrace\x1b[0m \x1b[2J\x1b]0;title\x07\u{202e}\n\tä\x1b[31m";
        let shown = "\x1b[1;31mrace\x1b[0m \\u{1b}[2J\\u{1b}]0;title\\u{7}\\u{202e}\n\tä\\u{1b}[31m";
        assert_eq!(with_own_colours(text), shown);
        let mut out = Harmless(Vec::new());
        write!(out, "a\n\x1b[1mb\u{200b}").unwrap();
        assert_eq!(out.0, b"a\n\\u{1b}[1mb\\u{200b}");
    }
}
