//! TREE has three forms: the readable one of `crates/filter`, which states and proves the relation, the filter before the
//! recorder, and the one before detection. Here all three meet on the programs of the suite and on generated ones.
//!
//! - The recorder's decides as the readable one does: the same execution is recorded with every access and with the filter, and
//!   what the second recording lacks is exactly what the readable form drops from the first. And it loses no race: under every
//!   detector, by definition, the pairs of places are the same.
//! - Detection's decides by what its shadow remembers, so single decisions cannot be compared. Generated programs whose threads
//!   take turns (`ordered`, by relaxed atomics, which order nothing) have the same races in every execution: with the filter and
//!   without it each detector finds the same racy variables, and for happens-before those that are racy by definition in the
//!   recording of such an execution, as recorded with every access and as filtered by the readable form.
//!
//! A serial execution repeats itself under the same seed. Threads hand over at events only (`--quantum 0`), so that no access is
//! kept for the sake of a handover.

#[path = "../../filter/tests/support/mod.rs"]
mod detectors;
mod support;

use libtest_mimic::{Arguments, Trial};
use rashomon_abi::numbers::SplitMix;
use rashomon_event::EventKind;
use rashomon_filter::{Options, Relation, Tree, without};
use rashomon_trace::{LoadedTrace, Names, Recording};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use support::manifest::{Program, programs};
use support::{Failure, compile, describe, fail, over, rashomon, scratch};

/// Above that every pair of accesses is too many.
const MOST_EVENTS: usize = 6_000;
/// Longer accesses are always recorded (`runtime/src/record/tree`).
const LONG: u32 = 1 << 13;
/// A number of locations: so that nobody rests.
const FILTERED: [&str; 4] = ["--filter", "tree", "--filter-locations", "1000000"];
const DETECTORS: [(&str, Relation); 4] = [
    ("happens-before", Relation::HAPPENS_BEFORE),
    ("hybrid", Relation::HYBRID),
    ("lock sets", Relation::LOCKSET),
    ("all", Relation::RECORDER),
];

fn main() {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = programs()
        .into_iter()
        .filter(|program| program.deterministic && !program.hangs && !program.may_hang)
        .map(|program| Trial::test(format!("suite::{}", program.path), move || of_suite(&program)))
        .collect();
    trials.extend((0..24).map(|number| Trial::test(format!("drawn::{number}"), move || drawn(number))));
    trials.extend((0..16).map(|number| Trial::test(format!("ordered::{number}"), move || ordered(number))));
    support::conclude(&arguments, trials)
}

fn of_suite(program: &Program) -> Result<(), Failure> {
    let binary = compile(program)?;
    let record = |name: &str, option: &[&str]| {
        let store = scratch().join(format!("{}-{name}", program.slug()));
        let output = over(program, &[&["record", "--quantum", "0"], option].concat(), &store, &binary).output()?;
        match output.status.code() {
            Some(125) => Err(fail(format!("recording failed: {}", describe(&output)))),
            _ => load(&store),
        }
    };
    compare(&record("every-access", &["--every-access"])?, &record("filtered", &FILTERED)?)
}

fn load(store: &Path) -> Result<LoadedTrace, Failure> {
    Ok(Recording::open(&store.join("recording-0"))?.load()?)
}

fn compare(every: &LoadedTrace, filtered: &LoadedTrace) -> Result<(), Failure> {
    if every.header.notes.filtered() || !filtered.header.notes.filtered() {
        return Err(fail("the header does not say what was recorded"));
    }
    let (mut kept, _) = Tree::kept(&every.trace, Options::new(Relation::RECORDER));
    for (event, kept) in every.trace.events.iter().zip(&mut kept) {
        *kept |= matches!(event.kind, EventKind::Access(access) if access.size >= LONG);
    }
    let names = (Names::comparable(every), Names::comparable(filtered));
    let expected = every.trace.events.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(event, _)| names.0.event(&event));
    let mut found = filtered.trace.events.iter().map(|event| names.1.event(&event));
    for (place, expected) in expected.enumerate() {
        let found = found.next().unwrap_or_default();
        if expected != found {
            return Err(fail(format!("event {place}: the model keeps\n{expected}\nand the runtime kept\n{found}")));
        }
    }
    if let Some(surplus) = found.next() {
        return Err(fail(format!("the model does not keep {surplus}")));
    }
    let accesses = |trace: &LoadedTrace| trace.trace.events.iter().filter(|event| event.access().is_some()).count();
    if accesses(every) > MOST_EVENTS {
        return Ok(());
    }
    for (name, relation) in DETECTORS {
        let races = |loaded: &LoadedTrace, names: &Names<'_>| -> BTreeSet<BTreeSet<String>> {
            let pairs = detectors::unique_races(&loaded.trace, relation);
            pairs.into_iter().map(|(a, b)| [a, b].map(|site| names.site(rashomon_event::SiteId(site))).into()).collect()
        };
        let (without, with) = (races(every, &names.0), races(filtered, &names.1));
        if without != with {
            return Err(fail(format!("{name}: races without the filter {without:?}, with it {with:?}")));
        }
    }
    Ok(())
}

/// Statements on a few variables under few locks, which are taken in one order. `first`: the lowest that may be taken.
fn statements(draw: &mut SplitMix, out: &mut String, first: u64, depth: u32) {
    for _ in 0..1 + draw.below(4) {
        let variable = draw.below(4);
        let lock = first + draw.below(4);
        let _ = match draw.below(if depth < 4 { 22 } else { 11 }) {
            0..4 => writeln!(out, "x[{variable}]++;"),
            4 => writeln!(out, "touch(&x[{variable}]);"),
            5 => writeln!(out, "y[{variable}] = x[{}];", draw.below(4)),
            6 => writeln!(out, "copy(y, x, {});", 8 * (1 + draw.below(4))),
            7 => writeln!(
                out,
                "atomic_store_explicit(&a[{variable}], 1, memory_order_{});",
                ["relaxed", "release", "seq_cst"][variable as usize % 3]
            ),
            8 => writeln!(out, "(void)atomic_load_explicit(&a[{variable}], memory_order_acquire);"),
            9 => writeln!(out, "atomic_thread_fence(memory_order_{});", ["acquire", "release"][variable as usize % 2]),
            10 => writeln!(
                out,
                "{{ long *p = malloc({}); touch(p); touch(p + 1); g = p; touch(p); free(p); }}",
                16 << draw.below(3)
            ),
            11..14 => {
                let _ = writeln!(out, "for (int i = 0; i < {}; i++) {{", 2 + draw.below(4));
                statements(draw, out, first, depth + 1);
                writeln!(out, "}}")
            }
            14..18 if lock < 4 => {
                let _ = writeln!(out, "pthread_mutex_lock(&m[{lock}]);");
                statements(draw, out, lock + 1, depth + 1);
                writeln!(out, "pthread_mutex_unlock(&m[{lock}]);")
            }
            18 if lock < 4 => {
                let _ = writeln!(out, "pthread_rwlock_{}lock(&w[{lock}]);", ["rd", "wr"][variable as usize % 2]);
                statements(draw, out, lock + 1, depth + 1);
                writeln!(out, "pthread_rwlock_unlock(&w[{lock}]);")
            }
            19 => writeln!(out, "sem_post(&s);"),
            20 => {
                let _ = writeln!(
                    out,
                    "{{ pthread_mutex_t *l = malloc(sizeof *l); for (int i = 0; i < 3; \
                        i++) {{ pthread_mutex_init(l, 0); pthread_mutex_lock(l);"
                );
                statements(draw, out, 4, 4);
                writeln!(out, "pthread_mutex_unlock(l); if (i) pthread_mutex_destroy(l); }} free(l); }}")
            }
            _ => writeln!(out, "pthread_cond_signal(&c);"),
        };
    }
}

fn drawn(number: u64) -> Result<(), Failure> {
    let mut draw = SplitMix(number);
    let mut source = String::from(
        "#include <pthread.h>\n#include <semaphore.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n#include <string.h>
static pthread_mutex_t m[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, \
    PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t w[4] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER, \
    PTHREAD_RWLOCK_INITIALIZER};
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static atomic_int a[4];
static long x[4], y[4], *g;
__attribute__((noinline)) static void touch(long *p) { ++*p; }
__attribute__((noinline)) static void copy(void *to, const void *from, unsigned long bytes) { memcpy(to, from, bytes); }\n",
    );
    let threads = 2 + draw.below(3);
    for thread in 0..threads {
        let _ = writeln!(
            source,
            "static void *task{thread}(void *unused) {{\nfor (int round = 0; round < {}; round++) {{",
            2 + draw.below(4)
        );
        statements(&mut draw, &mut source, 0, 0);
        let _ = writeln!(source, "}}\nreturn 0;\n}}");
    }
    let _ = writeln!(
        source,
        "int main(void) {{\npthread_t t[{threads}];\nsem_init(&s, 0, 0);\nfor (int round = 0; round < 2; round++) {{"
    );
    for thread in 0..threads {
        let _ = writeln!(source, "pthread_create(&t[{thread}], 0, task{thread}, 0);");
        statements(&mut draw, &mut source, 0, 3);
    }
    for thread in 0..threads {
        let _ = writeln!(source, "pthread_join(t[{thread}], 0);");
        statements(&mut draw, &mut source, 0, 3);
    }
    source.push_str("}\nreturn 0;\n}\n");
    let folder = scratch().join(format!("drawn-{number}"));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("drawn.c"), source)?;
    let run = |arguments: &[&str]| {
        let output = rashomon().args(arguments).current_dir(&folder).output()?;
        if output.status.success() { Ok(()) } else { Err(fail(describe(&output))) }
    };
    run(&["cc", "-O1", "-w", "-pthread", "-o", "drawn", "drawn.c"])?;
    for seed in ["1", "2", "3"] {
        let record = |name: &str, option: &[&str]| {
            let store = format!("{name}-{seed}");
            run(&[&["record", "--quantum", "0", "--seed", seed, "--output", &store], option, &["--", "./drawn"]].concat())?;
            load(&folder.join(store))
        };
        compare(&record("every-access", &["--every-access"])?, &record("filtered", &FILTERED)?)?;
    }
    Ok(())
}

/// Variables of a generated program, and blocks that touch them. A word remembers four accesses: no more blocks than that.
const VARIABLES: u64 = 4;
const BLOCKS: u64 = 4;

/// A block: each variable at one place at most, in a loop, under locks that are taken in one order. `races`: it begins with the
/// first variable, several times, under no lock.
fn block(draw: &mut SplitMix, races: bool) -> String {
    let mut text = format!("for (int round = 0; round < {}; round++) {{\n", 20 + draw.below(30));
    if races {
        text.push_str("for (int i = 0; i < 3; i++) touch(&x0);\n");
    }
    let mut held = Vec::new();
    for lock in 0..2 {
        if draw.below(2) == 0 {
            let _ = writeln!(text, "pthread_mutex_lock(&m[{lock}]);");
            held.push(lock);
        }
    }
    for variable in 1..VARIABLES {
        let _ = match draw.below(6) {
            0 | 1 => writeln!(text, "x{variable}++;"),
            2 => writeln!(text, "x{variable} = round;"),
            3 => writeln!(text, "sink += x{variable};"),
            _ => Ok(()),
        };
        if draw.below(3) == 0
            && let Some(lock) = held.pop()
        {
            let _ = writeln!(text, "pthread_mutex_unlock(&m[{lock}]);");
        }
    }
    for lock in held.into_iter().rev() {
        let _ = writeln!(text, "pthread_mutex_unlock(&m[{lock}]);");
    }
    text + "}\n"
}

/// Threads whose blocks are executed in one drawn order. The last one, by a thread that has not done anything before, races with
/// the first one.
fn ordered_program(draw: &mut SplitMix) -> String {
    let threads = 3;
    let mut tasks = vec![String::new(); threads];
    for turn in 0..BLOCKS {
        let (first, last) = (turn == 0, turn == BLOCKS - 1);
        let drawn = draw.below(threads as u64 - 1) as usize;
        let task = &mut tasks[if first {
            0
        } else if last {
            threads - 1
        } else {
            drawn
        }];
        let _ = write!(task, "until({turn});\n{}pass({});\n", block(draw, first || last), turn + 1);
    }
    let mut source = String::from(
        "#include <pthread.h>\n#include <stdatomic.h>
static atomic_int turn;
static pthread_mutex_t m[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static long x0, x1, x2, x3;
__attribute__((noinline)) static void touch(long *p) { ++*p; }
static void until(int wanted) { while (atomic_load_explicit(&turn, memory_order_relaxed) != wanted) ; }
static void pass(int next) { atomic_store_explicit(&turn, next, memory_order_relaxed); }\n",
    );
    for (thread, task) in tasks.iter().enumerate() {
        let _ = writeln!(source, "static void *task{thread}(void *unused) {{\nlong sink = 0;\n{task}return (void *)sink;\n}}");
    }
    let _ = writeln!(source, "int main(void) {{\npthread_t t[{threads}];");
    (0..threads)
        .for_each(|thread| writeln!(source, "pthread_create(&t[{thread}], 0, task{thread}, 0);").expect("memory takes it"));
    (0..threads).for_each(|thread| writeln!(source, "pthread_join(t[{thread}], 0);").expect("memory takes it"));
    source + "return 0;\n}\n"
}

/// The variables that a detector reports.
fn racy(folder: &Path, detector: &str, filter: &str) -> Result<BTreeSet<String>, Failure> {
    let mut command = rashomon();
    command.args(["detect", "--format", "json", "--detector", detector, "--filter", filter, "--", "./ordered"]);
    let output = command.current_dir(folder).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let warning: serde_json::Value = serde_json::from_str(line).map_err(|error| fail(format!("{error}: {line}")))?;
        let name = warning["locations"][0]["name"].as_str().ok_or_else(|| fail(format!("a race elsewhere: {line}")))?;
        found.insert(name.to_owned());
    }
    Ok(found)
}

fn ordered(number: u64) -> Result<(), Failure> {
    let mut draw = SplitMix(1 << 32 | number);
    let folder = scratch().join(format!("ordered-{number}"));
    std::fs::create_dir_all(&folder)?;
    let source = ordered_program(&mut draw);
    std::fs::write(folder.join("ordered.c"), &source)?;
    let run = |arguments: &[&str]| {
        let output = rashomon().args(arguments).current_dir(&folder).output()?;
        if output.status.success() { Ok(()) } else { Err(fail(describe(&output))) }
    };
    run(&["cc", "-O1", "-g", "-w", "-pthread", "-o", "ordered", "ordered.c"])?;
    let record = |name: &str, option: &[&str]| {
        run(&[&["record", "--quantum", "0", "--output", name], option, &["--", "./ordered"]].concat())?;
        load(&folder.join(name))
    };
    let every = record("every-access", &["--every-access"])?;
    compare(&every, &record("filtered", &FILTERED)?)?;
    let (kept, _) = Tree::kept(&every.trace, Options::new(Relation::HAPPENS_BEFORE));
    let bytes = [&every.trace, &without(&every.trace, &kept)].map(|trace| detectors::fast_track(trace).1);
    if bytes[0].is_empty() || kept.iter().all(|kept| *kept) {
        return Err(fail(format!("nothing races, or nothing is redundant: this program shows nothing\n{source}")));
    }
    if bytes[0] != bytes[1] {
        return Err(fail(format!("the readable form loses a race of\n{source}")));
    }
    for detector in ["hb", "hybrid", "lockset"] {
        let [plain, filtered] = ["none", "tree"].map(|filter| racy(&folder, detector, filter));
        let (plain, filtered) = (plain?, filtered?);
        if plain != filtered {
            return Err(fail(format!("{detector}: without the filter {plain:?}, with it {filtered:?}, of\n{source}")));
        }
        if detector == "hb" && plain.len() * size_of::<u64>() != bytes[0].len() {
            return Err(fail(format!("hb: {plain:?}, but racy bytes by definition {:?}, of\n{source}", bytes[0])));
        }
    }
    Ok(())
}
