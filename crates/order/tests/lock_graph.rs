//! Lock dependencies and their cycles.

use rashomon_event::EventIndex;
use rashomon_order::LockGraph;
use rashomon_testkit::parse;

fn graph(text: &str) -> LockGraph {
    LockGraph::new(&parse(text).expect("well-formed").trace)
}

/// Patterns whose first instances are concurrent and wait for each other.
fn patterns(text: &str) -> Vec<Vec<EventIndex>> {
    let graph = graph(text);
    let first = |number: usize| graph.dependencies[number].instances[0].clone();
    let mut found = Vec::new();
    for pattern in graph.patterns(5, 100) {
        let instances: Vec<_> = pattern.iter().copied().map(first).collect();
        let next = |side: usize| &instances[(side + 1) % instances.len()];
        let in_time = (0..instances.len()).all(|side| graph.in_time((pattern[side], &instances[side]), next(side)));
        let pairs = instances.iter().enumerate().flat_map(|(i, one)| instances[i + 1..].iter().map(move |other| (one, other)));
        if in_time && pairs.clone().all(|(one, other)| LockGraph::concurrent(one, other)) {
            found.push(instances.iter().map(|instance| instance.event).collect());
        }
    }
    found
}

const CROSS: &str = "main lock m; main lock n; main unlock n; main unlock m; t lock n; t lock m; t unlock m; t unlock n";

#[test]
fn crossed_locks_are_a_pattern() {
    assert_eq!(patterns(CROSS), [[EventIndex(1), EventIndex(5)]]);
    assert!(
        patterns("main lock m; main lock n; main unlock n; main unlock m; t lock m; t lock n; t unlock n; t unlock m").is_empty()
    );
}

#[test]
fn a_gate_lock_excludes_it() {
    let gated = "main lock g; main lock m; main lock n; main unlock n; main unlock m; main unlock g; \
                 t lock g; t lock n; t lock m; t unlock m; t unlock n; t unlock g";
    assert!(patterns(gated).is_empty());
    let shared = gated.replace("lock g", "rlock g").replace("unrlock", "runlock");
    assert_eq!(patterns(&shared).len(), 1, "two readers pass the gate together");
}

#[test]
fn thread_creation_excludes_it() {
    let joined = "main fork t; t lock m; t lock n; t unlock n; t unlock m; t end; main join t; main lock n; main lock m; main \
        unlock m; main unlock n";
    assert!(patterns(joined).is_empty());
}

#[test]
fn acquisitions_that_cannot_wait_want_nothing() {
    assert!(patterns(&CROSS.replace("t lock m", "t trylock m")).is_empty());
    assert_eq!(patterns(&CROSS.replace("t lock n", "t trylock n")).len(), 1, "but they hold");
}

#[test]
fn readers_block_only_writers() {
    let text = "main rlock m; main lock n; main unlock n; main runlock m; t lock n; t rlock m; t runlock m; t unlock n";
    assert!(patterns(text).is_empty());
    assert_eq!(patterns(&text.replace("t rlock m; t runlock m", "t lock m; t unlock m")).len(), 1);
}

#[test]
fn requests_that_never_got_their_lock_count() {
    let stuck = "main lock m; t lock n; main request n; t request m; main blocked n; t blocked m";
    assert_eq!(patterns(stuck), [[EventIndex(2), EventIndex(3)]]);
    assert_eq!(graph(stuck).unanswered, [EventIndex(2), EventIndex(3)]);
    let answered = "main lock m; t request m; main unlock m; t lock m; t unlock m";
    assert!(graph(answered).unanswered.is_empty());
}

#[test]
fn three_philosophers() {
    let text = "main lock a; main lock b; main unlock b; main unlock a; t lock b; t lock c; t unlock c; t unlock b; \
                u lock c; u lock a; u unlock a; u unlock c";
    assert_eq!(patterns(text), [[EventIndex(1), EventIndex(5), EventIndex(9)]]);
}

/// main's section spans `t`, which takes `m`; `u` takes both the other way round.
const SPANNING: &str = "main lock l; main fork t; t lock m; t unlock m; t end; main join t; main unlock l; \
                        u lock m; u lock l; u unlock l; u unlock m";

#[test]
fn a_lock_is_held_for_those_that_the_holder_waits_for() {
    assert_eq!(patterns(SPANNING), [[EventIndex(2), EventIndex(8), EventIndex(5)]]);
    assert!(patterns(&SPANNING.replace("join", "tryjoin")).is_empty(), "who does not wait holds nobody up");
    let created_before = "main fork t; main lock l; t lock m; t unlock m; t end; main join t; main unlock l; \
                          u lock m; u lock l; u unlock l; u unlock m";
    assert_eq!(patterns(created_before).len(), 1);
    assert!(patterns(&SPANNING.replace("main join t; main unlock l;", "main unlock l; main join t;")).is_empty());
}

#[test]
fn a_join_closes_a_cycle_with_one_lock() {
    let text = "main fork t; t lock l; t unlock l; t end; main lock l; main join t; main unlock l";
    assert_eq!(patterns(text), [[EventIndex(1), EventIndex(5)]]);
    let through_another =
        "main fork t; t fork u; u lock l; u unlock l; u end; t join u; t end; main lock l; main join t; main unlock l";
    assert_eq!(patterns(through_another), [[EventIndex(2), EventIndex(8), EventIndex(5)]]);
}

#[test]
fn so_does_a_barrier_for_those_that_have_yet_to_enter_it() {
    let text = "t lock l; t unlock l; t enter b; u lock l; u enter b; u exit b; u unlock l; t exit b";
    assert_eq!(patterns(text), [[EventIndex(0), EventIndex(5)]]);
    let too_late = "u lock l; u enter b; t enter b; t exit b; u exit b; u unlock l; t lock l; t unlock l";
    assert!(patterns(too_late).is_empty());
}

#[test]
fn sections_that_span_threads_are_gates() {
    let section = |holder: &str, thread: &str, first: &str, second: &str| {
        format!(
            "{holder} lock g; {holder} fork {thread}; {thread} lock {first}; {thread} lock {second}; {thread} unlock {second}; \
             {thread} unlock {first}; {thread} end; {holder} join {thread}; {holder} unlock g; "
        )
    };
    let gated = section("main", "t", "m", "n") + &section("u", "v", "n", "m");
    assert!(patterns(&gated).is_empty());
    let own = section("main", "t", "m", "n") + "u lock g; u lock n; u lock m; u unlock m; u unlock n; u unlock g";
    assert!(patterns(&own).is_empty(), "a lock of one's own, too");
    let readers = gated.replace("lock g", "rlock g").replace("unrlock", "runlock");
    assert_eq!(patterns(&readers).len(), 1);
    let one_section = "main lock g; main fork t; main fork v; t lock m; t lock n; t unlock n; t unlock m; t end; \
                       v lock n; v lock m; v unlock m; v unlock n; v end; main join t; main join v; main unlock g";
    assert_eq!(patterns(one_section).len(), 1, "one section covers both");
    let created_before = gated.replacen("main lock g; main fork t;", "main fork t; main lock g;", 1);
    assert_eq!(patterns(&created_before).len(), 1, "the acquisition need not come first");
}

#[test]
fn a_condition_wait_takes_its_mutex_again() {
    let text = "t lock m; t lock n; t wait c m; main lock m; main signal c #s; main unlock m; t woken c m s; t unlock n; t \
        unlock m; \
                u lock m; u lock n; u unlock n; u unlock m";
    assert_eq!(patterns(text), [[EventIndex(6), EventIndex(10)]]);
    let alone = text.replace("t lock n; ", "").replace("t unlock n; ", "");
    assert!(patterns(&alone).is_empty());
}
