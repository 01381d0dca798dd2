//! The search over cuts against the slow oracle.

use rashomon_event::{Access, AccessClass, Address, EventKind, LockMode};
use rashomon_testkit::{Features, Rules, Shape, cuts, describe, enumerate, random, reachable};

const RULES: [Rules; 3] = [Rules::SYNCHRONISATION, Rules::CAUSAL, Rules::SYNC_PRESERVING];

#[test]
fn equals_the_slow_oracle_on_random_traces() {
    let features = Features { conditions: false, semaphores: false, ..Features::ALL };
    let (mut races, mut deadlocks) = (0, 0);
    for seed in 0..3000 {
        let variables = if seed % 4 == 0 { 0 } else { 2 };
        // Without variables no thread would be forked.
        let features = Features { fork_join: variables > 0, ..features };
        let shape = Shape { threads: 2 + (seed % 3) as u32, events: 14, variables, locks: 1 + seed % 3, features };
        let trace = random(seed, shape);
        for rules in RULES {
            // A lock taken twice in shared mode is beyond the limits.
            let Some(found) = cuts::reach(&trace, rules, usize::MAX) else { continue };
            let expected = reachable(&trace, rules);
            assert_eq!(found.races, expected.races, "{rules:?}\n{}", describe(&trace));
            assert_eq!(found.deadlocks, expected.deadlocks, "{rules:?}\n{}", describe(&trace));
            races += found.races.len();
            deadlocks += found.deadlocks.len();
        }
    }
    assert!(races > 9_000 && deadlocks > 50, "{races} {deadlocks}");
}

#[test]
fn equals_the_slow_oracle_on_every_trace_of_a_small_alphabet() {
    let access = |class, address| EventKind::Access(Access { address: Address(address), size: 8, class, atomic: false });
    let lock = EventKind::Acquire { lock: Address(8), mode: LockMode::Exclusive, may_wait: true };
    let unlock = EventKind::Release { lock: Address(8), mode: LockMode::Exclusive };
    let alphabet = [access(AccessClass::Read, 0x100), access(AccessClass::Write, 0x100), lock, unlock];
    for length in 1..=6 {
        enumerate(3, length, &alphabet, &mut |trace| {
            for rules in RULES {
                let found = cuts::reach(&trace, rules, usize::MAX);
                let expected = reachable(&trace, rules);
                assert_eq!(found.map(|found| found.races), Some(expected.races), "{}", describe(&trace));
            }
        });
    }
}
