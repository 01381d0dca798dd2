//! Scripts in a subset of CSP_M, from text.
//!
//! The subset: `channel a, b` without data; `NAME = process` without parameters; `STOP`, `SKIP`, `->`, `;`, `/\`, `[]`, `|~|`,
//! `[| set |]` and `[set || set]`, `|||`, `\ set`, binding from tight to loose in this order; before `->` binds renaming,
//! `P[[a <- b, c <- d]]`, and between `/\` and `[]` sliding choice, `[>`. Sets `{a, b}` and `{|a, b|}`; `assert P [T= Q`, with
//! `[F=`, with `[FD=`, `assert P :[deadlock free]` with nothing, `[F]` or `[FD]` behind it, `assert P :[divergence free]`;
//! comments.

pub use crate::lexer::Place;
use crate::lexer::{Word, words};
use crate::refine::Model;
use crate::script::{Assertion, Claim, Script};
use crate::term::{Event, Events, Name, Processes, Renaming, Term, TermId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: expected {expected}, found {found}", place.line, place.column)]
pub struct ParseError {
    pub place: Place,
    pub expected: String,
    pub found: String,
}

/// Parentheses and prefixes within each other.
const NESTING: usize = 200;
/// Operators within each other.
const HEIGHT: usize = 1000;

pub fn script(text: &str) -> Result<Script, ParseError> {
    let mut parser = Parser { words: words(text), next: 0, depth: 0, script: Script::default(), ..Parser::default() };
    parser.declare()?;
    parser.next = 0;
    while *parser.word() != Word::End {
        parser.declaration()?;
    }
    Ok(parser.script)
}

#[derive(Default)]
struct Parser {
    words: Vec<(Word, Place)>,
    next: usize,
    depth: usize,
    script: Script,
    events: FxHashMap<String, Event>,
    names: FxHashMap<String, Name>,
    heights: FxHashMap<TermId, usize>,
}

impl Parser {
    fn word(&self) -> &Word {
        &self.words[self.next].0
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.words.len() - 1);
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, ParseError> {
        let found = match self.word() {
            Word::Name(name) => format!("`{name}`"),
            Word::Sign(sign) => format!("`{sign}`"),
            Word::Unknown(letter) => format!("`{}`", letter.escape_debug()),
            Word::End => String::from("the end of the script"),
        };
        Err(ParseError { place: self.words[self.next].1, expected: expected.to_owned(), found })
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.word(), Word::Sign(found) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.is(sign);
        if there {
            self.advance();
        }
        there
    }

    fn need(&mut self, sign: &str) -> Result<(), ParseError> {
        if self.take(sign) { Ok(()) } else { self.wrong(&format!("`{sign}`")) }
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let there = matches!(self.word(), Word::Name(name) if name == keyword);
        if there {
            self.advance();
        }
        there
    }

    fn name(&mut self, expected: &str) -> Result<String, ParseError> {
        match self.word() {
            Word::Name(name) if !["channel", "assert", "STOP", "SKIP"].contains(&name.as_str()) => {
                let name = name.clone();
                self.advance();
                Ok(name)
            }
            _ => self.wrong(expected),
        }
    }

    /// Events and process names, which may be used before their lines.
    fn declare(&mut self) -> Result<(), ParseError> {
        let stop = self.script.processes.make(Term::Stop);
        while *self.word() != Word::End {
            if self.keyword("channel") {
                loop {
                    let before = self.next;
                    let name = self.name("the name of an event")?;
                    let event = Event(self.script.processes.events.len() as u32);
                    self.script.processes.events.push(name.clone());
                    if self.events.insert(name, event).is_some() {
                        self.next = before;
                        return self.wrong("an event that is not declared yet");
                    }
                    if !self.take(",") {
                        break;
                    }
                }
                continue;
            }
            if let (Word::Name(name), Some((Word::Sign("="), _))) = (self.word().clone(), self.words.get(self.next + 1)) {
                let number = Name(self.script.processes.definitions.len() as u32);
                self.script.processes.definitions.push((name.clone(), stop));
                if self.names.insert(name, number).is_some() {
                    return self.wrong("a process that is not defined yet");
                }
            }
            self.advance();
        }
        Ok(())
    }

    fn declaration(&mut self) -> Result<(), ParseError> {
        if self.keyword("channel") {
            self.name("the name of an event")?;
            while self.take(",") {
                self.name("the name of an event")?;
            }
            return Ok(());
        }
        let line = self.words[self.next].1.line;
        if self.keyword("assert") {
            let left = self.process()?;
            let claim = if self.take("[T=") {
                Claim::Refines(Model::Traces, left, self.process()?)
            } else if self.take("[F=") {
                Claim::Refines(Model::StableFailures, left, self.process()?)
            } else if self.take("[FD=") {
                Claim::Refines(Model::FailuresDivergences, left, self.process()?)
            } else if self.take(":[") {
                self.property(left)?
            } else {
                return self.wrong("`[T=`, `[F=`, `[FD=`, `:[deadlock free]` or `:[divergence free]`");
            };
            self.script.assertions.push(Assertion { line, claim });
            return Ok(());
        }
        let name = self.name("`channel`, `assert` or a definition `NAME = process`")?;
        self.need("=")?;
        let body = self.process()?;
        let number = self.names[&name];
        self.script.processes.definitions[number.0 as usize].1 = body;
        Ok(())
    }

    /// Behind `:[`.
    fn property(&mut self, process: TermId) -> Result<Claim, ParseError> {
        let deadlock = self.keyword("deadlock");
        if !(deadlock || self.keyword("divergence")) || !self.keyword("free") {
            return self.wrong("`deadlock free` or `divergence free`");
        }
        let mut claim = if deadlock { Claim::DeadlockFree(process) } else { Claim::DivergenceFree(process) };
        if !self.take("[") {
            self.need("]")?;
            return Ok(claim);
        }
        if self.keyword("FD") {
            claim = if deadlock { Claim::Free(process) } else { claim };
        } else if !deadlock || !self.keyword("F") {
            return self.wrong(if deadlock { "`F` or `FD`" } else { "`FD`" });
        }
        if !self.take("]]") {
            self.need("]")?;
            self.need("]")?;
        }
        Ok(claim)
    }

    fn make(&mut self, term: Term) -> Result<TermId, ParseError> {
        let of = |id: TermId| self.heights.get(&id).map_or(0, |height| height + 1);
        let height = match term {
            Term::Stop | Term::Skip | Term::Done | Term::Call(_) => 0,
            Term::Prefix(_, inner) | Term::Hide(inner, _) | Term::Rename(inner, _) => of(inner),
            Term::External(one, other)
            | Term::Internal(one, other)
            | Term::Parallel(one, _, other)
            | Term::Interrupt(one, other)
            | Term::Sequence(one, other) => of(one).max(of(other)),
        };
        if height > HEIGHT {
            return self.wrong(&format!("a process of at most {HEIGHT} operators within each other"));
        }
        let id = self.script.processes.make(term);
        self.heights.insert(id, height);
        Ok(id)
    }

    /// The loosest operator, `\`.
    fn process(&mut self) -> Result<TermId, ParseError> {
        let mut process = self.binary(0)?;
        while self.take("\\") {
            let hidden = self.set()?;
            process = self.make(Term::Hide(process, hidden))?;
        }
        Ok(process)
    }

    fn binary(&mut self, level: usize) -> Result<TermId, ParseError> {
        const LOOSE_FIRST: [&str; 7] = ["|||", "[|", "|~|", "[]", "[>", "/\\", ";"];
        let Some(&sign) = LOOSE_FIRST.get(level) else { return self.prefixed() };
        let mut left = self.binary(level + 1)?;
        loop {
            if sign == "[|" && self.take("[") {
                left = self.alphabetised(left, level)?;
                continue;
            }
            if !self.take(sign) {
                return Ok(left);
            }
            let mut shared = Events::default();
            if sign == "[|" {
                shared = self.set()?;
                self.need("|]")?;
            }
            let right = self.binary(level + 1)?;
            let term = match sign {
                "|~|" => Term::Internal(left, right),
                "[]" => Term::External(left, right),
                // What may go away by itself.
                "[>" => {
                    let stop = self.make(Term::Stop)?;
                    let left = self.make(Term::Internal(left, stop))?;
                    Term::External(left, right)
                }
                "/\\" => Term::Interrupt(left, right),
                ";" => Term::Sequence(left, right),
                _ => Term::Parallel(left, shared, right),
            };
            left = self.make(term)?;
        }
    }

    /// Behind `P [`: each side does events of its own set only, and those of both sets together.
    fn alphabetised(&mut self, left: TermId, level: usize) -> Result<TermId, ParseError> {
        let of_left = self.set()?;
        self.need("||")?;
        let of_right = self.set()?;
        self.need("]")?;
        let right = self.binary(level + 1)?;
        let within = |parser: &mut Self, process, set: &Events| {
            let all = (0..parser.script.processes.events.len() as u32).map(Event);
            let others: Events = Arc::new(all.filter(|event| !set.contains(event)).collect());
            let nobody = parser.make(Term::Done)?;
            parser.make(Term::Parallel(process, others, nobody))
        };
        let (left, right) = (within(self, left, &of_left)?, within(self, right, &of_right)?);
        let shared = Arc::new(&*of_left & &*of_right);
        self.make(Term::Parallel(left, shared, right))
    }

    /// Behind `P[[`.
    fn renamed(&mut self, process: TermId) -> Result<TermId, ParseError> {
        let mut renaming: BTreeMap<Event, BTreeSet<Event>> = BTreeMap::new();
        loop {
            let from = self.event()?;
            self.need("<-")?;
            let to = self.event()?;
            renaming.entry(from).or_default().insert(to);
            if self.take("]]") {
                return self.make(Term::Rename(process, Renaming(Arc::new(renaming))));
            }
            self.need(",")?;
        }
    }

    fn event(&mut self) -> Result<Event, ParseError> {
        let Word::Name(name) = self.word() else { return self.wrong("an event") };
        let Some(&event) = self.events.get(name) else { return self.wrong("a declared event") };
        self.advance();
        Ok(event)
    }

    fn prefixed(&mut self) -> Result<TermId, ParseError> {
        self.depth += 1;
        if self.depth > NESTING {
            return self.wrong(&format!("at most {NESTING} processes within each other"));
        }
        let mut process = self.simple()?;
        while self.take("[[") {
            process = self.renamed(process)?;
        }
        self.depth -= 1;
        Ok(process)
    }

    fn simple(&mut self) -> Result<TermId, ParseError> {
        if self.take("(") {
            let process = self.process()?;
            self.need(")")?;
            return Ok(process);
        }
        if self.keyword("STOP") {
            return self.make(Term::Stop);
        }
        if self.keyword("SKIP") {
            return self.make(Term::Skip);
        }
        let before = self.next;
        let name = self.name("a process")?;
        if self.take("->") {
            let Some(&event) = self.events.get(&name) else {
                self.next = before;
                return self.wrong("a declared event");
            };
            let next = self.prefixed()?;
            return self.make(Term::Prefix(event, next));
        }
        if let Some(&name) = self.names.get(&name) {
            return self.make(Term::Call(name));
        }
        if self.events.contains_key(&name) {
            return self.wrong("`->` after an event");
        }
        self.next = before;
        self.wrong("a declared event or a defined process")
    }

    fn set(&mut self) -> Result<Events, ParseError> {
        let close = if self.take("{|") {
            "|}"
        } else if self.take("{") {
            "}"
        } else {
            return self.wrong("a set, `{` or `{|`");
        };
        let mut events = BTreeSet::new();
        while !self.take(close) {
            if !events.is_empty() && !self.take(",") {
                return self.wrong(&format!("`,` or `{close}`"));
            }
            events.insert(self.event()?);
        }
        Ok(Arc::new(events))
    }
}

/// A term in CSP_M, with all parentheses.
pub fn written(processes: &Processes, id: TermId) -> String {
    let of = |id: TermId| written(processes, id);
    let set = |events: &Events| {
        let names: Vec<_> = events.iter().map(|event| processes.events[event.0 as usize].as_str()).collect();
        format!("{{{}}}", names.join(", "))
    };
    match processes.term(id) {
        Term::Stop => String::from("STOP"),
        Term::Skip | Term::Done => String::from("SKIP"),
        Term::Prefix(event, next) => format!("({} -> {})", processes.events[event.0 as usize], of(*next)),
        Term::External(one, other) => format!("({} [] {})", of(*one), of(*other)),
        Term::Internal(one, other) => format!("({} |~| {})", of(*one), of(*other)),
        Term::Parallel(one, shared, other) if shared.is_empty() => format!("({} ||| {})", of(*one), of(*other)),
        Term::Parallel(one, shared, other) => format!("({} [| {} |] {})", of(*one), set(shared), of(*other)),
        Term::Hide(inner, hidden) => format!("({} \\ {})", of(*inner), set(hidden)),
        Term::Rename(inner, renaming) => {
            let name = |event: &Event| processes.events[event.0 as usize].as_str();
            let pairs = renaming.0.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
            let pairs: Vec<_> = pairs.map(|(from, to)| format!("{} <- {}", name(from), name(to))).collect();
            format!("{}[[{}]]", of(*inner), pairs.join(", "))
        }
        Term::Interrupt(inner, by) => format!("({} /\\ {})", of(*inner), of(*by)),
        Term::Sequence(first, then) => format!("({} ; {})", of(*first), of(*then)),
        Term::Call(name) => processes.definitions[name.0 as usize].0.clone(),
    }
}
