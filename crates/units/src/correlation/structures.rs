//! Members of one structure, if there is a dependence within it.
//!
//! Accesses of one activation whose addresses were computed from one value are to members of one structure. Of these, all are
//! correlated if by the region hypothesis (§3.1) two are, or one is with the variable from which the address was loaded. Test 21
//! is such a structure: `next` gives `list_head` its new value. Two counters in one structure that nothing relates are none.

use super::{Correlation, Groups};
use crate::analysis::Analysis;
use crate::event::{Bytes, Event, Register, Step, Thread};
use crate::options::Options;
use rustc_hash::{FxHashMap, FxHashSet};

/// A value that may be an address: its number, and where it was loaded from.
#[derive(Clone, Copy, Debug)]
struct Base {
    number: u64,
    origin: Option<Bytes>,
}

#[derive(Default)]
struct Activation {
    registers: FxHashMap<Register, Base>,
    /// What was accessed through each value.
    members: FxHashMap<u64, (Option<Bytes>, Vec<Bytes>)>,
}

/// Members of a structure that are remembered for one activation, and structures that are remembered.
const MEMBERS: usize = 64;
const STRUCTURES: usize = 1 << 16;
/// Registers and values of one activation that are looked at.
const REGISTERS: usize = 1 << 12;
/// Activations of one thread.
const DEPTH: usize = 1 << 12;

pub struct Structures {
    region: Analysis,
    threads: FxHashMap<Thread, Vec<Activation>>,
    /// The origin of the address, if it was loaded, and the members, ascending.
    found: FxHashSet<(Option<Bytes>, Vec<Bytes>)>,
    values: u64,
}

impl Structures {
    /// With the region hypothesis as `options` have it; `shared` is what [`crate::Sharing`] found.
    pub fn new(options: Options, shared: &[Bytes]) -> Structures {
        let mut region = Analysis::new(options);
        shared.iter().for_each(|range| region.share(*range));
        Structures { region, threads: FxHashMap::default(), found: FxHashSet::default(), values: 0 }
    }

    fn activation(&mut self, thread: Thread) -> &mut Activation {
        let stack = self.threads.entry(thread).or_default();
        if stack.is_empty() {
            stack.push(Activation::default());
        }
        let last = stack.len() - 1;
        &mut stack[last]
    }

    fn fresh(&mut self, origin: Option<Bytes>) -> Base {
        self.values += 1;
        Base { number: self.values, origin }
    }

    /// A value that is computed from one other may be a copy of it.
    fn of(&mut self, thread: Thread, from: &[Register]) -> Base {
        let known = match from {
            [one] => self.activation(thread).registers.get(one).copied(),
            _ => None,
        };
        known.unwrap_or_else(|| self.fresh(None))
    }

    fn define(&mut self, thread: Thread, into: Register, base: Base) {
        let registers = &mut self.activation(thread).registers;
        if registers.len() < REGISTERS {
            registers.insert(into, base);
        } else {
            registers.remove(&into);
        }
    }

    fn access(&mut self, thread: Thread, bytes: Bytes, address: &[Register]) {
        let activation = self.activation(thread);
        let bases: Vec<Base> = address.iter().filter_map(|register| activation.registers.get(register)).copied().collect();
        for base in bases {
            if activation.members.len() >= REGISTERS && !activation.members.contains_key(&base.number) {
                continue;
            }
            let (_, members) = activation.members.entry(base.number).or_insert_with(|| (base.origin, Vec::new()));
            if members.len() < MEMBERS && !members.contains(&bytes) {
                members.push(bytes);
            }
        }
    }

    fn enter(&mut self, thread: Thread, arguments: &[&[Register]]) {
        let parameters: Vec<Base> = arguments.iter().map(|from| self.of(thread, from)).collect();
        self.activation(thread);
        let stack = self.threads.entry(thread).or_default();
        if stack.len() == DEPTH {
            // Deeper activations are looked at as a part of this one.
            return;
        }
        stack.push(Activation { registers: (0..).map(Register).zip(parameters).collect(), ..Activation::default() });
    }

    fn exit(&mut self, thread: Thread, result: &[Register], into: Option<Register>) {
        let result = self.of(thread, result);
        let Some(activation) = self.threads.get_mut(&thread).and_then(Vec::pop) else { return };
        for structure in activation.members.into_values() {
            self.remember(structure);
        }
        if let Some(into) = into {
            self.define(thread, into, result);
        }
    }

    fn remember(&mut self, (origin, mut members): (Option<Bytes>, Vec<Bytes>)) {
        if self.found.len() < STRUCTURES {
            members.sort_unstable();
            self.found.insert((origin, members));
        }
    }

    /// Whether two of the structure, or one and the variable with its address, are in one set.
    fn has_evidence(&self, origin: Option<Bytes>, members: &[Bytes]) -> bool {
        let mut seen = FxHashSet::default();
        let sets = members.iter().chain(&origin).filter_map(|range| self.region.correlated_set(range.start));
        let mut sets = sets.filter_map(|set| set.first().copied());
        sets.any(|first| !seen.insert(first))
    }
}

impl Correlation for Structures {
    fn event(&mut self, event: &Event<'_>) {
        let thread = event.thread;
        match event.step {
            Step::Load { bytes, address, into } => {
                self.access(thread, bytes, address);
                let base = self.fresh(Some(bytes));
                self.define(thread, into, base);
            }
            Step::Store { bytes, address, .. } => self.access(thread, bytes, address),
            Step::Compute { into, from } => {
                let base = self.of(thread, from);
                self.define(thread, into, base);
            }
            Step::Enter { arguments } => self.enter(thread, arguments),
            Step::Exit { result, into } => self.exit(thread, result, into),
            _ => {}
        }
        self.region.event(event);
    }

    fn sets(&self) -> Vec<Vec<Bytes>> {
        let open = self.threads.values().flatten().flat_map(|activation| activation.members.values());
        let structures = self.found.iter().map(|(origin, members)| (*origin, members));
        let mut groups = Groups::default();
        for (origin, members) in structures.chain(open.map(|(origin, members)| (*origin, members))) {
            if !self.has_evidence(origin, members) {
                continue;
            }
            let all: Vec<Bytes> = members.iter().copied().chain(origin).collect();
            all.windows(2).for_each(|pair| groups.join(pair[0], pair[1]));
        }
        groups.sets()
    }
}
