//! Races that cannot be held side by side, because one thread only gets to its access after it saw the other's: both were
//! executed, and happens-before orders neither.
//!
//! Proven only where C++20's release sequences and C11's longer ones agree, and where the pair is found again in a
//! re-execution (ISO/IEC 14882:2020 §6.9.2.2; ISO/IEC 9899:2011 §5.1.2.4).

use rashomon_event::{Access, ContextId, Deadline, EventIndex, SiteId, ThreadId, Trace};
use rashomon_order::shared_memory::MAX_GRANULES;
use rashomon_order::{GRANULE, HappensBefore, Model};
use rustc_hash::FxHashMap;

/// A code address: module path and offset of the return address.
pub type CodeAddress<'a> = (&'a str, u64);

/// Accesses to one granule that are told apart by their call stacks.
const MANY: usize = 64;

/// An access at one of the places, or at both.
#[derive(Clone, Copy)]
struct Seen {
    index: EventIndex,
    thread: ThreadId,
    context: ContextId,
    access: Access,
    at: [bool; 2],
    /// Its moment in each order.
    times: [u64; 2],
}

impl Seen {
    /// Who is unordered with the earlier of two such accesses is unordered with the later one. Of very many call stacks, whatever
    /// the stack.
    fn stands_for(&self, other: &Self, known: usize) -> bool {
        (self.thread, self.access, self.at) == (other.thread, other.access, other.at)
            && (self.context == other.context || known >= MANY)
    }

    fn may_race(&self, other: &Self) -> bool {
        self.thread != other.thread
            && self.access.conflicts(&other.access)
            && (self.at[0] && other.at[1] || self.at[1] && other.at[0])
    }
}

/// Two executed, conflicting accesses of different threads at these places that nothing orders, by either rule; of all such pairs
/// one whose later access comes first, if it is found in time. One pass over the trace. `is_wanted`: whether a pair touches what
/// is asked for.
pub fn unordered_pair(
    trace: &Trace,
    places: [CodeAddress<'_>; 2],
    deadline: Deadline,
    mut is_wanted: impl FnMut(EventIndex, EventIndex) -> bool,
) -> Option<(EventIndex, EventIndex)> {
    let sites = places.map(|place| sites_at(trace, place));
    let mut orders = [Model::CPP20, Model::C11].map(|model| HappensBefore::new(trace, model));
    let mut seen: FxHashMap<u64, Vec<Seen>> = FxHashMap::default();
    for (index, event) in deadline.bound(trace.indices().zip(&trace.events)) {
        orders.iter_mut().for_each(|order| order.receive(index, &event));
        let at = sites.each_ref().map(|sites| sites.contains(&event.site));
        if let Some(access) = event.access().filter(|_| at[0] || at[1]) {
            let times = orders.each_ref().map(|order| u64::from(order.clock(event.thread).time()));
            let here = Seen { index, thread: event.thread, context: event.context, access, at, times };
            for granule in granules(&access) {
                let known = seen.entry(granule).or_default();
                let is_unordered = |earlier: &&Seen| {
                    earlier.may_race(&here)
                        && orders
                            .iter()
                            .zip(earlier.times)
                            .all(|(order, time)| u64::from(order.clock(event.thread).knows(earlier.thread)) < time)
                };
                // To say what a pair touches takes longer than to find it, and there may be as many as there are accesses.
                let mut is_wanted = |earlier: &&Seen| !deadline.is_over() && is_wanted(earlier.index, index);
                if let Some(earlier) = known.iter().filter(is_unordered).find(&mut is_wanted) {
                    return Some((earlier.index, index));
                }
                let number = known.len();
                match known.iter_mut().find(|earlier| earlier.stands_for(&here, number)) {
                    Some(earlier) => *earlier = here,
                    None => known.push(here),
                }
            }
        }
        orders.iter_mut().for_each(|order| order.release(index, &event));
    }
    None
}

fn granules(access: &Access) -> impl Iterator<Item = u64> + use<> {
    let first = access.address.0 / GRANULE;
    let last = access.address.0.saturating_add(u64::from(access.size.max(1)) - 1) / GRANULE;
    first..=last.min(first + MAX_GRANULES)
}

fn sites_at(trace: &Trace, (path, offset): CodeAddress<'_>) -> Vec<SiteId> {
    let here = |site: &rashomon_event::Site| {
        let module = site.module.and_then(|module| trace.modules.get(module as usize));
        site.offset == offset && module.is_some_and(|module| module.path == path)
    };
    (0_u32..).zip(&trace.sites).filter(|(_, site)| here(site)).map(|(number, _)| SiteId(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rashomon_event::{ModuleInfo, Site};
    use rashomon_order::unordered;
    use rashomon_testkit::{Features, Shape, random};

    /// The definition: some two accesses at the places that neither rule orders.
    fn has_pair(trace: &Trace, sites: [SiteId; 2]) -> bool {
        let at = |side: usize| trace.indices().filter(move |&index| trace.event(index).site == sites[side]);
        at(0).any(|one| at(1).any(|other| is_pair(trace, one, other)))
    }

    fn is_pair(trace: &Trace, one: EventIndex, other: EventIndex) -> bool {
        let [first, second] = [one, other].map(|index| trace.event(index));
        let conflict = first.access().zip(second.access()).is_some_and(|(a, b)| a.conflicts(&b));
        first.thread != second.thread
            && conflict
            && [Model::CPP20, Model::C11].into_iter().all(|model| unordered(trace, one, other, model))
    }

    #[test]
    fn one_pass_finds_a_pair_where_there_is_one() {
        let mut found = 0;
        for seed in 0..300 {
            let mut trace = random(seed, Shape { threads: 3, events: 40, locks: 2, variables: 2, features: Features::ALL });
            trace.modules = vec![ModuleInfo { path: "m".into(), build_id: None, base: 0, start: 0, end: 16 }];
            // Three places, in turns.
            trace.sites = (0..3).map(|offset| Site { address: offset, module: Some(0), offset }).collect();
            trace.events.change(|number, event| {
                event.site = SiteId(number as u32 % 3);
            });
            for (one, other) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)] {
                let pair = unordered_pair(&trace, [("m", one), ("m", other)], Deadline::NEVER, |_, _| true);
                let sites = [one, other].map(|offset| SiteId(offset as u32));
                assert_eq!(pair.is_some(), has_pair(&trace, sites), "seed {seed}, places {one} and {other}");
                if let Some((first, second)) = pair {
                    assert!(first < second && is_pair(&trace, first, second));
                    let at = [first, second].map(|index| trace.event(index).site);
                    assert!(at == sites || at == [sites[1], sites[0]]);
                    found += 1;
                }
            }
        }
        assert!(found > 100, "only {found} pairs in all: nothing was tried");
    }
}
