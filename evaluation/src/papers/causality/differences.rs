//! Small traces of which one rests on the values that reads saw: is there a race on `data`, if each read keeps its writer, and if
//! it may see any write of the same value?

use super::claims::Claims;
use super::exact::values_of;
use crate::common::table::Table;
use rashomon_event::{AccessClass, Address, Deadline, EventIndex, EventKind, LockMode, ThreadId, Trace};
use rashomon_order::SharedMemory;
use rashomon_predict::index::Index;
use rashomon_predict::maximal::{Decision, Facts, Limits, decide};
use rashomon_testkit::{Contents, Rules, TraceBuilder, reachable_if};
use serde::Serialize;

pub const EXPLAINED: &str = "the explained traces equal brute force";

/// What a thread does with a variable or a lock, and the value that it reads or writes.
type Step = (u32, Does, &'static str, u64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    Write,
    Lock,
    Unlock,
}
use Does::{Lock, Read, Unlock, Write};

struct Case {
    why: &'static str,
    steps: &'static [Step],
}

/// The variable that is raced for.
const DATA: &str = "data";
const BYTES: u32 = 8;

const CASES: [Case; 7] = [
    Case {
        why: "another thread has set the flag to the same value: its write will do",
        steps: &[(0, Write, "flag", 1), (1, Write, DATA, 5), (1, Write, "flag", 1), (2, Read, "flag", 1), (2, Read, DATA, 5)],
    },
    Case {
        why: "the other thread has set the flag to another value: only one write will do",
        steps: &[(0, Write, "flag", 2), (1, Write, DATA, 5), (1, Write, "flag", 1), (2, Read, "flag", 1), (2, Read, DATA, 5)],
    },
    Case {
        why: "the flag is cleared again: who reads zero may have come before it was ever set",
        steps: &[
            (2, Read, "flag", 0),
            (0, Write, DATA, 5),
            (0, Write, "flag", 1),
            (0, Write, "flag", 0),
            (1, Read, "flag", 0),
            (1, Write, DATA, 6),
        ],
    },
    Case {
        why: "the same, but nobody has seen what was there before: it is not known to be zero",
        steps: &[(0, Write, DATA, 5), (0, Write, "flag", 1), (0, Write, "flag", 0), (1, Read, "flag", 0), (1, Write, DATA, 6)],
    },
    Case {
        why: "a count goes up and down in sections of a lock: who saw it at zero may have been first",
        steps: &[
            (2, Read, "count", 0),
            (0, Write, DATA, 5),
            (0, Lock, "lock", 0),
            (0, Write, "count", 1),
            (0, Write, "count", 0),
            (0, Unlock, "lock", 0),
            (1, Lock, "lock", 0),
            (1, Read, "count", 0),
            (1, Unlock, "lock", 0),
            (1, Write, DATA, 6),
        ],
    },
    Case {
        why: "one byte of the two values differs: that byte has to come from its writer",
        steps: &[(0, Write, "flag", 0x101), (1, Write, DATA, 5), (1, Write, "flag", 1), (2, Read, "flag", 1), (2, Read, DATA, 5)],
    },
    Case {
        why: "the same value twice, but the second read tells the two writes apart",
        steps: &[
            (0, Write, "flag", 1),
            (0, Write, "flag", 2),
            (1, Write, DATA, 5),
            (1, Write, "flag", 1),
            (1, Write, "turn", 3),
            (2, Read, "turn", 3),
            (2, Read, "flag", 1),
            (2, Read, DATA, 5),
        ],
    },
];

/// A trace and whether there is a race: each read with its writer, and by value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Difference {
    why: &'static str,
    by_writer: bool,
    by_value: bool,
}

pub fn run(claims: &mut Claims) -> Vec<Difference> {
    CASES.iter().map(|case| judge(case, claims)).collect()
}

impl Case {
    fn trace(&self) -> (Trace, Contents, [EventIndex; 2]) {
        let mut names: Vec<&str> = Vec::new();
        let mut builder = TraceBuilder::with_threads(3);
        let (mut contents, mut last) = (Contents::default(), [None; 3]);
        for &(thread, does, name, value) in self.steps {
            let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let (by, address) = (ThreadId(thread), Address(0x1000 + 0x100 * place as u64));
            let (lock, mode) = (address, LockMode::Exclusive);
            let event = match does {
                Read => builder.access(by, AccessClass::Read, address, BYTES),
                Write => builder.access(by, AccessClass::Write, address, BYTES),
                Lock => builder.push(by, EventKind::Acquire { lock, mode, may_wait: true }),
                Unlock => builder.push(by, EventKind::Release { lock, mode }),
            };
            match does {
                Read => _ = contents.read.insert(event, value.to_le_bytes().to_vec()),
                Write => _ = contents.written.insert(event, value.to_le_bytes().to_vec()),
                Lock | Unlock => {}
            }
            if name == DATA {
                last[thread as usize] = Some(event);
            }
        }
        let goals: Vec<EventIndex> = last.into_iter().flatten().collect();
        (builder.build(), contents, [goals[0], goals[1]])
    }
}

fn judge(case: &Case, claims: &mut Claims) -> Difference {
    let (trace, contents, goals) = case.trace();
    let (memory, values, nothing) = (SharedMemory::new(&trace), values_of(&contents), Contents::default());
    let index = Index::new(&trace, &memory);
    let pair = (goals[0].min(goals[1]), goals[0].max(goals[1]));
    let mut answer = |values, contents: &Contents| {
        let facts = Facts::new(&index, &memory, values);
        let found = matches!(decide(&facts, &goals, &Limits::NONE, Deadline::NEVER).0, Decision::Witness(_));
        let expected = reachable_if(&trace, Rules::CAUSAL, &|sight| contents.may_see(&trace, sight)).races.contains(&pair);
        claims.claim(EXPLAINED, found == expected, || case.why.to_owned());
        found
    };
    let (by_writer, by_value) = (answer(None, &nothing), answer(Some(&values), &contents));
    Difference { why: case.why, by_writer, by_value }
}

pub fn print(differences: &[Difference]) {
    println!("Whether there is a race, if each read keeps its writer and if any write of the same value will do\n");
    let mut table = Table::new(&["trace", "by writer", "by value"]);
    let word = |race: bool| if race { "race" } else { "no race" }.to_owned();
    for one in differences {
        table.row(vec![one.why.to_owned(), word(one.by_writer), word(one.by_value)]);
    }
    table.print();
    println!();
}
