//! What the descriptions of findings need to know about code and data, behind a trait so that they can be tested without
//! binaries.

use rashomon_event::{Frame, ModuleInfo};

pub trait Symbols {
    /// The functions at an *instruction* (an address inside it), innermost inlined one first; at least one frame.
    fn frames(&self, module: &ModuleInfo, offset: u64) -> Vec<Frame>;
    /// Where the function around an instruction begins.
    fn function_start(&self, module: &ModuleInfo, offset: u64) -> Option<u64>;
    /// The variable at an offset: its name, and how far into it the offset is.
    fn variable(&self, module: &ModuleInfo, offset: u64) -> Option<(String, u64)>;
    /// Libraries of which the user says that their calls order nothing.
    fn trusted(&self) -> &[String] {
        &[]
    }
}
