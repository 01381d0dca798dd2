//! The model as terms: THREAD, MUTEX, FORK, JOIN, SIGNAL, BARRIER and their kin, RACE and LIVE (Figs. 1-3).
//!
//! Threads run in parallel without sharing events; each synchronisation object is a process that takes part in the events that
//! name it. All of them allow `done`, which the threads do together after their last events, and terminate then. One script
//! holds one model per shared object, with the accesses to that object alone, and one without accesses, for deadlocks.

mod names;
mod synchronisation;

use crate::facts::{Atomics, Facts};
use crate::objects::Objects;
use names::Names;
use rashomon_csp::refine::Model;
use rashomon_csp::script::{Assertion, Claim, Script};
use rashomon_csp::term::{Event, Events, Name, Processes, Term, TermId};
use rashomon_event::{Access, EventIndex, EventKind, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether two threads can touch the shared object of that number one right after the other, so that they conflict.
    Race(usize),
    Deadlock,
}

/// How an assertion is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As printed: what leads to an error is hidden.
    Hidden,
    /// With the same verdict, and a counterexample that is the schedule.
    Schedule,
}

/// Events after which a definition goes on in another one: readers of scripts bound how deep processes are nested.
const PIECE: usize = 50;

/// A script with one assertion per question and form, in that order.
pub fn script(trace: &Trace, objects: &Objects, questions: &[About], forms: &[Form]) -> Script {
    let facts = Facts::new(trace, Atomics::Free);
    let mut builder = Builder {
        names: Names::new(trace, &facts),
        trace,
        facts,
        objects,
        processes: Processes::default(),
        events: FxHashMap::default(),
    };
    let mut assertions = Vec::new();
    for &about in questions {
        for claim in builder.question(about, forms) {
            assertions.push(Assertion { line: 0, negated: false, claim, text: String::new() });
        }
    }
    Script { processes: builder.processes, assertions }
}

/// What a process takes part in.
type Alphabet = BTreeSet<Event>;

struct Builder<'t> {
    trace: &'t Trace,
    facts: Facts,
    objects: &'t Objects,
    names: Names,
    processes: Processes,
    events: FxHashMap<String, Event>,
}

/// An access to the object that a model is about, as an event.
#[derive(Clone, Copy)]
struct Touch {
    event: Event,
    thread: usize,
    access: Access,
}

impl Builder<'_> {
    fn event(&mut self, name: String) -> Event {
        let next = Event(self.processes.events.len() as u32);
        *self.events.entry(name).or_insert_with_key(|name| {
            self.processes.events.push(name.clone());
            next
        })
    }

    /// A name whose process follows.
    fn declare(&mut self, name: String) -> Name {
        let stop = self.processes.make(Term::Stop);
        self.processes.definitions.push((name, stop));
        Name(self.processes.definitions.len() as u32 - 1)
    }

    fn define(&mut self, name: Name, body: TermId) {
        self.processes.definitions[name.0 as usize].1 = body;
    }

    fn call(&mut self, name: Name) -> TermId {
        self.processes.make(Term::Call(name))
    }

    fn prefix(&mut self, event: Event, next: TermId) -> TermId {
        self.processes.make(Term::Prefix(event, next))
    }

    fn skip(&mut self) -> TermId {
        self.processes.make(Term::Skip)
    }

    /// Balanced, for operators nest; `None` of nothing.
    fn combine(&mut self, mut all: Vec<TermId>, with: impl Fn(TermId, TermId) -> Term) -> Option<TermId> {
        while all.len() > 1 {
            let pairs: Vec<Vec<TermId>> = all.chunks(2).map(<[TermId]>::to_vec).collect();
            all = pairs
                .into_iter()
                .map(|pair| if let [one, other] = pair[..] { self.processes.make(with(one, other)) } else { pair[0] })
                .collect();
        }
        all.pop()
    }

    fn choice(&mut self, all: Vec<TermId>) -> TermId {
        let stop = self.processes.make(Term::Stop);
        self.combine(all, Term::External).unwrap_or(stop)
    }

    /// Does the events in this order, then the process.
    fn sequence(&mut self, name: &str, events: &[Event], then: TermId) -> TermId {
        let mut next = then;
        for (number, piece) in events.chunks(PIECE).enumerate().rev() {
            for &event in piece.iter().rev() {
                next = self.prefix(event, next);
            }
            let name = self.declare(if number == 0 { name.to_owned() } else { format!("{name}_{number}") });
            self.define(name, next);
            next = self.call(name);
        }
        next
    }

    fn question(&mut self, about: About, forms: &[Form]) -> Vec<Claim> {
        let suffix = match about {
            About::Race(object) => format!("_v{}", object + 1),
            About::Deadlock => String::new(),
        };
        let (threads, touches) = self.threads(about, &suffix);
        let mut alphabet: Alphabet = threads.iter().flat_map(|(_, events)| events.iter().copied()).collect();
        let done = self.event(String::from("done"));
        alphabet.insert(done);
        let skip = self.skip();
        let nothing = Events::default();
        let threads = threads.into_iter().map(|(thread, _)| thread).collect();
        let together = self.combine(threads, |one, other| Term::Parallel(one, nothing.clone(), other)).unwrap_or(skip);
        let end = self.prefix(done, skip);
        let mut program = self.processes.make(Term::Sequence(together, end));
        if let Some((objects, shared)) = self.synchronisation(&alphabet, done, &suffix) {
            program = self.processes.make(Term::Parallel(program, shared.into(), objects));
        }
        let name = self.declare(format!("PROGRAM{suffix}"));
        self.define(name, program);
        let program = self.call(name);
        match about {
            About::Race(_) => self.race(program, &alphabet, &touches, &suffix, forms),
            About::Deadlock => self.deadlock(program, alphabet, forms),
        }
    }

    /// Per thread, its process and its events; and the accesses among them.
    fn threads(&mut self, about: About, suffix: &str) -> (Vec<(TermId, Vec<Event>)>, Vec<Touch>) {
        let mut threads = Vec::new();
        let mut touches: Vec<Touch> = Vec::new();
        for thread in 0..self.facts.threads.len() {
            let mut events = Vec::new();
            if self.facts.fork[thread].is_some() {
                let start = self.names.start(thread);
                events.push(self.event(start));
            }
            // Accesses since the last synchronisation: of equal ones, one is enough.
            let mut segment: Vec<Event> = Vec::new();
            for at in 0..self.facts.threads[thread].len() {
                let index = self.facts.threads[thread][at];
                if let Some(name) = self.names.of(self.trace, &self.facts, index) {
                    segment.clear();
                    events.push(self.event(name));
                } else if let (Some(access), About::Race(object)) = (self.trace.access(index), about)
                    && self.objects.touched(&access).any(|touched| touched == object)
                {
                    let name = self.names.access(thread, object, &access);
                    let event = self.event(name);
                    if !segment.contains(&event) {
                        segment.push(event);
                        events.push(event);
                    }
                    if !touches.iter().any(|touch| touch.event == event) {
                        touches.push(Touch { event, thread, access });
                    }
                }
            }
            if self.names.is_joined(thread) {
                let end = self.names.end(thread);
                events.push(self.event(end));
            }
            let skip = self.skip();
            let process = self.sequence(&format!("THREAD_{}{suffix}", thread + 1), &events, skip);
            threads.push((process, events));
        }
        (threads, touches)
    }

    fn race(&mut self, program: TermId, alphabet: &Alphabet, touches: &[Touch], suffix: &str, forms: &[Form]) -> Vec<Claim> {
        let race = self.event(String::from("race"));
        let skip = self.skip();
        let found = self.prefix(race, skip);
        let mut firsts = Vec::new();
        for one in touches {
            let conflicting = touches.iter().filter(|other| other.thread != one.thread && other.access.conflicts(&one.access));
            let seconds = conflicting.map(|other| self.processes.make(Term::Prefix(other.event, found))).collect();
            let seconds = self.choice(seconds);
            firsts.push(self.prefix(one.event, seconds));
        }
        let error = self.declare(format!("RACE_ERR{suffix}"));
        let body = self.choice(firsts);
        self.define(error, body);
        let pattern = self.declare(format!("RACE{suffix}"));
        let again = self.call(pattern);
        let any = alphabet.iter().map(|&event| self.processes.make(Term::Prefix(event, again))).collect();
        let (error, any) = (self.call(error), self.choice(any));
        let body = self.processes.make(Term::Interrupt(error, any));
        self.define(pattern, body);
        let all = Events::from(alphabet.clone());
        let name = self.declare(format!("SYSTEM{suffix}"));
        let body = self.processes.make(Term::Parallel(program, all.clone(), again));
        self.define(name, body);
        let system = self.call(name);
        let mut claims = Vec::new();
        for form in forms {
            claims.push(match form {
                Form::Hidden => {
                    let stop = self.processes.make(Term::Stop);
                    let hidden = self.processes.make(Term::Hide(system, all.clone()));
                    Claim::Refines(Model::Traces, stop, hidden)
                }
                Form::Schedule => {
                    let sound = self.declare(format!("NO_RACE{suffix}"));
                    let again = self.call(sound);
                    let any = alphabet.iter().map(|&event| self.processes.make(Term::Prefix(event, again))).collect();
                    let body = self.choice(any);
                    self.define(sound, body);
                    Claim::Refines(Model::Traces, again, system)
                }
            });
        }
        claims
    }

    fn deadlock(&mut self, program: TermId, alphabet: Alphabet, forms: &[Form]) -> Vec<Claim> {
        let mut claims = Vec::new();
        for form in forms {
            claims.push(match form {
                Form::Hidden => {
                    let live = self.event(String::from("live"));
                    let name = self.declare(String::from("LIVE"));
                    let again = self.call(name);
                    let body = self.prefix(live, again);
                    self.define(name, body);
                    let hidden = self.processes.make(Term::Hide(program, alphabet.clone().into()));
                    let then = self.processes.make(Term::Sequence(hidden, again));
                    Claim::Refines(Model::StableFailures, again, then)
                }
                Form::Schedule => Claim::DeadlockFree(program),
            });
        }
        claims
    }
}

/// Whether the event has a process of its own to take part in, or is an access at most.
fn takes_part(kind: EventKind) -> bool {
    crate::model::synchronises(kind)
        || matches!(
            kind,
            EventKind::Signal { .. }
                | EventKind::OnceDone { .. }
                | EventKind::OnceSeen { .. }
                | EventKind::ReleaseObject { .. }
                | EventKind::AcquireObject { .. }
        )
}

/// The event that a process name or an edge is called after.
fn numbered(index: EventIndex) -> String {
    format!("n{}", index.0)
}

/// What the model of a trace calls its events. The trace is read once, and not for each order.
pub struct Called<'t> {
    trace: &'t Trace,
    facts: Facts,
    names: Names,
}

impl<'t> Called<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let facts = Facts::new(trace, Atomics::Kept);
        let names = Names::new(trace, &facts);
        Self { trace, facts, names }
    }

    /// Of events that synchronise.
    pub fn names(&mut self, events: &[EventIndex]) -> Vec<String> {
        let (trace, facts, names) = (self.trace, &self.facts, &mut self.names);
        let unnamed = |event: EventIndex| format!("try_t{}_{}", trace.event(event).thread.0 + 1, numbered(event));
        events.iter().map(|&event| names.of(trace, facts, event).unwrap_or_else(|| unnamed(event))).collect()
    }
}
