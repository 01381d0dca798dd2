//! Small feasible traces: drawn, and all of them.

use rashomon_packed::{Event, Op, order};

pub use rashomon_abi::numbers::SplitMix;

/// How many traces a test draws: a few seconds' worth, or what `RASHOMON_TRACES` says.
pub fn traces(usual: u64) -> u64 {
    std::env::var("RASHOMON_TRACES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub threads: u16,
    pub events: usize,
    pub variables: u32,
    pub locks: u32,
    /// Shared locks, fork and join, objects, barriers, atomics, fences, ends of lives.
    pub everything: bool,
    /// Begin and end of regions.
    pub regions: bool,
}

/// What threads may do next.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// By lock: who holds it exclusively, who shares it.
    exclusive: Vec<Option<u16>>,
    shared: Vec<Vec<u16>>,
    /// Locks and regions that the thread is in, from the outside in.
    held: Vec<Vec<(u32, Op)>>,
    started: Vec<bool>,
    ended: Vec<bool>,
}

impl State {
    pub fn new(shape: &Shape) -> Self {
        let threads = usize::from(shape.threads);
        Self {
            exclusive: vec![None; shape.locks as usize],
            shared: vec![Vec::new(); shape.locks as usize],
            held: vec![Vec::new(); threads],
            started: vec![false; threads],
            ended: vec![false; threads],
        }
    }

    pub fn allows(&self, event: &Event) -> bool {
        let thread = usize::from(event.thread);
        let target = event.target as usize;
        let innermost = self.held[thread].last().copied();
        if self.ended[thread] {
            return false;
        }
        match event.op {
            Op::Acquire => self.exclusive[target].is_none() && self.shared[target].is_empty(),
            Op::AcquireShared => self.exclusive[target].is_none() && !self.shared[target].contains(&event.thread),
            Op::Release => innermost == Some((event.target, Op::Acquire)),
            Op::ReleaseShared => innermost == Some((event.target, Op::AcquireShared)),
            Op::Begin => self.held[thread].len() < 3,
            Op::End => innermost == Some((event.target, Op::Begin)),
            Op::Fork => target != thread && !self.started[target],
            Op::Join => target != thread && self.held[target].is_empty() && !self.ended[target],
            _ => true,
        }
    }

    pub fn step(&mut self, event: &Event) {
        let thread = usize::from(event.thread);
        let target = event.target as usize;
        self.started[thread] = true;
        match event.op {
            Op::Acquire => self.exclusive[target] = Some(event.thread),
            Op::Release => self.exclusive[target] = None,
            Op::AcquireShared => self.shared[target].push(event.thread),
            Op::ReleaseShared => self.shared[target].retain(|other| *other != event.thread),
            Op::Fork => self.started[target] = true,
            Op::Join => (self.started[target], self.ended[target]) = (true, true),
            _ => {}
        }
        match event.op {
            Op::Acquire | Op::AcquireShared | Op::Begin => self.held[thread].push((event.target, event.op)),
            Op::Release | Op::ReleaseShared | Op::End => drop(self.held[thread].pop()),
            _ => {}
        }
    }
}

fn draw_event(random: &mut SplitMix, shape: &Shape) -> Event {
    const RARE: [Op; 15] = [
        Op::AcquireShared,
        Op::ReleaseShared,
        Op::ReleaseShared,
        Op::Fork,
        Op::Join,
        Op::ReleaseObject,
        Op::AcquireObject,
        Op::Enter,
        Op::Exit,
        Op::AtomicRead,
        Op::AtomicWrite,
        Op::AtomicUpdate,
        Op::Fence,
        Op::Forget,
        Op::AtomicRead,
    ];
    let thread = random.below(u64::from(shape.threads)) as u16;
    let op = match random.below(if shape.everything { 16 } else { 10 }) {
        0..=2 => Op::Read,
        3..=4 => Op::Write,
        5..=6 => Op::Acquire,
        7..=9 if shape.regions && random.below(2) == 0 => [Op::Begin, Op::End][random.below(2) as usize],
        7..=9 => Op::Release,
        _ => RARE[random.below(RARE.len() as u64) as usize],
    };
    let target = match op {
        Op::Fork | Op::Join => random.below(u64::from(shape.threads)) as u32,
        Op::ReleaseObject | Op::AcquireObject => random.below(2) as u32,
        Op::Enter | Op::Exit => 2 + random.below(2) as u32,
        Op::Begin | Op::End => 0,
        Op::Fence => 0,
        _ if op.is_access() || op == Op::Forget => random.below(u64::from(shape.variables)) as u32,
        _ => random.below(u64::from(shape.locks.max(1))) as u32,
    };
    let mut event = Event::new(thread, op, target, 0);
    let sync = random.below(4) as u8;
    event.order = match op {
        Op::AtomicRead => sync & order::ACQUIRES,
        Op::AtomicWrite => sync & order::RELEASES,
        Op::AtomicUpdate => sync,
        Op::Fence => sync.max(1),
        _ => 0,
    };
    event
}

/// A feasible trace; locations are the events' numbers.
pub fn draw(random: &mut SplitMix, shape: &Shape) -> Vec<Event> {
    let mut state = State::new(shape);
    let mut trace = Vec::new();
    while trace.len() < shape.events {
        let mut event = draw_event(random, shape);
        let lock = matches!(event.op.space(), Some(rashomon_packed::Space::Lock));
        if (lock && shape.locks == 0) || !state.allows(&event) {
            continue;
        }
        event.location = trace.len() as u32 + 1;
        state.step(&event);
        trace.push(event);
    }
    trace
}

/// Every feasible trace of at most `length` events over an alphabet in which threads are interchangeable: a thread's first event
/// comes after that of lower ones.
pub fn enumerate(shape: &Shape, alphabet: &[(Op, u32)], length: usize, visit: &mut impl FnMut(&[Event])) {
    fn go(
        shape: &Shape,
        alphabet: &[(Op, u32)],
        length: usize,
        state: &State,
        trace: &mut Vec<Event>,
        visit: &mut impl FnMut(&[Event]),
    ) {
        if trace.len() == length {
            return visit(trace);
        }
        let seen = trace.iter().map(|event| event.thread + 1).max().unwrap_or(0);
        for thread in 0..shape.threads.min(seen + 1) {
            for &(op, target) in alphabet {
                let event = Event::new(thread, op, target, trace.len() as u32 + 1);
                if state.allows(&event) {
                    let mut next = state.clone();
                    next.step(&event);
                    trace.push(event);
                    go(shape, alphabet, length, &next, trace, visit);
                    trace.pop();
                }
            }
        }
    }
    go(shape, alphabet, length, &State::new(shape), &mut Vec::new(), visit);
}
