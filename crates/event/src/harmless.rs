//! Text from outside, made harmless for terminals.
//!
//! Names of the program under test, paths, and whatever a file says may hold characters that steer a terminal, hide text or turn
//! its direction round (N. Boucher, R. Anderson, "Trojan Source: Invisible Vulnerabilities", USENIX Security 2023). They are
//! shown as what they are: `\u{202e}`, `\n`.

use std::borrow::Cow;

/// Whether a character acts on a terminal, or on the text around it, instead of being seen.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text on one line, with nothing in it that acts on a terminal.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same for text of several lines: line ends and tabulators stay.
pub fn harmless_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// The same for JSON, which says the same in other words: a reader gets the very characters.
pub fn harmless_json(text: &str) -> Cow<'_, str> {
    let acts = |c: char| is_harmful(c) && c != '\n' && c != '\t';
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match acts(c) {
            true => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let acts = |c: char| is_harmful(c) && !stays(c);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if acts(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown() {
        for (text, shown) in [
            ("plain ä 漢 🦀 \\", "plain ä 漢 🦀 \\"),
            ("a\x1b[31mb", "a\\u{1b}[31mb"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
        assert_eq!(harmless_json("{\"a\":\n\"\u{7f}\u{e0041}ä\"}"), "{\"a\":\n\"\\u007f\\udb40\\udc41ä\"}");
        assert_eq!(harmless_lines("a\nb\u{85}\r\n"), "a\nb\\u{85}\\r\n");
    }
}
