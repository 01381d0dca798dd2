//! Lock dependencies and their cycles.

use rashomon_event::EventIndex;
use rashomon_order::LockGraph;
use rashomon_testkit::parse;

fn graph(text: &str) -> LockGraph {
    LockGraph::new(&parse(text).expect("well-formed").trace)
}

/// Patterns that have concurrent instances.
fn patterns(text: &str) -> Vec<Vec<EventIndex>> {
    let graph = graph(text);
    let first = |number: usize| graph.dependencies[number].instances[0].clone();
    let mut found = Vec::new();
    for pattern in graph.patterns(5, 100) {
        let instances: Vec<_> = pattern.into_iter().map(first).collect();
        let pairs = instances.iter().enumerate().flat_map(|(i, one)| instances[i + 1..].iter().map(move |other| (one, other)));
        if pairs.clone().all(|(one, other)| LockGraph::concurrent(one, other)) {
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
    let joined = "main fork t; t lock m; t lock n; t unlock n; t unlock m; t end; main join t; main lock n; main lock m; main unlock m; main unlock n";
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
