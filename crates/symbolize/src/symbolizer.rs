//! Questions about addresses of modules, with one cache for all of them.
//!
//! A module file whose build-id is not the recorded one explains nothing: its frames are module and offset only, so that no
//! wrong line is ever shown. [`Symbolizer::check`] says why.

use crate::demangle::demangle;
use crate::error::SymbolizeError;
use crate::in_block::InBlock;
use crate::locals::{Local, StackFrame};
use crate::members::Members;
use crate::symbols::SymbolTable;
use crate::variables::{Declaration, declarations};
use addr2line::Loader;
use rashomon_event::{Frame, ModuleInfo, path_of};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where separate debug information lies, by build-id.
const DEBUG_DIRECTORY: &str = "/usr/lib/debug/.build-id";

/// A variable with static storage, as the symbol table names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// Demangled.
    pub name: String,
    /// Offset of its first byte from the module's base.
    pub offset: u64,
    pub size: u64,
}

/// A variable with static storage, as the debug information declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Without its scope.
    pub name: String,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Answers from module files, each read once. Not for sharing between threads: make one for each.
#[derive(Default)]
pub struct Symbolizer {
    /// Names stay as linkers know them.
    mangled: bool,
    /// By path and recorded build-id.
    modules: RefCell<HashMap<(String, Option<String>), OpenedModule>>,
}

type OpenedModule = Rc<Result<Module, SymbolizeError>>;

struct Module {
    symbols: SymbolTable,
    /// Debug information, in the file itself or beside it.
    debug: Option<(Loader, PathBuf)>,
    declarations: OnceCell<BTreeMap<u64, Declaration>>,
    members: OnceCell<Option<Members>>,
}

impl Module {
    fn open(info: &ModuleInfo) -> Result<Self, SymbolizeError> {
        let path = &path_of(&info.path);
        let symbols = SymbolTable::read(path)?;
        if let (Some(recorded), Some(found)) = (&info.build_id, &symbols.build_id)
            && !recorded.eq_ignore_ascii_case(found)
        {
            return Err(SymbolizeError::BuildIdMismatch {
                path: path.to_path_buf(),
                recorded: recorded.clone(),
                found: found.clone(),
            });
        }
        let debug = debug_files(path, symbols.build_id.as_deref()).into_iter().find_map(open_debug);
        Ok(Self { symbols, debug, declarations: OnceCell::new(), members: OnceCell::new() })
    }
}

impl Module {
    fn members(&self) -> Option<&Members> {
        let (_, path) = self.debug.as_ref()?;
        self.members.get_or_init(|| Members::read(path)).as_ref()
    }
}

fn debug_files(path: &Path, build_id: Option<&str>) -> Vec<PathBuf> {
    let mut files = vec![path.to_path_buf()];
    if let Some((directory, rest)) = build_id.and_then(|id| id.split_at_checked(2)) {
        files.push(Path::new(DEBUG_DIRECTORY).join(directory).join(format!("{rest}.debug")));
    }
    files
}

/// The file's debug information, if it has any.
fn open_debug(path: PathBuf) -> Option<(Loader, PathBuf)> {
    let loader = Loader::new(&path).ok()?;
    loader.get_section_range(b".debug_info")?;
    Some((loader, path))
}

impl Symbolizer {
    pub fn new() -> Self {
        Self::default()
    }

    fn module(&self, info: &ModuleInfo) -> OpenedModule {
        let key = (info.path.clone(), info.build_id.clone());
        Rc::clone(self.modules.borrow_mut().entry(key).or_insert_with(|| Rc::new(Module::open(info))))
    }

    /// Names are to stay as linkers know them.
    pub fn keep_mangled(&mut self) {
        self.mangled = true;
    }

    fn name(&self, name: &str) -> String {
        if self.mangled { name.to_owned() } else { demangle(name) }
    }

    /// Whether the file on disk is there and the one that was recorded.
    pub fn check(&self, info: &ModuleInfo) -> Result<(), SymbolizeError> {
        match &*self.module(info) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        }
    }

    /// Whether the module has line information that can be used.
    pub fn has_debug_info(&self, info: &ModuleInfo) -> bool {
        matches!(&*self.module(info), Ok(module) if module.debug.is_some())
    }

    /// The frames at a code address, innermost (inlined) first; never empty. What is not known is `None`.
    pub fn frames(&self, info: &ModuleInfo, offset: u64) -> Vec<Frame> {
        let bare = Frame { module: info.path.clone(), offset, ..Frame::default() };
        let module = self.module(info);
        let Ok(module) = &*module else {
            return vec![bare];
        };
        let symbol = module.symbols.function_at(offset).map(|symbol| self.name(&symbol.name));
        let mut frames = module.debug.as_ref().map(|(loader, _)| self.debug_frames(loader, &bare)).unwrap_or_default();
        match frames.last_mut() {
            Some(outermost) => {
                // Code without an entry of its own in the debug information (assembly) still has a symbol.
                outermost.function = outermost.function.take().or(symbol);
                outermost.inlined = false;
                frames
            }
            None => vec![Frame { function: symbol, ..bare }],
        }
    }

    /// The frames of the call that returns to `offset`: a site of the trace. Frames carry the offset of a byte of the call.
    pub fn frames_of_return_address(&self, info: &ModuleInfo, offset: u64) -> Vec<Frame> {
        self.frames(info, offset.saturating_sub(1))
    }

    /// Frames from debug information; empty where it has nothing for the address.
    fn debug_frames(&self, loader: &Loader, bare: &Frame) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Ok(mut found) = loader.find_frames(bare.offset) else {
            return frames;
        };
        while let Ok(Some(frame)) = found.next() {
            let function = frame.function.as_ref().and_then(|function| function.raw_name().ok()).map(|name| self.name(&name));
            let location = frame.location.as_ref();
            frames.push(Frame {
                function,
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
                column: location.and_then(|location| location.column).filter(|&column| column > 0),
                inlined: true,
                ..bare.clone()
            });
        }
        frames.retain(|frame| frame.function.is_some() || frame.file.is_some());
        frames
    }

    /// The variable whose bytes lie at `offset`, from the symbol table; static locals too.
    pub fn data_symbol(&self, info: &ModuleInfo, offset: u64) -> Option<DataSymbol> {
        let module = self.module(info);
        let symbol = module.as_ref().as_ref().ok()?.symbols.variable_at(offset)?;
        Some(DataSymbol { name: self.name(&symbol.name), offset: symbol.address, size: symbol.size })
    }

    /// The declaration of the variable whose bytes lie at `offset`, from the debug information.
    pub fn variable(&self, info: &ModuleInfo, offset: u64) -> Option<Variable> {
        let module = self.module(info);
        let module = module.as_ref().as_ref().ok()?;
        let start = module.symbols.variable_at(offset)?.address;
        let (_, path) = module.debug.as_ref()?;
        let found = module.declarations.get_or_init(|| declarations(path)).get(&start)?;
        Some(Variable { name: found.name.clone(), file: found.file.clone(), line: found.line })
    }

    /// How the bytes at `offset` are written behind the name of the variable that they lie in, such as `.table[3].lock`. `None`:
    /// there is no debug information of it, or nothing to write.
    pub fn member_of_variable(&self, info: &ModuleInfo, offset: u64) -> Option<String> {
        let module = self.module(info);
        let module = module.as_ref().as_ref().ok()?;
        let start = module.symbols.variable_at(offset)?.address;
        module.members()?.of_variable(start, offset - start)
    }

    /// What the code at the instruction `code` may call the place `offset` bytes into a block of `size` bytes that it uses, such
    /// as `Stats::mutex_`: by the types of what it can reach the block through. `used`: bytes that are used there as one; `None`:
    /// it is a lock.
    pub fn members_of_block(&self, info: &ModuleInfo, code: u64, size: u64, offset: u64, used: Option<u64>) -> InBlock {
        let module = self.module(info);
        let members = module.as_ref().as_ref().ok().and_then(Module::members);
        members.map(|members| members.of_block(code, size, offset, used)).unwrap_or_default()
    }

    /// The variable at an address of a stack, in the frame of the function around the instruction `code`.
    pub fn local(&self, info: &ModuleInfo, code: u64, frame: StackFrame, address: u64) -> Option<Local> {
        let module = self.module(info);
        module.as_ref().as_ref().ok()?.members()?.local(code, frame, address)
    }
}
