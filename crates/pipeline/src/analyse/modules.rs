//! Loaded code that could have ordered accesses without our seeing it: libraries without instrumentation, Rust's standard library
//! as it comes, synchronisation functions of libc that instrumented code calls and the runtime does not stand in for, and inline
//! assembly.

use crate::analyse::libraries::is_trusted;
use crate::analyse::reach::{Facts, Role, called, linked};
use crate::findings::assembly::Assembly;
use crate::findings::rust::holds_plain_library;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use rashomon_abi::unserved;
use rashomon_event::{Finding, ModuleInfo, Trace, path_of};
use rashomon_trace::LoadedTrace;
use std::collections::BTreeSet;
use std::path::Path;

/// What may have ordered events of a trace without being seen. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Loaded libraries that are neither instrumented nor modelled nor trusted, and that somebody can have called.
    pub libraries: Vec<String>,
    /// Modules that hold Rust's standard library as toolchains ship it, in words.
    pub standard: Vec<String>,
    /// Synchronisation functions that the runtime does not serve: those that were called, where it notes that, and others that
    /// instrumented code refers to.
    pub functions: Vec<String>,
    /// Modules of which instrumented code synchronises by inline assembly, in words.
    pub assembly: Vec<String>,
}

impl Unseen {
    /// `trusted`: libraries whose calls order nothing, beside those that are [known](crate::analyse::libraries::KNOWN) not to.
    /// Libraries are seen enough where calls of them were recorded with what they reach.
    pub fn of(loaded: &LoadedTrace, trusted: &[String]) -> Self {
        let mut unseen = Self::strict(loaded, trusted);
        if loaded.header.notes.unseen_calls() && !unseen.libraries.is_empty() {
            let linked = linked_libraries(&loaded.trace);
            unseen.libraries.retain(|name| !linked.contains(name.as_str()));
        }
        unseen
    }

    /// The same, whatever was recorded of calls: some go through pointers, which nobody watches.
    pub fn strict(loaded: &LoadedTrace, trusted: &[String]) -> Self {
        let trace = &loaded.trace;
        let called = unserved::names_of(loaded.header.unserved).map(str::to_owned);
        let mut unseen = Self { functions: unseen_functions(trace).into_iter().chain(called).collect(), ..Self::default() };
        let mut libraries = Vec::new();
        for module in trace.modules.iter().filter(|module| !is_modelled(&module.path)) {
            let path = &path_of(&module.path);
            if !is_instrumented(path) && !is_trusted(&module.path, trusted) {
                libraries.push(module.path.as_str());
            }
            if is_instrumented(path)
                && !is_trusted(&module.path, trusted)
                && let Some(functions) = Assembly::of(path).synchronises
            {
                unseen.assembly.push(format!("inline assembly in {}: {functions}", file_name(&module.path)));
            }
            if holds_plain_library(path) {
                unseen.standard.push(format!("Rust's standard library in {}", file_name(&module.path)));
            }
        }
        if !libraries.is_empty() {
            let idle = never_called(trace);
            let calls = libraries.into_iter().filter(|path| !idle.contains(path));
            unseen.libraries.extend(calls.map(|path| file_name(path).to_owned()));
        }
        for names in [&mut unseen.libraries, &mut unseen.standard, &mut unseen.functions, &mut unseen.assembly] {
            names.sort();
            names.dedup();
        }
        unseen
    }

    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Everything, in words.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.libraries.iter().chain(&self.standard).chain(&self.functions).chain(&self.assembly)
    }

    /// Says of a finding that it may be no race, if anything is unseen.
    pub(crate) fn doubts(&self, finding: &mut Finding) {
        if !self.is_empty() {
            finding.note_unseen(self.all().map(String::as_str), &self.libraries);
        }
    }
}

/// Where instrumented code asks the processor for its counter or random numbers, in words. `None`: nowhere.
pub(crate) fn asks_processor(trace: &Trace) -> Option<String> {
    let asks = trace.modules.iter().filter(|module| is_own(module)).filter_map(|module| {
        let functions = Assembly::of(&path_of(&module.path)).asks_processor?;
        Some(format!("{}: {functions}", file_name(&module.path)))
    });
    let asks: BTreeSet<String> = asks.collect();
    (!asks.is_empty()).then(|| asks.into_iter().collect::<Vec<_>>().join("; "))
}

/// Whether a module's code is instrumented, and so seen.
pub(crate) fn is_own(module: &ModuleInfo) -> bool {
    !is_modelled(&module.path) && is_instrumented(&path_of(&module.path))
}

/// The distinct paths of modules, and what is asked of each.
type FactsByPath<'a> = (BTreeSet<&'a str>, Vec<(Role, Facts)>);

/// `None`: a file cannot be read.
fn facts(trace: &Trace) -> Option<FactsByPath<'_>> {
    let of_module = |path: &str| {
        let file = path_of(path);
        match (is_modelled(path), is_instrumented(&file)) {
            (true, _) => Some((Role::Modelled, Facts::of(&file).unwrap_or_default())),
            (false, true) => Some((Role::Instrumented, Facts::of(&file)?)),
            (false, false) => Some((Role::Library, Facts::of(&file)?)),
        }
    };
    let paths: BTreeSet<&str> = trace.modules.iter().map(|module| module.path.as_str()).collect();
    let modules = paths.iter().map(|path| of_module(path)).collect::<Option<Vec<_>>>()?;
    Some((paths, modules))
}

/// Names of the files of libraries that were linked with instrumented code, and not opened while the program ran: all calls that
/// instrumented code makes of their functions by name go through slots that the runtime watches.
fn linked_libraries(trace: &Trace) -> BTreeSet<&str> {
    let Some((paths, modules)) = facts(trace) else { return BTreeSet::new() };
    let linked = linked(&modules);
    paths.into_iter().zip(linked).filter(|(_, linked)| *linked).map(|(path, _)| file_name(path)).collect()
}

/// Paths of libraries that nobody can have called. None, if a file cannot be read.
fn never_called(trace: &Trace) -> BTreeSet<&str> {
    let Some((paths, modules)) = facts(trace) else { return BTreeSet::new() };
    paths.into_iter().zip(called(&modules)).filter(|(_, called)| !called).map(|(path, _)| path).collect()
}

/// Beginnings of names of synchronisation functions.
const SYNCHRONISATION: [&str; 12] =
    ["pthread_", "sem_", "mtx_", "cnd_", "thrd_", "tss_", "call_once", "__cxa_guard", "futex", "omp_", "GOMP_", "__kmpc_"];
/// Whole names of other functions by which the kernel hands something from thread to thread. Of those that the runtime does
/// not serve ([`unserved`]) it notes that they are called, so that a name that is only linked with, as those of GLib's archive
/// are, is nothing to talk of. Names that it does not have at all matter.
const HAND_OVER: [&str; 24] = [
    "flock",
    "mq_receive",
    "mq_send",
    "mq_timedreceive",
    "mq_timedsend",
    "msgrcv",
    "msgsnd",
    "pthread_sigqueue",
    "semctl",
    "semop",
    "semtimedop",
    "sendfile",
    "sendfile64",
    "signalfd",
    "sigqueue",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "splice",
    "tee",
    "tgkill",
    "timer_settime",
    "vmsplice",
];
/// Those that order nothing and never block: nothing is lost when they are not seen.
const HARMLESS: [&str; 30] = [
    "pthread_attr_",
    "pthread_mutexattr_",
    "pthread_condattr_",
    "pthread_rwlockattr_",
    "pthread_barrierattr_",
    "pthread_self",
    "pthread_equal",
    "pthread_exit",
    "pthread_sigmask",
    "pthread_cancel",
    "pthread_setcancel",
    "pthread_testcancel",
    "pthread_atfork",
    "pthread_getspecific",
    "pthread_setspecific",
    "pthread_key_",
    "pthread_get",
    "pthread_setaffinity_np",
    "pthread_setattr_default_np",
    "pthread_setconcurrency",
    "pthread_setname_np",
    "pthread_setschedp",
    "pthread_detach",
    "pthread_mutex_consistent",
    "pthread_mutex_getprioceiling",
    "sem_getvalue",
    "thrd_current",
    "thrd_equal",
    "thrd_exit",
    "tss_",
];

/// Whether a function of this name may order what threads do.
pub fn is_synchronisation(name: &str) -> bool {
    HAND_OVER.contains(&name)
        || unserved::NAMES.contains(&name)
        || SYNCHRONISATION.iter().any(|start| name.starts_with(start)) && !HARMLESS.iter().any(|start| name.starts_with(start))
}

/// Synchronisation functions that instrumented modules call and that the runtime does not stand in for, sorted.
pub fn unseen_functions(trace: &Trace) -> Vec<String> {
    let mut wanted = BTreeSet::new();
    let mut defined = BTreeSet::new();
    for module in &trace.modules {
        let symbols = rashomon_symbolize::with_object(&path_of(&module.path), |file| {
            let named = |symbol: object::Symbol<'_, '_, _>| Some((symbol.name().ok()?.to_owned(), symbol.is_definition()));
            Ok(file.dynamic_symbols().filter_map(named).collect::<Vec<(String, bool)>>())
        });
        let Ok(symbols) = symbols else { continue };
        // The runtime, or the program it is linked into.
        if symbols.iter().any(|(name, is_defined)| *is_defined && name == MARKER) {
            defined.extend(symbols.iter().filter(|(_, is_defined)| *is_defined).map(|(name, _)| name.clone()));
        }
        if symbols.iter().any(|(name, _)| name.starts_with("__tsan_")) {
            let calls = symbols.into_iter().filter(|(name, is_defined)| !is_defined && is_synchronisation(name));
            wanted.extend(calls.map(|(name, _)| name));
        }
    }
    wanted.difference(&defined).cloned().collect()
}

/// The symbol that tells our runtime from others.
pub const MARKER: &str = "rashomon_runtime_version";

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_modelled(path: &str) -> bool {
    rashomon_abi::module::is_modelled(file_name(path).as_bytes())
}

/// Whether any code of a file that our runtime is linked into was compiled with instrumentation: compilers make a local
/// constructor then that calls the runtime. Where local symbols were stripped nobody knows.
pub fn has_instrumented_code<'a>(file: &impl object::Object<'a>) -> bool {
    const CONSTRUCTORS: [&str; 2] = ["tsan.module_ctor", "I_00099_"];
    let is_constructor = |name: &str| CONSTRUCTORS.iter().any(|constructor| name.contains(constructor));
    let mut locals = file.symbols().filter(|symbol| symbol.is_local() && symbol.kind() == SymbolKind::Text).peekable();
    locals.peek().is_none() || locals.any(|symbol| symbol.name().is_ok_and(is_constructor))
}

/// Whether any of the file's code calls the instrumentation's hooks. A file that cannot be read is not.
pub fn is_instrumented(path: &Path) -> bool {
    let calls = rashomon_symbolize::with_object(path, |file| {
        if file.symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(MARKER)) && !has_instrumented_code(file) {
            return Ok(false);
        }
        let mut symbols = file.dynamic_symbols().chain(file.symbols());
        Ok(symbols.any(|symbol| symbol.name().is_ok_and(|name| name.starts_with("__tsan_func_entry") || name == "__tsan_init")))
    });
    calls.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_order_something_are_asked_for() {
        for name in [
            "pthread_mutex_lock",
            "sem_wait",
            "aio_write",
            "mq_notify",
            "inotify_init1",
            "mtx_lock",
            "pthread_cond_clockwait",
            "pthread_spin_lock",
            "call_once",
        ] {
            assert!(is_synchronisation(name), "{name}");
        }
        for name in
            ["pthread_self", "pthread_attr_init", "printf", "pthread_mutexattr_settype", "pthread_mutex_consistent", "mq_unlink"]
        {
            assert!(!is_synchronisation(name), "{name}");
        }
    }
}
