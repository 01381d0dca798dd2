//! Activations of functions: registers, and the branches that what comes next is control dependent on.

use crate::event::{Meeting, Register};
use crate::forest::{MomentId, SetId, UnitId};
use crate::locks::Locks;
use crate::order::Clock;
use std::sync::Arc;

/// What a value carries: the unit that computed it and the correlated set that it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub unit: Option<UnitId>,
    pub set: Option<SetId>,
    /// Where the value, or a part of it, was loaded from.
    pub origin: Option<u64>,
}

/// A run of a function. Its control dependences are its own: nothing in it depends on branches of its callers (§3.1).
#[derive(Debug, Default)]
pub(crate) struct Activation {
    /// No two activations of an execution have the same.
    pub serial: u64,
    pub registers: Vec<Label>,
    /// Branches whose paths have not met yet, innermost last. Each includes the ones before it.
    branches: Vec<(Meeting, Label)>,
}

impl Activation {
    pub fn register(&self, register: Register) -> Label {
        self.registers.get(register.0 as usize).copied().unwrap_or_default()
    }

    /// What everything that happens here depends on.
    pub fn control(&self) -> Label {
        self.branches.last().map(|(_, label)| *label).unwrap_or_default()
    }

    /// The branches that meet where this one does: those of the iterations of one loop before, or of the operands of `&&`.
    pub fn branch_before(&self, meeting: Meeting) -> Option<Label> {
        self.branches.iter().rfind(|(other, _)| *other == meeting).map(|(_, label)| *label)
    }

    /// Ends the branches that meet here, and any within them, which a jump out of a region may have left open.
    pub fn reach(&mut self, meeting: Meeting) {
        if let Some(depth) = self.branches.iter().position(|(other, _)| *other == meeting) {
            self.branches.truncate(depth);
        }
    }

    /// How many labels it holds.
    fn size(&self) -> usize {
        self.registers.len() + self.branches.len()
    }

    pub fn labels_mut(&mut self) -> impl Iterator<Item = &mut Label> {
        self.registers.iter_mut().chain(self.branches.iter_mut().map(|(_, label)| label))
    }
}

/// Labels of all activations together, and how many there may be.
#[derive(Debug)]
pub(crate) struct Budget {
    pub used: usize,
    pub limit: usize,
}

pub(crate) struct ThreadState {
    /// Innermost last, never empty: below all functions is what started the thread.
    activations: Vec<Activation>,
    /// Some that ended, empty: kept for their capacity.
    spare: Vec<Activation>,
    /// Activations inside these for which there was no room.
    beyond: u64,
    /// Copied when it changes while a moment has it.
    pub clock: Arc<Clock>,
    pub locks: Locks,
    /// Moments so far.
    pub time: u64,
    /// The moment now, if something happened in it.
    pub moment: Option<MomentId>,
}

impl ThreadState {
    pub fn new(clock: Clock, serial: u64) -> ThreadState {
        let clock = Arc::new(clock);
        ThreadState {
            activations: vec![Activation { serial, ..Activation::default() }],
            spare: Vec::new(),
            beyond: 0,
            clock,
            locks: Locks::default(),
            time: 0,
            moment: None,
        }
    }

    pub fn clock(&self) -> Arc<Clock> {
        Arc::clone(&self.clock)
    }

    fn innermost(&self) -> Option<&Activation> {
        if self.beyond > 0 { None } else { self.activations.last() }
    }

    pub fn register(&self, register: Register) -> Label {
        self.innermost().map(|activation| activation.register(register)).unwrap_or_default()
    }

    pub fn control(&self) -> Label {
        self.innermost().map(Activation::control).unwrap_or_default()
    }

    /// The innermost activation; none has number 0.
    pub fn serial(&self) -> u64 {
        self.innermost().map_or(0, |activation| activation.serial)
    }

    pub fn branch_before(&self, meeting: Meeting) -> Option<Label> {
        self.innermost()?.branch_before(meeting)
    }

    pub fn activations_mut(&mut self) -> impl Iterator<Item = &mut Activation> {
        self.activations.iter_mut()
    }

    fn innermost_mut(&mut self) -> Option<&mut Activation> {
        if self.beyond > 0 { None } else { self.activations.last_mut() }
    }

    /// `false` if there is no room for it. An activation without registers costs memory, too.
    #[must_use]
    pub fn enter(&mut self, serial: u64, mut activation: Activation, budget: &mut Budget) -> bool {
        if self.beyond > 0 || budget.used + activation.size() >= budget.limit {
            self.beyond += 1;
            activation.registers.clear();
            self.spare.push(activation);
            return false;
        }
        budget.used += activation.size() + 1;
        activation.serial = serial;
        self.activations.push(activation);
        true
    }

    /// An empty activation, to be entered.
    pub fn spare(&mut self) -> Activation {
        self.spare.pop().unwrap_or_default()
    }

    /// `false` if no function runs.
    #[must_use]
    pub fn exit(&mut self, budget: &mut Budget) -> bool {
        if self.beyond > 0 {
            self.beyond -= 1;
            return true;
        }
        if self.activations.len() == 1 {
            return false;
        }
        if let Some(mut activation) = self.activations.pop() {
            budget.used -= activation.size() + 1;
            activation.registers.clear();
            activation.branches.clear();
            self.spare.push(activation);
        }
        true
    }

    /// `false` if there is no room for it.
    #[must_use]
    pub fn set_register(&mut self, register: Register, label: Label, budget: &mut Budget) -> bool {
        let Some(activation) = self.innermost_mut() else { return false };
        let registers = &mut activation.registers;
        let index = register.0 as usize;
        if index >= registers.len() {
            let more = index + 1 - registers.len();
            if budget.used + more > budget.limit {
                return false;
            }
            budget.used += more;
            registers.resize(index + 1, Label::default());
        }
        registers[index] = label;
        true
    }

    /// Opens a branch, or replaces the one that meets at the same place. `false` if there is no room for it.
    #[must_use]
    pub fn branch(&mut self, meeting: Meeting, label: Label, budget: &mut Budget) -> bool {
        self.reach(meeting, budget);
        if budget.used >= budget.limit {
            return false;
        }
        let Some(activation) = self.innermost_mut() else { return false };
        budget.used += 1;
        activation.branches.push((meeting, label));
        true
    }

    pub fn reach(&mut self, meeting: Meeting, budget: &mut Budget) {
        let Some(activation) = self.innermost_mut() else { return };
        let before = activation.branches.len();
        activation.reach(meeting);
        budget.used -= before - activation.branches.len();
    }
}
