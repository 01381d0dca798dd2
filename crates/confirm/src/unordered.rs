//! Races that cannot be held side by side, because one thread only gets to its access after it saw the other's: both were
//! executed, and happens-before orders neither.
//!
//! Proven only where C++20's release sequences and C11's longer ones agree, and where the pair is found again in a
//! re-execution (ISO/IEC 14882:2020 §6.9.2.2; ISO/IEC 9899:2011 §5.1.2.4).

use rashomon_event::{EventIndex, SiteId, Trace};
use rashomon_order::{Model, unordered};

/// A code address: module path and offset of the return address.
pub type CodeAddress<'a> = (&'a str, u64);

/// Conflicting pairs whose order is asked for, each a pass over the trace.
const MAX_PAIRS: usize = 64;
/// Pairs that are looked at to find those.
const MAX_STEPS: usize = 1 << 22;

/// Two executed, conflicting accesses of different threads at these places that nothing orders, by either rule.
pub fn unordered_pair(trace: &Trace, places: [CodeAddress<'_>; 2]) -> Option<(EventIndex, EventIndex)> {
    let sites = places.map(|place| sites_at(trace, place));
    let events = sites.map(|sites| {
        let at = trace.indices().filter(move |index| sites.contains(&trace.event(*index).site));
        at.filter(|index| trace.event(*index).access().is_some()).collect::<Vec<_>>()
    });
    let (mut asked, mut steps) = (0, 0);
    for &one in &events[0] {
        for &other in &events[1] {
            steps += 1;
            if asked >= MAX_PAIRS || steps >= MAX_STEPS {
                return None;
            }
            let (first, second) = (trace.event(one), trace.event(other));
            let (Some(a), Some(b)) = (first.access(), second.access()) else { continue };
            if first.thread == second.thread || !a.conflicts(&b) {
                continue;
            }
            asked += 1;
            if unordered_by_both(trace, one, other) {
                return Some((one.min(other), one.max(other)));
            }
        }
    }
    None
}

fn unordered_by_both(trace: &Trace, one: EventIndex, other: EventIndex) -> bool {
    [Model::CPP20, Model::C11].into_iter().all(|model| unordered(trace, one, other, model))
}

fn sites_at(trace: &Trace, (path, offset): CodeAddress<'_>) -> Vec<SiteId> {
    let here = |site: &rashomon_event::Site| {
        let module = site.module.and_then(|module| trace.modules.get(module as usize));
        site.offset == offset && module.is_some_and(|module| module.path == path)
    };
    (0_u32..).zip(&trace.sites).filter(|(_, site)| here(site)).map(|(number, _)| SiteId(number)).collect()
}
