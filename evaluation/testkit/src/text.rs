//! Traces as text, one event a line (or between semicolons): `thread operation operands [@site] [#label]`.
//!
//! `main` is the initial thread; others appear with `fork` or at their first mention. Variables are `x`, `x+2:4` (offset, bytes;
//! 8 bytes if not said). Operations: `r w rw X`, `ld st rmw casf X ORDER`, `fence ORDER`, `fork join tryjoin T`, `start end`,
//! `lock trylock rlock unlock runlock request M`, `wait C M`, `woken C M [LABEL]`, `timeout C M`, `signal broadcast C`,
//! `enter exit B [GENERATION]`, `post take S`, `count S N` (what a semaphore begins with), `begin done seen O`,
//! `release acquire O`, `blocked M`, `other`. `//` starts a comment.

use crate::builder::TraceBuilder;
use rashomon_event::{
    Access, AccessClass, Address, AtomicOp, EventIndex, EventKind, LockMode, MemoryOrder, OtherOp, SiteId, ThreadId, Trace,
};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("statement {statement}: unknown operation `{operation}`")]
    UnknownOperation { statement: usize, operation: String },
    #[error("statement {statement}: missing operand")]
    MissingOperand { statement: usize },
    #[error("statement {statement}: `{word}` is neither a number nor a memory order")]
    BadWord { statement: usize, word: String },
    #[error("statement {statement}: label `{label}` is not defined before it")]
    UnknownLabel { statement: usize, label: String },
}

/// A trace whose labelled events can be looked up.
#[derive(Debug)]
pub struct Labelled {
    pub trace: Trace,
    labels: HashMap<String, EventIndex>,
}

impl Labelled {
    /// The event with this label; panics if there is none, for it is a mistake in the test.
    pub fn at(&self, label: &str) -> EventIndex {
        *self.labels.get(label).unwrap_or_else(|| panic!("no event has the label {label}"))
    }
}

#[derive(Default)]
struct Names {
    threads: HashMap<String, ThreadId>,
    addresses: HashMap<String, Address>,
    sites: HashMap<String, SiteId>,
    labels: HashMap<String, EventIndex>,
}

impl Names {
    /// Names are 4 KiB apart, so that ranges do not meet by accident.
    fn address(&mut self, name: &str) -> Address {
        let next = 0x1_0000 + 0x1000 * self.addresses.len() as u64;
        *self.addresses.entry(name.to_owned()).or_insert(Address(next))
    }

    fn thread(&mut self, builder: &mut TraceBuilder, name: &str, parent: ThreadId) -> ThreadId {
        if name == "main" {
            return ThreadId(0);
        }
        *self.threads.entry(name.to_owned()).or_insert_with(|| builder.thread(parent))
    }
}

pub fn parse(text: &str) -> Result<Labelled, ParseError> {
    let mut names = Names::default();
    let mut builder = TraceBuilder::new();
    let statements = text.lines().map(|line| line.split("//").next().unwrap_or("")).flat_map(|line| line.split(';'));
    for (statement, words) in statements.map(str::split_whitespace).enumerate() {
        let (mut site, mut label, mut operands) = (None, None, Vec::new());
        for word in words {
            if let Some(name) = word.strip_prefix('@') {
                // Named sites live above the automatic ones.
                let next = SiteId(1000 + names.sites.len() as u32);
                site = Some(*names.sites.entry(name.to_owned()).or_insert(next));
            } else if let Some(name) = word.strip_prefix('#') {
                label = Some(name.to_owned());
            } else {
                operands.push(word);
            }
        }
        let [thread, operation, operands @ ..] = operands.as_slice() else {
            continue;
        };
        let thread = names.thread(&mut builder, thread, ThreadId(0));
        let kind = Statement { statement, operation, operands }.kind(&mut names, &mut builder, thread)?;
        let index = builder.push_at(thread, kind, site.unwrap_or(SiteId(builder.len() as u32)));
        if let Some(label) = label {
            names.labels.insert(label, index);
        }
    }
    Ok(Labelled { trace: builder.build(), labels: names.labels })
}

struct Statement<'a> {
    statement: usize,
    operation: &'a str,
    operands: &'a [&'a str],
}

impl Statement<'_> {
    fn operand(&self, place: usize) -> Result<&str, ParseError> {
        self.operands.get(place).copied().ok_or(ParseError::MissingOperand { statement: self.statement })
    }

    fn number<N: std::str::FromStr>(&self, word: &str) -> Result<N, ParseError> {
        word.parse().map_err(|_| ParseError::BadWord { statement: self.statement, word: word.to_owned() })
    }

    fn order(&self, place: usize) -> Result<MemoryOrder, ParseError> {
        Ok(match self.operand(place)? {
            "relaxed" => MemoryOrder::Relaxed,
            "consume" => MemoryOrder::Consume,
            "acquire" => MemoryOrder::Acquire,
            "release" => MemoryOrder::Release,
            "acq_rel" => MemoryOrder::AcqRel,
            "seq_cst" => MemoryOrder::SeqCst,
            word => {
                return Err(ParseError::BadWord { statement: self.statement, word: word.to_owned() });
            }
        })
    }

    fn variable(&self, names: &mut Names, class: AccessClass, atomic: bool) -> Result<Access, ParseError> {
        let word = self.operand(0)?;
        let (place, size) = match word.split_once(':') {
            Some((place, size)) => (place, self.number(size)?),
            None => (word, 8),
        };
        let (name, offset) = match place.split_once('+') {
            Some((name, offset)) => (name, self.number(offset)?),
            None => (place, 0),
        };
        Ok(Access { address: Address(names.address(name).0 + offset), size, class, atomic })
    }

    fn atomic(&self, names: &mut Names, class: AccessClass, op: AtomicOp) -> Result<EventKind, ParseError> {
        Ok(EventKind::Atomic { access: self.variable(names, class, true)?, op, order: self.order(1)?, value: 0 })
    }

    fn kind(&self, names: &mut Names, builder: &mut TraceBuilder, thread: ThreadId) -> Result<EventKind, ParseError> {
        let name = self.operands.first().map(|name| names.address(name));
        let first = name.ok_or(ParseError::MissingOperand { statement: self.statement });
        let generation = || self.operands.get(1).map_or(Ok(0), |word| self.number(word));
        Ok(match self.operation {
            "r" => EventKind::Access(self.variable(names, AccessClass::Read, false)?),
            "w" => EventKind::Access(self.variable(names, AccessClass::Write, false)?),
            "rw" => EventKind::Access(self.variable(names, AccessClass::ReadWrite, false)?),
            "ld" => self.atomic(names, AccessClass::Read, AtomicOp::Load)?,
            "st" => self.atomic(names, AccessClass::Write, AtomicOp::Store)?,
            "rmw" => self.atomic(names, AccessClass::ReadWrite, AtomicOp::Rmw)?,
            "casf" => self.atomic(names, AccessClass::Read, AtomicOp::CasFailed)?,
            "fence" => EventKind::Fence { order: self.order(0)? },
            "start" => EventKind::Start,
            "end" => EventKind::End,
            "fork" => EventKind::Fork { child: names.thread(builder, self.operand(0)?, thread) },
            "join" | "tryjoin" => {
                EventKind::Join { child: names.thread(builder, self.operand(0)?, thread), may_wait: self.operation == "join" }
            }
            "lock" => EventKind::Acquire { lock: first?, mode: LockMode::Exclusive, may_wait: true },
            "trylock" => EventKind::Acquire { lock: first?, mode: LockMode::Exclusive, may_wait: false },
            "rlock" => EventKind::Acquire { lock: first?, mode: LockMode::Shared, may_wait: true },
            "unlock" => EventKind::Release { lock: first?, mode: LockMode::Exclusive },
            "runlock" => EventKind::Release { lock: first?, mode: LockMode::Shared },
            "request" => EventKind::Request { lock: first?, mode: LockMode::Exclusive },
            "wait" => EventKind::WaitBegin { condition: first?, mutex: names.address(self.operand(1)?) },
            "woken" => {
                let woken_by = match self.operands.get(2) {
                    Some(&label) => Some(
                        *names
                            .labels
                            .get(label)
                            .ok_or_else(|| ParseError::UnknownLabel { statement: self.statement, label: label.to_owned() })?,
                    ),
                    None => None,
                };
                EventKind::WaitEnd { condition: first?, mutex: names.address(self.operand(1)?), woken_by, timed_out: false }
            }
            "timeout" => {
                let mutex = names.address(self.operand(1)?);
                EventKind::WaitEnd { condition: first?, mutex, woken_by: None, timed_out: true }
            }
            "signal" => EventKind::Signal { condition: first?, broadcast: false },
            "broadcast" => EventKind::Signal { condition: first?, broadcast: true },
            "enter" => EventKind::BarrierEnter { barrier: first?, generation: generation()? },
            "exit" => EventKind::BarrierExit { barrier: first?, generation: generation()? },
            "post" => EventKind::Post { semaphore: first? },
            "take" => EventKind::Take { semaphore: first? },
            "count" => {
                builder.semaphore(first?, self.operands.get(1).map_or(Ok(0), |word| self.number(word))?);
                EventKind::Other(OtherOp::Unknown)
            }
            "begin" => EventKind::OnceBegin { once: first? },
            "done" => EventKind::OnceDone { once: first? },
            "seen" => EventKind::OnceSeen { once: first? },
            "release" => EventKind::ReleaseObject { object: first? },
            "acquire" => EventKind::AcquireObject { object: first? },
            "blocked" => EventKind::Blocked { on: first? },
            "other" => EventKind::Other(OtherOp::Unknown),
            operation => {
                return Err(ParseError::UnknownOperation { statement: self.statement, operation: operation.to_owned() });
            }
        })
    }
}
