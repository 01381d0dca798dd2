//! The table of dependences of a function, and what it tells at run time; the form is that of [`rashomon_abi::deep`].
//!
//! A block is told if control can come to it from a block with several successors: all others are known from what came before.
//! What follows a call is told, unless the callee is known to tell its own activation: then its end is known, too.

use crate::access::{self, MemoryCall};
use crate::graph;
use crate::insert::Inserter;
use crate::ir::{Code, Function, Kind, Value};
use crate::roots::Roots;
use crate::table::Table;
use rashomon_abi::deep::{call, name_hash, step, told};
use std::cell::RefCell;
use std::collections::HashMap;

/// What a call means for its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Its result is computed from its arguments, and nothing is told meanwhile.
    Silent,
    Memory(MemoryCall),
    /// The callee tells its activation.
    Telling,
    /// Another segment begins behind it.
    Unknown,
    /// The end of its function, which leaves its frame to the callee.
    Tail,
}

/// Of the functions of the module, as far as it was asked for: whether they tell their activations and ends.
#[derive(Default)]
pub struct Callees(RefCell<HashMap<Function, bool>>);

impl Callees {
    fn tell(&self, function: Function) -> bool {
        let known = self.0.borrow().get(&function).copied();
        known.unwrap_or_else(|| {
            let found = tells(function);
            self.0.borrow_mut().insert(function, found);
            found
        })
    }
}

impl Call {
    fn of(call: Value, callees: &Callees) -> Self {
        if let Some(memory) = MemoryCall::of(call) {
            return Self::Memory(memory);
        }
        let name = call.callee_name();
        if name.starts_with(b"llvm.") || call.callee().is_inline_assembly() || !call.may_access_memory() {
            return Self::Silent;
        }
        if call.must_tail() {
            return Self::Tail;
        }
        match call.callee().as_function() {
            Some(callee) if !call.returns_twice() && callees.tell(callee) => Self::Telling,
            _ => Self::Unknown,
        }
    }
}

fn tells(function: Function) -> bool {
    let leaves_its_frame = || {
        let all = function.blocks().into_iter().flat_map(|block| block.instructions());
        all.into_iter().any(|instruction| instruction.kind() == Kind::Call && instruction.must_tail())
    };
    function.is_instrumented() && function.is_exact() && !function.is_coroutine() && !leaves_its_frame()
}

struct Writer<'c, 'i> {
    code: &'c Code,
    callees: &'c Callees,
    roots: Roots,
    /// Of each block, the number of its first segment, and whether it is told.
    first: Vec<u64>,
    told: Vec<u64>,
    meetings: Vec<Option<usize>>,
    segments: u64,
    table: Table,
    inserter: &'i mut Inserter,
    /// Segments that are told with their activation: where, with which source line, and the number.
    resumes: Vec<(Value, Value, u64)>,
}

pub fn instrument(code: &Code, callees: &Callees, inserter: &mut Inserter) {
    // Blocks into which nothing can be put: kinds of exceptions of other systems.
    if code.blocks.iter().any(|block| block.first_place().is_none()) {
        access::instrument(code, inserter);
        return;
    }
    let before = graph::reversed(&code.edges);
    let branches = |number: &usize| code.edges[*number].len() > 1;
    let told = (0..code.blocks.len()).map(|number| match &before[number] {
        _ if code.blocks[number].is_eh_pad() => told::AS_RESUME,
        before if before.iter().any(branches) => told::AS_SEGMENT,
        _ => told::NOT,
    });
    let told = told.collect();
    let mut segments = 0;
    let mut first = Vec::new();
    for instructions in &code.instructions {
        first.push(segments);
        segments += 1 + instructions.iter().filter(|one| begins_another(**one, callees)).count() as u64;
    }
    let meetings = graph::post_dominators(&code.edges);
    let roots = Roots::of(code);
    let (table, resumes) = (Table::default(), Vec::new());
    let mut writer = Writer { code, callees, roots, first, told, meetings, segments, table, inserter, resumes };
    writer.write();
}

/// Whether another segment begins behind the instruction, in its block.
fn begins_another(instruction: Value, callees: &Callees) -> bool {
    let is_last = || instruction.next().is_none_or(|next| next.is_end() && leads_nowhere(next));
    instruction.kind() == Kind::Call && !instruction.is_end() && Call::of(instruction, callees) == Call::Unknown && !is_last()
}

/// A block's end that is no way on in its function, and no return.
fn leads_nowhere(end: Value) -> bool {
    end.kind() == Kind::Other && end.block().successors().is_empty()
}

impl Writer<'_, '_> {
    fn write(&mut self) {
        let start = self.code.instructions[0].iter().copied().find(|one| one.kind() != Kind::Alloca);
        let start = start.unwrap_or_else(|| self.code.blocks[0].end());
        // In front of all that the function tells; the table is known in the end.
        let activation = self.inserter.activation(start);
        for number in 0..self.code.blocks.len() {
            self.block(number);
        }
        let mut table = Table::new();
        table.push_bytes(&self.code.function.name());
        let parameters = self.code.function.parameters().len() as u64;
        for count in [parameters, u64::from(self.roots.count()), self.code.blocks.len() as u64, self.segments] {
            table.push(count);
        }
        table.append(&self.table);
        let table = self.inserter.dependence_table(table.bytes(), self.code.function);
        self.inserter.set_table(activation, table);
        for (at, like, segment) in std::mem::take(&mut self.resumes) {
            self.inserter.resume(at, like, activation, segment);
        }
    }

    /// A segment begins here.
    fn tell(&mut self, kind: u64, at: Value, like: Value, segment: u64) {
        match kind {
            told::AS_SEGMENT => self.inserter.segment(at, like, segment),
            told::AS_RESUME => self.resumes.push((at, like, segment)),
            _ => {}
        }
    }

    fn block(&mut self, number: usize) {
        let code = self.code;
        let mut segment = self.first[number];
        self.table.push(number as u64 + 1);
        self.table.push(self.told[number]);
        let like = code.blocks[number].end();
        if let Some(at) = code.blocks[number].first_place() {
            self.tell(self.told[number], at, like, segment);
        }
        for &instruction in &code.instructions[number] {
            if instruction.is_end() {
                self.end(number, instruction);
                continue;
            }
            let another = begins_another(instruction, self.callees);
            let behind = instruction.next();
            let twice = another && instruction.returns_twice();
            self.step(instruction);
            if another && let Some(behind) = behind {
                segment += 1;
                let kind = if twice { told::AS_RESUME } else { told::AS_SEGMENT };
                self.table.push(step::TOLD);
                self.table.push(1);
                self.table.push(segment);
                self.table.push(0);
                self.table.push(kind);
                self.tell(kind, behind, instruction, segment);
            }
        }
    }

    fn compute(&mut self, into: u32, from: &[u32]) {
        self.table.push(step::COMPUTE);
        self.table.push(u64::from(into));
        self.table.push_all(from);
    }

    fn step(&mut self, instruction: Value) {
        match instruction.kind() {
            Kind::Phi => self.phi(instruction),
            Kind::Load | Kind::Store if !instruction.is_atomic() => self.access(instruction),
            Kind::Load | Kind::Store | Kind::Modify => self.atomic(instruction),
            Kind::Call => self.call(instruction),
            Kind::LandingPad => {}
            _ => {
                if let Some(into) = self.roots.register(instruction) {
                    let from = self.roots.union(&instruction.operands());
                    self.compute(into, &from);
                }
            }
        }
    }

    fn phi(&mut self, phi: Value) {
        let Some(into) = self.roots.register(phi) else { return };
        let ways = phi.incoming();
        let ways: Vec<_> = ways.iter().filter_map(|(from, value)| Some((self.code.numbers.get(from)?, value))).collect();
        self.table.push(step::PHI);
        self.table.push(u64::from(into));
        self.table.push(ways.len() as u64);
        for (from, value) in ways {
            self.table.push(*from as u64);
            self.table.push_all(&self.roots.roots(*value));
        }
    }

    fn access(&mut self, access: Value) {
        let value = access.operands()[0];
        if let Some(slot) = self.roots.slot(access.pointer()) {
            match self.roots.register(access) {
                Some(into) => self.compute(into, &[slot]),
                None => {
                    let from = self.roots.roots(value);
                    self.compute(slot, &from);
                }
            }
            return;
        }
        if !access::is_told(access) || !access::tell(access, self.inserter) {
            return;
        }
        let address = self.roots.roots(access.pointer());
        match self.roots.register(access) {
            Some(into) => {
                self.table.push(step::READ);
                self.table.push(u64::from(into));
            }
            None => {
                self.table.push(step::WRITE);
                self.table.push_all(&self.roots.roots(value));
            }
        }
        self.table.push_all(&address);
    }

    fn atomic(&mut self, atomic: Value) {
        let into = self.roots.register(atomic).unwrap_or_else(|| self.roots.fresh());
        let pointer = atomic.pointer();
        let operands: Vec<Value> = atomic.operands().into_iter().filter(|one| *one != pointer).collect();
        self.table.push(step::ATOMIC);
        self.table.push(u64::from(into));
        self.table.push_all(&self.roots.union(&operands));
        self.table.push_all(&self.roots.roots(pointer));
    }

    fn call(&mut self, instruction: Value) {
        let arguments = instruction.arguments();
        let kind = Call::of(instruction, self.callees);
        match kind {
            Call::Silent => {
                if let Some(into) = self.roots.register(instruction) {
                    let from = self.roots.union(&arguments);
                    self.compute(into, &from);
                }
            }
            Call::Memory(memory) => {
                match memory {
                    MemoryCall::Copy(_) => self.table.push(step::COPY),
                    MemoryCall::Fill => {
                        self.table.push(step::FILL);
                        self.table.push_all(&self.roots.roots(arguments[1]));
                    }
                }
                self.inserter.replace_memory_call(instruction, memory.function());
            }
            Call::Telling | Call::Unknown | Call::Tail => {
                let name = instruction.callee_name();
                self.table.push(step::CALL);
                self.table.push(if kind == Call::Telling { call::CALLEE_TELLS } else { 0 });
                self.table.push(if name.is_empty() { 0 } else { name_hash(&name) });
                self.table.push(self.roots.register(instruction).map_or(0, |into| u64::from(into) + 1));
                self.table.push(arguments.len() as u64);
                for argument in arguments {
                    self.table.push_all(&self.roots.roots(argument));
                }
            }
        }
    }

    /// The block's last instruction.
    fn end(&mut self, number: usize, end: Value) {
        match end.kind() {
            Kind::Return => {
                let from = self.roots.union(&end.operands());
                self.table.push(step::RETURN);
                self.table.push_all(&from);
                return;
            }
            Kind::Branch => {
                let from = self.roots.roots(end.condition());
                let meeting = self.meetings[number].unwrap_or(self.code.blocks.len());
                self.table.push(step::BRANCH);
                self.table.push_all(&from);
                self.table.push(meeting as u64);
            }
            Kind::Call => self.call(end),
            _ => {}
        }
        let mut targets: Vec<u64> = self.code.edges[number].iter().map(|to| self.first[*to]).collect();
        match (targets.as_slice(), end.kind()) {
            ([], _) => self.table.push(step::LEAVE),
            ([only], kind) if kind != Kind::Call => {
                self.table.push(step::GO_ON);
                self.table.push(*only);
            }
            _ => {
                targets.sort_unstable();
                targets.dedup();
                self.table.push(step::TOLD);
                self.table.push(targets.len() as u64);
                targets.iter().for_each(|one| self.table.push(*one));
            }
        }
    }
}
