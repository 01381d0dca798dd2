//! Data handed over through the kernel and through streams: what `detect` sees of it, what is looked for in the schedules that it
//! leaves possible, and functions that the runtime does not serve.

use crate::support::place::{Place, program_text, statuses};
use serde_json::Value;

/// Programs that hand data over in every way that is served.
const WAYS: [&str; 4] = ["kernel_queues", "signal_hand_over", "stream_hand_over", "process_hand_over"];

#[test]
fn detection_sees_every_way() {
    for way in WAYS {
        let place = Place::new();
        place.compile("race", &program_text(&format!("race_free/{way}.c")));
        place.rashomon(&["detect", "--", "./race"]).expect(0, &[]);
    }
}

/// One thread hands over to the other by a function that is not served.
const UNSERVED: &str = "#include <aio.h>
#include <pthread.h>
#include <unistd.h>
static int x, ends[2];
static void *first(void *unused) {
    static struct aiocb block;
    x = 1;
    block.aio_fildes = ends[1];
    block.aio_buf = (void *)\"a\";
    block.aio_nbytes = 1;
    aio_write(&block);
    return unused;
}
static void *second(void *unused) {
    char byte;
    while (read(ends[0], &byte, 1) != 1) {}
    x += 1;
    return unused;
}
int main(void) {
    pthread_t threads[2];
    if (pipe(ends) != 0) return 2;
    pthread_create(&threads[0], 0, second, 0);
    pthread_create(&threads[1], 0, first, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
";

#[test]
fn a_function_that_is_not_served_is_named_and_nothing_rests_on_it() {
    let place = Place::new();
    place.compile("race", UNSERVED);
    place.rashomon(&["check", "--recordings", "1", "--budget", "20", "--json", "report.json", "--", "./race"]).expect(0, &[]);
    let report: Value = place.json("report.json");
    for finding in report["findings"].as_array().unwrap() {
        assert!(!["proven", "predicted"].contains(&finding["verdict"].as_str().unwrap_or("proven")), "{finding}");
    }
    assert!(report.to_string().contains("aio_write"), "{report}");
}

/// Linked with, and never called: as of code of a library's archive that the program has no use for.
#[test]
fn a_function_that_is_not_served_and_not_called_prevents_nothing() {
    let place = Place::new();
    let unused = UNSERVED.replace("aio_write(&block);", "if (x > 5) aio_write(&block); else write(ends[1], \"a\", 1);");
    assert_ne!(unused, UNSERVED);
    let racy = unused.replace("x = 1;", "other++; x = 1;").replace("char byte;", "char byte; other++;");
    place.compile("race", &racy.replace("static int x,", "static int other, x,"));
    place.rashomon(&["record", "-o", "store", "--", "./race"]).expect(0, &[]);
    let ended = place.rashomon(&["predict", "--json", "report.json", "store"]).expect(0, &[]);
    let report = place.json("report.json");
    assert!(!ended.err.contains("aio_write") && !report.to_string().contains("aio_write"), "{ended}");
    assert!(statuses(&report).iter().any(|(_, status)| status == "predicted"), "{report}");
}
