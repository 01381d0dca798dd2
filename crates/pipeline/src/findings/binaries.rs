//! Symbols from the module files themselves.

use crate::findings::symbols::Symbols;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use rashomon_event::{Frame, ModuleInfo, path_of};
use rashomon_symbolize::{InBlock, Local, StackFrame, Symbolizer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Not for sharing between threads: caches what it reads.
#[derive(Default)]
pub struct Binaries {
    symbolizer: Symbolizer,
    /// Function entries of a module file, sorted.
    starts: RefCell<HashMap<String, Rc<Vec<u64>>>>,
    trusted: Vec<String>,
}

impl Binaries {
    pub fn new() -> Self {
        Self::default()
    }

    /// `libraries`: whose calls order nothing.
    pub fn trusting(libraries: &[String]) -> Self {
        Self { trusted: libraries.to_vec(), ..Self::default() }
    }

    fn starts(&self, path: &str) -> Rc<Vec<u64>> {
        Rc::clone(self.starts.borrow_mut().entry(path.to_owned()).or_insert_with(|| Rc::new(read_starts(path))))
    }
}

/// Empty where the file cannot be read: ids then count from the module's beginning.
fn read_starts(path: &str) -> Vec<u64> {
    let starts = rashomon_symbolize::with_object(&path_of(path), |file| {
        let functions = file.symbols().chain(file.dynamic_symbols());
        let defined = functions.filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
        Ok(defined.map(|symbol| symbol.address()).collect())
    });
    let mut starts: Vec<u64> = starts.unwrap_or_default();
    starts.sort_unstable();
    starts.dedup();
    starts
}

impl Symbols for Binaries {
    fn trusted(&self) -> &[String] {
        &self.trusted
    }

    fn frames(&self, module: &ModuleInfo, offset: u64) -> Vec<Frame> {
        self.symbolizer.frames(module, offset)
    }

    fn function_start(&self, module: &ModuleInfo, offset: u64) -> Option<u64> {
        // A file that is not the recorded one must not name places.
        self.symbolizer.check(module).ok()?;
        let starts = self.starts(&module.path);
        let behind = starts.partition_point(|start| *start <= offset);
        Some(starts[behind.checked_sub(1)?])
    }

    fn variable(&self, module: &ModuleInfo, offset: u64) -> Option<(String, u64)> {
        let symbol = self.symbolizer.data_symbol(module, offset)?;
        Some((symbol.name, offset.saturating_sub(symbol.offset)))
    }

    fn member(&self, module: &ModuleInfo, offset: u64) -> Option<String> {
        self.symbolizer.member_of_variable(module, offset)
    }

    fn members_of_block(&self, module: &ModuleInfo, code: u64, (size, into): (u64, u64), used: Option<u64>) -> InBlock {
        self.symbolizer.members_of_block(module, code, size, into, used)
    }

    fn local(&self, module: &ModuleInfo, code: u64, frame: StackFrame, address: u64) -> Option<Local> {
        self.symbolizer.local(module, code, frame, address)
    }
}
