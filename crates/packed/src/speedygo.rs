//! SpeedyGo's CSV: `thread,operation,object,location,clock`, one event a line.
//!
//! `LK UK RD WR` are what they seem; `SIG` and `WT` order everything before the one before everything behind the other, of the same
//! object, as a fork does and a join. The location `nil` is nowhere. The clock is not looked at.

use crate::event::Op;
use crate::input::Input;
use crate::text::{Dialect, Parts, TextSource};
use std::borrow::Cow;

pub(crate) struct SpeedyGo;

pub(crate) type SpeedyGoSource = TextSource<SpeedyGo>;

pub(crate) fn source(input: Input, bare_threads: bool) -> SpeedyGoSource {
    TextSource::new(input, bare_threads)
}

pub(crate) const WORDS: [(&str, Op); 6] =
    [("RD", Op::Read), ("WR", Op::Write), ("LK", Op::Acquire), ("UK", Op::Release), ("SIG", Op::Publish), ("WT", Op::Observe)];

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
