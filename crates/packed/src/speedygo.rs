//! SpeedyGo's CSV: `thread,operation,object,location,clock`, one event a line.
//!
//! `LK UK RD WR` are what they seem; `SIG` and `WT` order everything before the one before everything behind the other, of the
//! same object, as a fork does and a join. The location `nil` is nowhere. The clock is not looked at.

use crate::event::{Event, Op, Space};
use crate::export::{Lines, WriteOptions, push_number};
use crate::input::Input;
use crate::names::Names;
use crate::text::{Dialect, Parts, TextSource};
use std::borrow::Cow;

pub(crate) struct SpeedyGo;

pub(crate) type SpeedyGoSource = TextSource<SpeedyGo>;

pub(crate) fn source(input: Input, bare_threads: bool) -> SpeedyGoSource {
    TextSource::new(input, bare_threads)
}

pub(crate) const WORDS: [(&str, Op); 6] = [
    ("RD", Op::Read),
    ("WR", Op::Write),
    ("LK", Op::Acquire),
    ("UK", Op::Release),
    ("SIG", Op::ReleaseObject),
    ("WT", Op::AcquireObject),
];

impl Dialect for SpeedyGo {
    #[inline]
    fn parts(line: &[u8]) -> Result<Parts<'_>, Cow<'static, str>> {
        let mut columns = line.split(|byte| *byte == b',');
        let (Some(thread), Some(word), Some(target), Some(location), Some(_clock), None) =
            (columns.next(), columns.next(), columns.next(), columns.next(), columns.next(), columns.next())
        else {
            return Err("a line is thread,operation,object,location,clock".into());
        };
        let Some((_, op)) = WORDS.iter().find(|(known, _)| known.as_bytes() == word) else {
            return Err("no operation of SpeedyGo, which are LK UK RD WR SIG WT".into());
        };
        if thread.is_empty() || target.is_empty() {
            return Err("a thread or an object without a name".into());
        }
        Ok(Parts { thread, op: *op, target, location: if location == b"nil" { &[] } else { location } })
    }
}

/// Writes SpeedyGo's CSV: threads and objects are numbers there, and a fork or join is said by `SIG` and `WT` of an object made
/// for it.
///
/// The `WT` of a fork stands before the child's first event, the `SIG` of a join before the join.
#[derive(Default)]
pub(crate) struct Writer {
    /// Threads that were forked and have not yet waited for that.
    forked: Vec<bool>,
}

/// First number of the objects made for forks and joins.
const MADE: u64 = 1_000_000_000;

/// A number: the name, where it is one.
fn push_id(out: &mut Vec<u8>, names: &Names, options: WriteOptions, space: Space, number: u32) -> Result<(), String> {
    if options.numbers || names.count(space) == 0 {
        if u64::from(number) >= MADE {
            return Err(format!("{} number {number} is too high", space.noun()));
        }
        push_number(out, number.into());
        return Ok(());
    }
    match names.bytes(space, number) {
        Some(name) if (1..=9).contains(&name.len()) && name.iter().all(u8::is_ascii_digit) => out.extend_from_slice(name),
        _ => {
            let name = names.get(space, number);
            return Err(format!("{} {name} is not called by a number; --numbers writes numbers instead", space.noun()));
        }
    }
    Ok(())
}

impl Writer {
    fn line(out: &mut Vec<u8>, thread: &[u8], word: &str, object: &[u8], location: &[u8]) {
        for part in [thread, b",", word.as_bytes(), b",", object, b",", location, b",1\n"] {
            out.extend_from_slice(part);
        }
    }

    /// The made object of a fork (even) or join (odd).
    fn made(thread: u32, join: bool) -> Vec<u8> {
        (MADE + 2 * u64::from(thread) + u64::from(join)).to_string().into_bytes()
    }

    /// A forked thread's first act.
    fn wait_for_fork(&mut self, names: &Names, options: WriteOptions, thread: u32, out: &mut Vec<u8>) -> Result<(), String> {
        if self.forked.get(thread as usize) == Some(&true) {
            self.forked[thread as usize] = false;
            let mut name = Vec::new();
            push_id(&mut name, names, options, Space::Thread, thread)?;
            Self::line(out, &name, "WT", &Self::made(thread, false), b"nil");
        }
        Ok(())
    }
}

impl Lines for Writer {
    fn event(&mut self, event: &Event, names: &Names, options: WriteOptions, out: &mut Vec<u8>) -> Result<bool, String> {
        let word = WORDS.iter().find(|(_, meant)| *meant == event.op).map(|(word, _)| *word);
        let threads = matches!(event.op, Op::Fork | Op::Join);
        if word.is_none() && !threads {
            return if options.lossy {
                Ok(false)
            } else {
                Err(format!("SpeedyGo's CSV cannot say `{}`; --lossy leaves such events out", event.op.name()))
            };
        }
        self.wait_for_fork(names, options, event.thread.into(), out)?;
        let (mut thread, mut location) = (Vec::new(), Vec::new());
        push_id(&mut thread, names, options, Space::Thread, event.thread.into())?;
        match names.bytes(Space::Location, event.location).filter(|_| !options.numbers && event.location != 0) {
            _ if event.location == 0 => location.extend_from_slice(b"nil"),
            Some(name) if !name.is_empty() && !name.iter().any(|byte| matches!(byte, b',' | b'\n' | b'\r')) => {
                location.extend_from_slice(name);
            }
            Some(_) => return Err("the location has a name with a comma; --numbers writes numbers instead".into()),
            None => push_number(&mut location, event.location.into()),
        }
        if let Some(word) = word {
            let space = event.op.space().expect("each of these operations has a target");
            let mut target = Vec::new();
            push_id(&mut target, names, options, space, event.target)?;
            Self::line(out, &thread, word, &target, &location);
            return Ok(true);
        }
        let child = event.target;
        if event.op == Op::Fork {
            if self.forked.len() <= child as usize {
                self.forked.resize(child as usize + 1, false);
            }
            self.forked[child as usize] = true;
            Self::line(out, &thread, "SIG", &Self::made(child, false), &location);
            return Ok(true);
        }
        self.wait_for_fork(names, options, child, out)?;
        let mut name = Vec::new();
        push_id(&mut name, names, options, Space::Thread, child)?;
        Self::line(out, &name, "SIG", &Self::made(child, true), b"nil");
        Self::line(out, &thread, "WT", &Self::made(child, true), &location);
        Ok(true)
    }
}
