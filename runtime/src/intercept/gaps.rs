//! Calls of instrumented modules into ones that are neither instrumented nor modelled: where each begins and ends, and what it
//! can reach.
//!
//! The slots through which instrumented modules call others (the procedure linkage table, and the addresses of functions that
//! the loader wrote into their data) are made to point to a piece of code for each function, which comes to the passage
//! ([`passage`]). That notes the begin, calls the function with a copy of the arguments on the stack, and notes the end. Slots
//! that would be filled at the first call are filled here. Threads that begin in such a function come through its piece as
//! well.
//!
//! Where no instrumented module calls such a function nothing is done, and blocks of memory are not remembered. If calls come
//! only with a library that was opened later, blocks are missing that calls may reach: it counts as if calls were not seen.
//!
//! Limits: calls through pointers that a library gave out itself (tables of functions, virtual functions, `dlsym`) are not
//! seen, nor are handlers that a library leaves with libc, nor calls of libraries that instrumented code did not need when it
//! was loaded. A slot that is not filled yet gets the default version of its name.

use crate::intercept::globals::{self, Loaded, hash};
use crate::intercept::passage::{self, Entry};
use crate::record::{reach, recorder};
use crate::serial::{endless, sched};
use crate::system::dynamic::Slot;
use crate::system::lock::RawLock;
use crate::system::memory::{List, Map};
use crate::system::modules::{self, Module};
use crate::system::sys::{self, syscall};
use crate::system::thread::Runtime;
use crate::system::{config, header, real};
use crate::system::{entry, tls};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, Ordering::*};
use rashomon_abi::control;
use rashomon_abi::header::note;
use rashomon_abi::known::{is_known, libraries_where_known};
use rashomon_abi::module::is_modelled;
use rashomon_abi::record::{Op, call_aux};

const PAGE: u64 = 4096;
/// Calls of these return twice, the second time when the passage's frame is gone.
const RETURN_TWICE: [&CStr; 6] = [c"setjmp", c"_setjmp", c"sigsetjmp", c"__sigsetjmp", c"getcontext", c"vfork"];

/// A library without instrumentation.
#[derive(Clone, Copy)]
struct Library {
    start: u64,
    end: u64,
    /// Hashes of the name of its file and of its own name, by which others need it.
    names: [u64; 2],
    /// Its variables: start, bytes; nothing where it has none.
    data: [u64; 2],
    /// Which libraries' code may run when it is called, itself included: bits by number.
    runs: u64,
}

/// No more libraries are told apart: calls of further ones reach everything.
const MOST_LIBRARIES: usize = 64;
/// No more variables and static data of one call are told apart: it reaches everything.
const MOST_DATA: usize = 96;

/// What was found in the loaded modules.
struct Found {
    libraries: List<Library>,
    /// Number of a library, hash of a name that it needs.
    needs: List<[u64; 2]>,
    /// Slots of instrumented modules, with the extent of the module: an address in it is not filled in yet.
    slots: List<(Slot, [u64; 2])>,
    /// Executable code without instrumentation: start, end.
    code: List<[u64; 2]>,
    /// Writable segments.
    data: List<[u64; 2]>,
    /// What of them is read-only once it is loaded.
    constants: List<[u64; 2]>,
}

static LOCK: RawLock = RawLock::new();
/// A slot could not be changed, or blocks were not remembered: not all is seen that calls do.
static MISSED: AtomicBool = AtomicBool::new(false);
/// There was a look before.
static LOOKED: AtomicBool = AtomicBool::new(false);
/// Pieces of code by the function that they stand for.
static mut PIECES: Map = Map::new();
/// Of the latest look.
static mut LIBRARIES: List<Library> = List::new();
static mut CODE: List<[u64; 2]> = List::new();

fn wanted() -> bool {
    config::serial() && !config::provoking() && config::option(control::option::UNSEEN_CALLS)
}

/// Looks at what is loaded, and gets between. At the start, and when libraries have come.
pub fn look() {
    if !wanted() {
        return;
    }
    let mut found = Found::NOTHING;
    modules::each(|module| found.look_at(module));
    found.close_needs();
    let all = core::mem::replace(&mut found.libraries, List::new());
    let mut loaded = List::with_room_for(all.len().max(1));
    for &Library { names, start, end, .. } in all.as_slice() {
        loaded.push(Loaded { names, start, end });
    }
    globals::look(loaded.as_slice());
    loaded.free();
    let ranges = core::mem::replace(&mut found.code, List::new());
    if ranges.len() > 0 {
        modules::each(|module| found.take_slots(module));
    }
    let (libraries, code) = (&raw mut LIBRARIES, &raw mut CODE);
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        (*libraries).clear_and_free();
        (*code).clear_and_free();
        libraries.write(all);
        code.write(ranges);
    });
    if !found.get_between() {
        MISSED.store(true, Relaxed);
    }
    if MISSED.load(Relaxed) {
        header::take_back(note::UNSEEN_CALLS);
    } else {
        header::note(note::UNSEEN_CALLS);
    }
    LOOKED.store(true, Relaxed);
    found.slots.free();
    found.needs.free();
    found.data.free();
    found.constants.free();
}

/// There are calls that blocks have to be remembered for.
fn remember_blocks() {
    if !reach::is_on() {
        if LOOKED.load(Relaxed) {
            MISSED.store(true, Relaxed);
        }
        reach::begin();
    }
}

/// What is to be called in place of a function: its piece of code, if it is one that is not seen.
pub fn seen(function: u64) -> u64 {
    if wanted() { piece_for(function).unwrap_or(function) } else { function }
}

/// In a child that has one thread.
pub fn forked() {
    LOCK.reset();
    reach::forked();
    globals::forked();
    if wanted() && !MISSED.load(Relaxed) {
        header::note(note::UNSEEN_CALLS);
    }
}

impl Found {
    const NOTHING: Self = Self {
        libraries: List::new(),
        needs: List::new(),
        slots: List::new(),
        code: List::new(),
        data: List::new(),
        constants: List::new(),
    };

    fn look_at(&mut self, module: &Module<'_>) {
        let name = modules::base_name(module.path);
        let is_instrumented = module.is_instrumented();
        if !is_instrumented && (is_modelled(name) || leaves_out() && is_known(module.own_name().unwrap_or(name))) {
            return;
        }
        module.segments().filter(|segment| segment.is_writable).for_each(|it| self.data.push([it.start, it.end]));
        module.constants().into_iter().for_each(|range| self.constants.push(range));
        if is_instrumented {
            return;
        }
        module.segments().filter(|segment| segment.is_executable).for_each(|it| self.code.push([it.start, it.end]));
        let number = self.libraries.len();
        module.needed().for_each(|needed| self.needs.push([number as u64, hash(needed)]));
        let (data, runs) = (module.state().unwrap_or([0, 0]), 1u64.checked_shl(number as u32).unwrap_or(0));
        let names = [hash(name), module.own_name().map_or(0, hash)];
        self.libraries.push(Library { start: module.start, end: module.end, names, data, runs });
    }

    fn take_slots(&mut self, module: &Module<'_>) {
        // SAFETY: a terminated name of the loaded module's.
        let name = |slot: &Slot| unsafe { CStr::from_ptr(slot.name as *const c_char) };
        if module.is_instrumented() {
            module.each_slot(|slot| {
                if !RETURN_TWICE.contains(&name(&slot)) {
                    self.slots.push((slot, [module.start, module.end]));
                }
            });
        }
    }

    /// Points the slots to pieces of code. Names are looked up outside of the loader's visit. False: not all could be changed.
    fn get_between(&self) -> bool {
        let mut all = true;
        for (slot, [start, end]) in self.slots.as_slice() {
            // SAFETY: a slot of a loaded module, which the loader has written to.
            let mut target = unsafe { *(slot.place as *const u64) };
            if (*start..*end).contains(&target) {
                // SAFETY: a terminated name of the module's.
                target = real::find(unsafe { CStr::from_ptr(slot.name as *const c_char) });
            }
            if is_left_out(slot, target) {
                continue;
            }
            match piece_for(target) {
                Some(piece) if piece == target => {}
                Some(piece) => {
                    remember_blocks();
                    all &= point_to(slot, piece);
                }
                None => all = false,
            }
        }
        if reach::is_on() {
            reach::set_segments(self.data.as_slice(), self.constants.as_slice());
        }
        all
    }

    /// Adds to each library what those run that it needs. None of it counts any more where there are too many.
    fn close_needs(&mut self) {
        let mut changed = true;
        while core::mem::take(&mut changed) {
            for &[number, name] in self.needs.as_slice() {
                let needed = self.libraries.as_slice().iter().filter(|library| library.names.contains(&name));
                let more = needed.fold(0, |runs, library| runs | library.runs);
                let runs = &mut self.libraries.as_mut_slice()[number as usize].runs;
                changed |= *runs | more != *runs;
                *runs |= more;
            }
        }
    }
}

/// Whether calls that are known to order nothing are left out.
fn leaves_out() -> bool {
    !config::option(control::option::EVERY_CALL)
}

/// Whether it is a function that is known to order nothing, though others of its library may.
fn is_left_out(slot: &Slot, target: u64) -> bool {
    // SAFETY: a terminated name of the module's.
    let name = unsafe { CStr::from_ptr(slot.name as *const c_char) }.to_bytes();
    let libraries = &raw const LIBRARIES;
    let is_of = |library: &str| {
        let known = hash(library.as_bytes());
        // SAFETY: guarded by LOCK.
        LOCK.with(|| unsafe {
            let mut all = (*libraries).as_slice().iter();
            all.any(|it| (it.start..it.end).contains(&target) && it.names.contains(&known))
        })
    };
    leaves_out() && libraries_where_known(name).any(is_of)
}

/// False: the kernel did not let us.
fn point_to(slot: &Slot, code: u64) -> bool {
    let page = slot.place & !(PAGE - 1);
    // SAFETY: a slot of a loaded module; its page is writable meanwhile, and again what it was. A slot lies in one page.
    unsafe {
        // PROT_READ | PROT_WRITE
        if slot.is_sealed && syscall!(sys::MPROTECT, page, PAGE, 3) < 0 {
            return false;
        }
        (slot.place as *mut u64).write_volatile(code);
        if slot.is_sealed {
            syscall!(sys::MPROTECT, page, PAGE, 1);
        }
    }
    true
}

/// The piece of code for a function that is not seen, made once; for others the function itself. `None`: there is no memory.
fn piece_for(target: u64) -> Option<u64> {
    let (pieces, code) = (&raw mut PIECES, &raw const CODE);
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        if !(*code).as_slice().iter().any(|[start, end]| (*start..*end).contains(&target)) {
            return Some(target);
        }
        let known = (*pieces).entry((target, 1));
        if *known == 0 {
            *known = passage::piece(target);
        }
        Some(*known).filter(|known| *known != 0)
    })
}

/// Static data that a call of a function may use. `None`: more than is known.
fn data_of(target: u64, data: &mut [[u64; 2]; MOST_DATA]) -> Option<usize> {
    let libraries = &raw const LIBRARIES;
    // SAFETY: guarded by LOCK.
    LOCK.with(|| unsafe {
        let libraries = (*libraries).as_slice();
        let called = libraries.iter().find(|library| (library.start..library.end).contains(&target))?;
        if libraries.len() > MOST_LIBRARIES {
            return None;
        }
        let mut count = 0;
        for (number, library) in libraries.iter().enumerate() {
            if called.runs >> number & 1 != 0 {
                globals::of(library.names, library.data, |memory| {
                    if memory[1] > 0 {
                        if let Some(place) = data.get_mut(count) {
                            *place = memory;
                        }
                        count += 1;
                    }
                });
            }
        }
        Some(count).filter(|&count| count <= data.len())
    })
}

/// Says of what [`begin`] returns that the call was noted; the frame of the passage around this one is the rest.
const NOTED: u64 = 1;

/// Notes the begin of a call: not 0 if that was done. `frame`: where the caller's frame pointer is saved, with the return address
/// above it.
pub unsafe extern "C" fn begin(entry: &Entry, registers: &[u64; 6], frame: u64) -> u64 {
    let Some(runtime) = Runtime::try_enter() else { return 0 };
    if !config::option(control::option::UNSEEN_CALLS) {
        return 0;
    }
    // SAFETY: the passage's own.
    let (thread, target, site) = (runtime.thread(), entry.target, unsafe { entry::return_of(frame) });
    // Whether it polls is not known: whoever does nothing else, and reaches nothing new, lets others go on.
    if reach::is_still() {
        sched::polled(thread);
    } else {
        endless::moves();
    }
    sched::point(&runtime, Op::CallBegin, target, site);
    let mut data = [[0; 2]; MOST_DATA];
    let naive = config::option(control::option::NAIVE_REACH);
    let known = data_of(target, &mut data).filter(|_| reach::is_on());
    let set = known.map_or(rashomon_abi::record::reach::EVERYTHING, |count| {
        reach::search(target, registers, &data[..count], naive, |number, what, words| {
            recorder::sync(thread, Op::CallReaches, number, what, site, words);
        })
    });
    recorder::sync(thread, Op::CallBegin, target, aux_of(frame, thread.stack.get()), site, &[frame, set]);
    tls::hot().passage.replace(frame) | NOTED
}

/// Notes the end of a call whose begin was noted.
pub unsafe extern "C" fn end(entry: &Entry, noted: u64, frame: u64) {
    if noted == 0 {
        return;
    }
    tls::hot().passage.set(noted & !NOTED);
    if let Some(runtime) = Runtime::try_enter() {
        // SAFETY: the passage's own.
        let (thread, target, site) = (runtime.thread(), entry.target, unsafe { entry::return_of(frame) });
        sched::point(&runtime, Op::CallEnd, target, site);
        recorder::sync(thread, Op::CallEnd, target, aux_of(frame, thread.stack.get()), site, &[frame]);
    }
}

fn aux_of(frame: u64, (low, high): (u64, u64)) -> u16 {
    if (low..high).contains(&frame) { 0 } else { call_aux::ELSEWHERE }
}
