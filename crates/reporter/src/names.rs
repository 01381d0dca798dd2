//! What addresses of the program mean.

use rashomon_event::ModuleInfo;
use rashomon_report::frame::NULL;
use rashomon_report::warning::{Frame, Location, Place, Stack, Variable, Warning};
use rashomon_symbolize::Symbolizer;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Modules of the program and what their files say.
#[derive(Default)]
pub struct Names {
    modules: Vec<ModuleInfo>,
    symbolizer: Symbolizer,
    /// Frames of return addresses looked up before.
    known: HashMap<u64, Vec<Frame>>,
}

/// Parts of the paths of files that belong to runtimes: the functions of the program's libraries that a runtime stands in for are
/// the libraries', without source.
const RUNTIME_FILES: [&str; 4] = ["runtime/src/", "tsan_interceptors", "sanitizer_common_interceptors", "tsan_new_delete"];

impl Names {
    pub fn set_modules(&mut self, modules: Vec<ModuleInfo>) {
        self.modules = modules;
        self.known.clear();
    }

    pub fn keep_mangled(&mut self) {
        self.symbolizer.keep_mangled();
    }

    /// What the program itself says of addresses that are in none of its modules.
    pub fn tell(&mut self, named: HashMap<u64, Vec<Frame>>) {
        self.known.extend(named);
    }

    fn module_at(&self, address: u64) -> Option<&ModuleInfo> {
        self.modules.iter().find(|module| module.start <= address && address < module.end)
    }

    /// Looks up everything in a warning.
    pub fn resolve(&mut self, warning: &mut Warning) {
        for stack in warning.stacks_mut() {
            self.resolve_stack(stack);
        }
        for location in &mut warning.locations {
            self.resolve_location(location);
        }
        // An address that belongs to nothing is no location.
        warning.locations.retain(|location| location.place != Place::Static || location.variable.is_some());
    }

    pub fn resolve_stack(&mut self, stack: &mut Stack) {
        for &address in &stack.addresses {
            let frames = self.frames(address);
            stack.frames.extend_from_slice(frames);
        }
        strip_start(&mut stack.frames);
    }

    /// The frames of the call that returns to an address, innermost first; at least one.
    pub fn frames(&mut self, address: u64) -> &[Frame] {
        if !self.known.contains_key(&address) {
            let frames = self.look_up(address);
            self.known.insert(address, frames);
        }
        &self.known[&address]
    }

    fn look_up(&self, address: u64) -> Vec<Frame> {
        let Some(module) = self.module_at(address.saturating_sub(1)) else {
            return vec![Frame { address, offset: address.saturating_sub(1), ..Frame::default() }];
        };
        let found = self.symbolizer.frames_of_return_address(module, address.saturating_sub(module.base));
        let frames = found.into_iter().enumerate().map(|(index, frame)| {
            let of_runtime = frame.file.as_deref().is_some_and(|file| RUNTIME_FILES.iter().any(|part| file.contains(part)));
            let source = !of_runtime;
            Frame {
                address,
                function: frame.function,
                file: frame.file.filter(|_| source),
                line: frame.line.filter(|_| source),
                column: frame.column.filter(|_| source),
                module: Some(module.path.clone()),
                offset: frame.offset,
                build_id: module.build_id.clone().filter(|_| index == 0),
                inlined: frame.inlined,
            }
        });
        frames.collect()
    }

    fn resolve_location(&self, location: &mut Location) {
        if location.place == Place::Static {
            location.variable = self.variable(location.address);
        }
    }

    /// The variable at an address. Of a module without symbols: what is known without them.
    pub fn variable(&self, address: u64) -> Option<Variable> {
        let module = self.module_at(address)?;
        let offset = address.saturating_sub(module.base);
        let symbol = self.symbolizer.data_symbol(module, offset);
        let declared = self.symbolizer.variable(module, offset);
        let (name, start, size) = match symbol {
            Some(symbol) => (symbol.name, symbol.offset, symbol.size),
            None => (NULL.to_owned(), offset, 0),
        };
        let (file, line) = declared.map_or((None, None), |declared| (declared.file, declared.line));
        Some(Variable {
            name,
            start: module.base.wrapping_add(start),
            size,
            module: module.path.clone(),
            offset: start,
            file,
            line,
        })
    }
}

/// The functions of libc that call a program's `main`, the start routines of threads, constructors.
const STARTERS: [&str; 6] =
    ["start_thread", "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl", "call_init", "_start"];

/// Leaves out where libc starts threads and programs, since every stack ends there, and what our runtime puts between the
/// program's own calls. The innermost call stays: it may be of a library function that the runtime stands in for.
fn strip_start(frames: &mut Vec<Frame>) {
    let of_runtime = |frame: &&Frame| frame.function.as_deref().is_some_and(|name| name.starts_with("rashomon_runtime::"));
    let calls: BTreeSet<u64> = frames.iter().filter(of_runtime).map(|frame| frame.address).collect();
    let innermost = frames.first().map(|frame| frame.address);
    // With everything that was inlined there.
    frames.retain(|frame| Some(frame.address) == innermost || !calls.contains(&frame.address));
    let Some(last) = frames.last() else { return };
    if frames.len() < 2 {
        return;
    }
    let called_main = frames[frames.len() - 2].function.as_deref() == Some("main");
    let starter = last.function.as_deref().is_some_and(|name| STARTERS.contains(&name.split('@').next().unwrap_or(name)));
    let library = last.module.as_deref().and_then(|path| Path::new(path).file_name()?.to_str());
    let in_libc =
        library.is_some_and(|name| name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("libpthread"));
    if called_main || starter || in_libc {
        frames.pop();
    }
}
