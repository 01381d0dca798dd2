//! OpenMP: what its constructs order is known, with gcc's and with clang's entry points; what they do not order is proven.

use crate::support::place::{Ended, Place, is_installed, statuses};
use serde_json::Value;
use std::path::PathBuf;

const CONSTRUCTS: &str = "780 39 113 6 3 1 13 116 4 4 39\n";

fn source(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/openmp").join(name)
}

/// The compilers that are here and can link such a program.
fn compilers(place: &Place) -> Vec<&'static str> {
    place.write("probe.c", "int main(void) { return 0; }");
    let works = |compiler: &&str| {
        is_installed(compiler) && place.run(place.command(compiler, &["-fopenmp", "probe.c", "-o", "probe"])).code == 0
    };
    let found: Vec<_> = ["gcc", "clang-19"].into_iter().filter(works).collect();
    assert!(found.contains(&"gcc"), "gcc's OpenMP is part of it");
    found
}

#[track_caller]
fn compile(place: &Place, compiler: &str, options: &[&str], name: &str) {
    let mut command = place.tool(&["cc", "-fopenmp", "-g", "-w", "-o", "program"]);
    command.env("RASHOMON_CC", compiler).args(options).arg(source(name));
    place.run(command).expect(0, &[]);
}

fn check(place: &Place, options: &[&str]) -> (Ended, Value) {
    let _ = std::fs::remove_dir_all(place.path("store"));
    let start = ["check", "--json", "report.json", "--budget", "15", "--show", "everything", "-o", "store"];
    let arguments: Vec<&str> = start.iter().chain(options).chain(&["--", "./program"]).copied().collect();
    let ended = place.rashomon(&arguments);
    (ended, place.json("report.json"))
}

#[test]
fn a_correct_program_is_silent_and_is_replayed() {
    let place = Place::new();
    for compiler in compilers(&place) {
        for level in ["-O0", "-O2"] {
            compile(&place, compiler, &[level], "constructs.c");
            let ended = place.rashomon(&["detect", "--", "./program"]).expect(0, &[]);
            assert_eq!((ended.out.as_str(), ended.err.as_str()), (CONSTRUCTS, ""), "{compiler} {level}");
            for seed in ["1", "2"] {
                let (ended, report) = check(&place, &["--seed", seed]);
                let ended = ended.expect(0, &[]);
                assert!(ended.out.starts_with(CONSTRUCTS), "{compiler} {level}: {ended}");
                assert_eq!(statuses(&report), [], "{compiler} {level}: {ended}");
                assert!(!ended.err.contains("libgomp") && !ended.err.contains("libomp"), "{ended}");
                let _ = std::fs::remove_dir_all(place.path("replayed"));
                place.rashomon(&["replay", "--recording", "store", "-o", "replayed"]).expect(0, &[]);
                place.rashomon(&["trace", "diff", "store", "replayed"]).expect(0, &[]);
            }
        }
    }
}

#[test]
fn what_no_construct_orders_is_proven() {
    const CASES: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    const DEADLOCK: u32 = 14;
    let place = Place::new();
    for compiler in compilers(&place) {
        for case in CASES {
            let define = format!("-DCASE={case}");
            compile(&place, compiler, &["-O1", &define], "racy.c");
            let (ended, report) = check(&place, &["--recordings", "4"]);
            assert_eq!(ended.code, 66, "{compiler}, case {case}: {ended}");
            let kind = if case == DEADLOCK { "deadlock" } else { "data-race" };
            let findings = report["findings"].as_array().cloned().unwrap_or_default();
            let proven = |finding: &&Value| finding["verdict"] == "proven" && finding["kind"] == kind;
            let proof = findings.iter().find(proven).unwrap_or_else(|| panic!("{compiler}, case {case}: {ended}"));
            // The stacks are those of the program.
            let frames = proof["sides"]
                .as_array()
                .into_iter()
                .flatten()
                .flat_map(|side| side["stack"].as_array().cloned().unwrap_or_default());
            for frame in frames {
                let function = frame["function"].as_str().unwrap_or_default();
                assert!(!function.contains("rashomon"), "{compiler}, case {case}: {ended}");
            }
        }
    }
}

/// A correct program that prints this: no command says anything of it, and what was recorded is replayed.
#[track_caller]
fn silent(place: &Place, said: &str, case: &str) {
    let ended = place.rashomon(&["detect", "--", "./program"]).expect(0, &[]);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), (said, ""), "{case}");
    let (ended, report) = check(place, &[]);
    let ended = ended.expect(0, &[]);
    assert!(ended.out.starts_with(said), "{case}: {ended}");
    assert_eq!(statuses(&report), [], "{case}: {ended}");
    let _ = std::fs::remove_dir_all(place.path("replayed"));
    place.rashomon(&["replay", "--recording", "store", "-o", "replayed"]).expect(0, &[]);
    place.rashomon(&["trace", "diff", "store", "replayed"]).expect(0, &[]);
}

/// Untied tasks, whose code returns at scheduling points and is called again for the rest; loops whose tasks are of an exact
/// size.
#[test]
fn tasks_are_executed_to_their_ends() {
    let place = Place::new();
    for compiler in compilers(&place) {
        compile(&place, compiler, &["-O1"], "tasks.c");
        silent(&place, "8 13 6665\n", compiler);
    }
    compile(&place, "gcc", &["-O1", "-DSTRICT"], "tasks.c");
    silent(&place, "8 13 55553\n", "strict");
}

#[test]
fn the_variables_of_tasks_are_destroyed() {
    let place = Place::new();
    for compiler in compilers(&place) {
        compile(&place, compiler, &["-O1", "-lstdc++"], "destroyed.cpp");
        silent(&place, "0 0\n", compiler);
    }
}

/// Dependences of all kinds; who waits for those of an undeferred task executes nothing else.
#[test]
fn tasks_are_ordered_as_they_depend() {
    let place = Place::new();
    for compiler in compilers(&place) {
        compile(&place, compiler, &["-O1"], "depends.c");
        silent(&place, "116\n", compiler);
        compile(&place, compiler, &["-O1", "-DRACY"], "depends.c");
        let (ended, report) = check(&place, &[]);
        assert!(statuses(&report).iter().any(|(_, status)| status == "proven"), "{compiler}: {ended}");
    }
}

/// As compilers call what says how many threads the next region has, and a region whose condition is false.
#[test]
fn a_number_of_threads_is_that_of_one_region() {
    let place = Place::new();
    let program = "#include <omp.h>
#include <stdio.h>
void __kmpc_push_num_threads(void *, int, int);
void __kmpc_fork_call_if(void *, int, void *, int, void *);
static void region(int *global, int *number, int *most) {
    if (*number == 0) *most = omp_get_num_threads();
}
int main(void) {
    int alone = 0, all = 0;
    omp_set_num_threads(2);
    __kmpc_push_num_threads(0, 0, 3);
    __kmpc_fork_call_if(0, 1, (void *)region, 0, &alone);
    __kmpc_fork_call_if(0, 1, (void *)region, 1, &all);
    printf(\"%d %d\\n\", alone, all);
    return 0;
}
";
    place.write("regions.c", program);
    if compilers(&place).contains(&"clang-19") {
        let mut command = place.tool(&["cc", "-fopenmp", "-g", "-w", "-o", "program", "regions.c"]);
        command.env("RASHOMON_CC", "clang-19");
        place.run(command).expect(0, &[]);
        silent(&place, "1 2\n", "a false condition");
    }
}

/// A process whose code calls what the runtime does not serve has the compiler's library, and the report says which call it was;
/// `detect` does when it begins.
#[test]
fn what_is_not_served_is_left_to_the_compilers_library() {
    let place = Place::new();
    let program = "#include <stdio.h>
int main(void) {
    int sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
    for (int i = 0; i < 4; i++) {
#pragma omp task in_reduction(+ : sum)
        sum += i;
    }
    printf(\"%d\\n\", sum);
    return 0;
}
";
    place.write("reduction.c", program);
    place.rashomon(&["cc", "-fopenmp", "-g", "-O1", "-o", "program", "reduction.c"]).expect(0, &[]);
    let ended = place.rashomon(&["check", "--budget", "10", "-o", "store", "--", "./program"]);
    assert!(ended.out.starts_with("6\n") && ended.err.contains("GOMP_taskgroup_reduction_register"), "{ended}");
    assert!(ended.err.contains("0 proven, 0 predicted"), "{ended}");
    let ended = place.rashomon(&["detect", "--", "./program"]);
    assert!(ended.out.starts_with("6\n"), "{ended}");
    assert!(ended.err.starts_with("rashomon: OpenMP's GOMP_task_reduction_remap is not served"), "{ended}");
}

/// Whatever name of a compiler's library it is; but a function of the program's own may have such a name, and some of the
/// library's have nothing to do with teams.
#[test]
fn every_name_that_is_not_served_is_known() {
    let place = Place::new();
    let cases = [
        (
            "gcc",
            "GOMP_taskgroup_reduction_unregister",
            "
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop reduction(+ : sum)
    for (int i = 0; i < 6; i++) sum++;",
        ),
        (
            "clang-19",
            "__kmpc_alloc",
            "
    int kept = 1;
#pragma omp allocate(kept) allocator(omp_large_cap_mem_alloc)
#pragma omp parallel num_threads(2) reduction(+ : sum)
    sum += kept + 2;",
        ),
        ("gcc", "omp_get_partition_num_places", "sum = 6 + 0 * omp_get_partition_num_places();"),
        ("clang-19", "omp_get_partition_num_places", "sum = 6 + 0 * omp_get_partition_num_places();"),
        ("gcc", "", "sum = omp_own();"),
        ("clang-19", "", "sum = omp_own();"),
        (
            "gcc",
            "",
            "int *one = omp_alloc(4, omp_default_mem_alloc); *one = 6; sum = *one; omp_free(one, omp_default_mem_alloc);",
        ),
        (
            "clang-19",
            "",
            "int *one = omp_alloc(4, omp_default_mem_alloc); *one = 6; sum = *one; omp_free(one, omp_default_mem_alloc);",
        ),
    ];
    let compilers = compilers(&place);
    place.write("own.c", "int omp_own(void) { return 6; }");
    for (compiler, name, code) in cases.into_iter().filter(|(compiler, ..)| compilers.contains(compiler)) {
        place.write(
            "refers.c",
            format!(
                "#include <omp.h>\n#include <stdio.h>\nint omp_own(void);\nint main(void) {{\n    int sum = 0;\n    \
                    omp_set_num_threads(2);\n{code}\n    printf(\"%d\\n\", sum);\n    return 0;\n}}\n"
            ),
        );
        place.must(compiler, &["-shared", "-fPIC", "-o", "libown.so", "own.c"]);
        let mut command =
            place.tool(&["cc", "-fopenmp", "-g", "-w", "-o", "program", "refers.c", "./libown.so", "-Wl,-rpath,$ORIGIN"]);
        command.env("RASHOMON_CC", compiler);
        place.run(command).expect(0, &[]);
        let ended = place.rashomon(&["detect", "--", "./program"]);
        assert_eq!(ended.out, "6\n", "{compiler}, {code}: {ended}");
        if name.is_empty() {
            assert_eq!(ended.err, "", "{compiler}, {code}");
        } else {
            assert!(ended.err.starts_with(&format!("rashomon: OpenMP's {name} is not served")), "{compiler}, {code}: {ended}");
        }
    }
}

/// Threads that wait for each other's locks are found although others of the team wait for them.
#[test]
fn a_deadlock_inside_a_team_is_found() {
    let place = Place::new();
    for compiler in compilers(&place) {
        compile(&place, compiler, &["-O1"], "stuck.c");
        let ended = place.rashomon(&["detect", "--", "./program"]).expect(66, &["every thread waits"]);
        assert_eq!(ended.err.matches("\ndeadlock ").count(), 1, "{compiler}: {ended}");
    }
}

/// Drawing work is no fruitless look, by which time would pass.
#[test]
fn work_takes_no_time_of_the_model() {
    let place = Place::new();
    for compiler in compilers(&place) {
        compile(&place, compiler, &["-O1"], "time.c");
        for seed in ["1", "2"] {
            let _ = std::fs::remove_dir_all(place.path("store"));
            let ended = place.rashomon(&["record", "--seed", seed, "-o", "store", "--", "./program"]).expect(0, &[]);
            assert_eq!(ended.out, "11125 0 0 0\n", "{compiler}: {ended}");
        }
    }
}

/// Who draws which piece of work is explored: whoever may, gets it in some schedule, and there is an end of them.
#[test]
fn who_draws_what_is_explored() {
    let place = Place::new();
    for compiler in compilers(&place) {
        for kind in ["-DLOOP", "-DTASKS"] {
            for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)] {
                let options = ["-O1", kind, &format!("-DFIRST={first}"), &format!("-DSECOND={second}")];
                compile(&place, compiler, &options, "draws.c");
                let _ = std::fs::remove_dir_all(place.path("store"));
                let ended = place.rashomon(&["explore", "--strategy", "dpor", "--output", "store", "--", "./program"]);
                let (code, said) = if first == 2 { (0, "0 proven") } else { (66, "1 proven") };
                assert!(ended.code == code && ended.err.contains(said), "{compiler} {options:?}: {ended}");
            }
        }
    }
}

/// Regions run to their ends while the program is observed; where the program could see a difference, that is said.
#[test]
fn what_would_be_cancelled_is_said_to_run_on() {
    let place = Place::new();
    let program = "#include <stdio.h>
int main(void) {
    int count = 0;
#pragma omp parallel num_threads(2) reduction(+ : count)
#pragma omp for schedule(static, 1)
    for (int i = 0; i < 20; i++) {
        count++;
#pragma omp cancel for
    }
    printf(\"%d\\n\", count);
    return 0;
}
";
    place.write("cancels.c", program);
    for compiler in compilers(&place) {
        let mut command = place.tool(&["cc", "-fopenmp", "-g", "-O1", "-o", "program", "cancels.c"]);
        command.env("RASHOMON_CC", compiler);
        place.run(command).expect(0, &[]);
        for (setting, said) in [("false", 0), ("true", 1)] {
            let mut detect = place.tool(&["detect", "--", "./program"]);
            detect.env("OMP_CANCELLATION", setting);
            let ended = place.run(detect).expect(0, &[]);
            assert_eq!(
                (ended.out.as_str(), ended.err.matches("OMP_CANCELLATION").count()),
                ("20\n", said),
                "{compiler}: {ended}"
            );
        }
    }
}
