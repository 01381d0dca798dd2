//! Objects that many threads come to, each for a few steps: one of these steps comes before those of all others, or behind them.
//!
//! Of so many steps hardly any of the orders is ever seen, and an order drawn for all of them rarely begins or ends with the one
//! thread that does something else than the others. So a place in the code is drawn first, each as likely as any other, and then
//! one of the steps that are made there.

use crate::shape::Event;
use rashomon_abi::numbers::SplitMix;
use std::collections::BTreeMap;

/// What comes before what. None of it: the crowd comes as it may.
pub fn pairs<'e>(crowd: &'e [Event], random: &mut SplitMix) -> Vec<(&'e Event, &'e Event)> {
    let mut places: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
    crowd.iter().for_each(|event| places.entry(event.site).or_default().push(event));
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let of_place = below(places.len().max(1));
    let Some(steps) = places.values().nth(of_place) else { return Vec::new() };
    let chosen = steps[below(steps.len())];
    let others = crowd.iter().filter(|event| event.at.id.thread != chosen.at.id.thread);
    // Of each thread the first step, or the last one.
    let mut ends: BTreeMap<u32, [&Event; 2]> = BTreeMap::new();
    for event in others {
        ends.entry(event.at.id.thread).or_insert([event, event])[1] = event;
    }
    match below(3) {
        0 => Vec::new(),
        1 => ends.into_values().map(|[first, _]| (chosen, first)).collect(),
        _ => ends.into_values().map(|[_, last]| (last, chosen)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Log, Pending, Step};
    use crate::shape::Shape;
    use rashomon_abi::exploration::Operation;
    use rashomon_abi::record::AccessClass;
    use rustc_hash::FxHashSet;
    use std::collections::BTreeSet;

    const DATA: u64 = 0x3000;
    const THREADS: u32 = 100;
    const ALONE: u32 = 37;

    /// All write at one place, and one of them at another.
    fn shape() -> Shape {
        let operation = Operation { object: DATA, bytes: 4, class: AccessClass::Write as u64, ..Operation::default() };
        let step = |thread: u32| {
            let does = Pending { operation, site: 1 + u64::from(thread == ALONE), ..Pending::default() };
            Step { thread, enabled: 0, asleep: 0, waiting: 0, does, after: None }
        };
        Shape::of(&Log { steps: (0..THREADS).map(step).collect(), ..Log::default() }, &FxHashSet::default())
    }

    #[test]
    fn who_does_something_else_is_often_the_first_or_the_last() {
        let (shape, mut random) = (shape(), SplitMix(1));
        let (mut first, mut last, mut free) = (0, 0, 0);
        for _ in 0..60 {
            let pairs = pairs(&shape.crowds[&DATA], &mut random);
            let sides = |nth: usize| -> BTreeSet<u32> { pairs.iter().map(|two| [two.0, two.1][nth].at.id.thread).collect() };
            let (before, behind) = (sides(0), sides(1));
            free += u32::from(pairs.is_empty());
            first += u32::from(before.contains(&ALONE) && before.len() == 1);
            last += u32::from(behind.contains(&ALONE) && behind.len() == 1);
            assert!(pairs.is_empty() || pairs.len() == THREADS as usize - 1 && (before.len() == 1 || behind.len() == 1));
        }
        assert!(first > 3 && last > 3 && free > 3, "{first} {last} {free}");
    }
}
