//! RAPID's STD text: `thread|op(target)|location`, one event a line.
//!
//! The words are those of RAPID (`r w acq rel fork join begin end branch dummy`), of SPDOffline (`req`) and, for locks with readers,
//! `acqr relr reqr`. `begin`, `end` and `branch` may stand without a target; a line may end before its location.
//! A target reaches up to the last `)` of its column, so that it may hold parentheses; RAPID's own rule.

use crate::event::Op;
use crate::input::Input;
use crate::text::{Dialect, Parts, TextSource};
use std::borrow::Cow;

pub(crate) struct Std;

pub(crate) type StdSource = TextSource<Std>;

pub(crate) fn source(input: Input, bare_threads: bool) -> StdSource {
    TextSource::new(input, bare_threads)
}

/// Every word and what it means; the first for an operation is the one written.
pub(crate) const WORDS: [(&str, Op); 15] = [
    ("r", Op::Read),
    ("w", Op::Write),
    ("acq", Op::Acquire),
    ("rel", Op::Release),
    ("fork", Op::Fork),
    ("join", Op::Join),
    ("begin", Op::Begin),
    ("end", Op::End),
    ("req", Op::Request),
    ("acqr", Op::AcquireShared),
    ("relr", Op::ReleaseShared),
    ("reqr", Op::RequestShared),
    ("branch", Op::Branch),
    ("dummy", Op::Nothing),
    ("nop", Op::Nothing),
];

/// The operation, and where its target begins.
#[inline]
fn operation(column: &[u8]) -> Option<(Op, usize)> {
    // What nearly all lines are.
    Some(match column {
        [b'r', b'(', ..] => (Op::Read, 2),
        [b'w', b'(', ..] => (Op::Write, 2),
        [b'a', b'c', b'q', b'(', ..] => (Op::Acquire, 4),
        [b'r', b'e', b'l', b'(', ..] => (Op::Release, 4),
        _ => {
            let end = column.iter().position(|byte| *byte == b'(')?;
            let (_, op) = WORDS.iter().find(|(word, _)| word.as_bytes() == &column[..end])?;
            (*op, end + 1)
        }
    })
}

impl Dialect for Std {
    #[inline]
    fn parts(line: &[u8]) -> Result<Parts<'_>, Cow<'static, str>> {
        let Some(first) = line.iter().position(|byte| *byte == b'|') else {
            return Err("a line is thread|op(target)|location, and here is no `|`".into());
        };
        let thread = &line[..first];
        let rest = &line[first + 1..];
        let (column, location) = match rest.iter().rposition(|byte| *byte == b'|') {
            Some(last) => (&rest[..last], &rest[last + 1..]),
            None => (rest, &[][..]),
        };
        if thread.is_empty() {
            return Err("no thread before the first `|`".into());
        }
        let Some((op, start)) = operation(column) else {
            return match WORDS.iter().find(|(word, _)| word.as_bytes() == column) {
                Some((_, op @ (Op::Begin | Op::End | Op::Branch))) => Ok(Parts { thread, op: *op, target: &[], location }),
                Some((word, _)) => Err(format!("`{word}` needs a target, as in {word}(X)").into()),
                None => {
                    let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
                    Err(format!("no operation of STD, which are {}", words.join(" ")).into())
                }
            };
        };
        let [target @ .., b')'] = &column[start..] else {
            return Err("no `)` at the end of the operation".into());
        };
        if target.is_empty() && !matches!(op, Op::Begin | Op::End | Op::Branch | Op::Nothing) {
            return Err("an empty target".into());
        }
        Ok(Parts { thread, op, target, location })
    }
}
