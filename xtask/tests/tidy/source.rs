//! Rust text split into code and comments, line by line: what a law may look at without being misled by strings.
//!
//! A lexer of just enough of the language: nested block comments, raw and byte strings, characters as against lifetimes.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Code; contents of strings and characters are left out, their quotes stay.
    pub code: String,
    /// Text of comments, markers left out.
    pub comment: String,
}

impl Line {
    pub fn is_comment_only(&self) -> bool {
        self.code.trim().is_empty() && !self.comment.trim().is_empty()
    }
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment(u32),
    /// With escapes.
    Text,
    /// Number of `#`.
    RawText(usize),
}

pub fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let (mut lines, mut line) = (Vec::new(), Line::default());
    let (mut state, mut index) = (State::Code, 0);
    while index < chars.len() {
        let c = chars[index];
        if c == '\n' {
            lines.push(std::mem::take(&mut line));
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            index += 1;
            continue;
        }
        let mut step = 1;
        match state {
            State::Code => (state, step) = in_code(&chars, index, &mut line.code),
            State::LineComment => line.comment.push(c),
            State::BlockComment(depth) => match (c, at(index + 1)) {
                ('*', '/') => {
                    state = if depth == 1 { State::Code } else { State::BlockComment(depth - 1) };
                    step = 2;
                }
                ('/', '*') => {
                    state = State::BlockComment(depth + 1);
                    step = 2;
                }
                _ => line.comment.push(c),
            },
            State::Text => match c {
                // An escaped line end still ends the line.
                '\\' if at(index + 1) != '\n' => step = 2,
                '"' => {
                    state = State::Code;
                    line.code.push('"');
                }
                _ => {}
            },
            State::RawText(hashes) => {
                if c == '"' && (1..=hashes).all(|offset| at(index + offset) == '#') {
                    state = State::Code;
                    line.code.push('"');
                    step = 1 + hashes;
                }
            }
        }
        index += step;
    }
    lines.push(line);
    lines
}

/// One character of code, or what begins there: the state behind it, and its length.
fn in_code(chars: &[char], index: usize, code: &mut String) -> (State, usize) {
    let next = chars.get(index + 1);
    match chars[index] {
        '/' if next == Some(&'/') => return (State::LineComment, 2),
        '/' if next == Some(&'*') => return (State::BlockComment(1), 2),
        '"' => {
            code.push('"');
            return (State::Text, 1);
        }
        'r' | 'b' | 'c' if !ends_in_word(code) => {
            if let (hashes, Some(quote)) = raw_start(chars, index) {
                code.push('"');
                return (State::RawText(hashes), quote + 1 - index);
            }
        }
        '\'' => {
            if let Some(end) = character_end(chars, index) {
                code.push_str("''");
                return (State::Code, end + 1 - index);
            }
        }
        _ => {}
    }
    code.push(chars[index]);
    (State::Code, 1)
}

fn ends_in_word(code: &str) -> bool {
    code.chars().last().is_some_and(|last| last.is_alphanumeric() || last == '_')
}

/// At `r`, `br` or `cr`: number of `#` and index of the quote, if a raw string begins.
fn raw_start(chars: &[char], start: usize) -> (usize, Option<usize>) {
    let mut index = start;
    if matches!(chars[index], 'b' | 'c') {
        index += 1;
    }
    if chars.get(index) != Some(&'r') {
        return (0, None);
    }
    index += 1;
    let hashes = chars[index..].iter().take_while(|&&c| c == '#').count();
    index += hashes;
    (hashes, (chars.get(index) == Some(&'"')).then_some(index))
}

/// At a `'`: the index of the one that closes a character, `None` for a lifetime.
fn character_end(chars: &[char], start: usize) -> Option<usize> {
    match chars.get(start + 1)? {
        '\\' => (start + 3..chars.len().min(start + 14)).find(|&index| chars[index] == '\''),
        '\'' => None,
        _ => (chars.get(start + 2) == Some(&'\'')).then_some(start + 2),
    }
}

/// The words (identifiers) of a line of code, each with the rest of the line behind it.
pub fn words(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_word(c));
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        rest = &rest[end..];
        Some((word, rest))
    })
}

#[test]
fn strings_and_comments_are_told_from_code() {
    let split = |text: &str| lines(text).into_iter().map(|line| (line.code, line.comment)).collect::<Vec<_>>();
    let one = |text: &str| split(text).remove(0);
    let pair = |code: &str, comment: &str| (code.to_owned(), comment.to_owned());
    assert_eq!(one(r#"let a = "unsafe // \" x"; // why"#), pair(r#"let a = ""; "#, " why"));
    assert_eq!(one(r##"let a = r#"unsafe " {"#; b"##), pair(r#"let a = ""; b"#, ""));
    assert_eq!(one(r#"f(b"x", br"\", c"y")"#), pair(r#"f(b"", "", c"")"#, ""));
    assert_eq!(one(r"let q = '\''; let l: &'a str = '\u{1F600}' '/' // c"), pair("let q = ''; let l: &'a str = '' '' ", " c"));
    assert_eq!(split("a /* b /* c */ d\n e */ f"), [pair("a ", " b  c  d"), pair(" f", " e ")]);
    assert_eq!(split("\"a\\\nb\" c")[1], pair("\" c", ""));
    assert_eq!(words("unsafe fn a_b(x)").map(|(word, _)| word).collect::<Vec<_>>(), ["unsafe", "fn", "a_b", "x"]);
}
