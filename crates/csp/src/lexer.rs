//! Words of CSP_M, with their places.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    Name(String),
    Sign(&'static str),
    Unknown(char),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 30] = [
    "|||", "|~|", "[FD=", "[T=", "[F=", "||", ":[", "[[", "]]", "<-", "[>", "->", "[]", "[|", "|]", "{|", "|}", "/\\", "(", ")",
    "{", "}", ",", ";", "\\", "=", "[", "]", "&", ".",
];

pub fn words(text: &str) -> Vec<(Word, Place)> {
    let mut words = Vec::new();
    let mut rest = text;
    let (mut line, mut column) = (1, 1);
    let mut comment = 0_usize;
    while let Some(first) = rest.chars().next() {
        let place = Place { line, column };
        let length = if rest.starts_with("{-") {
            comment += 1;
            2
        } else if comment > 0 {
            let ends = rest.starts_with("-}");
            comment -= usize::from(ends);
            if ends { 2 } else { first.len_utf8() }
        } else if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let within = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '\'';
            let length = rest.find(|letter| !within(letter)).unwrap_or(rest.len());
            words.push((Word::Name(rest[..length].to_owned()), place));
            length
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            words.push((Word::Sign(sign), place));
            sign.len()
        } else {
            words.push((Word::Unknown(first), place));
            first.len_utf8()
        };
        for letter in rest[..length].chars() {
            (line, column) = if letter == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        rest = &rest[length..];
    }
    words.push((Word::End, Place { line, column }));
    words
}
