//! Whether the events of a source make an execution.
//!
//! Refused, with the place: locks released that are not held, taken while somebody else holds them, or taken again by their owner
//! (unless locks are said to be re-entrant: inner acquires and releases then become `Nothing`); threads that act before their
//! fork or after having been joined, that fork themselves or are forked twice; joins of threads that nobody knows, or that hold
//! locks or are inside regions; regions that end without having begun; names of threads that look as if they should match and
//! never do. Traces may begin with several threads that nobody forks, and a thread may be joined more than once.
//!
//! Leniently, what is refused becomes `Nothing`, so that events keep their numbers, and a notice says so.
//!
//! Cost: a comparison an access, a few table look-ups every other event. Memory: the locks and threads, not the events.

use crate::delegate_to;
use crate::error::{Place, TraceError};
use crate::event::{Event, Op, Space};
use crate::source::Source;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// What is ill-formed is left out, with a notice.
    pub lenient: bool,
    /// A thread may take a lock that it holds, and gives it back with the last of as many releases.
    pub reentrant: bool,
}

/// Notices that are kept; of more only the number.
const NOTICES: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Unknown,
    /// Acts, though nobody forked it.
    Root,
    Forked,
    Running,
    Joined,
}

#[derive(Clone, Debug)]
struct ThreadState {
    life: Life,
    /// Ever forked.
    forked: bool,
    /// Locks held, in the order of taking.
    held: Vec<u32>,
    regions: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct LockState {
    owner: Option<u16>,
    /// How often the owner took it.
    depth: u32,
    /// Threads that share it, as often as they took it.
    readers: Vec<u16>,
}

/// What is to happen with an event.
enum Judgement {
    Fine,
    /// An inner acquire or release.
    Inner,
    /// Cannot have happened.
    Impossible(String),
    /// Can, but is hardly meant.
    Suspicious(String),
}

pub struct Checked<S> {
    inner: S,
    options: CheckOptions,
    /// Events handed on before this block.
    before: u64,
    threads: Vec<ThreadState>,
    /// Of the locks that were seen.
    locks: Vec<LockState>,
    /// By a lock's number: 0, or one more than its place among these. A file can name a great number without having many locks.
    lock_places: Vec<u32>,
    /// The thread whose last event was fine: it may access.
    trusted: Option<u16>,
    /// Threads by the number in their name: whether that is all of the name, and whether it was seen first as one that acts.
    by_number: HashMap<Vec<u8>, (u32, bool)>,
    first_fork: Option<(u64, Option<Place>)>,
    notices: Vec<String>,
    suppressed: u64,
    ended: bool,
}

impl<S: Source> Checked<S> {
    pub fn new(inner: S, options: CheckOptions) -> Self {
        Self {
            inner,
            options,
            before: 0,
            threads: Vec::new(),
            locks: Vec::new(),
            lock_places: Vec::new(),
            trusted: None,
            by_number: HashMap::new(),
            first_fork: None,
            notices: Vec::new(),
            suppressed: 0,
            ended: false,
        }
    }

    fn thread(&mut self, number: u32) -> &mut ThreadState {
        let index = number as usize;
        if index >= self.threads.len() {
            let unknown = ThreadState { life: Life::Unknown, forked: false, held: Vec::new(), regions: Vec::new() };
            self.threads.resize(index + 1, unknown);
        }
        &mut self.threads[index]
    }

    fn name(&self, space: Space, number: u32) -> String {
        format!("{} {}", space.noun(), self.inner.names().get(space, number))
    }

    fn lock(&mut self, number: u32) -> &mut LockState {
        let index = number as usize;
        if index >= self.lock_places.len() {
            self.lock_places.resize(index + 1, 0);
        }
        let place = &mut self.lock_places[index];
        if *place == 0 {
            self.locks.push(LockState::default());
            *place = self.locks.len() as u32;
        }
        &mut self.locks[*place as usize - 1]
    }

    /// Two names of threads that differ by letters before the same number, one of which has none of these: `T12` and `12`. Asked
    /// when a thread is seen for the first time.
    fn mismatch(&mut self, number: u32, acts: bool) -> Option<String> {
        let name = self.inner.names().bytes(Space::Thread, number)?;
        let digits = &name[name.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()..];
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let bare = digits.len() == name.len();
        let Some(&(other, acted)) = self.by_number.get(digits) else {
            let key = digits.to_vec();
            self.by_number.insert(key, (number, acts));
            return None;
        };
        let other_name = self.inner.names().bytes(Space::Thread, other)?;
        if acted == acts || bare == (other_name.len() == digits.len()) {
            return None;
        }
        let (actor, target) = if acts { (number, other) } else { (other, number) };
        let names = self.inner.names();
        Some(format!(
            "thread {} acts and thread {} is forked or joined: the names never match, though they seem to mean the same thread; \
             --bare-threads makes them one",
            names.get(Space::Thread, actor),
            names.get(Space::Thread, target)
        ))
    }

    /// Whether the thread can act.
    fn act(&mut self, thread: u16) -> Judgement {
        let number = u32::from(thread);
        match self.thread(number).life {
            Life::Root | Life::Running => Judgement::Fine,
            Life::Forked => {
                self.thread(number).life = Life::Running;
                Judgement::Fine
            }
            Life::Unknown => {
                self.thread(number).life = Life::Root;
                self.mismatch(number, true).map_or(Judgement::Fine, Judgement::Suspicious)
            }
            Life::Joined => Judgement::Impossible(format!("{} acts after it was joined", self.name(Space::Thread, number))),
        }
    }

    fn fork(&mut self, event: &Event) -> Judgement {
        let child = event.target;
        let name = self.name(Space::Thread, child);
        if child == u32::from(event.thread) {
            return Judgement::Impossible(format!("{name} forks itself"));
        }
        let state = self.thread(child);
        if state.forked {
            return Judgement::Impossible(format!("{name} is forked a second time"));
        }
        match state.life {
            Life::Unknown => {
                state.forked = true;
                state.life = Life::Forked;
                self.mismatch(child, false).map_or(Judgement::Fine, Judgement::Suspicious)
            }
            Life::Root | Life::Running | Life::Forked => {
                Judgement::Impossible(format!("{name} is forked after it has already acted"))
            }
            Life::Joined => Judgement::Impossible(format!("{name} is forked after it was joined")),
        }
    }

    fn join(&mut self, event: &Event) -> Judgement {
        let child = event.target;
        let name = self.name(Space::Thread, child);
        if child == u32::from(event.thread) {
            return Judgement::Impossible(format!("{name} joins itself"));
        }
        let state = self.thread(child);
        if state.life == Life::Unknown {
            let mismatch = self.mismatch(child, false);
            return Judgement::Impossible(mismatch.unwrap_or(format!("{name} is joined, which was never forked and never acts")));
        }
        if let Some(&lock) = state.held.last() {
            let lock = self.name(Space::Lock, lock);
            return Judgement::Impossible(format!("{name} is joined while it holds {lock}: it has not finished"));
        }
        if let Some(&region) = state.regions.last() {
            let region = self.name(Space::Region, region);
            return Judgement::Impossible(format!("{name} is joined inside {region}: it has not finished"));
        }
        state.life = Life::Joined;
        Judgement::Fine
    }

    fn acquire(&mut self, event: &Event, shared: bool) -> Judgement {
        let (thread, lock) = (event.thread, event.target);
        let reentrant = self.options.reentrant;
        let state = self.lock(lock);
        match state.owner {
            Some(owner) if owner == thread && reentrant => {
                state.depth = state.depth.saturating_add(1);
                return Judgement::Inner;
            }
            Some(owner) => {
                let (name, holder) = (self.name(Space::Lock, lock), self.name(Space::Thread, owner.into()));
                let hint = "; --reentrant allows that";
                return Judgement::Impossible(if owner == thread {
                    format!("{holder} takes {name} again, which it holds{hint}")
                } else {
                    format!("{name} is taken while {holder} holds it")
                });
            }
            None => {}
        }
        if shared {
            state.readers.push(thread);
        } else {
            if let Some(&reader) = state.readers.first() {
                let (name, holder) = (self.name(Space::Lock, lock), self.name(Space::Thread, reader.into()));
                return Judgement::Impossible(format!("{name} is taken while {holder} shares it"));
            }
            (state.owner, state.depth) = (Some(thread), 1);
        }
        self.thread(thread.into()).held.push(lock);
        Judgement::Fine
    }

    fn release(&mut self, event: &Event, shared: bool) -> Judgement {
        let (thread, lock) = (event.thread, event.target);
        let reentrant = self.options.reentrant;
        let state = self.lock(lock);
        if shared && let Some(index) = state.readers.iter().rposition(|reader| *reader == thread) {
            state.readers.swap_remove(index);
        } else if state.owner == Some(thread) && (!shared || reentrant) {
            state.depth -= 1;
            if state.depth > 0 {
                return Judgement::Inner;
            }
            state.owner = None;
        } else {
            let owner = state.owner;
            let shares = state.readers.contains(&thread);
            let name = self.name(Space::Lock, lock);
            return Judgement::Impossible(match owner {
                Some(owner) if owner == thread => format!("{name} is released as if shared, and is held exclusively"),
                Some(owner) => format!("{name} is released, which {} holds", self.name(Space::Thread, owner.into())),
                None if shares => format!("{name} is released as if held exclusively, and is shared"),
                None => format!("{name} is released, which nobody holds"),
            });
        }
        let held = &mut self.thread(thread.into()).held;
        if let Some(index) = held.iter().rposition(|held| *held == lock) {
            held.remove(index);
        }
        Judgement::Fine
    }

    fn region(&mut self, event: &Event) -> Judgement {
        let region = event.target;
        let state = self.thread(event.thread.into());
        if event.op == Op::Begin {
            state.regions.push(region);
            return Judgement::Fine;
        }
        match state.regions.last().copied() {
            Some(open) if open == region => {
                state.regions.pop();
                Judgement::Fine
            }
            Some(open) => {
                let (open, ends) = (self.name(Space::Region, open), self.name(Space::Region, region));
                Judgement::Impossible(format!("{ends} ends while {open} is the innermost"))
            }
            None => Judgement::Impossible(format!("{} ends, which did not begin", self.name(Space::Region, region))),
        }
    }

    fn judge(&mut self, event: &Event) -> Judgement {
        self.trusted = None;
        let acts = self.act(event.thread);
        if !matches!(acts, Judgement::Fine) {
            return acts;
        }
        self.trusted = Some(event.thread);
        match event.op {
            Op::Acquire => self.acquire(event, false),
            Op::AcquireShared => self.acquire(event, true),
            Op::Release => self.release(event, false),
            Op::ReleaseShared => self.release(event, true),
            Op::Request | Op::RequestShared if self.options.reentrant && self.lock(event.target).owner == Some(event.thread) => {
                Judgement::Inner
            }
            Op::Fork => self.fork(event),
            Op::Join => self.join(event),
            Op::Begin | Op::End => self.region(event),
            _ => Judgement::Fine,
        }
    }

    fn notice(&mut self, error: &TraceError) {
        if self.notices.len() < NOTICES {
            self.notices.push(error.to_string());
        } else {
            self.suppressed += 1;
        }
    }

    /// Forks that are told of threads nobody ever sees, beside threads nobody forked.
    fn end(&mut self) -> Result<(), TraceError> {
        self.ended = true;
        self.notices.extend_from_slice(self.inner.notices());
        if self.suppressed > 0 {
            self.notices.push(format!("and {} more like these", self.suppressed));
        }
        let forked = self.threads.iter().filter(|state| state.forked).count();
        let silent = self.threads.iter().filter(|state| state.life == Life::Forked).count();
        let roots = self.threads.iter().filter(|state| state.life == Life::Root).count();
        let Some((event, place)) = self.first_fork.take() else { return Ok(()) };
        // A program whose only child did nothing is no reason for suspicion.
        if forked < 2 || silent < forked || roots < 2 {
            return Ok(());
        }
        let what = format!(
            "none of the {forked} threads forked from here on ever acts, and {roots} threads act that nobody forks: their names \
             never match"
        );
        let error = TraceError::IllFormed { event, place, what };
        if !self.options.lenient {
            return Err(refused(error));
        }
        self.notices.push(error.to_string());
        Ok(())
    }
}

/// With the way out.
fn refused(mut error: TraceError) -> TraceError {
    if let TraceError::IllFormed { what, .. } = &mut error {
        what.push_str("; --lenient reads on, without what cannot have happened");
    }
    error
}

impl<S: Source> Source for Checked<S> {
    fn next(&mut self, block: &mut Vec<Event>) -> Result<(), TraceError> {
        self.inner.next(block)?;
        if block.is_empty() && !self.ended {
            return self.end();
        }
        for (index, event) in block.iter_mut().enumerate() {
            if event.op.is_access() && self.trusted == Some(event.thread) {
                continue;
            }
            if event.op == Op::Fork && self.first_fork.is_none() {
                self.first_fork = Some((self.before + index as u64, self.inner.place(index)));
            }
            let (what, drop) = match self.judge(event) {
                Judgement::Fine => continue,
                Judgement::Inner => {
                    (event.op, event.target) = (Op::Nothing, 0);
                    continue;
                }
                Judgement::Impossible(what) => (what, true),
                Judgement::Suspicious(what) => (what, false),
            };
            let error = TraceError::IllFormed { event: self.before + index as u64, place: self.inner.place(index), what };
            if !self.options.lenient {
                return Err(refused(error));
            }
            self.notice(&error);
            if drop {
                (event.op, event.target) = (Op::Nothing, 0);
            }
        }
        self.before += block.len() as u64;
        Ok(())
    }

    delegate_to!(self => self.inner, but notices);

    /// Those of the source beneath are appended once that has ended.
    fn notices(&self) -> &[String] {
        &self.notices
    }
}
