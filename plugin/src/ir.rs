//! LLVM's module as the pass sees it. Here, and in the entry points, is all that is unsafe.
//!
//! A handle is valid while the pass runs: the pass deletes instructions of one kind only (copies of memory, which it replaces),
//! and keeps no handle of them.
#![allow(unsafe_code, reason = "LLVM's interface is that of C")]

use llvm_sys::comdat::{LLVMGetComdat, LLVMGetOrInsertComdat, LLVMSetComdat};
use llvm_sys::core::*;
use llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMOpcode, LLVMTypeKind, LLVMVisibility};
use rashomon_abi::deep;
use std::collections::HashMap;
use std::ffi::CString;

unsafe extern "C" {
    fn rashomon_edge(from: LLVMBasicBlockRef, successor: u32) -> LLVMValueRef;
    fn rashomon_first_insertion_point(block: LLVMBasicBlockRef) -> LLVMValueRef;
    fn rashomon_is_eh_pad(block: LLVMBasicBlockRef) -> i32;
    fn rashomon_is_vtable_access(access: LLVMValueRef) -> i32;
    fn rashomon_is_exact(function: LLVMValueRef) -> i32;
    fn rashomon_accesses_memory(call: LLVMValueRef) -> i32;
    fn rashomon_returns_twice(call: LLVMValueRef) -> i32;
    fn rashomon_must_tail(call: LLVMValueRef) -> i32;
    fn rashomon_is_coroutine(function: LLVMValueRef) -> i32;
    fn rashomon_store_size(module: LLVMModuleRef, kind: LLVMTypeRef) -> u64;
}

/// A call of LLVM with handles of the module that is compiled.
macro_rules! llvm {
    ($function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the handles are those of the module that the pass was given, and name what is still part of it; what they are
        // is what the function asks for, see the place of use.
        unsafe { $function($($argument),*) }
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Module(LLVMModuleRef);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(LLVMBasicBlockRef);

/// Anything that has a value: an instruction, a parameter, a constant, a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(LLVMValueRef);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function(LLVMValueRef);

/// What an instruction is, as far as the pass tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Load,
    Store,
    /// Read-modify-write and compare-exchange.
    Modify,
    Call,
    Phi,
    Alloca,
    /// A branch on a condition, a switch, an indirect branch.
    Branch,
    Return,
    LandingPad,
    Other,
}

impl Module {
    /// # Safety
    /// The module is valid, and nobody else changes it, while the handle and what comes of it are used.
    pub const unsafe fn new(module: LLVMModuleRef) -> Self {
        Self(module)
    }

    pub fn functions(self) -> impl Iterator<Item = Function> {
        let first = llvm!(LLVMGetFirstFunction(self.0));
        let next = |one: &LLVMValueRef| Some(llvm!(LLVMGetNextFunction(*one))).filter(|one| !one.is_null());
        std::iter::successors(Some(first).filter(|one| !one.is_null()), next).map(Function)
    }

    pub fn store_size(self, kind: LLVMTypeRef) -> u64 {
        llvm!(rashomon_store_size(self.0, kind))
    }
}

impl Function {
    pub fn name(self) -> Vec<u8> {
        Value(self.0).name()
    }
    pub fn parameters(self) -> Vec<Value> {
        (0..llvm!(LLVMCountParams(self.0))).map(|number| Value(llvm!(LLVMGetParam(self.0, number)))).collect()
    }
    pub fn has_body(self) -> bool {
        llvm!(LLVMIsDeclaration(self.0)) == 0 && llvm!(LLVMGetLinkage(self.0)) != LLVMLinkage::LLVMAvailableExternallyLinkage
    }
    fn has_attribute(self, name: &str) -> bool {
        let kind = llvm!(LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()));
        !llvm!(LLVMGetEnumAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, kind)).is_null()
    }
    /// Whether `-fsanitize=thread` asks for it, and nothing forbids it.
    pub fn is_instrumented(self) -> bool {
        let forbidden = ["naked", "disable_sanitizer_instrumentation"].iter().any(|name| self.has_attribute(name));
        self.has_body() && self.has_attribute("sanitize_thread") && !forbidden
    }
    pub fn is_exact(self) -> bool {
        llvm!(rashomon_is_exact(self.0)) != 0
    }
    pub fn is_coroutine(self) -> bool {
        llvm!(rashomon_is_coroutine(self.0)) != 0
    }
    pub fn blocks(self) -> Vec<Block> {
        let first = llvm!(LLVMGetFirstBasicBlock(self.0));
        let next = |one: &LLVMBasicBlockRef| Some(llvm!(LLVMGetNextBasicBlock(*one))).filter(|one| !one.is_null());
        std::iter::successors(Some(first).filter(|one| !one.is_null()), next).map(Block).collect()
    }
}

impl Block {
    pub fn instructions(self) -> Vec<Value> {
        let first = llvm!(LLVMGetFirstInstruction(self.0));
        let next = |one: &LLVMValueRef| Some(llvm!(LLVMGetNextInstruction(*one))).filter(|one| !one.is_null());
        std::iter::successors(Some(first).filter(|one| !one.is_null()), next).map(Value).collect()
    }
    pub fn end(self) -> Value {
        Value(llvm!(LLVMGetBasicBlockTerminator(self.0)))
    }
    pub fn successors(self) -> Vec<Self> {
        let end = self.end().0;
        (0..llvm!(LLVMGetNumSuccessors(end))).map(|number| Self(llvm!(LLVMGetSuccessor(end, number)))).collect()
    }
    pub fn is_eh_pad(self) -> bool {
        llvm!(rashomon_is_eh_pad(self.0)) != 0
    }
    /// Behind phis and landing pads; `None` where nothing can be put.
    pub fn first_place(self) -> Option<Value> {
        Value::of(llvm!(rashomon_first_insertion_point(self.0)))
    }
    /// See the C++ side: to be asked once for each edge.
    pub fn edge(self, successor: usize) -> Option<Value> {
        Value::of(llvm!(rashomon_edge(self.0, successor as u32)))
    }
}

impl Value {
    fn of(value: LLVMValueRef) -> Option<Self> {
        (!value.is_null()).then_some(Self(value))
    }
    pub fn name(self) -> Vec<u8> {
        let mut length = 0;
        let text = llvm!(LLVMGetValueName2(self.0, &mut length));
        if text.is_null() {
            return Vec::new();
        }
        // SAFETY: LLVM names a value by that many bytes, which last until it gets another name.
        unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }.to_vec()
    }
    pub fn is_instruction(self) -> bool {
        !llvm!(LLVMIsAInstruction(self.0)).is_null()
    }
    pub fn is_parameter(self) -> bool {
        !llvm!(LLVMIsAArgument(self.0)).is_null()
    }
    pub fn is_constant(self) -> bool {
        llvm!(LLVMIsConstant(self.0)) != 0
    }
    pub fn as_function(self) -> Option<Function> {
        Some(Function(llvm!(LLVMIsAFunction(self.0)))).filter(|one| !one.0.is_null())
    }
    pub fn is_inline_assembly(self) -> bool {
        !llvm!(LLVMIsAInlineAsm(self.0)).is_null()
    }
    /// A variable whose bytes never change.
    pub fn is_constant_variable(self) -> bool {
        !llvm!(LLVMIsAGlobalVariable(self.0)).is_null() && llvm!(LLVMIsGlobalConstant(self.0)) != 0
    }

    // Of instructions.

    pub fn kind(self) -> Kind {
        match llvm!(LLVMGetInstructionOpcode(self.0)) {
            LLVMOpcode::LLVMLoad => Kind::Load,
            LLVMOpcode::LLVMStore => Kind::Store,
            LLVMOpcode::LLVMAtomicRMW | LLVMOpcode::LLVMAtomicCmpXchg => Kind::Modify,
            LLVMOpcode::LLVMCall | LLVMOpcode::LLVMInvoke | LLVMOpcode::LLVMCallBr => Kind::Call,
            LLVMOpcode::LLVMPHI => Kind::Phi,
            LLVMOpcode::LLVMAlloca => Kind::Alloca,
            LLVMOpcode::LLVMSwitch | LLVMOpcode::LLVMIndirectBr => Kind::Branch,
            LLVMOpcode::LLVMBr if llvm!(LLVMIsConditional(self.0)) != 0 => Kind::Branch,
            LLVMOpcode::LLVMRet => Kind::Return,
            LLVMOpcode::LLVMLandingPad => Kind::LandingPad,
            _ => Kind::Other,
        }
    }
    /// Ends its block.
    pub fn is_end(self) -> bool {
        !llvm!(LLVMIsATerminatorInst(self.0)).is_null()
    }
    pub fn block(self) -> Block {
        Block(llvm!(LLVMGetInstructionParent(self.0)))
    }
    pub fn next(self) -> Option<Self> {
        Self::of(llvm!(LLVMGetNextInstruction(self.0)))
    }
    pub fn operands(self) -> Vec<Self> {
        let count = llvm!(LLVMGetNumOperands(self.0)) as u32;
        (0..count).filter_map(|number| Self::of(llvm!(LLVMGetOperand(self.0, number)))).collect()
    }
    pub fn set_operand(self, number: u32, value: Self) {
        llvm!(LLVMSetOperand(self.0, number, value.0));
    }
    /// Of a branch or a switch: what decides.
    pub fn condition(self) -> Self {
        match llvm!(LLVMGetInstructionOpcode(self.0)) {
            LLVMOpcode::LLVMBr => Self(llvm!(LLVMGetCondition(self.0))),
            _ => Self(llvm!(LLVMGetOperand(self.0, 0))),
        }
    }
    /// Of a phi: blocks and values.
    pub fn incoming(self) -> Vec<(Block, Self)> {
        let count = llvm!(LLVMCountIncoming(self.0));
        let one =
            |number| (Block(llvm!(LLVMGetIncomingBlock(self.0, number))), Self(llvm!(LLVMGetIncomingValue(self.0, number))));
        (0..count).map(one).collect()
    }
    /// Of an access: the address.
    pub fn pointer(self) -> Self {
        Self(llvm!(LLVMGetOperand(self.0, u32::from(self.kind() == Kind::Store))))
    }
    /// Of an access: the type of the value that is loaded or stored.
    fn accessed(self) -> LLVMTypeRef {
        match self.kind() {
            Kind::Load => llvm!(LLVMTypeOf(self.0)),
            Kind::Store => llvm!(LLVMTypeOf(LLVMGetOperand(self.0, 0))),
            _ => llvm!(LLVMTypeOf(LLVMGetOperand(self.0, 1))),
        }
    }
    pub fn size(self, module: Module) -> u64 {
        module.store_size(self.accessed())
    }
    pub fn alignment(self) -> u64 {
        u64::from(llvm!(LLVMGetAlignment(self.0)))
    }
    pub fn is_atomic(self) -> bool {
        llvm!(LLVMGetOrdering(self.0)) != llvm_sys::LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
    }
    pub fn is_vtable_access(self) -> bool {
        llvm!(rashomon_is_vtable_access(self.0)) != 0
    }
    /// Accesses that the compiler made for itself.
    pub fn is_left_alone(self) -> bool {
        let kind = "nosanitize";
        let number = llvm!(LLVMGetMDKindIDInContext(self.context(), kind.as_ptr().cast(), kind.len() as u32));
        let space = llvm!(LLVMGetPointerAddressSpace(LLVMTypeOf(self.pointer().0)));
        !llvm!(LLVMGetMetadata(self.0, number)).is_null() || space != 0
    }
    /// Of an alloca: one value, which a register may hold.
    pub fn allocates_scalar(self) -> bool {
        let kind = llvm!(LLVMGetTypeKind(LLVMGetAllocatedType(self.0)));
        let count = Self(llvm!(LLVMGetOperand(self.0, 0)));
        !matches!(kind, LLVMTypeKind::LLVMArrayTypeKind | LLVMTypeKind::LLVMStructTypeKind) && count.is_constant()
    }
    pub fn users(self) -> Vec<Self> {
        let first = llvm!(LLVMGetFirstUse(self.0));
        let next = |one: &LLVMUseRef| Some(llvm!(LLVMGetNextUse(*one))).filter(|one| !one.is_null());
        let all = std::iter::successors(Some(first).filter(|one| !one.is_null()), next);
        all.map(|one| Self(llvm!(LLVMGetUser(one)))).collect()
    }
    pub fn has_value(self) -> bool {
        llvm!(LLVMGetTypeKind(LLVMTypeOf(self.0))) != LLVMTypeKind::LLVMVoidTypeKind
    }
    pub fn is_pointer(self) -> bool {
        llvm!(LLVMGetTypeKind(LLVMTypeOf(self.0))) == LLVMTypeKind::LLVMPointerTypeKind
    }
    fn context(self) -> LLVMContextRef {
        llvm!(LLVMGetTypeContext(LLVMTypeOf(self.0)))
    }

    // Of calls.

    pub fn callee(self) -> Self {
        Self(llvm!(LLVMGetCalledValue(self.0)))
    }
    pub fn callee_name(self) -> Vec<u8> {
        self.callee().as_function().map(Function::name).unwrap_or_default()
    }
    pub fn arguments(self) -> Vec<Self> {
        (0..llvm!(LLVMGetNumArgOperands(self.0))).map(|number| Self(llvm!(LLVMGetOperand(self.0, number)))).collect()
    }
    pub fn may_access_memory(self) -> bool {
        llvm!(rashomon_accesses_memory(self.0)) != 0
    }
    pub fn returns_twice(self) -> bool {
        llvm!(rashomon_returns_twice(self.0)) != 0
    }
    pub fn must_tail(self) -> bool {
        llvm!(rashomon_must_tail(self.0)) != 0
    }
}

/// A function, its reachable blocks numbered.
pub struct Code {
    pub function: Function,
    pub blocks: Vec<Block>,
    pub numbers: HashMap<Block, usize>,
    /// Of what is reached: successors in the order of the block's end, with repetitions.
    pub edges: crate::graph::Edges,
    pub instructions: Vec<Vec<Value>>,
}

impl Code {
    pub fn of(function: Function) -> Self {
        let all = function.blocks();
        let numbers: HashMap<Block, usize> = all.iter().enumerate().map(|(number, block)| (*block, number)).collect();
        let edges = all.iter().map(|block| block.successors().iter().map(|to| numbers[to]).collect()).collect();
        // What is not reached is not looked at.
        let reached = crate::graph::postorder(&edges, 0);
        let blocks: Vec<Block> = reached.iter().rev().map(|number| all[*number]).collect();
        let numbers: HashMap<Block, usize> = blocks.iter().enumerate().map(|(number, block)| (*block, number)).collect();
        let edges = blocks.iter().map(|block| block.successors().iter().map(|to| numbers[to]).collect()).collect();
        let instructions = blocks.iter().map(|block| block.instructions()).collect();
        Self { function, blocks, numbers, edges, instructions }
    }
}

/// Adds calls and tables.
pub struct Builder {
    module: Module,
    context: LLVMContextRef,
    builder: LLVMBuilderRef,
    pub word: LLVMTypeRef,
    pub pointer: LLVMTypeRef,
    nothing: LLVMTypeRef,
}

/// A parameter that the callee neither keeps nor reads through: it makes nothing known to others.
const ADDRESS_ONLY: [&str; 2] = ["nocapture", "readnone"];

impl Builder {
    pub fn new(module: Module) -> Self {
        let context = llvm!(LLVMGetModuleContext(module.0));
        Self {
            module,
            context,
            builder: llvm!(LLVMCreateBuilderInContext(context)),
            word: llvm!(LLVMInt64TypeInContext(context)),
            pointer: llvm!(LLVMPointerTypeInContext(context, 0)),
            nothing: llvm!(LLVMVoidTypeInContext(context)),
        }
    }

    fn attribute(&self, function: LLVMValueRef, index: u32, name: &str) {
        let kind = llvm!(LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()));
        let attribute = llvm!(LLVMCreateEnumAttribute(self.context, kind, 0));
        llvm!(LLVMAddAttributeAtIndex(function, index, attribute));
    }

    /// A function of the runtime, which may read and write whatever is known outside: so no access moves across it. Of its
    /// parameters only those that `copies` look at memory.
    fn runtime(
        &self,
        name: &str,
        result: LLVMTypeRef,
        parameters: &mut [LLVMTypeRef],
        copies: bool,
    ) -> (LLVMValueRef, LLVMTypeRef) {
        let kind = llvm!(LLVMFunctionType(result, parameters.as_mut_ptr(), parameters.len() as u32, 0));
        let name = CString::new(name).expect("names of the runtime");
        let known = llvm!(LLVMGetNamedFunction(self.module.0, name.as_ptr()));
        if !known.is_null() {
            return (known, kind);
        }
        let function = llvm!(LLVMAddFunction(self.module.0, name.as_ptr(), kind));
        self.attribute(function, LLVMAttributeFunctionIndex, "nounwind");
        for (index, _) in parameters.iter().enumerate().filter(|(_, one)| !copies && **one == self.pointer) {
            ADDRESS_ONLY.iter().for_each(|name| self.attribute(function, index as u32 + 1, name));
        }
        (function, kind)
    }

    /// A call before `at`, with the source line of `like`.
    pub fn call(&self, at: Value, like: Value, name: &str, arguments: &[Value]) {
        self.call_of(at, like, name, self.nothing, arguments, false);
    }

    /// The same with a result of one word.
    pub fn ask(&self, at: Value, like: Value, name: &str, arguments: &[Value]) -> Value {
        self.call_of(at, like, name, self.word, arguments, false)
    }

    fn call_of(&self, at: Value, like: Value, name: &str, result: LLVMTypeRef, arguments: &[Value], copies: bool) -> Value {
        let mut parameters: Vec<LLVMTypeRef> = arguments.iter().map(|one| llvm!(LLVMTypeOf(one.0))).collect();
        let (function, kind) = self.runtime(name, result, &mut parameters, copies);
        llvm!(LLVMPositionBuilderBefore(self.builder, at.0));
        llvm!(LLVMSetCurrentDebugLocation2(self.builder, LLVMInstructionGetDebugLoc(like.0)));
        let mut arguments: Vec<LLVMValueRef> = arguments.iter().map(|one| one.0).collect();
        let count = arguments.len() as u32;
        Value(llvm!(LLVMBuildCall2(self.builder, kind, function, arguments.as_mut_ptr(), count, c"".as_ptr())))
    }

    /// In the place of a copy of memory, or of one value into all bytes: the runtime's function, which does that and tells of it.
    pub fn replace_memory_call(&self, call: Value, name: &str) {
        let [to, from, length] = [0, 1, 2].map(|number| llvm!(LLVMGetOperand(call.0, number)));
        llvm!(LLVMPositionBuilderBefore(self.builder, call.0));
        llvm!(LLVMSetCurrentDebugLocation2(self.builder, LLVMInstructionGetDebugLoc(call.0)));
        let length = Value(llvm!(LLVMBuildIntCast2(self.builder, length, self.word, 0, c"".as_ptr())));
        let from = match Value(from).is_pointer() {
            true => Value(from),
            false => {
                let int = llvm!(LLVMInt32TypeInContext(self.context));
                Value(llvm!(LLVMBuildIntCast2(self.builder, from, int, 0, c"".as_ptr())))
            }
        };
        self.call_of(call, call, name, self.pointer, &[Value(to), from, length], true);
        llvm!(LLVMInstructionEraseFromParent(call.0));
    }

    pub fn number(&self, number: u64) -> Value {
        Value(llvm!(LLVMConstInt(self.word, number, 0)))
    }

    pub fn null(&self) -> Value {
        Value(llvm!(LLVMConstNull(self.pointer)))
    }

    /// A table in a section of its own. Where the function `of` is one of those of which the linker keeps one copy of many, as
    /// inline functions are, the table is not that copy's: it belongs to whatever the function was inlined into, too. Tables of
    /// functions are known by what is in them, so that one of many equal ones is kept; others have an address each.
    pub fn table(&self, bytes: &[u8], section: &str, of: Function) -> Value {
        let text = llvm!(LLVMConstStringInContext2(self.context, bytes.as_ptr().cast(), bytes.len(), 1));
        let has_copies = section == deep::DEPENDENCES && !llvm!(LLVMGetComdat(of.0)).is_null();
        let name = match has_copies {
            true => format!("__{section}_{:016x}_{}", deep::name_hash(bytes), bytes.len()),
            false => format!("__{section}"),
        };
        let name = CString::new(name).expect("names of sections");
        let section = CString::new(section).expect("names of sections");
        let table = llvm!(LLVMAddGlobal(self.module.0, LLVMTypeOf(text), name.as_ptr()));
        llvm!(LLVMSetInitializer(table, text));
        llvm!(LLVMSetGlobalConstant(table, 1));
        llvm!(LLVMSetSection(table, section.as_ptr()));
        llvm!(LLVMSetAlignment(table, 1));
        if has_copies {
            llvm!(LLVMSetLinkage(table, LLVMLinkage::LLVMLinkOnceODRLinkage));
            llvm!(LLVMSetVisibility(table, LLVMVisibility::LLVMHiddenVisibility));
            llvm!(LLVMSetComdat(table, LLVMGetOrInsertComdat(self.module.0, name.as_ptr())));
        } else {
            llvm!(LLVMSetLinkage(table, LLVMLinkage::LLVMPrivateLinkage));
        }
        Value(table)
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        llvm!(LLVMDisposeBuilder(self.builder));
    }
}
