//! Calls into code that is not seen, which `check` and `record` keep: programs of `tests/programs/unseen`, each with a library
//! without instrumentation (the same file, compiled with `LIBRARY` defined). A place that matters is marked `@N` at the end of
//! its line. `// race: N M`: these two race, which has to be proven. `// ordered: N M`: the library orders them, which nobody
//! may report. Those of `tests/programs/installed` are linked with libraries as Debian has them (`// package:`, the name for
//! pkg-config).

use crate::support::place::{Place, program_text};
use rashomon_event::{ThreadId, Trace};
use rashomon_trace::Recording;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Pair = (u32, u32);

/// A program, built in a folder of its own.
struct Built {
    place: Place,
    text: String,
    file: String,
}

fn built(name: &str) -> Built {
    let place = Place::new();
    let file = format!("{name}.c");
    let text = program_text(&format!("unseen/{file}"));
    place.write(&file, &text);
    place.must(
        "gcc",
        &["-O1", "-w", "-DLIBRARY", "-shared", "-fPIC", "-pthread", "-Wl,-soname,libpart.so", "-o", "libpart.so", &file],
    );
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    place.rashomon(&["cc", "-g", "-O1", "-w", "-pthread", "-o", "program", &file, "libpart.so", &folder]).expect(0, &[]);
    Built { place, text, file }
}

/// What a compiler needs for an installed library. `None`: it is not there, which a test says, and in CI fails for.
fn flags(package: &str) -> Option<Vec<String>> {
    let output = std::process::Command::new("pkg-config").args(["--cflags", "--libs", package]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        assert!(std::env::var_os("CI").is_none(), "pkg-config knows no {package}");
        eprintln!("skipped: pkg-config knows no {package}");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

fn installed(name: &str) -> Option<Built> {
    let place = Place::new();
    let file = format!("{name}.c");
    let text = program_text(&format!("installed/{file}"));
    let package = text.lines().find_map(|line| line.strip_prefix("// package: ")).expect("a package");
    let flags = flags(package)?;
    place.write(&file, &text);
    let build = ["cc", "-g", "-O1", "-w", "-pthread", "-o", "program", &file];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    place.rashomon(&[&build[..], &flags].concat()).expect(0, &[]);
    Some(Built { place, text, file })
}

/// By call: its thread, and what it reaches: objects, where in them and how much; threads.
type Reached = Vec<(ThreadId, BTreeSet<(usize, u64, u64)>, BTreeSet<ThreadId>)>;

fn reached(trace: &Trace) -> Reached {
    let place = |&(start, bytes): &(rashomon_event::Address, u64)| match trace.object_at(start) {
        Some(object) => (object.index(), start.0 - trace.objects[object.index()].base.0, bytes),
        None => (usize::MAX, 0, bytes),
    };
    let of =
        |gap: &rashomon_event::Gap| (gap.thread, gap.reach.iter().map(place).collect(), gap.threads.iter().copied().collect());
    trace.gaps.iter().map(of).collect()
}

impl Built {
    /// What calls reach in a recording under a seed.
    fn record(&self, which: &str, seed: &str) -> Reached {
        let (store, which) = (format!("store-{which}-{seed}"), format!("--unseen-calls={which}"));
        self.place.rashomon(&["record", &which, "--seed", seed, "-o", &store, "--", "./program"]);
        let recording = self.place.path(&format!("{store}/recording-0"));
        reached(&Recording::open(&recording).expect("a recording").load().expect("it is whole").trace)
    }

    fn pairs(&self, word: &str) -> BTreeSet<Pair> {
        let prefix = format!("// {word}: ");
        let pair = |text: &str| {
            let (one, other) = text.split_once(' ').expect("two places");
            sorted(one.parse().expect("a number"), other.parse().expect("a number"))
        };
        self.text.lines().filter_map(|line| line.strip_prefix(&prefix)).map(pair).collect()
    }

    /// Marked places by line.
    fn marks(&self) -> BTreeMap<u64, u32> {
        let mark = |line: &str| line.rsplit_once("// @")?.1.parse().ok();
        (1..).zip(self.text.lines()).filter_map(|(number, line)| Some((number, mark(line)?))).collect()
    }

    /// The marked places of a race; 0 where a side is elsewhere.
    fn places(&self, finding: &Value) -> Pair {
        let marks = self.marks();
        let place = |side: &Value| {
            let frames = side["stack"].as_array().into_iter().flatten();
            let mut own = frames.filter(|frame| frame["file"].as_str().is_some_and(|file| file.ends_with(&self.file)));
            own.next().and_then(|frame| marks.get(&frame["line"].as_u64()?)).copied().unwrap_or(0)
        };
        sorted(place(&finding["sides"][0]), place(&finding["sides"][1]))
    }
}

const fn sorted(one: u32, other: u32) -> Pair {
    if one <= other { (one, other) } else { (other, one) }
}

/// Told once for each place, what calls reach is what each call alone tells.
fn reaches_the_same(built: &Built, name: &str) {
    /// Its library gets no memory.
    const REACHES_NOTHING: &str = "pure";
    for seed in ["1", "2", "3"] {
        let (every, naive) = (built.record("every", seed), built.record("naive", seed));
        assert!(!naive.is_empty(), "calls are recorded");
        assert_eq!(naive.iter().any(|call| !call.1.is_empty()), name != REACHES_NOTHING, "calls reach something");
        assert_eq!(every, naive, "seed {seed}");
    }
}

/// What is predicted is proven, and nothing that the library orders is shown.
fn check(built: &Built) {
    let arguments = ["check", "--engines", "force", "--budget", "30", "--json", "report.json", "--show", "everything"];
    let ended = built.place.rashomon(&[&arguments[..], &["-o", "store", "--", "./program"]].concat());
    let report = built.place.json("report.json");
    let (mut proven, mut others) = (BTreeSet::new(), BTreeSet::new());
    for finding in report["findings"].as_array().into_iter().flatten() {
        match finding["verdict"].as_str() {
            Some("proven") => proven.insert(built.places(finding)),
            Some("predicted") => others.insert(built.places(finding)),
            _ => false,
        };
    }
    assert_eq!((proven, others), (built.pairs("race"), BTreeSet::new()), "proven; only predicted\n{ended}");
}

/// The recorded schedule, enforced, gives the same recording again.
fn replays(built: &Built) {
    let place = &built.place;
    for (seed, policy) in [("1", "random"), ("2", "pct"), ("3", "round-robin")] {
        let (store, again) = (format!("store-{seed}"), format!("again-{seed}"));
        let record = ["record", "--policy", policy, "--seed", seed, "-o", &store, "--", "./program"];
        place.rashomon(&record).expect(0, &[]);
        place.rashomon(&["replay", "--recording", &store, "--output", &again]).expect(0, &[]);
        place.rashomon(&["trace", "diff", &store, &again]).expect(0, &[]);
    }
}

/// Arguments and results of every class, exceptions, jumps, ends of threads and new processes pass through recorded calls as they
/// do natively, whether slots are filled at the start or at the first call.
#[test]
fn calls_pass_on_what_they_are_given() {
    let place = Place::new();
    place.write("passing.cpp", include_str!("unseen_calls/passing.cpp"));
    place.must("g++", &["-O1", "-w", "-DLIBRARY", "-shared", "-fPIC", "-pthread", "-o", "libpassing.so", "passing.cpp"]);
    let folder = format!("-Wl,-rpath,{}", place.path("").display());
    for binding in ["lazy", "now"] {
        let binding = format!("-Wl,-z,{binding}");
        let build = ["c++", "-O1", "-w", "-pthread", "-o", "program", "passing.cpp", "./libpassing.so", &folder, &binding];
        place.rashomon(&build).expect(0, &[]);
        let store = format!("store{binding}");
        place.rashomon(&["record", "-o", &store, "--", "./program"]).expect(0, &[]);
    }
}

#[test]
fn commands_that_do_without_say_so() {
    let built = built("lock");
    for command in ["explore", "provoke", "witness"] {
        let said = format!("--unseen-calls is for `rashomon check` and `rashomon record`, not for `rashomon {command}`");
        let ended = built.place.rashomon(&[command, "--unseen-calls", "-o", "store", "--", "./program"]);
        assert!(ended.code != 0 && ended.err.contains(&said), "{command}: {ended}");
    }
    let ended = built.place.rashomon(&["check", "--unseen-calls=naive", "-o", "store", "--", "./program"]);
    assert!(ended.code != 0 && ended.err.contains("=naive are for `rashomon record`"), "{ended}");
}

/// Forced as if calls ordered nothing, a schedule is left at the call that has to wait; with that one order it is followed.
#[test]
fn executions_that_leave_their_schedule_teach_which_orders_to_keep() {
    let built = built("learned");
    let mut learned = 0;
    for seed in 1..=8 {
        let (seed, store) = (seed.to_string(), format!("store-{seed}"));
        let arguments = ["check", "--recordings", "1", "--seed", &seed, "--engines", "force", "--budget", "30", "-o", &store];
        let json = ["--json", "report.json", "--show", "everything", "--", "./program"];
        let ended = built.place.rashomon(&[&arguments[..], &json].concat());
        let report = built.place.json("report.json");
        let proven = report["findings"].as_array().into_iter().flatten().filter(|finding| finding["verdict"] == "proven");
        let proven: Vec<&Value> = proven.collect();
        assert!(proven.iter().all(|finding| built.places(finding) == (1, 2)), "{ended}");
        let notes = proven.iter().filter_map(|finding| finding["notes"].as_array()).flatten();
        learned += notes
            .filter(|note| note.as_str().is_some_and(|note| note.contains("learned from executions that left their schedule")))
            .count();
    }
    assert!(learned > 0, "no order was learned under any seed");
}

macro_rules! installed {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn check() {
                super::installed(stringify!($name)).iter().for_each(super::check);
            }
            #[test]
            fn replays() {
                super::installed(stringify!($name)).iter().for_each(super::replays);
            }
            #[test]
            fn reaches_the_same() {
                super::installed(stringify!($name)).iter().for_each(|built| super::reaches_the_same(built, stringify!($name)));
            }
        })*
    };
}

installed! {
    glib_mutex glib_queue uv_async uv_mutex
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn check() {
                super::check(&super::built(stringify!($name)));
            }
            #[test]
            fn replays() {
                super::replays(&super::built(stringify!($name)));
            }
            #[test]
            fn reaches_the_same() {
                super::reaches_the_same(&super::built(stringify!($name)), stringify!($name));
            }
        })*

        #[test]
        fn every_program_has_its_tests() {
            let files = std::fs::read_dir(crate::support::manifest::folder().join("unseen")).expect("a folder of the sources");
            let name = |file: std::io::Result<std::fs::DirEntry>| file.expect("a file").file_name().into_string();
            let names: BTreeSet<String> = files.map(|file| name(file).expect("a name")).collect();
            assert_eq!(names, [$(concat!(stringify!($name), ".c").to_owned()),*].into());
        }
    };
}

programs! {
    account barrier callbacks counter disjoint event_loop flag learned lock mailbox ordinary_wait overlapping pure queue
    registered semaphore singleton static_flag transitive two_locks
}
