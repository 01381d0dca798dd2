//! The steps of a trace: its events that take part in synchronisation, what each needs and does, with dense numbers.

use crate::facts::{Atomics, Facts};
use crate::loops::{Loop, is_guarded};
use rashomon_event::{Address, EventIndex, EventKind, LockMode, Trace};
use rustc_hash::FxHashMap;

/// What a step does to what all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    None,
    Acquire {
        lock: u32,
        mode: LockMode,
        wait: Option<u32>,
    },
    Release {
        lock: u32,
        mode: LockMode,
    },
    Post(u32),
    Take(u32),
    /// Of waits, by their numbers.
    Wakes {
        first: u32,
        count: u32,
    },
    /// What the recording ended with: a wait for something else than a lock. `for_thread`: that another thread ends.
    Never {
        for_thread: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub event: EventIndex,
    pub effect: Effect,
    /// Where its needs begin; those of the next step begin where they end.
    needs: u32,
}

/// A thread must have done that many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    pub thread: u32,
    pub steps: u32,
}

/// A wait that a signal ended, by steps of its own thread and of the signalling one.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    pub thread: u32,
    /// `None`: the trace does not have it.
    pub begin: Option<u32>,
    pub end: u32,
    pub signal: Need,
}

/// The steps of one thread that take one resource.
#[derive(Clone, Debug)]
pub struct Use {
    pub thread: u32,
    pub all: Vec<u32>,
    /// Of a lock, those that exclude everybody.
    pub exclusive: Vec<u32>,
}

/// What one trace means, gathered once for all goals.
pub struct Model<'t> {
    pub trace: &'t Trace,
    pub facts: Facts,
    pub steps: Vec<Vec<Step>>,
    needs: Vec<Vec<Need>>,
    pub waits: Vec<Waited>,
    /// Numbers of waits, by the steps that wake them.
    pub woken: Vec<u32>,
    /// Per thread, the steps that begin waits which signals ended, with the numbers of these.
    begins: Vec<Vec<(u32, u32)>>,
    pub locks: Vec<Vec<Use>>,
    pub takers: Vec<Vec<Use>>,
    pub posters: Vec<Vec<Use>>,
    pub counts: Vec<u32>,
    /// Per thread and number of steps, the first place from there on where it holds no lock.
    lock_free: Vec<Vec<u32>>,
    /// Per thread, what its first event needs.
    pub born: Vec<Option<Need>>,
    wait_of: FxHashMap<EventIndex, u32>,
}

impl<'t> Model<'t> {
    pub fn new(trace: &'t Trace, atomics: Atomics) -> Self {
        Self::of(trace, Facts::new(trace, atomics), false)
    }

    /// One in which each access is a step: to measure what it saves that a segment's are not.
    pub fn with_accesses(trace: &'t Trace, atomics: Atomics) -> Self {
        Self::of(trace, Facts::new(trace, atomics), true)
    }

    /// One whose orders respect these wait loops.
    pub fn respecting(trace: &'t Trace, atomics: Atomics, loops: &[Loop]) -> Self {
        let mut facts = Facts::new(trace, atomics);
        facts.edges.extend(loops.iter().map(|one| (one.satisfied, one.entered)));
        Self::of(trace, facts, false)
    }

    /// One with what threads waited for when the recording ended, too: a lock that was not to be had is a step like others, and
    /// what else was awaited never comes. A wait whose predicate the signalling thread made true misses no signal: who comes
    /// later does not wait.
    pub fn to_the_end(trace: &'t Trace, atomics: Atomics, loops: &[Loop]) -> Self {
        let mut facts = Facts::new(trace, atomics);
        facts.edges.extend(loops.iter().map(|one| (one.satisfied, one.entered)));
        facts.keep_unanswered(trace);
        for at in 0..facts.waits.len() {
            if is_guarded(trace, &facts, &facts.waits[at]) {
                facts.waits[at].begin = None;
            }
        }
        Self::of(trace, facts, false)
    }

    fn of(trace: &'t Trace, facts: Facts, accesses: bool) -> Self {
        let takes_part = takes_part(trace, &facts, accesses);
        let count = facts.threads.len();
        let mut number = vec![u32::MAX; trace.events.len()];
        let mut steps: Vec<Vec<Step>> = vec![Vec::new(); count];
        for event in trace.indices().filter(|event| takes_part[event.index()]) {
            let own = &mut steps[trace.event(event).thread.index()];
            number[event.index()] = own.len() as u32;
            own.push(Step { event, effect: Effect::None, needs: 0 });
        }
        let need = |event: EventIndex| Need { thread: trace.event(event).thread.0, steps: number[event.index()] + 1 };
        let waited = |wait: &crate::facts::Wait| Waited {
            thread: trace.event(wait.end).thread.0,
            begin: wait.begin.map(|begin| number[begin.index()]),
            end: number[wait.end.index()],
            signal: need(wait.signal),
        };
        let mut model = Self {
            trace,
            steps,
            needs: vec![Vec::new(); count],
            waits: facts.waits.iter().map(waited).collect(),
            woken: Vec::new(),
            begins: vec![Vec::new(); count],
            locks: Vec::new(),
            takers: Vec::new(),
            posters: Vec::new(),
            counts: Vec::new(),
            lock_free: Vec::new(),
            born: facts.fork.iter().map(|fork| fork.map(need)).collect(),
            wait_of: facts.waits.iter().enumerate().map(|(wait, known)| (known.end, wait as u32)).collect(),
            facts,
        };
        for (number, wait) in (0..).zip(&model.waits) {
            model.begins[wait.thread as usize].extend(wait.begin.map(|begin| (begin, number)));
        }
        model.begins.iter_mut().for_each(|begins| begins.sort_unstable());
        let mut wakes: FxHashMap<EventIndex, Vec<u32>> = FxHashMap::default();
        for (wait, known) in model.facts.waits.iter().enumerate() {
            wakes.entry(known.signal).or_default().push(wait as u32);
        }
        let mut sources: FxHashMap<EventIndex, Vec<EventIndex>> = FxHashMap::default();
        for &(before, after) in &model.facts.edges {
            sources.entry(after).or_default().push(before);
        }
        let mut numbers = Numbers::default();
        for thread in 0..count {
            for place in 0..model.steps[thread].len() {
                let event = model.steps[thread][place].event;
                model.steps[thread][place].needs = model.needs[thread].len() as u32;
                let before = model.needed(event, sources.get(&event));
                model.needs[thread].extend(before.into_iter().map(need).filter(|need| need.thread as usize != thread));
                let effect = model.effect(event, &mut numbers, wakes.get(&event));
                model.steps[thread][place].effect = effect;
                model.note_use(thread as u32, place as u32, effect);
            }
        }
        model.lock_free = model.steps.iter().map(|steps| lock_free(steps)).collect();
        model
    }

    /// What calls into unseen code may have ordered before an event.
    pub fn kept_at(&self, event: EventIndex) -> impl Iterator<Item = Need> + '_ {
        let step = |before| Need { thread: self.trace.event(before).thread.0, steps: self.steps_before(before) + 1 };
        self.trace.kept_before(event).map(step)
    }

    /// The events that have to come before one.
    fn needed(&self, event: EventIndex, sources: Option<&Vec<EventIndex>>) -> Vec<EventIndex> {
        let (thread, at) = self.facts.place(self.trace, event);
        let mut needed: Vec<EventIndex> = sources.cloned().unwrap_or_default();
        if at == 0 {
            needed.extend(self.facts.fork[thread]);
        }
        match self.trace.kind(event) {
            EventKind::Join { child, .. } => {
                needed.extend(self.facts.threads.get(child.index()).and_then(|events| events.last()));
                needed.extend(self.facts.fork.get(child.index()).copied().flatten());
            }
            EventKind::BarrierExit { barrier, generation } => {
                needed.extend(self.facts.barriers.get(&(barrier, generation)).into_iter().flat_map(|barrier| &barrier.enters));
            }
            _ => {}
        }
        needed.extend(self.wait_of.get(&event).map(|&wait| self.facts.waits[wait as usize].signal));
        needed
    }

    fn effect(&mut self, event: EventIndex, numbers: &mut Numbers, wakes: Option<&Vec<u32>>) -> Effect {
        if let Some(waits) = wakes {
            let first = self.woken.len() as u32;
            self.woken.extend(waits);
            return Effect::Wakes { first, count: waits.len() as u32 };
        }
        let mode = LockMode::Exclusive;
        match self.trace.kind(event) {
            EventKind::Acquire { lock, mode, .. } => Effect::Acquire { lock: numbers.lock(lock), mode, wait: None },
            EventKind::WaitEnd { mutex, .. } => {
                Effect::Acquire { lock: numbers.lock(mutex), mode, wait: self.wait_of.get(&event).copied() }
            }
            _ if self.facts.idle.contains(&event) => Effect::None,
            EventKind::Request { lock, mode } if self.facts.unanswered.contains(&event) => {
                Effect::Acquire { lock: numbers.lock(lock), mode, wait: None }
            }
            EventKind::Blocked { on } if self.facts.unanswered.contains(&event) => {
                Effect::Never { for_thread: on.0 < self.facts.threads.len() as u64 }
            }
            EventKind::Release { lock, mode } => Effect::Release { lock: numbers.lock(lock), mode },
            EventKind::WaitBegin { mutex, .. } => Effect::Release { lock: numbers.lock(mutex), mode },
            EventKind::Post { semaphore } => Effect::Post(self.semaphore(semaphore, numbers)),
            EventKind::Take { semaphore } => Effect::Take(self.semaphore(semaphore, numbers)),
            _ => Effect::None,
        }
    }

    fn semaphore(&mut self, semaphore: Address, numbers: &mut Numbers) -> u32 {
        let next = numbers.semaphores.len() as u32;
        let number = *numbers.semaphores.entry(semaphore).or_insert(next);
        if number == next {
            self.counts.push(self.facts.counts.get(&semaphore).copied().unwrap_or(0));
        }
        number
    }

    fn note_use(&mut self, thread: u32, step: u32, effect: Effect) {
        let (uses, number, exclusive) = match effect {
            Effect::Acquire { lock, mode, .. } => (&mut self.locks, lock, mode == LockMode::Exclusive),
            Effect::Take(semaphore) => (&mut self.takers, semaphore, true),
            Effect::Post(semaphore) => (&mut self.posters, semaphore, false),
            _ => return,
        };
        if uses.len() <= number as usize {
            uses.resize(number as usize + 1, Vec::new());
        }
        let uses = &mut uses[number as usize];
        if uses.last().is_none_or(|last| last.thread != thread) {
            uses.push(Use { thread, all: Vec::new(), exclusive: Vec::new() });
        }
        if let Some(last) = uses.last_mut() {
            last.all.push(step);
            if exclusive {
                last.exclusive.push(step);
            }
        }
    }

    pub fn needs(&self, thread: usize, step: u32) -> &[Need] {
        let from = self.steps[thread][step as usize].needs as usize;
        let to = self.steps[thread].get(step as usize + 1).map_or(self.needs[thread].len(), |next| next.needs as usize);
        &self.needs[thread][from..to]
    }

    /// The first number of steps, at least that many, after which the thread holds no lock; all of them if there is none.
    pub fn without_locks(&self, thread: usize, steps: u32) -> u32 {
        self.lock_free[thread].get(steps as usize).copied().unwrap_or(steps)
    }

    /// How many steps of its thread come before an event.
    pub fn steps_before(&self, event: EventIndex) -> u32 {
        let thread = self.trace.event(event).thread.index();
        self.steps[thread].partition_point(|step| step.event < event) as u32
    }

    /// The wait that a step begins, if a signal ended it.
    pub fn begun_by(&self, thread: usize, step: u32) -> Option<u32> {
        let begins = &self.begins[thread];
        let place = begins.partition_point(|&(begin, _)| begin < step);
        begins.get(place).filter(|known| known.0 == step).map(|known| known.1)
    }

    /// The wait that ends with this event by a signal.
    pub fn wait_of(&self, event: EventIndex) -> Option<u32> {
        self.wait_of.get(&event).copied()
    }
}

#[derive(Default)]
struct Numbers {
    locks: FxHashMap<Address, u32>,
    semaphores: FxHashMap<Address, u32>,
}

impl Numbers {
    fn lock(&mut self, lock: Address) -> u32 {
        let next = self.locks.len() as u32;
        *self.locks.entry(lock).or_insert(next)
    }
}

fn lock_free(steps: &[Step]) -> Vec<u32> {
    let mut held = 0_u32;
    let mut free = vec![true];
    for step in steps {
        match step.effect {
            Effect::Acquire { .. } => held += 1,
            Effect::Release { .. } => held = held.saturating_sub(1),
            _ => {}
        }
        free.push(held == 0);
    }
    let mut next = steps.len() as u32;
    let mut places: Vec<u32> = (0..=steps.len())
        .rev()
        .map(|place| {
            if free[place] {
                next = place as u32;
            }
            next
        })
        .collect();
    places.reverse();
    places
}

/// Per event: whether it does something, or something needs it; with accesses, whether it is one as well.
fn takes_part(trace: &Trace, facts: &Facts, accesses: bool) -> Vec<bool> {
    let counts = |event: rashomon_event::Event| synchronises(event.kind) || accesses && event.access().is_some();
    let mut takes_part: Vec<bool> = trace.events.iter().map(counts).collect();
    let ends = facts.threads.iter().flat_map(|events| [events.first(), events.last()]).flatten();
    let instances = facts.waits.iter().map(|wait| &wait.signal);
    let edges = facts.edges.iter().flat_map(|(before, after)| [before, after]);
    for event in ends.chain(instances).chain(edges).chain(&facts.unanswered) {
        takes_part[event.index()] = true;
    }
    takes_part
}

pub(crate) const fn synchronises(kind: EventKind) -> bool {
    match kind {
        EventKind::Acquire { .. }
        | EventKind::Release { .. }
        | EventKind::WaitBegin { .. }
        | EventKind::WaitEnd { .. }
        | EventKind::Fork { .. }
        | EventKind::Join { .. }
        | EventKind::BarrierEnter { .. }
        | EventKind::BarrierExit { .. }
        | EventKind::Post { .. }
        | EventKind::Take { .. } => true,
        EventKind::Access(_)
        | EventKind::Atomic { .. }
        | EventKind::Fence { .. }
        | EventKind::Start
        | EventKind::End
        | EventKind::Request { .. }
        | EventKind::Signal { .. }
        | EventKind::OnceBegin { .. }
        | EventKind::OnceDone { .. }
        | EventKind::OnceSeen { .. }
        | EventKind::ReleaseObject { .. }
        | EventKind::AcquireObject { .. }
        | EventKind::Blocked { .. }
        | EventKind::Other(_) => false,
    }
}
