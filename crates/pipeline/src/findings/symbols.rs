//! What the descriptions of findings need to know about code and data, behind a trait so that they can be tested without
//! binaries.

use rashomon_event::{Frame, ModuleInfo};
use rashomon_symbolize::{InBlock, Local, StackFrame};

pub trait Symbols {
    /// The functions at an *instruction* (an address inside it), innermost inlined one first; at least one frame.
    fn frames(&self, module: &ModuleInfo, offset: u64) -> Vec<Frame>;
    /// Where the function around an instruction begins.
    fn function_start(&self, module: &ModuleInfo, offset: u64) -> Option<u64>;
    /// The variable at an offset: its name, and how far into it the offset is.
    fn variable(&self, module: &ModuleInfo, offset: u64) -> Option<(String, u64)>;
    /// How the bytes at an offset are written behind the name of the variable that they lie in: `.table[3].lock`.
    fn member(&self, _module: &ModuleInfo, _offset: u64) -> Option<String> {
        None
    }
    /// What the code at an instruction may call a place in a `block` that it uses, given as size and offset into it:
    /// `Stats::mutex_`. `used`: bytes that are used there as one; `None`: it is a lock.
    fn members_of_block(&self, _module: &ModuleInfo, _code: u64, _block: (u64, u64), _used: Option<u64>) -> InBlock {
        InBlock::default()
    }
    /// The variable at an address of a stack, in the frame of the function around the instruction `code`.
    fn local(&self, _module: &ModuleInfo, _code: u64, _frame: StackFrame, _address: u64) -> Option<Local> {
        None
    }
    /// Libraries of which the user says that their calls order nothing.
    fn trusted(&self) -> &[String] {
        &[]
    }
}
