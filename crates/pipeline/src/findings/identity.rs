//! Ids of findings: the kind, a hash of the two (or more) places, each as function name and line within the function, and what
//! they touch.
//!
//! A place is the innermost call site in the program's own sources (a race inside an inlined or shared library function belongs
//! to whoever called it), and its line counts from the function's first one; without debug information it is the offset from the
//! function's first instruction. So an id stays the same over runs, over address-space randomisation, and over rebuilds that
//! leave the functions concerned as they are; and the read and the write of one `x++` are one place. Findings with equal places
//! that touch the same variable, or blocks made at the same place, are one finding; so are deadlocks whose threads wait at equal
//! places for locks of the same names (`named`).

use crate::findings::symbols::Symbols;
use rashomon_abi::numbers::Fnv;
use rashomon_event::library::is_source_of_library;
use rashomon_event::{ContextId, FindingId, FindingKind, Frame, SiteId, Trace};

/// Files that belong to the system and not to the program.
const SYSTEM_SOURCES: [&str; 3] = ["/usr/", "./", "../"];

/// Whether a source file belongs to the system, or to a language's own library.
pub fn is_system(file: &str) -> bool {
    SYSTEM_SOURCES.iter().any(|start| file.starts_with(start)) || is_source_of_library(file)
}

/// Text that identifies a code place.
pub fn place_key<S: Symbols + ?Sized>(trace: &Trace, symbols: &S, site: SiteId, context: ContextId) -> String {
    own_places(trace, symbols, site, context, 1).swap_remove(0)
}

/// The same of callers in the program's own sources, too: at most so many, innermost first, at least one.
pub(crate) fn own_places<S: Symbols + ?Sized>(
    trace: &Trace,
    symbols: &S,
    site: SiteId,
    context: ContextId,
    most: usize,
) -> Vec<String> {
    let callers = trace.callers(context);
    let own = std::iter::once(site).chain(callers).filter_map(|site| own_line(trace, symbols, site));
    let places: Vec<String> = own.take(most).collect();
    if places.is_empty() { vec![offset_key(trace, symbols, site)] } else { places }
}

/// Function and line of a site, if its code was written in the program's own sources.
fn own_line<S: Symbols + ?Sized>(trace: &Trace, symbols: &S, site: SiteId) -> Option<String> {
    let site = trace.site(site);
    let module = trace.modules.get(site.module? as usize)?;
    let instruction = site.offset.saturating_sub(1);
    let frame = in_whose_code(symbols.frames(module, instruction))?;
    let file = frame.file.as_deref()?;
    if is_system(file) {
        return None;
    }
    let start = symbols.function_start(module, instruction)?;
    let first = symbols.frames(module, start).last().and_then(|frame| frame.line)?;
    Some(format!("{}@{}", function(&frame), i64::from(frame.line?) - i64::from(first)))
}

/// The outermost function is the one whose code this is; what is inlined into it moves with it. A compiler that moves a part of
/// a function out of it (gcc's partial inlining) says of that part that it is the function inlined into itself, at its first
/// line: there the innermost frame of that function is the one that tells where it is.
fn in_whose_code(mut frames: Vec<Frame>) -> Option<Frame> {
    let outermost = frames.last()?;
    let at = frames.iter().position(|frame| frame.function == outermost.function && frame.file == outermost.file)?;
    Some(frames.swap_remove(at))
}

/// Where in the program's own sources an access stands, or a call that leads to it: finer than an id, and the same for each copy
/// of an inlined function.
pub(crate) fn source_place<S: Symbols + ?Sized>(trace: &Trace, symbols: &S, site: SiteId, context: ContextId) -> String {
    let own = |site: SiteId| {
        let place = trace.site(site);
        let module = trace.modules.get(place.module? as usize)?;
        let frames = symbols.frames(module, place.offset.saturating_sub(1));
        frames.into_iter().find_map(|frame| {
            let file = frame.file.filter(|file| !is_system(file))?;
            Some(format!("{file}:{}:{}", frame.line?, frame.column.unwrap_or_default()))
        })
    };
    let mut sites = std::iter::once(site).chain(trace.callers(context));
    sites.find_map(own).unwrap_or_else(|| offset_key(trace, symbols, site))
}

fn function(frame: &Frame) -> &str {
    frame.function.as_deref().unwrap_or_default()
}

fn offset_key<S: Symbols + ?Sized>(trace: &Trace, symbols: &S, site: SiteId) -> String {
    let site = trace.site(site);
    let Some(module) = site.module.and_then(|module| trace.modules.get(module as usize)) else {
        return format!("{:#x}", site.address);
    };
    let instruction = site.offset.saturating_sub(1);
    match symbols.function_start(module, instruction) {
        Some(start) => {
            let frames = symbols.frames(module, instruction);
            format!("{}+{:#x}", frames.last().map(function).unwrap_or_default(), instruction.saturating_sub(start))
        }
        None => format!("{}+{instruction:#x}", module.path.rsplit('/').next().unwrap_or(&module.path)),
    }
}

/// `race-3f2a91c4`. The order of the places does not matter.
pub fn finding_id(kind: FindingKind, mut places: Vec<String>) -> FindingId {
    places.sort();
    // With a separator that no name holds.
    let Fnv(hash) = places.iter().fold(Fnv::EMPTY, |hash, place| hash.with(place.as_bytes()).with(&[0]));
    let word = match kind {
        FindingKind::DataRace => "race",
        FindingKind::Deadlock => "deadlock",
        FindingKind::Stuck => "stuck",
        FindingKind::Endless => "endless",
        FindingKind::Failure => "failure",
        FindingKind::UnlockNotHeld => "unlock",
        FindingKind::DestroyLocked => "destroy",
        FindingKind::DestroyAwaited => "destroy-awaited",
        FindingKind::DoubleLock => "double-lock",
        FindingKind::UseOfDestroyed => "destroyed",
        FindingKind::ThreadLeak => "leak",
        FindingKind::UseAfterFree => "use-after-free",
        FindingKind::LifetimeRace => "lifetime",
        FindingKind::UnsafeInSignal => "signal",
        FindingKind::WrongContext => "context",
        FindingKind::NotSerialisable => "regions",
        FindingKind::AtomicityViolation => "atomicity",
    };
    FindingId::of(word, (hash >> 32) as u32 ^ hash as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_moved_out_of_a_function_has_lines_of_its_own() {
        let frame = |function: &str, line| Frame {
            function: Some(function.into()),
            file: Some("a.c".into()),
            line: Some(line),
            ..Frame::default()
        };
        let line = |frames: &[Frame]| in_whose_code(frames.to_vec()).and_then(|frame| frame.line);
        assert_eq!(line(&[frame("load", 3), frame("worker", 12)]), Some(12));
        assert_eq!(line(&[frame("load", 3), frame("worker", 12), frame("worker", 7)]), Some(12));
        assert_eq!(line(&[]), None);
    }

    #[test]
    fn ids_do_not_depend_on_the_order_of_the_sides() {
        let id = |places: [&str; 2]| finding_id(FindingKind::DataRace, places.map(str::to_owned).to_vec());
        assert_eq!(id(["f+0x4", "g+0x8"]), id(["g+0x8", "f+0x4"]));
        assert_ne!(id(["f+0x4", "g+0x8"]), id(["f+0x4", "g+0x9"]));
        assert_ne!(id(["ab", "c"]), id(["a", "bc"]));
        assert_eq!(id(["f+0x4", "g+0x8"]).len(), "race-00000000".len());
    }
}
