//! Registers of a function, and from which of them each value is computed.

use crate::access;
use crate::ir::{Code, Kind, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// A value that is computed from more registers than this gets one of its own.
const MOST: usize = 16;

pub struct Roots {
    own: HashMap<Value, u32>,
    roots: HashMap<Value, Rc<[u32]>>,
    /// Local variables that are registers: one value, and nothing but loads and stores of it.
    slots: HashMap<Value, u32>,
    count: u32,
}

impl Roots {
    pub fn of(code: &Code) -> Self {
        let mut new = Self { own: HashMap::new(), roots: HashMap::new(), slots: HashMap::new(), count: 0 };
        for parameter in code.function.parameters() {
            new.take(parameter);
        }
        for alloca in slots(code) {
            let register = new.count;
            new.count += 1;
            new.slots.insert(alloca, register);
        }
        // Blocks are in reverse postorder: a value that is no phi comes behind all that it is computed from.
        for &instruction in code.instructions.iter().flatten() {
            new.add(instruction);
        }
        new
    }

    fn take(&mut self, value: Value) {
        self.own.insert(value, self.count);
        self.roots.insert(value, Rc::new([self.count]));
        self.count += 1;
    }

    fn add(&mut self, instruction: Value) {
        match instruction.kind() {
            Kind::Load if !access::is_told(instruction) && !instruction.is_atomic() => {}
            Kind::Load | Kind::Phi | Kind::Modify | Kind::LandingPad => self.take(instruction),
            Kind::Call if instruction.has_value() => self.take(instruction),
            Kind::Alloca | Kind::Call | Kind::Store => {}
            _ => {
                let all = self.union(&instruction.operands());
                if all.len() > MOST {
                    self.take(instruction);
                } else if !all.is_empty() {
                    self.roots.insert(instruction, all);
                }
            }
        }
    }

    pub fn slot(&self, pointer: Value) -> Option<u32> {
        self.slots.get(&pointer).copied()
    }

    /// The register of a load, a call, a phi; of what is computed from many.
    pub fn register(&self, value: Value) -> Option<u32> {
        self.own.get(&value).copied()
    }

    pub fn roots(&self, value: Value) -> Rc<[u32]> {
        self.roots.get(&value).cloned().unwrap_or_else(|| Rc::new([]))
    }

    pub fn union(&self, values: &[Value]) -> Rc<[u32]> {
        let mut all: Vec<u32> = values.iter().flat_map(|value| self.roots(*value).to_vec()).collect();
        all.sort_unstable();
        all.dedup();
        all.into()
    }

    /// A register that stands for no value.
    pub fn fresh(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }

    pub const fn count(&self) -> u32 {
        self.count
    }
}

/// What is said of a variable, and does nothing to it.
fn is_remark(call: Value) -> bool {
    let name = call.callee_name();
    ["llvm.lifetime.", "llvm.dbg."].iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// Local variables whose address is not taken.
pub fn slots(code: &Code) -> Vec<Value> {
    let allocas = code.instructions.iter().flatten().copied().filter(|one| one.kind() == Kind::Alloca && one.allocates_scalar());
    let is_slot = |alloca: &Value| {
        alloca.users().iter().all(|user| match user.kind() {
            Kind::Load => !user.is_atomic(),
            Kind::Store => user.pointer() == *alloca && user.operands()[0] != *alloca && !user.is_atomic(),
            Kind::Call => is_remark(*user),
            _ => false,
        })
    };
    allocas.filter(is_slot).collect()
}
