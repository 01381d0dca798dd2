//! Nests of counted loops of programs that `rashomon cc --deep` compiles: one record stands for what their hooks would tell.
//!
//! As in `deep`, what needs the compiler's plugin is skipped where that is not named.

use crate::support::place::{Place, skipped};
use rashomon_trace::Recording;
use rashomon_trace::stream::Record;
use std::fmt::Write as _;

fn is_built() -> bool {
    let named = std::env::var_os("RASHOMON_PLUGIN").is_some();
    if !named {
        skipped("RASHOMON_PLUGIN names no plugin; `cargo xtask plugin --test` builds it and runs this");
    }
    named
}

/// Random numbers (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn of<'s>(&mut self, all: &[&'s str]) -> &'s str {
        all[self.below(all.len() as u64) as usize]
    }
}

const VARIABLES: [&str; 4] = ["i", "j", "k", "l"];

/// What a program draws from: counters, bounds that are constants, variables, parameters and members, arrays of several types.
const HEAD: &str = "#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
struct shape { int rows; unsigned columns; long *cells; };
static long cells[4096];
static double reals[4096];
static short shorts[4096];
static unsigned char bytes[8192];
static struct shape shape = { 5, 4, cells };
static int few = 3;
static size_t some = 6;
static long total;
";

const TAIL: &str = "static void *task(void *argument) {
    (void)argument;
    all();
    return NULL;
}
int main(void) {
    for (int turn = 0; turn < 2; turn++) {
        pthread_t thread;
        pthread_create(&thread, NULL, task, NULL);
        pthread_join(thread, NULL);
    }
    double sum = (double)total;
    for (int i = 0; i < 4096; i++) sum += (double)cells[i] + reals[i] + shorts[i] + bytes[i];
    printf(\"%.6g\\n\", sum);
    return 0;
}
";

/// An index that grows with the counters of the loops around; at most 7 · 64 · 4 + 32.
fn index(draw: &mut Draw, depth: usize) -> String {
    let mut words = draw.below(32).to_string();
    for variable in &VARIABLES[..depth] {
        let factor = draw.of(&["0", "1", "1", "2", "8", "few", "some", "64"]);
        let _ = write!(words, " + {factor} * (size_t){variable}");
    }
    words
}

fn statement(draw: &mut Draw, depth: usize) -> String {
    let at = |draw: &mut Draw| {
        let array = draw.of(&["cells", "reals", "shorts", "bytes", "given->cells"]);
        format!("{array}[{}]", index(draw, depth))
    };
    let (to, from) = (at(draw), at(draw));
    match draw.below(6) {
        0 => format!("{to} = {from} + 1;"),
        1 => format!("{to} += {};", VARIABLES[depth - 1]),
        2 => format!("sum += (long){from};"),
        3 => format!("total += (long){from} & 3;"),
        4 => format!("{to} = {from} > 2 ? {from} : 1;"),
        _ => "total++;".into(),
    }
}

/// A loop at this depth, and what is in it.
fn nest(draw: &mut Draw, depth: usize, out: &mut String) {
    let (variable, pad) = (VARIABLES[depth], "    ".repeat(depth + 1));
    let mut bounds = vec!["3", "5", "few", "n", "(int)some", "given->rows", "(int)given->columns", "0", "1"];
    if depth > 0 {
        bounds.extend(["i", "i + 2"]);
    }
    let bound = draw.of(&bounds);
    let (begins, goes_on, step) = match draw.below(6) {
        0 => (format!("{bound} - 1"), format!("{variable} >= 0"), format!("{variable}--")),
        1 => ("0".into(), format!("{variable} < {bound}"), format!("{variable} += 2")),
        2 if depth > 0 => (VARIABLES[depth - 1].into(), format!("{variable} < 6"), format!("{variable}++")),
        _ => ("0".into(), format!("{variable} < {bound}"), format!("{variable}++")),
    };
    let kind = draw.of(&["int", "int", "long"]);
    let _ = writeln!(out, "{pad}for ({kind} {variable} = {begins}; {goes_on}; {step}) {{");
    for _ in 0..=draw.below(2) {
        let _ = writeln!(out, "{pad}    {}", statement(draw, depth + 1));
        if depth + 1 < VARIABLES.len() && draw.below(3) > 0 {
            nest(draw, depth + 1, out);
        }
    }
    let _ = writeln!(out, "{pad}}}");
}

fn program(seed: u64) -> String {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut text = HEAD.to_owned();
    for number in 0..8 {
        let _ = writeln!(text, "static long loops{number}(int n, struct shape *given) {{\n    long sum = 0;");
        nest(&mut draw, 0, &mut text);
        if draw.below(2) == 0 {
            nest(&mut draw, 0, &mut text);
        }
        text.push_str("    return sum;\n}\n");
    }
    text.push_str("static void all(void) {\n");
    for number in 0..8 {
        let _ = writeln!(text, "    total += loops{number}({}, &shape) & 7;", draw.below(7));
    }
    text.push_str("}\n");
    text + TAIL
}

/// Accesses and ways of control of the first thread that the program makes, one by one.
fn told(place: &Place, store: &str) -> Vec<Record> {
    let recording = Recording::open(&place.path(store).join("recording-0")).expect("a recording");
    let mut reader = recording.streams[1].reader();
    let mut all = Vec::new();
    while let Some(record) = reader.next_record().expect("no fault") {
        let is_told = matches!(record, Record::Access { .. } | Record::Activation { .. } | Record::Segment { .. });
        all.extend(is_told.then_some(record));
    }
    all
}

/// What records of nests stand for is what hooks tell one by one, where no turn is long enough for a loop, and where one is for
/// some; and the loops without hooks compute what the others do.
#[test]
fn nests_of_random_programs_are_told_as_if_their_hooks_had_told_them() {
    if !is_built() {
        return;
    }
    for seed in 1..=6 {
        let place = Place::new();
        place.write("nests.c", program(seed));
        place.must("clang-19", &["-w", "-O2", "-pthread", "-o", "native", "nests.c"]);
        let expected = place.must("./native", &[]).out;
        let level = ["-O1", "-O2"][seed as usize % 2];
        place.rashomon(&["cc", "--deep", level, "-g", "-w", "-pthread", "-o", "program", "nests.c"]).expect(0, &[]);
        let [whole, some, single] = [("whole", "1000000"), ("some", "150"), ("single", "1")].map(|(store, quantum)| {
            let record = ["record", "--dependences", "--aslr", "off", "--quantum", quantum, "--output", store, "--", "./program"];
            let ended = place.rashomon(&record);
            assert_eq!((ended.code, &ended.out), (0, &expected), "seed {seed}, {store}: {ended}");
            told(&place, store)
        });
        assert!(whole.len() > 1000);
        for other in [&some, &single] {
            let differs = whole.iter().zip(other).position(|(one, other)| one != other);
            assert_eq!((differs, whole.len()), (None, other.len()), "seed {seed}");
        }
        let bytes = |store: &str| place.path(store).join("recording-0/thread-0001").metadata().expect("a stream").len();
        let sizes = ["whole", "some", "single"].map(bytes);
        assert!(sizes.is_sorted() && sizes[0] < sizes[2], "seed {seed}: {sizes:?}");
    }
}
