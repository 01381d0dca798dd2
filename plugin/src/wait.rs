//! Loops that wait for another thread.
//!
//! - *Condition*: the innermost loop around a wait on a condition variable.
//! - *Spin*, *poll*: the loop writes nothing that others see; it calls nothing but functions that yield, sleep, or read; one
//! of its   exit conditions depends on a load in the loop; and none depends on a value that one iteration passes to the
//! next, which is   what a search does. With a lock that is taken and released in the loop it polls.
//!
//! A loop is told where it is entered, so also where its predicate holds at once, and where it is left. Not found: predicates in
//! other modules or with side effects, walks along lists, loops with two entries, waits in no loop.

use crate::graph::{self, Loop};
use crate::insert::Inserter;
use crate::ir::{Block, Code, Function, Kind, Value};
use crate::roots;
use crate::table::Table;
use rashomon_abi::deep::loop_kind;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Calls in calls that are followed to see what a function does.
const MOST_DEEP: u32 = 32;

#[derive(Clone, Debug)]
pub struct WaitLoop {
    header: usize,
    body: BTreeSet<usize>,
    kind: u64,
    /// What it waits on, where that is known before the loop.
    condition: Option<Value>,
}

/// What a function does to what others see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Nothing,
    Reads,
    Modifies,
    Anything,
}

/// Of the functions of the module, as far as it was asked for.
#[derive(Default)]
pub struct Effects(RefCell<HashMap<Function, Effect>>);

impl Effects {
    fn of(&self, callee: Value, depth: u32) -> Effect {
        let Some(function) = callee.as_function() else { return Effect::Anything };
        if let Some(known) = self.0.borrow().get(&function) {
            return *known;
        }
        // Of one that calls itself, through others or not, nothing is known.
        self.0.borrow_mut().insert(function, Effect::Anything);
        let found = self.look(function, depth);
        self.0.borrow_mut().insert(function, found);
        found
    }

    fn look(&self, function: Function, depth: u32) -> Effect {
        let name = function.name();
        if let Some(known) = of_atomics(&name) {
            return known;
        }
        if !function.has_body() || depth > MOST_DEEP {
            return Effect::Anything;
        }
        let mut most = Effect::Nothing;
        for one in function.blocks().into_iter().flat_map(Block::instructions) {
            most = most.max(self.of_instruction(one, depth));
            if most == Effect::Anything {
                break;
            }
        }
        most
    }

    fn of_instruction(&self, one: Value, depth: u32) -> Effect {
        let is_local = || one.pointer().is_instruction() && one.pointer().kind() == Kind::Alloca;
        match one.kind() {
            Kind::Load | Kind::Store if is_local() => Effect::Nothing,
            Kind::Load => Effect::Reads,
            Kind::Store => Effect::Anything,
            Kind::Modify => Effect::Modifies,
            Kind::Call if is_harmless(one) => Effect::Nothing,
            Kind::Call => self.of(one.callee(), depth + 1),
            _ => Effect::Nothing,
        }
    }
}

fn contains(name: &[u8], part: &str) -> bool {
    name.windows(part.len()).any(|window| window == part.as_bytes())
}

/// Functions of C++'s atomics, by their names.
fn of_atomics(name: &[u8]) -> Option<Effect> {
    let has = |part| contains(name, part);
    if !["6atomic", "__atomic_base", "atomic_flag"].into_iter().any(has) {
        return None;
    }
    if ["exchange", "test_and_set"].into_iter().any(has) {
        return Some(Effect::Modifies);
    }
    name.starts_with(b"_ZNK").then_some(Effect::Reads)
}

/// Calls that write nothing: they yield, sleep, or are remarks.
fn is_harmless(call: Value) -> bool {
    const NAMES: [&str; 9] =
        ["sched_yield", "thrd_yield", "thrd_sleep", "pthread_yield", "usleep", "nanosleep", "clock_nanosleep", "pause", "sleep"];
    let name = call.callee_name();
    let intrinsic = name.starts_with(b"llvm.") && !contains(&name, "llvm.mem");
    let known = NAMES.iter().any(|one| name == one.as_bytes());
    let of_cxx = contains(&name, "11this_thread") || contains(&name, "__glibcxx_assert") || name == b"__clang_call_terminate";
    intrinsic || known || of_cxx || call.callee().is_inline_assembly()
}

fn is_condition_wait(call: Value) -> bool {
    let name = call.callee_name();
    let of_pthread = name.starts_with(b"pthread_cond_") && name.ends_with(b"wait");
    let of_cxx = contains(&name, "condition_variable") && contains(&name, "wait");
    of_pthread || of_cxx || name == b"cnd_wait" || name == b"cnd_timedwait"
}

fn locks(call: Value) -> bool {
    let name = call.callee_name();
    let of_pthread = ["pthread_mutex_", "pthread_rwlock_", "pthread_spin_"].iter().any(|one| name.starts_with(one.as_bytes()));
    of_pthread || name == b"mtx_lock" || name == b"mtx_unlock" || name == b"mtx_trylock"
}

/// What a loop's body does.
#[derive(Default)]
struct Body {
    waits: Option<Value>,
    locks: bool,
    modifies: bool,
    /// It writes what others may see, or may do so.
    writes: bool,
    stored_slots: HashSet<Value>,
}

struct Finder<'c> {
    code: &'c Code,
    effects: &'c Effects,
    slots: HashSet<Value>,
    loops: Vec<Loop>,
}

pub fn find(code: &Code, effects: &Effects) -> Vec<WaitLoop> {
    let loops = graph::loops(&code.edges, 0);
    if loops.is_empty() {
        return Vec::new();
    }
    let finder = Finder { code, effects, slots: roots::slots(code).into_iter().collect(), loops };
    finder.loops.iter().filter_map(|one| finder.judge(one)).collect()
}

impl Finder<'_> {
    fn judge(&self, one: &Loop) -> Option<WaitLoop> {
        let body = self.body(one);
        let found = |kind, condition| Some(WaitLoop { header: one.header, body: one.body.clone(), kind, condition });
        if let Some(wait) = body.waits {
            let condition = wait.arguments().first().copied();
            return found(loop_kind::CONDITION, condition.filter(|condition| self.is_known_before(*condition, one)));
        }
        if body.writes || !self.waits_on_memory(one, &body) {
            return None;
        }
        let kind = match (body.locks, body.modifies) {
            (true, _) => loop_kind::POLL,
            (false, true) => loop_kind::SPIN_MODIFYING,
            (false, false) => loop_kind::SPIN,
        };
        found(kind, None)
    }

    fn is_inside(&self, value: Value, one: &Loop) -> bool {
        value.is_instruction() && self.code.numbers.get(&value.block()).is_some_and(|block| one.body.contains(block))
    }

    fn is_known_before(&self, value: Value, one: &Loop) -> bool {
        value.is_pointer()
            && (value.is_constant() || value.is_parameter() || value.is_instruction() && !self.is_inside(value, one))
    }

    fn body(&self, one: &Loop) -> Body {
        let mut body = Body::default();
        for &number in &one.body {
            for &instruction in &self.code.instructions[number] {
                self.look(one, number, instruction, &mut body);
            }
        }
        body
    }

    fn look(&self, one: &Loop, number: usize, instruction: Value, body: &mut Body) {
        match instruction.kind() {
            Kind::Call if is_condition_wait(instruction) => {
                let has_inner = self
                    .loops
                    .iter()
                    .any(|inner| inner.header != one.header && inner.body.contains(&number) && inner.body.len() < one.body.len());
                if has_inner {
                    body.writes = true;
                } else {
                    body.waits = Some(instruction);
                }
            }
            Kind::Call if locks(instruction) => body.locks = true,
            Kind::Call if is_harmless(instruction) => {}
            Kind::Call => match self.effects.of(instruction.callee(), 0) {
                Effect::Anything => body.writes = true,
                Effect::Modifies => body.modifies = true,
                Effect::Reads | Effect::Nothing => {}
            },
            Kind::Store => {
                let pointer = instruction.pointer();
                let is_local = pointer.is_instruction() && pointer.kind() == Kind::Alloca;
                if self.slots.contains(&pointer) {
                    body.stored_slots.insert(pointer);
                } else if !(is_local && instruction.operands()[0].is_constant()) {
                    // The expected value of a compare-exchange is such a local variable.
                    body.writes = true;
                }
            }
            Kind::Modify => body.modifies = true,
            _ => {}
        }
    }

    fn waits_on_memory(&self, one: &Loop, body: &Body) -> bool {
        let mut waits = false;
        for &number in &one.body {
            let leaves = self.code.edges[number].iter().any(|to| !one.body.contains(to));
            let end = self.code.blocks[number].end();
            if !leaves || end.kind() != Kind::Branch {
                continue;
            }
            match self.exit_condition(end.condition(), one, body) {
                // A search: one condition that is carried along is enough.
                None => return false,
                Some(loads) => waits |= loads,
            }
        }
        waits
    }

    /// Whether a condition depends on a load in the loop; `None` if on what one iteration passes to the next.
    fn exit_condition(&self, condition: Value, one: &Loop, body: &Body) -> Option<bool> {
        let mut open = vec![condition];
        let mut seen = HashSet::new();
        let mut loads = false;
        while let Some(value) = open.pop() {
            if !seen.insert(value) || !self.is_inside(value, one) {
                continue;
            }
            match value.kind() {
                Kind::Phi if self.code.numbers[&value.block()] == one.header => return None,
                Kind::Load if self.slots.contains(&value.pointer()) => {
                    let slot = value.pointer();
                    if body.stored_slots.contains(&slot) {
                        open.extend(self.stored(slot, one)?);
                    }
                }
                Kind::Load | Kind::Modify => {
                    loads = true;
                    open.push(value.pointer());
                }
                Kind::Call => {
                    loads |= self.effects.of(value.callee(), 0) >= Effect::Reads && !is_harmless(value);
                    open.extend(value.arguments());
                }
                _ => open.extend(value.operands()),
            }
        }
        Some(loads)
    }

    /// What the loop stores into a local variable; `None` if that is computed from the variable itself.
    fn stored(&self, slot: Value, one: &Loop) -> Option<Vec<Value>> {
        let stores = slot.users().into_iter().filter(|user| user.kind() == Kind::Store && self.is_inside(*user, one));
        let values: Vec<Value> = stores.map(|store| store.operands()[0]).collect();
        let mut open = values.clone();
        let mut seen = HashSet::new();
        while let Some(value) = open.pop() {
            if !seen.insert(value) || !self.is_inside(value, one) {
                continue;
            }
            match value.kind() {
                Kind::Load if value.pointer() == slot => return None,
                Kind::Load | Kind::Modify => open.push(value.pointer()),
                _ => open.extend(value.operands()),
            }
        }
        Some(values)
    }
}

/// The place of each edge in which something was put: the end of a block, and which of its successors.
type Places = HashMap<(usize, usize), Option<Value>>;

/// Calls where loops begin and end. On an edge that leaves several loops the inner one ends first, and a next one begins last.
pub fn mark(code: &Code, loops: &[WaitLoop], inserter: &mut Inserter) {
    let mut places = Places::new();
    let mut sorted: Vec<&WaitLoop> = loops.iter().collect();
    sorted.sort_by_key(|one| one.body.len());
    let tables: Vec<Value> =
        sorted.iter().map(|one| inserter.loop_table(Table::new().number(one.kind).bytes(), code.function)).collect();
    let mut put = |one: &WaitLoop, table: Value, (from, to): (usize, usize), begins: bool| {
        let place = places.entry((from, to)).or_insert_with(|| code.blocks[from].edge(to));
        if let Some(at) = *place {
            let like = code.blocks[if begins { one.header } else { from }].end();
            inserter.wait_loop(at, like, begins, table, one.condition);
        }
    };
    for (one, table) in sorted.iter().zip(&tables) {
        for &from in &one.body {
            for (to, _) in code.edges[from].iter().enumerate().filter(|(_, to)| !one.body.contains(to)) {
                put(one, *table, (from, to), false);
            }
        }
    }
    for (one, table) in sorted.iter().zip(&tables).rev() {
        for from in (0..code.blocks.len()).filter(|from| !one.body.contains(from)) {
            for (to, _) in code.edges[from].iter().enumerate().filter(|(_, to)| **to == one.header) {
                put(one, *table, (from, to), true);
            }
        }
    }
}
