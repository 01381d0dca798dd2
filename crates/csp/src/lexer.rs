//! Words of CSP_M, with their places.

use crate::error::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    Name(String),
    Number(i64),
    /// Between quotes.
    Text(String),
    Sign(&'static str),
    /// What is no word of the subset, from its first letter on.
    Unknown(String),
    /// Where a comment begins that does not end.
    Unclosed,
    End,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub word: Word,
    pub place: Place,
    /// Bytes of the text.
    pub from: usize,
    pub to: usize,
}

/// Longer ones first.
const SIGNS: [&str; 51] = [
    "|||", "|~|", "[FD=", "[T=", "[F=", "||", ":[", "[[", "]]", "<-", "<=", ">=", "==", "!=", "[>", "->", "[]", "[|", "|]", "{|",
    "|}", "/\\", "@@", "..", "(", ")", "{", "}", ",", ";", "\\", "=", "[", "]", "&", ".", "|", "<", ">", "+", "-", "*", "/", "%",
    "#", "^", "?", "!", "$", ":", "@",
];

pub fn words(text: &str, file: u16) -> Vec<Token> {
    let mut words = Vec::new();
    let mut from = 0;
    let (mut line, mut column) = (1, 1);
    let mut comment = 0_usize;
    let mut opened = Token { word: Word::Unclosed, place: Place { line, column, file }, from, to: from };
    while let Some(first) = text[from..].chars().next() {
        let rest = &text[from..];
        let (word, length) = if rest.starts_with("{-") {
            if comment == 0 {
                opened = Token { place: Place { line, column, file }, from, to: from + 2, ..opened };
            }
            comment += 1;
            (None, 2)
        } else if comment > 0 {
            let ends = rest.starts_with("-}");
            comment -= usize::from(ends);
            (None, if ends { 2 } else { first.len_utf8() })
        } else if rest.starts_with("--") {
            (None, rest.find('\n').unwrap_or(rest.len()))
        } else if first.is_whitespace() {
            (None, first.len_utf8())
        } else {
            let (word, length) = one(rest, first);
            (Some(word), length)
        };
        if let Some(word) = word {
            words.push(Token { word, place: Place { line, column, file }, from, to: from + length });
        }
        for letter in rest[..length].chars() {
            (line, column) = if letter == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        from += length;
    }
    if comment > 0 {
        words.push(opened);
    }
    words.push(Token { word: Word::End, place: Place { line, column, file }, from, to: from });
    words
}

/// The word at the beginning, and its length.
fn one(rest: &str, first: char) -> (Word, usize) {
    if first.is_ascii_digit() {
        let length = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        return (rest[..length].parse().map_or_else(|_| Word::Unknown(rest[..length].to_owned()), Word::Number), length);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let within = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '\'';
        let length = rest.find(|letter| !within(letter)).unwrap_or(rest.len());
        return (Word::Name(rest[..length].to_owned()), length);
    }
    if first == '"'
        && let Some(length) = rest[1..].find(['"', '\n'])
        && rest[1 + length..].starts_with('"')
    {
        return (Word::Text(rest[1..=length].to_owned()), length + 2);
    }
    if let Some(length) = refines(rest) {
        return (Word::Unknown(rest[..length].to_owned()), length);
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => (Word::Sign(sign), sign.len()),
        None => (Word::Unknown(first.to_string()), first.len_utf8()),
    }
}

/// The length of a refinement in a model that is none of the subset, such as `[R=`.
fn refines(rest: &str) -> Option<usize> {
    let name = rest.strip_prefix('[')?;
    let length = name.find(|letter: char| !letter.is_ascii_alphabetic())?;
    let known = ["T", "F", "FD"].contains(&&name[..length]);
    let assigns = name[length..].starts_with('=') && !name[length..].starts_with("==");
    (length > 0 && !known && assigns).then_some(length + 2)
}
