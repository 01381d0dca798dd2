//! Programs that `rashomon cc --deep` compiles: wait loops and dependences of data and control, as clang's plugin tells them.
//!
//! `cargo xtask plugin --test` and `cargo xtask ci` build the plugin and name it; without it the tests that need it are skipped.

use crate::support::place::{Ended, Place, skipped};
use serde_json::Value;

const TABLE_2: &str = include_str!("../../../../tests/jannesari/table2.c");
const SCALE: &str = include_str!("deep/scale.c");
const WAYS: &str = include_str!("deep/ways.cpp");
const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

fn is_built() -> bool {
    let named = std::env::var_os("RASHOMON_PLUGIN").is_some();
    if !named {
        skipped("RASHOMON_PLUGIN names no plugin; `cargo xtask plugin --test` builds it and runs this");
    }
    named
}

/// Compiles and links.
#[track_caller]
fn compile(place: &Place, file: &str, source: &str, options: &[&str]) {
    place.write(file, source);
    let command = if file.ends_with(".c") { "cc" } else { "c++" };
    let mut arguments = vec![command, "-w", "-pthread", "-o", "program", file];
    arguments.extend(options);
    place.rashomon(&arguments).expect(0, &[]);
}

/// What `check` says that judges dependences and looks for nothing else.
fn judged(place: &Place) -> (Value, Ended) {
    let ended = place.rashomon(&[
        "check",
        "--engines",
        "correlated",
        "--budget",
        "30",
        "--show",
        "suspicions",
        "--output",
        "store",
        "--json",
        "report.json",
        "--",
        "./program",
    ]);
    (place.json("report.json"), ended)
}

/// Subjects of the races on correlated variables.
fn correlated(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let found = findings.filter(|finding| finding["evidence"] == "dependences");
    found.map(|finding| finding["subject"].as_str().unwrap_or_default().to_owned()).collect()
}

#[track_caller]
fn was_judged(ended: &Ended) {
    let said = format!("{}{}", ended.out, ended.err);
    assert!(said.contains("dependences of 3 executions") && !said.contains("fit no"), "{ended}");
}

/// The column *Expected* of Table 2.
#[test]
fn table_2_is_as_expected() {
    if !is_built() {
        return;
    }
    for level in ["-O0", "-O2"] {
        for test in 0..=13 {
            let place = Place::new();
            compile(&place, "table2.c", TABLE_2, &["--deep", level, &format!("-DTEST={test}")]);
            let (report, ended) = judged(&place);
            was_judged(&ended);
            let expected = matches!(test, 0 | 1 | 4 | 7 | 8 | 11);
            assert_eq!(!correlated(&report).is_empty(), expected, "test {test} at {level}: {ended}");
        }
    }
}

/// Figure 2: both critical sections are one operation on both variables.
#[test]
fn two_variables_and_two_critical_sections_are_one_operation() {
    if !is_built() {
        return;
    }
    for level in LEVELS {
        let place = Place::new();
        compile(&place, "scale.c", SCALE, &["--deep", level]);
        let (report, ended) = judged(&place);
        was_judged(&ended);
        let found = correlated(&report);
        assert!(found.iter().any(|subject| subject.contains('x') && subject.contains('y')), "{level}: {found:?} {ended}");

        let whole = SCALE.replacen("    pthread_mutex_unlock(&m);\n    float", "    float", 1).replacen(
            "    pthread_mutex_lock(&m);\n    x =",
            "    x =",
            1,
        );
        let place = Place::new();
        compile(&place, "scale.c", &whole, &["--deep", level]);
        let (report, ended) = judged(&place);
        was_judged(&ended);
        assert_eq!(correlated(&report), [""; 0], "{level}: {ended}");
    }
}

/// What is found in one execution is executed in another: both threads read before either writes, which no serial order prints.
#[test]
fn an_operation_that_another_comes_into_is_proven_by_its_outcome() {
    if !is_built() {
        return;
    }
    for level in ["-O0", "-O2"] {
        let place = Place::new();
        compile(&place, "scale.c", SCALE, &["--deep", "-g", level]);
        let (report, ended) = judged(&place);
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let [finding] = &findings[..] else { panic!("{level}: {findings:?} {ended}") };
        assert_eq!((&finding["verdict"], &finding["grade"]), (&"proven".into(), &"violated".into()), "{level}: {ended}");
        assert_eq!(finding["evidence"], "dependences");
        let said = finding["notes"].to_string();
        for part in ["interleaved so the program prints", "0.750000 1.000000", "used together", "scale.c:"] {
            assert!(said.contains(part), "{level}: {part} is not in {said}");
        }
        let id = finding["id"].as_str().expect("it has an id");
        place.rashomon(&["replay", "--store", "store", id]).expect(0, &[]);
    }
}

/// Two totals that no dependence joins, in a critical section each.
const APART: &str = "#include <pthread.h>
#include <stdio.h>
#ifdef DECLARED
#include <rashomon.h>
RASHOMON_CORRELATED(totals, sold, left);
#endif
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
long sold, left = 7;
static void *sell(void *unused) {
    pthread_mutex_lock(&m);
    sold = 3;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    left = 4;
    pthread_mutex_unlock(&m);
    return unused;
}
static void *tell(void *unused) {
    pthread_mutex_lock(&m);
    long one = sold;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    long other = left;
    pthread_mutex_unlock(&m);
    return one + other == 7 ? unused : (void *)1;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, sell, NULL);
    pthread_create(&other, NULL, tell, NULL);
    pthread_join(one, NULL);
    void *wrong;
    pthread_join(other, &wrong);
    printf(\"%s\\n\", wrong ? \"wrong\" : \"right\");
    return 0;
}
";

/// A declaration that names what is not there is told, and the rest of it is judged.
#[test]
fn what_is_declared_in_a_file_or_in_the_source_is_judged() {
    if !is_built() {
        return;
    }
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let place = Place::new();
    compile(&place, "apart.c", APART, &["--deep", "-g", "-O1", "-DDECLARED", include]);
    let (report, ended) = judged(&place);
    was_judged(&ended);
    let declared = report["findings"].to_string();
    assert!(declared.contains("declared to belong together: totals"), "{ended}");

    let place = Place::new();
    compile(&place, "apart.c", APART, &["--deep", "-g", "-O1"]);
    place.write("sets", "totals: sold, left\nothers: bought\nnothing\n");
    let check = ["check", "--engines", "correlated", "--budget", "30", "--show", "suspicions", "--json", "report.json"];
    let ended = place.rashomon(&[&check[..], &["--correlated", "sets", "--", "./program"]].concat());
    let said = format!("{}{}", ended.out, ended.err);
    for part in ["declared to belong together: totals", "of that name: bought", "sets:3: not judged"] {
        assert!(said.contains(part), "{part} is not in {ended}");
    }
}

#[test]
fn what_is_declared_is_not_judged_without_the_plugin_which_is_told() {
    let place = Place::new();
    place.compile("program", APART);
    place.write("sets", "totals: sold, left\n");
    let ended = place.rashomon(&["check", "--budget", "5", "--correlated", "sets", "--", "./program"]);
    let said = format!("{}{}", ended.out, ended.err);
    assert!(said.contains("declared sets of variables are not judged"), "{ended}");
}

/// A stored recording is judged without an execution; what is not judged is told.
#[test]
fn a_recording_is_judged_and_lost_tables_are_told() {
    if !is_built() {
        return;
    }
    let place = Place::new();
    compile(&place, "scale.c", SCALE, &["--deep", "-g"]);
    place.write("sets", "pair: x, y, absent\n");
    place.rashomon(&["record", "--dependences", "--output", "store", "--", "./program"]).expect(0, &[]);
    let predict = || {
        let recording = ["predict", "--show", "suspicions", "--correlated", "sets", "store/recording-0"];
        let ended = place.rashomon(&recording);
        format!("{}{}", ended.out, ended.err)
    };
    let said = predict();
    assert!(said.contains("declared to belong together: pair"), "{said}");
    assert!(said.contains("no execution accessed a variable of that name: absent"), "{said}");
    place.must("objcopy", &["--remove-section=rashomon_dependences", "program"]);
    let said = predict();
    assert!(said.contains("program are not judged: its tables were stripped"), "{said}");
}

/// The same with an access that races, which is found whatever becomes of the tables: the program is another build, the section
/// ends in the middle of a table, or is gone.
#[test]
fn with_damaged_tables_the_rest_is_judged_and_told() {
    if !is_built() {
        return;
    }
    let racy = SCALE.replacen("float x = 3", "int plain;\nfloat x = 3", 1).replacen("    (void)unused;", "    plain++;", 1);
    let place = Place::new();
    compile(&place, "scale.c", &racy, &["--deep", "-g", "-Wl,--build-id"]);
    place.rashomon(&["record", "--dependences", "--output", "store", "--", "./program"]).expect(0, &[]);
    let said = || place.rashomon(&["predict", "--show", "suspicions", "store/recording-0"]).to_string();
    let sound = said();
    assert!(
        sound.contains("global plain") && sound.contains("dependences correlate") && !sound.contains("not judged"),
        "{sound}"
    );

    place.must("cp", &["program", "sound"]);
    let section = "rashomon_dependences";
    place.must("objcopy", &["-O", "binary", &format!("--only-section={section}"), "program", "tables"]);
    let bytes = std::fs::read(place.path("tables")).expect("the tables");
    assert!(bytes.len() > 32);
    let damages: [(&str, &dyn Fn()); 4] = [
        ("its tables are damaged", &|| _ = place.write("tables", &bytes[..8])),
        ("its tables are damaged", &|| _ = place.write("tables", vec![0xff; bytes.len()])),
        ("its tables were stripped", &|| {}),
        ("the file is another build", &|| {}),
    ];
    for (number, (why, damage)) in damages.into_iter().enumerate() {
        damage();
        match number {
            0 | 1 => {
                let update = format!("--update-section={section}=tables");
                place.must("objcopy", &[&update, "sound", "program"]);
            }
            2 => _ = place.must("objcopy", &[&format!("--remove-section={section}"), "sound", "program"]),
            _ => compile(&place, "other.c", &racy.replace("x / max", "x * max"), &["--deep", "-g", "-Wl,--build-id"]),
        }
        let said = said();
        let told = format!("program are not judged: {why}");
        assert!(said.contains(&told) && !said.contains("used together"), "{number}: {said}");
        // Another build has other names, or none.
        assert!(said.contains("data race"), "{number}: {said}");
    }
}

/// A loop that stands for 2.4 MB of records in the parent, and for as much in the child: that of the parent is not the child's.
const FORKS: &str = "#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static long cells[100000];
static void fill(int by) {
    for (int i = 0; i < 100000; i++) cells[i] += by;
}
int main(void) {
    fill(1);
    pid_t child = fork();
    if (child == 0) {
        fill(2);
        _exit(cells[99999] != 3);
    }
    int status;
    waitpid(child, &status, 0);
    return status != 0;
}
";

#[test]
fn what_counted_loops_of_the_parent_stand_for_is_not_counted_for_its_child() {
    if !is_built() {
        return;
    }
    let place = Place::new();
    compile(&place, "forks.c", FORKS, &["--deep", "-O1"]);
    place.rashomon(&["record", "--dependences", "--trace-limit", "3", "--output", "store", "--", "./program"]).expect(0, &[]);
    let child = rashomon_trace::Recording::open(&place.path("store/recording-0/process-0000")).expect("the child's recording");
    assert!(!child.header.notes.truncated(), "its own loops stand for less than the limit");
    // What is beyond the limit is noticed all the same.
    let store = ["record", "--dependences", "--trace-limit", "3", "--output", "more", "--", "./program"];
    let twice = FORKS.replace("        fill(2);\n", "        for (int i = 0; i < 2; i++) fill(1);\n");
    compile(&place, "forks.c", &twice, &["--deep", "-O1"]);
    place.rashomon(&store).expect(0, &[]);
    let child = rashomon_trace::Recording::open(&place.path("more/recording-0/process-0000")).expect("the child's recording");
    assert!(child.header.notes.truncated());
}

/// The walk through the tables finds its way again.
#[test]
fn exceptions_jumps_signals_and_forks_are_followed() {
    if !is_built() {
        return;
    }
    for level in LEVELS {
        let place = Place::new();
        compile(&place, "ways.cpp", WAYS, &["--deep", level, "-std=c++17"]);
        place.rashomon(&["record", "--output", "plain", "--", "./program"]).expect(0, &[]);
        let (_, ended) = judged(&place);
        was_judged(&ended);
    }
}

/// An inline function that several files have, and that is inlined into others there: the linker keeps one copy of it.
const SHARED: &str = "#include <vector>
struct Cells {
    std::vector<long> all = std::vector<long>(64, 1);
    long sum() const {
        long sum = 0;
        for (long one : all) sum += one;
        return sum;
    }
    inline void fill(long by) {
        for (int i = 0; i < 64; i++) all.data()[i] = by;
    }
};
long other(long by);
";

#[test]
fn inline_functions_of_several_files_are_linked_and_followed() {
    if !is_built() {
        return;
    }
    for level in LEVELS {
        let place = Place::new();
        place.write("shared.h", SHARED);
        let other = "#include \"shared.h\"\nlong other(long by) { Cells cells; cells.fill(by); return cells.sum(); }\n";
        place.write("other.cpp", other);
        let head = "#include \"shared.h\"\n#include <thread>\nstatic long first;\n";
        let task = "static void task() { Cells cells; cells.fill(2); first = cells.sum(); }\n";
        let main = "int main() { std::thread thread(task); thread.join(); return first + other(3) != 320; }\n";
        place.write("main.cpp", [head, task, main].concat());
        for file in ["other", "main"] {
            let (source, object) = (format!("{file}.cpp"), format!("{file}.o"));
            let compile = ["c++", "--deep", level, "-g", "-w", "-std=c++17", "-c", &source, "-o", &object];
            place.rashomon(&compile).expect(0, &[]);
        }
        place.rashomon(&["c++", "--deep", level, "-pthread", "other.o", "main.o", "-o", "program"]).expect(0, &[]);
        let (_, ended) = judged(&place);
        was_judged(&ended);
    }
}

/// Loops of all kinds that have a second version: up and down, with steps, with looks at a variable that does not change, and
/// such that run not at all.
const COUNTED: &str = include_str!("deep/counted.c");

#[test]
fn counted_loops_are_told_as_if_their_hooks_had_told_them() {
    if !is_built() {
        return;
    }
    for level in LEVELS {
        let place = Place::new();
        compile(&place, "counted.c", COUNTED, &["--deep", level, "-g"]);
        let record = |store: &str, more: &[&str]| {
            let mut arguments = vec!["record", "--output", store];
            arguments.extend(more);
            arguments.extend(["--", "./program"]);
            place.rashomon(&arguments).expect(0, &[]);
        };
        record("whole", &["--dependences"]);
        // A turn of few accesses is never long enough for a loop: its hooks tell it.
        record("single", &["--dependences", "--quantum", "5"]);
        place.rashomon(&["trace", "diff", "whole/recording-0", "single/recording-0"]).expect(0, &[]);
        // One record for a loop is smaller than one for each access.
        let bytes = |store: &str| place.path(store).join("recording-0/thread-0001").metadata().expect("a stream").len();
        assert_eq!(bytes("whole") < bytes("single"), level != "-O0", "{level}: {} and {}", bytes("whole"), bytes("single"));
    }
}

/// The consumer may find the predicate true, and not wait. The signal comes behind the section that made it so: without
/// marks that is no wait loop, unless another run waited.
const WAITS: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, data, late;
static void *task(void *unused) {
    data = 7;
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_mutex_unlock(&m);
    pthread_cond_signal(&c);
    late = 1;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, task, 0);
    pthread_mutex_lock(&m);
    while (!ready)
        pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    int seen = data + late;
    pthread_join(thread, 0);
    return seen < 7;
}
";

/// How wait loops were known, and of each order whether it enters one before the signal, and what came of it; of the first run in
/// which nobody waited.
fn orders(place: &Place) -> (Value, Vec<(bool, String)>) {
    for seed in 1..=20 {
        let (store, seed) = (format!("store{seed}"), seed.to_string());
        place.rashomon(&["record", "--policy", "random", "--seed", &seed, "--output", &store, "--", "./program"]).expect(0, &[]);
        place.rashomon(&["csp", "enforce", "--step-timeout", "2", "--json", "orders.json", &store]);
        let report = place.json("orders.json");
        let all = report["counterexamples"].as_array().into_iter().flatten();
        let order = |one: &Value| Some((one["behind_wait_loop"].as_bool()?, one["outcome"].as_str()?.to_owned()));
        let all: Vec<(bool, String)> = all.filter_map(order).collect();
        if all.len() > 1 {
            return (report["wait_loops"].clone(), all);
        }
    }
    panic!("main waited in every run");
}

/// An order that enters a marked loop before the signal is known as such; without marks it is taken for one like others.
#[test]
fn wait_loops_are_those_that_the_compiler_marked() {
    if !is_built() {
        return;
    }
    let expected = |behind: bool| vec![(false, "race".to_owned()), (behind, "infeasible".to_owned())];
    for deep in ["--deep=loops", "--deep"] {
        let place = Place::new();
        compile(&place, "waits.c", WAITS, &[deep, "-O1"]);
        assert_eq!(orders(&place), ("plugin".into(), expected(true)), "{deep}");
    }
    let place = Place::new();
    place.compile("program", WAITS);
    assert_eq!(orders(&place), ("recording".into(), expected(false)));
}

#[test]
fn a_missing_plugin_is_named() {
    let place = Place::new();
    place.write("waits.c", WAITS);
    let mut command = place.tool(&["cc", "--deep", "-c", "waits.c"]);
    command.env("RASHOMON_PLUGIN", place.path("nothing.so"));
    let ended = place.run(command);
    assert_ne!(ended.code, 0, "{ended}");
    assert!(ended.err.contains("RASHOMON_PLUGIN") || ended.err.contains("clang 19"), "{ended}");
}

#[test]
fn another_compiler_is_refused() {
    let place = Place::new();
    place.write("waits.c", WAITS);
    let mut command = place.tool(&["cc", "--deep", "-c", "waits.c"]);
    command.env("RASHOMON_CC", "gcc");
    let ended = place.run(command);
    assert_ne!(ended.code, 0, "{ended}");
    assert!(ended.err.contains("--deep needs clang 19"), "{ended}");
}
