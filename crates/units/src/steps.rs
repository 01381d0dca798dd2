//! The algorithm of §3.1, operation by operation.
//!
//! Loads, stores, branches and phis are operations of a unit; arithmetic in between is part of the operation that uses it. In
//! each rule: units of its thread that wrote a shared location which it reads are closed first, then what the operation depends
//! on is merged.

use crate::event::{Bytes, Line, Meeting, Register};
use crate::forest::{LocationId, SetId, UnitId};
use crate::options::{Overwriting, SharedDependences};
use crate::report::{Dependence, Link};
use crate::threads::Label;
use crate::world::{Set, World};

impl World {
    /// The units and sets of two values, merged because one operation uses both.
    fn merge_labels(&mut self, one: Label, other: Label, dependence: Dependence, line: Line) -> Label {
        let link = Link { dependence, line, from: one.origin, to: other.origin };
        Label {
            unit: self.merge_units(one.unit, other.unit),
            set: self.merge_sets(one.set, other.set, link),
            origin: one.origin.or(other.origin),
        }
    }

    /// The value computed from registers.
    fn operand(&mut self, thread: usize, registers: &[Register], line: Line) -> Label {
        let mut label = Label::default();
        for register in registers {
            let more = self.threads[thread].register(*register);
            label = self.merge_labels(label, more, Dependence::Data, line);
        }
        label
    }

    /// `label`, and what the operation is control dependent on.
    fn under_control(&mut self, thread: usize, label: Label, line: Line) -> Label {
        let control = self.threads[thread].control();
        let merged = self.merge_labels(control, label, Dependence::Control, line);
        Label { origin: label.origin.or(control.origin), ..merged }
    }

    /// The roots of an address, if they count.
    fn address(&mut self, thread: usize, registers: &[Register], line: Line) -> Label {
        if self.options.addresses { self.operand(thread, registers, line) } else { Label::default() }
    }

    fn unit_or_new(&mut self, thread: usize, unit: Option<UnitId>, line: Line) -> UnitId {
        let open = self.open(unit);
        let unit = open.unwrap_or_else(|| self.new_unit(thread));
        self.note_line(unit, line);
        unit
    }

    fn define(&mut self, thread: usize, register: Register, label: Label) {
        if !self.threads[thread].set_register(register, label, &mut self.budget) {
            self.summary.values_left_out += 1;
        }
    }

    pub fn load(&mut self, thread: usize, line: Line, bytes: Bytes, address: &[Register], into: Register) {
        self.with_locations(thread, bytes, |world, locations| {
            let address = world.address(thread, address, line);
            let label = world.read(thread, line, locations, address);
            world.define(thread, into, label);
        });
    }

    /// Rule 2 of §3.1 for an operation that reads these locations.
    fn read(&mut self, thread: usize, line: Line, locations: &[LocationId], address: Label) -> Label {
        // All dependences that end a unit come before those that merge with it.
        let mut label = address;
        label.origin = None;
        if let [location] = locations {
            let writer = self.true_dependence(thread, *location);
            label.unit = self.merge_units(label.unit, writer);
        } else {
            let writers: Vec<_> = locations.iter().filter_map(|location| self.true_dependence(thread, *location)).collect();
            for writer in writers {
                label.unit = self.merge_units(label.unit, Some(writer));
            }
        }
        for location in locations {
            let (set, start) = (self.memory.get(*location).set, self.memory.get(*location).start);
            let link = Link { dependence: Dependence::Data, line, from: label.origin, to: Some(start) };
            label.set = self.merge_sets(label.set, Some(set), link);
            label.origin = label.origin.or(Some(start));
        }
        let label = self.under_control(thread, label, line);
        let unit = self.unit_or_new(thread, label.unit, line);
        for location in locations {
            self.access(thread, *location, unit, false, line);
        }
        Label { unit: Some(unit), ..label }
    }

    /// The unit that wrote what is read here, if it goes on. Units of the thread that wrote a shared location end.
    fn true_dependence(&mut self, thread: usize, location: LocationId) -> Option<UnitId> {
        let memory = self.memory.get(location);
        let writer = memory.writer.filter(|writer| self.units.get(*writer).thread == thread);
        if !memory.shared && memory.owner == thread {
            return writer;
        }
        let serial = self.threads[thread].serial();
        let within = |activation| self.options.shared_dependences == SharedDependences::WithinFunction && activation == serial;
        let units = &mut self.units;
        for access in memory.accesses.iter().filter(|access| access.wrote && !within(access.activation)) {
            let unit = units.get_mut(access.unit);
            unit.closed |= unit.thread == thread;
        }
        let goes_on = within(memory.activation);
        match writer {
            Some(writer) if !goes_on => {
                self.close(writer);
                None
            }
            _ => writer,
        }
    }

    pub fn store(&mut self, thread: usize, line: Line, bytes: Bytes, address: &[Register], from: &[Register]) {
        self.with_locations(thread, bytes, |world, locations| {
            let mut value = world.operand(thread, from, line);
            if world.options.addresses {
                let address = world.address(thread, address, line);
                value = world.merge_labels(value, address, Dependence::Data, line);
            }
            world.write(thread, line, locations, value);
        });
    }

    /// Rule 2 of §3.1 for an operation that writes these locations.
    fn write(&mut self, thread: usize, line: Line, locations: &[LocationId], value: Label) {
        let origin = value.origin;
        let value = self.under_control(thread, value, line);
        let unit = self.unit_or_new(thread, value.unit, line);
        let link = Link { dependence: Dependence::Assignment, line, from: origin, to: None };
        let mut set = value.set.filter(|_| !locations.is_empty());
        if self.options.overwriting == Overwriting::MergesIfShared {
            for location in locations {
                let old = self.memory.get(*location);
                if old.owner != thread || old.shared {
                    let (old, link) = (old.set, Link { to: Some(old.start), ..link });
                    set = self.merge_sets(set, Some(old), link);
                }
            }
        }
        self.assign(locations, set, link);
        let activation = self.threads[thread].serial();
        for location in locations {
            let memory = self.memory.get_mut(*location);
            (memory.writer, memory.activation) = (Some(unit), activation);
            self.access(thread, *location, unit, true, line);
        }
    }

    /// Gives locations the set of the value that they are overwritten with.
    fn assign(&mut self, locations: &[LocationId], set: Option<SetId>, link: Link) {
        if !self.options.infer_sets || locations.iter().all(|location| self.memory.get(*location).declared) {
            return;
        }
        let set = self.set_for_store(set);
        for location in locations {
            let memory = self.memory.get(*location);
            if !memory.declared {
                let link = Link { to: Some(memory.start), ..link };
                self.move_to(*location, set, link);
            }
        }
    }

    pub fn fill(&mut self, thread: usize, line: Line, bytes: Bytes, from: &[Register]) {
        self.with_locations(thread, bytes, |world, locations| {
            let value = world.operand(thread, from, line);
            for location in locations {
                world.write(thread, line, &[*location], value);
            }
        });
    }

    /// Reads and writes the parts that source and destination have in common. What of the source was never accessed is taken by
    /// words.
    pub fn copy(&mut self, thread: usize, line: Line, from: u64, to: u64, len: u32) {
        let mut sources = Vec::new();
        self.locations(thread, Bytes::new(from, len), &mut sources);
        // All is read before anything is written: the ranges may overlap.
        let mut values = Vec::new();
        for source in sources {
            let bytes = self.memory.get(source).bytes();
            let value = self.read(thread, line, &[source], Label::default());
            values.push((bytes, value));
        }
        for (bytes, value) in values {
            let target = Bytes::new(to.wrapping_add(bytes.start - from), bytes.len);
            self.with_locations(thread, target, |world, locations| world.write(thread, line, locations, value));
        }
    }

    pub fn compute(&mut self, thread: usize, line: Line, into: Register, from: &[Register]) {
        let value = self.operand(thread, from, line);
        let value = self.under_control(thread, value, line);
        let unit = self.unit_or_new(thread, value.unit, line);
        let set = value.set.unwrap_or_else(|| self.sets.add(Set::default()));
        self.define(thread, into, Label { unit: Some(unit), set: Some(set), ..value });
    }

    pub fn branch(&mut self, thread: usize, line: Line, on: &[Register], meeting: Meeting) {
        let value = self.operand(thread, on, line);
        let before = self.threads[thread].branch_before(meeting);
        let label = match before {
            Some(before) => self.merge_labels(before, value, Dependence::Control, line),
            None => self.under_control(thread, value, line),
        };
        let unit = self.unit_or_new(thread, label.unit, line);
        let label = Label { unit: Some(unit), origin: value.origin.or(label.origin), ..label };
        if !self.threads[thread].branch(meeting, label, &mut self.budget) {
            self.summary.values_left_out += 1;
        }
    }

    pub fn enter(&mut self, thread: usize, line: Line, arguments: &[&[Register]]) {
        let mut activation = self.threads[thread].spare();
        for registers in arguments {
            let parameter = self.operand(thread, registers, line);
            activation.registers.push(parameter);
        }
        let serial = self.next_serial();
        if !self.threads[thread].enter(serial, activation, &mut self.budget) {
            self.summary.values_left_out += 1;
        }
    }

    pub fn exit(&mut self, thread: usize, line: Line, result: &[Register], into: Option<Register>) {
        let result = self.operand(thread, result, line);
        if !self.threads[thread].exit(&mut self.budget) {
            self.summary.steps_out_of_place += 1;
            return;
        }
        if let Some(into) = into {
            self.define(thread, into, result);
        }
    }
}
