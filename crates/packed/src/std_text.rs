//! RAPID's STD text: `thread|op(target)|location`, one event a line.
//!
//! The words are those of RAPID (`r w acq rel fork join begin end branch dummy`), of SPDOffline (`req`) and, for locks with
//! readers, `acqr relr reqr`. `begin`, `end` and `branch` may stand without a target; a line may end before its location. A
//! target reaches up to the last `)` of its column, so that it may hold parentheses; RAPID's own rule.

use crate::event::{Event, Op, Space};
use crate::export::{Lines, WriteOptions, push_unnamed};
use crate::input::Input;
use crate::names::Names;
use crate::text::{Dialect, Numbers, Parts, TextSource};
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

/// A name of at most one character that is no digit, and a decimal number without leading zeros; and what stands behind it.
#[inline]
fn short_name(bytes: &[u8]) -> Option<((u8, u32), &[u8])> {
    let (prefix, digits) = match bytes {
        [first, rest @ ..] if !first.is_ascii_digit() => (*first, rest),
        _ => (0, bytes),
    };
    let (mut value, mut length) = (0_u32, 0);
    while let Some(digit) = digits.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9) {
        value = value.wrapping_mul(10).wrapping_add(digit.into());
        length += 1;
    }
    let is_plain = length == 1 || (2..10).contains(&length) && digits[0] != b'0';
    is_plain.then(|| ((prefix, value), &digits[length..]))
}

impl Dialect for Std {
    /// An access or a step of a lock, all of whose names are short: no delimiter is looked for, and none can stand in a name.
    #[inline]
    fn at_once(bytes: &[u8], numbers: &Numbers) -> Option<(Event, usize)> {
        let (thread, rest) = short_name(bytes)?;
        let (op, rest) = match rest {
            [b'|', b'r', b'(', rest @ ..] => (Op::Read, rest),
            [b'|', b'w', b'(', rest @ ..] => (Op::Write, rest),
            [b'|', b'a', b'c', b'q', b'(', rest @ ..] => (Op::Acquire, rest),
            [b'|', b'r', b'e', b'l', b'(', rest @ ..] => (Op::Release, rest),
            _ => return None,
        };
        let (target, rest) = short_name(rest)?;
        let (location, rest) = short_name(rest.strip_prefix(b")|")?)?;
        let rest = rest.strip_prefix(b"\n")?;
        let thread = numbers.known(Space::Thread, thread)?;
        let target = numbers.known(op.space()?, target)?;
        let location = numbers.known(Space::Location, location)?;
        Some((Event::new(thread as u16, op, target, location), bytes.len() - rest.len()))
    }

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

/// Writes STD text. RAPID itself wants locations to be numbers: [`WriteOptions::numbers`] makes them so.
#[derive(Default)]
pub(crate) struct Writer;

/// The word for each operation that has one.
fn word(op: Op) -> Option<&'static str> {
    WORDS.iter().find(|(_, meant)| *meant == op).map(|(word, _)| *word)
}

/// A name, if a reader would find it again.
fn push_name(out: &mut Vec<u8>, names: &Names, options: WriteOptions, space: Space, number: u32) -> Result<(), String> {
    let name = if options.numbers { None } else { names.bytes(space, number) };
    let Some(name) = name.filter(|_| space != Space::Location || number != 0) else {
        push_unnamed(out, space, number);
        return Ok(());
    };
    let may_be_empty = matches!(space, Space::Region | Space::Location);
    if name.iter().any(|byte| matches!(byte, b'|' | b'\n' | b'\r')) || name.is_empty() && !may_be_empty {
        let name = names.get(space, number).into_owned();
        return Err(format!("{} {name:?} has a name that STD cannot say; --numbers writes numbers instead", space.noun()));
    }
    out.extend_from_slice(name);
    Ok(())
}

impl Lines for Writer {
    fn event(&mut self, event: &Event, names: &Names, options: WriteOptions, out: &mut Vec<u8>) -> Result<bool, String> {
        let Some(word) = word(event.op) else {
            return if options.lossy {
                Ok(false)
            } else {
                Err(format!("STD cannot say `{}`; --lossy leaves such events out", event.op.name()))
            };
        };
        push_name(out, names, options, Space::Thread, event.thread.into())?;
        out.push(b'|');
        out.extend_from_slice(word.as_bytes());
        out.push(b'(');
        match event.op.space() {
            Some(space) => push_name(out, names, options, space, event.target)?,
            None => out.push(b'0'),
        }
        out.extend_from_slice(b")|");
        push_name(out, names, options, Space::Location, event.location)?;
        out.push(b'\n');
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PIECES: [&str; 16] =
        ["|", "|", "|", "r(", "w(", "acq(", "rel(", "fork(", ")|", ")", "T1", "12", "0", "007", "V1234567890", "\r"];

    proptest! {
        /// What is taken at once is what is taken apart. Few lines have any form, so pieces stand in their order at first.
        #[test]
        fn lines_mean_the_same_at_once(
            thread in 9_usize..16, op in 3_usize..8, target in 9_usize..16, location in 9_usize..16,
            changed in prop::option::of((0_usize..8, 0_usize..16)),
            bare in any::<bool>(),
        ) {
            let mut pieces = [PIECES[thread], "|", PIECES[op], PIECES[target], ")", "|", PIECES[location], ""];
            if let Some((place, piece)) = changed {
                pieces[place] = PIECES[piece];
            }
            let line = pieces.concat();
            let text = format!("{line}\nT1|");
            let mut numbers = Numbers::new(bare);
            prop_assert_eq!(Std::at_once(text.as_bytes(), &numbers), None, "nothing is known yet");
            let meant = Std::parts(line.strip_suffix('\r').unwrap_or(&line).as_bytes()).and_then(|parts| numbers.event(&parts));
            let found = Std::at_once(text.as_bytes(), &numbers);
            if let Some(found) = found {
                prop_assert_eq!(meant.as_ref().ok(), Some(&found.0));
                prop_assert_eq!(found.1, line.len() + 1);
            }
            let are_short = [thread, target, location].iter().all(|name| (10..13).contains(name));
            let is_plain = !bare && changed.is_none() && op < 7 && are_short;
            prop_assert!(found.is_some() || !is_plain, "{}", line);
        }
    }
}
