//! Units and correlated sets of a stored execution, straight from the definitions of §3.1: units are sets of operations, sets
//! are sets of bytes and values, and each merge looks at everything.

use rashomon_units::{Bytes, Event, Mode, Options, Overwriting, Register, SharedDependences, Step};
use std::collections::{BTreeMap, BTreeSet};

/// An operation: the event of the stored execution.
pub type Operation = usize;

/// A byte in one of its lives.
pub type Byte = (u64, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    Byte(Byte),
    Value(usize),
}

/// A value: the operations it stems from, and its name as a member of a set.
#[derive(Clone, Debug, Default)]
struct Value {
    operations: BTreeSet<Operation>,
    member: Option<usize>,
}

#[derive(Default)]
struct Activation {
    registers: BTreeMap<Register, Value>,
    branches: Vec<(u32, Value)>,
    serial: usize,
}

pub struct Access {
    pub operation: Operation,
    pub byte: Byte,
    pub wrote: bool,
}

#[derive(Default)]
pub struct Construction {
    options: Options,
    /// Thread of each operation, and the locks that it held: (lock, which acquisition).
    pub threads: BTreeMap<Operation, u32>,
    held: BTreeMap<Operation, BTreeSet<(u64, usize)>>,
    pub units: BTreeMap<Operation, usize>,
    pub closed: BTreeSet<usize>,
    pub sets: BTreeMap<Member, usize>,
    pub accesses: Vec<Access>,
    pub accessors: BTreeMap<Byte, BTreeSet<u32>>,
    writers: BTreeMap<Byte, (Operation, usize)>,
    /// The activation of each store.
    writes: BTreeMap<Operation, usize>,
    lives: BTreeMap<u64, usize>,
    activations: BTreeMap<u32, Vec<Activation>>,
    holding: BTreeMap<u32, BTreeMap<u64, usize>>,
    acquisitions: BTreeMap<(u32, u64), usize>,
    names: usize,
    /// Sets that came to be by merges in this event, and the bytes of what merged.
    pub merged_sets: BTreeMap<usize, Vec<BTreeSet<Byte>>>,
    pub racy: BTreeSet<usize>,
}

impl Construction {
    pub fn new(options: &Options) -> Construction {
        Construction { options: options.clone(), ..Construction::default() }
    }

    fn name(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    pub fn byte(&self, address: u64) -> Byte {
        (address, self.lives.get(&address).copied().unwrap_or(0))
    }

    fn bytes(&self, bytes: Bytes) -> Vec<Byte> {
        (bytes.start..bytes.end()).map(|address| self.byte(address)).collect()
    }

    pub fn shared(&self, byte: Byte) -> bool {
        self.accessors.get(&byte).is_some_and(|threads| threads.len() > 1)
    }

    pub fn operations(&self, unit: usize) -> BTreeSet<Operation> {
        self.units.iter().filter(|(_, other)| **other == unit).map(|(operation, _)| *operation).collect()
    }

    /// L_u: the locks held without a break from the first to the last access to what is shared. None for all locks.
    pub fn locks(&self, unit: usize) -> Option<BTreeSet<u64>> {
        let accesses = self.accesses.iter().filter(|access| self.units[&access.operation] == unit && self.shared(access.byte));
        let held = accesses.map(|access| self.held[&access.operation].clone()).reduce(|one, other| &one & &other)?;
        Some(held.into_iter().map(|(lock, _)| lock).collect())
    }

    pub fn bytes_of(&self, set: usize) -> BTreeSet<Byte> {
        let members = self.sets.iter().filter(|(_, other)| **other == set);
        members.filter_map(|(member, _)| if let Member::Byte(byte) = member { Some(*byte) } else { None }).collect()
    }

    /// Merges the open units of these operations.
    fn merge_units(&mut self, operations: &BTreeSet<Operation>) -> Option<usize> {
        let units: BTreeSet<usize> =
            operations.iter().map(|operation| self.units[operation]).filter(|unit| !self.closed.contains(unit)).collect();
        let first = *units.first()?;
        self.units.values_mut().filter(|unit| units.contains(unit)).for_each(|unit| *unit = first);
        Some(first)
    }

    fn merge_sets(&mut self, members: &BTreeSet<Member>) -> Option<usize> {
        let sets: BTreeSet<usize> = members.iter().map(|member| self.sets[member]).collect();
        let first = *sets.first()?;
        if sets.len() > 1 {
            let parts: Vec<_> =
                sets.iter().flat_map(|set| self.merged_sets.remove(set).unwrap_or_else(|| vec![self.bytes_of(*set)])).collect();
            self.sets.values_mut().filter(|set| sets.contains(set)).for_each(|set| *set = first);
            self.merged_sets.insert(first, parts);
            if sets.iter().any(|set| self.racy.contains(set)) {
                self.racy.insert(first);
            }
        }
        Some(first)
    }

    fn activation(&mut self, thread: u32) -> &mut Activation {
        let serial = self.names + 1;
        let activations = self.activations.entry(thread).or_default();
        if activations.is_empty() {
            self.names += 1;
            activations.push(Activation { serial, ..Activation::default() });
        }
        activations.last_mut().unwrap()
    }

    /// What was computed from registers: units and sets of its parts merge.
    fn operand(&mut self, thread: u32, registers: &[Register]) -> Value {
        let activation = self.activation(thread);
        let parts: Vec<Value> =
            registers.iter().map(|register| activation.registers.get(register).cloned().unwrap_or_default()).collect();
        self.combine(&parts)
    }

    fn combine(&mut self, parts: &[Value]) -> Value {
        let operations: BTreeSet<_> = parts.iter().flat_map(|part| part.operations.clone()).collect();
        let members: BTreeSet<_> = parts.iter().filter_map(|part| part.member).map(Member::Value).collect();
        self.merge_units(&operations);
        self.merge_sets(&members);
        Value { operations, member: parts.iter().find_map(|part| part.member) }
    }

    fn control(&mut self, thread: u32) -> Value {
        self.activation(thread).branches.last().map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// The operation `now` with what it depends on; the unit that it belongs to.
    fn operate(&mut self, now: Operation, thread: u32, depends_on: &BTreeSet<Operation>) {
        let unit = self.merge_units(depends_on);
        let unit = unit.unwrap_or_else(|| self.name());
        self.units.insert(now, unit);
        self.threads.insert(now, thread);
        let holding = self.holding.entry(thread).or_default();
        self.held.insert(now, holding.iter().map(|(lock, number)| (*lock, *number)).collect());
    }

    /// A new value of the set.
    fn value(&mut self, now: Operation, set: Option<usize>) -> Value {
        let member = set.map(|set| {
            let name = self.name();
            self.sets.insert(Member::Value(name), set);
            name
        });
        Value { operations: BTreeSet::from([now]), member }
    }

    fn access(&mut self, now: Operation, thread: u32, bytes: &[Byte], wrote: bool) {
        for byte in bytes {
            self.accesses.push(Access { operation: now, byte: *byte, wrote });
            self.accessors.entry(*byte).or_default().insert(thread);
        }
    }

    fn address(&mut self, thread: u32, registers: &[Register]) -> Value {
        if self.options.addresses { self.operand(thread, registers) } else { Value::default() }
    }

    pub fn event(&mut self, now: Operation, event: &Event<'_>) {
        self.merged_sets.clear();
        let thread = event.thread.0;
        match event.step {
            Step::Load { bytes, address, into } => self.load(now, thread, bytes, address, into),
            Step::Store { bytes, address, from } => self.store(now, thread, bytes, address, from),
            Step::Compute { into, from } => {
                let (value, control) = (self.operand(thread, from), self.control(thread));
                let value = self.combine(&[value, control]);
                self.operate(now, thread, &value.operations);
                let set = value.member.map(|name| self.sets[&Member::Value(name)]).unwrap_or_else(|| self.name());
                let value = self.value(now, Some(set));
                self.activation(thread).registers.insert(into, value);
            }
            Step::Branch { on, meeting } => {
                let value = self.operand(thread, on);
                // A branch of an earlier iteration decides about this one; else the innermost open branch does.
                let earlier = self.activation(thread).branches.iter().find(|(other, _)| *other == meeting.0).cloned();
                let control = match earlier {
                    Some((_, earlier)) => earlier,
                    None => self.control(thread),
                };
                let value = self.combine(&[value, control]);
                self.operate(now, thread, &value.operations);
                let set = value.member.map(|name| self.sets[&Member::Value(name)]);
                let value = self.value(now, set);
                self.reach(thread, meeting.0);
                self.activation(thread).branches.push((meeting.0, value));
            }
            Step::Reach { meeting } => self.reach(thread, meeting.0),
            Step::Enter { arguments } => {
                let parameters: Vec<Value> = arguments.iter().map(|registers| self.operand(thread, registers)).collect();
                let registers = (0..).map(Register).zip(parameters).collect();
                self.activation(thread);
                let serial = self.name();
                let activations = self.activations.get_mut(&thread).unwrap();
                activations.push(Activation { registers, serial, branches: Vec::new() });
            }
            Step::Exit { result, into } => {
                let value = self.operand(thread, result);
                self.activation(thread);
                let activations = self.activations.get_mut(&thread).unwrap();
                if activations.len() > 1 {
                    activations.pop();
                    if let Some(into) = into {
                        self.activation(thread).registers.insert(into, value);
                    }
                }
            }
            Step::Renew { start, len } => {
                for address in start..start + len {
                    let byte = self.byte(address);
                    self.sets.remove(&Member::Byte(byte));
                    self.accesses.retain(|access| access.byte != byte || self.accessors[&byte].len() > 1);
                    self.lives.insert(address, byte.1 + 1);
                }
            }
            Step::Acquire { lock, mode: Mode::Exclusive } => {
                let number = self.acquisitions.entry((thread, lock.0)).or_default();
                *number += 1;
                self.holding.entry(thread).or_default().insert(lock.0, *number);
            }
            Step::Release { lock } => {
                self.holding.entry(thread).or_default().remove(&lock.0);
            }
            _ => {}
        }
    }

    fn reach(&mut self, thread: u32, meeting: u32) {
        let branches = &mut self.activation(thread).branches;
        let inner = branches.iter().position(|(other, _)| *other == meeting);
        branches.truncate(inner.unwrap_or(branches.len()));
    }

    fn load(&mut self, now: Operation, thread: u32, bytes: Bytes, address: &[Register], into: Register) {
        let bytes = self.bytes(bytes);
        for byte in &bytes {
            if !self.sets.contains_key(&Member::Byte(*byte)) {
                let name = self.name();
                self.sets.insert(Member::Byte(*byte), name);
            }
        }
        let address = self.address(thread, address);
        let serial = self.activation(thread).serial;
        let within = |activation| self.options.shared_dependences == SharedDependences::WithinFunction && activation == serial;
        let mut dependences = BTreeSet::new();
        let mut ended = Vec::new();
        for byte in &bytes {
            let others = self.accessors.get(byte).is_some_and(|threads| threads.iter().any(|other| *other != thread));
            let writer = self.writers.get(byte).filter(|(writer, _)| self.threads[writer] == thread);
            if !others {
                dependences.extend(writer.map(|(writer, _)| *writer));
                continue;
            }
            for access in self.accesses.iter().filter(|access| access.byte == *byte && access.wrote) {
                if self.threads[&access.operation] == thread && !within(self.writes[&access.operation]) {
                    ended.push(self.units[&access.operation]);
                }
            }
            dependences.extend(writer.filter(|(_, activation)| within(*activation)).map(|(writer, _)| *writer));
        }
        self.closed.extend(ended);
        let control = self.control(thread);
        dependences.extend(address.operations);
        dependences.extend(control.operations);
        self.operate(now, thread, &dependences);
        let mut members: BTreeSet<_> = bytes.iter().copied().map(Member::Byte).collect();
        members.extend([address.member, control.member].into_iter().flatten().map(Member::Value));
        let set = self.merge_sets(&members);
        let value = self.value(now, set);
        self.access(now, thread, &bytes, false);
        self.activation(thread).registers.insert(into, value);
    }

    fn store(&mut self, now: Operation, thread: u32, bytes: Bytes, address: &[Register], from: &[Register]) {
        let bytes = self.bytes(bytes);
        let (value, address, control) = (self.operand(thread, from), self.address(thread, address), self.control(thread));
        let value = self.combine(&[value, address, control]);
        self.operate(now, thread, &value.operations);
        let mut members: BTreeSet<Member> = value.member.map(Member::Value).into_iter().collect();
        if self.options.overwriting == Overwriting::MergesIfShared {
            for byte in &bytes {
                let others = self.accessors.get(byte).is_some_and(|threads| threads.len() > 1 || !threads.contains(&thread));
                if others {
                    members.insert(Member::Byte(*byte));
                }
            }
        }
        let set = self.merge_sets(&members).unwrap_or_else(|| self.name());
        for byte in &bytes {
            self.sets.insert(Member::Byte(*byte), set);
        }
        let serial = self.activation(thread).serial;
        self.writes.insert(now, serial);
        for byte in &bytes {
            self.writers.insert(*byte, (now, serial));
        }
        self.access(now, thread, &bytes, true);
    }

    pub fn writer(&self, byte: Byte) -> Option<usize> {
        self.writers.get(&byte).map(|(operation, _)| self.units[operation])
    }
}
