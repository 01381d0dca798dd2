//! What is set aside as one of many is of the kind that is reported.

use crate::support::place::Place;

/// More writes that race with reads than are proven of one cause, and a use of the block behind its end.
const PROGRAM: &str = "#include <pthread.h>
#include <stdlib.h>
#define NEXT __asm__ volatile(\"\" ::: \"memory\")
static long *block;
static volatile long sink;
static void *writes_and_frees(void *p) {
    long *q = block;
    *q = 1;
    NEXT;
    *q = 2;
    NEXT;
    *q = 3;
    NEXT;
    *q = 4;
    NEXT;
    *q = 5;
    NEXT;
    free(q);
    return p;
}
static void *reads(void *p) {
    long *q = block;
    sink = *q;
    NEXT;
    sink = *q + 1;
    NEXT;
    sink = *q + 2;
    NEXT;
    sink = *q + 3;
    return p;
}
int main(void) {
    pthread_t first, second;
    block = calloc(1, sizeof *block);
    pthread_create(&first, 0, reads, 0);
    pthread_create(&second, 0, writes_and_frees, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    return 0;
}
";

#[test]
fn a_use_after_free_is_not_like_other_races() {
    let place = Place::new();
    place.compile("program", PROGRAM);
    place.rashomon(&["check", "--json", "report.json", "--output", "store", "--", "./program"]).expect(66, &[]);
    let report = place.json("report.json");
    let findings = report["findings"].as_array().into_iter().flatten();
    let mut proven = findings.filter(|finding| finding["verdict"] == "proven");
    let frees = |side: &serde_json::Value| side["action"].as_str().is_some_and(|action| action.starts_with("free of"));
    assert!(
        proven.any(|finding| finding["sides"].as_array().into_iter().flatten().any(frees)),
        "no use after free is proven: {report:#}"
    );
    let notes = report["run"]["notes"].to_string();
    assert!(notes.contains("set aside"), "nothing was set aside, so that nothing is tested: {report:#}");
}
