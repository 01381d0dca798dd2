//! Where calls of the runtime are put.

use crate::ir::{Builder, Function, Module, Value};
use rashomon_abi::deep;

pub struct Inserter {
    pub module: Module,
    builder: Builder,
}

impl Inserter {
    pub fn new(module: Module) -> Self {
        Self { module, builder: Builder::new(module) }
    }

    pub fn loop_table(&self, bytes: &[u8], of: Function) -> Value {
        self.builder.table(bytes, deep::LOOPS, of)
    }

    pub fn dependence_table(&self, bytes: &[u8], of: Function) -> Value {
        self.builder.table(bytes, deep::DEPENDENCES, of)
    }

    /// A wait loop begins or ends; `condition` is what it waits on, where that is known.
    pub fn wait_loop(&self, at: Value, like: Value, begins: bool, table: Value, condition: Option<Value>) {
        let name = if begins { "__rashomon_loop_enter" } else { "__rashomon_loop_exit" };
        self.builder.call(at, like, name, &[table, condition.unwrap_or_else(|| self.builder.null())]);
    }

    /// A function begins; the result names this activation. The table is set later.
    pub fn activation(&self, at: Value) -> Value {
        self.builder.ask(at, at, "__rashomon_activation", &[self.builder.null()])
    }

    pub fn set_table(&self, activation: Value, table: Value) {
        activation.set_operand(0, table);
    }

    pub fn segment(&self, at: Value, like: Value, number: u64) {
        self.builder.call(at, like, "__rashomon_segment", &[self.builder.number(number)]);
    }

    pub fn resume(&self, at: Value, like: Value, activation: Value, number: u64) {
        self.builder.call(at, like, "__rashomon_resume", &[activation, self.builder.number(number)]);
    }

    /// An access is about to be made.
    pub fn access(&self, access: Value, name: &str, bytes: Option<u64>) {
        let pointer = access.pointer();
        match bytes {
            Some(bytes) => self.builder.call(access, access, name, &[pointer, self.builder.number(bytes)]),
            None => self.builder.call(access, access, name, &[pointer]),
        }
    }

    /// A pointer to a virtual table is about to be stored: hooks know that of a constructor that of the class itself comes again.
    pub fn vtable_store(&self, store: Value) {
        self.builder.call(store, store, "__tsan_vptr_update", &[store.pointer(), store.operands()[0]]);
    }

    pub fn replace_memory_call(&self, call: Value, name: &str) {
        self.builder.replace_memory_call(call, name);
    }
}
