//! Locks in inline assembly: no instrumentation shows them, so nothing that they may order is claimed.

use crate::support::place::{Place, is_installed, statuses};

/// `count` is protected by a spin lock of instructions that nobody sees; `plain` by nothing.
const PROGRAM: &str = "#include <pthread.h>
static int lock, count, plain;
static void enter(void) {
    int taken = 1;
    do {
        taken = 1;
        LOCK
    } while (taken);
}
static void leave(void) { __asm__ volatile(\"movl $0, %0\" : \"=m\"(lock)::\"memory\"); }
static void *task(void *unused) {
    plain++;
    enter();
    count++;
    leave();
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, task, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return count - 2;
}
";
const ASSEMBLY: &str = r#"__asm__ volatile("xchgl %0, %1" : "+r"(taken), "+m"(lock)::"memory");"#;

#[test]
fn what_a_lock_of_assembly_may_order_is_not_predicted() {
    for compiler in ["gcc", "clang-19"].into_iter().filter(|compiler| is_installed(compiler)) {
        let place = Place::new();
        place.write("program.c", PROGRAM.replace("LOCK", ASSEMBLY));
        let mut build = place.tool(&["cc", "-g", "-O1", "-w", "-pthread", "-o", "program", "program.c"]);
        build.env("RASHOMON_CC", compiler);
        place.run(build).expect(0, &[]);
        let check = ["check", "--budget", "20", "--json", "report.json"];
        let ended = place.rashomon(&[&check[..], &["--", "./program"]].concat()).expect(66, &["inline assembly in program"]);
        let report = place.json("report.json");
        let shown = statuses(&report).into_iter().filter(|(_, status)| ["proven", "predicted"].contains(&status.as_str()));
        assert_eq!(shown.count(), 1, "{compiler}: only `plain` races; {ended}");
        let recorded = place.rashomon(&["record", "-o", "store", "--", "./program"]);
        recorded.expect(0, &[]);
        let predicted = |options: &[&str]| {
            let line = [&["predict", "--fail-on", "never", "--json", "report.json"], options, &["store/recording-0"]].concat();
            place.rashomon(&line).expect(0, &[]);
            statuses(&place.json("report.json")).iter().filter(|(_, status)| status == "predicted").count()
        };
        assert_eq!(predicted(&[]), 0, "{compiler}");
        assert!(predicted(&["--trust-library", "program"]) > 0, "{compiler}");
    }
}
