//! A serial execution stays on one processor, which the program and what it starts do not notice.

use crate::support::place::{Place, program_text, skipped};
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

const SERIAL: [&str; 3] = ["record", "--policy", "random"];

fn program() -> Place {
    let place = Place::new();
    place.compile("program", &program_text("hazards/processors.c"));
    place.must("gcc", &["-O1", "-w", "-pthread", "-o", "native", "program.c"]);
    place
}

#[test]
fn the_program_hears_of_all_processors() {
    let place = program();
    let native = place.must("./native", &[]).out;
    assert!(native.contains("placed right") && native.contains("exec "), "{native}");
    let recorded = place.rashomon(&[&SERIAL[..], &["--", "./program"]].concat()).expect(0, &[]);
    assert_eq!(recorded.out, native, "{recorded}");
    let parallel = place.rashomon(&["record", "--policy", "free", "--", "./program"]).expect(0, &[]);
    assert_eq!(parallel.out, native, "{parallel}");
}

/// OpenMP is served by the runtime itself.
#[test]
fn openmp_hears_of_all_processors() {
    let place = Place::new();
    let source = "#include <omp.h>\n#include <stdio.h>
int main(void) {
    int team = 0;
    #pragma omp parallel
    #pragma omp single
    team = omp_get_num_threads();
    printf(\"%d %d %d\\n\", omp_get_num_procs(), omp_get_max_threads(), team);
}
";
    place.write("program.c", source);
    place.rashomon(&["cc", "-fopenmp", "-o", "program", "program.c"]).expect(0, &[]);
    place.must("gcc", &["-fopenmp", "-o", "native", "program.c"]);
    let native = place.must("./native", &[]).out;
    let recorded = place.rashomon(&[&SERIAL[..], &["--", "./program"]].concat()).expect(0, &[]);
    assert_eq!(recorded.out, native, "{recorded}");
}

#[test]
fn the_kernel_knows_of_one() {
    if available_parallelism().is_ok_and(|processors| processors == NonZeroUsize::MIN) {
        return skipped("there is one processor only");
    }
    let place = program();
    let native = place.must("./native", &["kernel"]).out;
    let recorded = place.rashomon(&[&SERIAL[..], &["--", "./program", "kernel"]].concat()).expect(0, &[]);
    let list = recorded.out.trim().rsplit('\t').next().unwrap_or_default();
    assert!(list.parse::<u32>().is_ok(), "one number: {recorded}");
    assert_ne!(recorded.out, native);
}
