//! Findings, composed from what a provoking execution caught.
//!
//! Nothing of such an execution is recorded but the catches, so what is said of code and data is said of a small trace made of
//! them alone; what both sides touch is called as the recording calls it where the recording knows the pair.

use crate::findings::compose::{common_bytes, shown};
use crate::findings::describe::{Describer, access_words};
use crate::findings::identity::{finding_id, place_key};
use crate::findings::symbols::Symbols;
use rashomon_event::schedule::ScheduleModule;
use rashomon_event::trace::Context;
use rashomon_event::{
    Access, Address, CodePlace, ContextId, Evidence, Finding, FindingKind, Grade, Mode, ModuleInfo, Object, ObjectKind, Side,
    Site, SiteId, ThreadId, ThreadInfo, Trace,
};
use rashomon_trace::{Catch, CatchSide, SyncObjects};

/// An address of an execution as a place, its module an index into `modules`.
pub fn place_at(loaded: &[ModuleInfo], modules: &[ScheduleModule], address: u64) -> CodePlace {
    let module = loaded.iter().rfind(|module| (module.start..=module.end).contains(&address));
    let known = module.and_then(|module| modules.iter().position(|other| other.path == module.path).zip(Some(module.base)));
    match known {
        Some((index, base)) => CodePlace { module: Some(index as u32), offset: address.wrapping_sub(base) },
        None => CodePlace { module: None, offset: address },
    }
}

/// The trace that knows of one catch only.
fn trace_of(loaded: &[ModuleInfo], catch: &Catch) -> Trace {
    let mut trace = Trace { modules: loaded.to_vec(), complete: false, ..Trace::of_events(Mode::Free, Vec::new()) };
    for side in [&catch.held, &catch.arrived] {
        let info = ThreadInfo { path: side.thread.clone(), parent: None, spawn_ordinal: 0, stack: None };
        trace.threads.push(info);
    }
    let mut objects: Vec<Object> = (0u32..)
        .zip(loaded)
        .map(|(module, info)| Object {
            kind: ObjectKind::Global { module },
            base: Address(info.start),
            size: info.end.saturating_sub(info.start),
            spare: 0,
            machine_base: info.start,
            born: None,
        })
        .collect();
    objects.sort_by_key(|object| object.base);
    trace.objects = objects;
    trace
}

fn site_in(trace: &mut Trace, address: u64) -> SiteId {
    let module = trace.modules.iter().rposition(|module| (module.start..=module.end).contains(&address));
    let base = module.map_or(0, |module| trace.modules[module].base);
    trace.sites.push(Site { address, module: module.map(|module| module as u32), offset: address.wrapping_sub(base) });
    SiteId(trace.sites.len() as u32 - 1)
}

/// Site and context of a side.
fn stack_in(trace: &mut Trace, side: &CatchSide) -> (SiteId, ContextId) {
    let mut context = ContextId::ROOT;
    for &frame in side.frames.iter().rev() {
        let call = site_in(trace, frame);
        trace.contexts.push(Context { parent: context, call });
        context = ContextId(trace.contexts.len() as u32 - 1);
    }
    (site_in(trace, side.site), context)
}

fn access_of(side: &CatchSide) -> Access {
    let size = u32::try_from(side.bytes).unwrap_or(u32::MAX);
    Access { address: Address(side.address), size, class: side.class, atomic: side.atomic }
}

/// The finding that a catch proves. `recorded`: describes the recording's own threads and data; `subject`: what both sides touch
/// there. A provoking execution names globals alone: of a block it is not known whether it is the recorded one, and the finding
/// says so.
pub fn finding_of<S: Symbols + ?Sized>(
    loaded: &[ModuleInfo],
    catch: &Catch,
    symbols: &S,
    recorded: &Describer<'_, S>,
    evidence: Evidence,
    subject: Option<String>,
) -> Finding {
    let mut trace = trace_of(loaded, catch);
    let stacks = [&catch.held, &catch.arrived].map(|side| stack_in(&mut trace, side));
    let accesses = [&catch.held, &catch.arrived].map(access_of);
    let objects = SyncObjects::default();
    let describer = Describer::new(&trace, &objects, symbols);
    let (at, size) = common_bytes(&accesses[0], &accesses[1]);
    let mut places: Vec<String> = stacks.iter().map(|(site, context)| place_key(&trace, symbols, *site, *context)).collect();
    let variable = describer.name_of_data(at);
    places.extend(variable.clone());
    let sides = (0..2).map(|index| {
        let (site, context) = stacks[index];
        let action = access_words(&accesses[index]);
        let side = describer.side(ThreadId(index as u32), action, site, context, None);
        let known = recorded.trace().threads.iter().position(|thread| thread.path == trace.threads[index].path);
        Side { created_at: known.map_or_else(Vec::new, |thread| recorded.creation(ThreadId(thread as u32))), ..side }
    });
    let sides = sides.collect();
    let named = variable.is_some();
    Finding {
        verdict: shown(Grade::CoEnabled),
        subject: match subject.filter(|_| !named) {
            Some(recorded) => format!("{size} bytes (in the recorded execution: {recorded})"),
            None => describer.data(at, size),
        },
        sides,
        ..Finding::suspected(FindingKind::DataRace, evidence, finding_id(FindingKind::DataRace, places))
    }
}
