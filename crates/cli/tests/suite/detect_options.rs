//! `rashomon detect`: options that change what is ordered, what counts and how it is written, and calls beyond threads and locks.
//! Every order that matters is forced by joins, or by relaxed operations, which order nothing for a detector.

use crate::support::place::{Ended, Place};

/// On one line: line numbers stay those of the program.
const PRELUDE: &str = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <sched.h>\n#include <signal.h>\n\
    #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <sys/wait.h>\n\
    #include <unistd.h>
static int turn __attribute__((aligned(8))); static void pass(int to) { __atomic_store_n(&turn, to, __ATOMIC_RELAXED); } \
    static void await(int wanted) { while (__atomic_load_n(&turn, __ATOMIC_RELAXED) != wanted) sched_yield(); }
int x __attribute__((aligned(8)));
";

const RACE: &str = "WARNING: ThreadSanitizer: data race (pid=";

#[track_caller]
fn compiled(body: &str) -> Place {
    let place = Place::new();
    place.compile("program", &format!("{PRELUDE}{body}"));
    place
}

#[track_caller]
fn detect(place: &Place, options: &[&str]) -> Ended {
    let options: Vec<&str> = options.iter().flat_map(|option| ["-O", option]).collect();
    place.rashomon(
        &[&["detect", "--format", "tsan", "-O", "atexit_sleep_ms=0"], options.as_slice(), &["--", "./program"]].concat(),
    )
}

#[track_caller]
fn silent(place: &Place, options: &[&str]) {
    let ended = detect(place, options).expect(0, &[]);
    assert!(!ended.err.contains("ThreadSanitizer"), "{ended}");
}

#[test]
fn handlers_at_exit_follow_their_installation_and_name_it() {
    // What was done before the installation is ordered, though by another thread.
    let ordered =
        "static void at_end(void) { x++; } static void *task(void *p) { x++; atexit(at_end); pass(1); await(2); return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, task, 0); pthread_detach(t); await(1); return 0; }";
    silent(&compiled(ordered), &[]);
    let racing = |install: &str| {
        format!(
            "static void at_end(void) {{ x++; }} static void with_code(int code, void *p) {{ x += code == 3 && p == &x; }}
        static void *task(void *p) {{ x++; pass(1); return 0; }} static void install(void) {{ {install}; pass(5); }}
        int main(void) {{ install(); pthread_t t; pthread_create(&t, 0, task, 0); pthread_detach(t); await(1); return 3; }}"
        )
    };
    for (call, handler, way) in [
        ("atexit(at_end)", "at_end", "at_exit_callback_installed_at"),
        ("on_exit(with_code, &x)", "with_code", "on_exit_callback_installed_at"),
    ] {
        let said = [RACE.to_owned(), format!("    #0 {handler} "), format!("    #1 {way} "), "    #2 install ".to_owned()];
        detect(&compiled(&racing(call)), &[]).expect(66, &said.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn what_a_library_without_instrumentation_does_can_be_left_out() {
    let library = "#include <pthread.h>\n#include <string.h>\nstatic char buffer[64]; static void *task(void *p) { \
        memset(buffer, 1, 64); return 0; }
        void work(void) { pthread_t t; pthread_create(&t, 0, task, 0); memset(buffer, 2, 64); pthread_join(t, 0); }";
    let place = Place::new();
    place.write("library.c", library);
    let build =
        ["cc", "-O1", "-fno-builtin", "-fno-sanitize=thread", "-fPIC", "-shared", "-pthread", "-o", "libwork.so", "library.c"];
    place.rashomon(&build).expect(0, &[]);
    let program = "#include <dlfcn.h>\nint main(void) { void *library = dlopen(\"./libwork.so\", RTLD_NOW); \
        if (!library) return 4;
        void (*work)(void) = (void (*)(void))dlsym(library, \"work\"); work(); fputs(\"worked\\n\", stderr); dlclose(library); \
        return 0; }";
    place.compile("program", &format!("{PRELUDE}{program}"));
    detect(&place, &[]).expect(66, &[RACE, "    #0 memset ", "worked"]);
    silent(&place, &["ignore_noninstrumented_modules=1"]);
    place.write("suppressions", "called_from_lib:/libwork.so$\n");
    // A library that was left out must stay.
    let ended = detect(&place, &["suppressions=suppressions"])
        .expect(66, &["worked", "that was matched against called_from_lib suppression '/libwork.so$' is unloaded"]);
    assert!(!ended.err.contains(RACE), "{ended}");
}

/// The loader's lock is held until the race has been reported.
#[test]
fn a_race_while_a_library_is_being_loaded() {
    let place = Place::new();
    place.write("library.c", "void reached(void); __attribute__((constructor)) static void begin(void) { reached(); }");
    place.rashomon(&["cc", "-fPIC", "-shared", "-o", "libslow.so", "library.c"]).expect(0, &[]);
    let program = "#include <dlfcn.h>\nvoid reached(void) { pass(1); await(3); }
        static void *load(void *p) { return dlopen(\"./libslow.so\", RTLD_NOW); } static void *task(void *p) { await(2); \
        ++*(int *)p; return 0; }
        int main(void) { int own = 0; pthread_t t, u; pthread_create(&t, 0, task, &own); pthread_create(&u, 0, load, 0); \
        await(1); own++; pass(2);
        pthread_join(t, 0); pass(3); void *library; pthread_join(u, &library); return library == 0; }";
    place.write("program.c", format!("{PRELUDE}{program}"));
    place.rashomon(&["cc", "-g", "-O1", "-w", "-pthread", "-rdynamic", "-o", "program", "program.c"]).expect(0, &[]);
    detect(&place, &[]).expect(66, &[RACE, "Location is stack of main thread"]);
}

#[test]
fn threads_after_a_fork_of_several() {
    let place = compiled(
        "static void *nothing(void *p) { return 0; } static void *stays(void *p) { await(1); return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, stays, 0); int child = fork();
        if (!child) { pthread_t own; pthread_create(&own, 0, nothing, 0); pthread_join(own, 0); _exit(0); }
        int status; waitpid(child, &status, 0); pass(1); pthread_join(t, 0); fprintf(stderr, \"child: %d\\n\", \
        WEXITSTATUS(status)); return 0; }",
    );
    detect(&place, &[]).expect(0, &["starting new threads after multi-threaded fork is not supported", "child: 66"]);
    detect(&place, &["die_after_fork=0"]).expect(0, &["child: 0"]);
    detect(&place, &["format=text"]).expect(0, &["child: 0"]);
    detect(&place, &["format=text", "die_after_fork=1"]).expect(0, &["child: 66"]);
}

#[test]
fn input_and_output_order_as_asked() {
    let pipe = compiled(
        "static int ends[2]; static void *task(void *p) { char c = 0; read(ends[0], &c, 1); x++; return 0; }
        int main(void) { pipe(ends); pthread_t t; pthread_create(&t, 0, task, 0); x++; write(ends[1], \"a\", 1); \
        pthread_join(t, 0); return 0; }",
    );
    silent(&pipe, &[]);
    silent(&pipe, &["io_sync=2"]);
    detect(&pipe, &["io_sync=0"]).expect(66, &[RACE]);
    let files = compiled(
        "static void *task(void *p) { await(1); char c; int file = open(\"/etc/passwd\", O_RDONLY); read(file, &c, 1); \
         close(file); x++; return 0; }
        int main(void) { int file = open(\"out\", O_CREAT | O_WRONLY, 0600); pthread_t t; pthread_create(&t, 0, task, 0);
        x++; write(file, \"a\", 1); pass(1); pthread_join(t, 0); close(file); return 0; }",
    );
    detect(&files, &[]).expect(66, &[RACE]);
    silent(&files, &["io_sync=2"]);
}

#[test]
fn release_sequences_end_as_the_standard_says_or_as_thread_sanitizer_has_it() {
    let place = compiled(
        "static int flag; static void *task(void *p) { x = 1; __atomic_store_n(&flag, 1, __ATOMIC_RELEASE); pass(1); return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, task, 0); await(1); __atomic_store_n(&flag, 2, __ATOMIC_RELAXED);
        int seen = __atomic_load_n(&flag, __ATOMIC_ACQUIRE); x = 2; pthread_join(t, 0); return seen != 2; }",
    );
    silent(&place, &[]);
    detect(&place, &["release_sequences=standard"]).expect(66, &[RACE]);
    place.rashomon(&["detect", "--format", "text", "-O", "atexit_sleep_ms=0", "--", "./program"]).expect(66, &[]);
}

#[test]
fn one_race_on_an_address() {
    let place = compiled(
        "static void *task(void *p) { x = 1; pass(1); return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, task, 0); await(1); int first = x;\n x = 2; pthread_join(t, 0); \
        return first == 5; }",
    );
    detect(&place, &["suppress_equal_addresses=1"]).expect(66, &["ThreadSanitizer: reported 1 warnings"]);
    detect(&place, &[]).expect(66, &["ThreadSanitizer: reported 2 warnings"]);
}

#[test]
fn names_as_linkers_know_them_and_where_modules_are() {
    let place = Place::new();
    place.compile_cxx(
        "program",
        "#include <thread>\nnamespace n { int x; void task(int by) { x += by; \
            } } int main() { std::thread t(n::task, 1); n::task(2); t.join(); }",
    );
    detect(&place, &[]).expect(66, &["    #0 n::task(int) "]);
    let ended = detect(&place, &["demangle=0", "print_module_map=1"])
        .expect(66, &["    #0 _ZN1n4taskEi ", "Process module map:\n0x", "End of module map."]);
    assert!(ended.err.contains("/program (BuildId: "), "{ended}");
}

#[test]
fn mappings_barriers_and_sleeps() {
    let mapping = compiled(
        "static char *page; static void *task(void *p) { await(1); __atomic_load_n(&page, __ATOMIC_RELAXED)[5] = 1; return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, task, 0); char *new = mmap(0, 4096, PROT_READ | PROT_WRITE, \
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        __atomic_store_n(&page, new, __ATOMIC_RELAXED); pass(1); pthread_join(t, 0); munmap(0, -1); munmap(new, 1ul << 60); \
        return munmap(new, 4096); }",
    );
    detect(&mapping, &[]).expect(66, &[RACE, "    #0 mmap "]);
    let barrier = compiled(
        "static pthread_barrier_t b; static void *task(void *p) { pthread_barrier_init(&b, 0, 2); pass(1); \
         pthread_barrier_wait(&b); return 0; }
        int main(void) { pthread_t t; pthread_create(&t, 0, task, 0); await(1); pthread_barrier_wait(&b); pthread_join(t, 0); \
        pthread_barrier_destroy(&b); return 0; }",
    );
    detect(&barrier, &[]).expect(66, &[RACE, "    #0 pthread_barrier_wait ", "    #0 pthread_barrier_init "]);
    let joined = compiled(
        "static pthread_barrier_t b; static void *task(void *p) { pthread_barrier_wait(&b); x++; pthread_barrier_wait(&b); \
         return 0; }
        int main(void) { pthread_barrier_init(&b, 0, 2); pthread_t t; pthread_create(&t, 0, task, 0); x++; \
        pthread_barrier_wait(&b); pthread_barrier_wait(&b);
        x++; pthread_join(t, 0); pthread_barrier_destroy(&b); return 0; }",
    );
    silent(&joined, &[]);
    // Whoever is told to destroys it, while others still leave.
    let told = compiled(
        "static pthread_barrier_t b[20]; static void *task(void *p) { for (int i = 0; i < 20; \
         i++) if (pthread_barrier_wait(&b[i])) pthread_barrier_destroy(&b[i]); return 0; }
        int main(void) { for (int i = 0; i < 20; i++) pthread_barrier_init(&b[i], 0, 2); pthread_t t; pthread_create(&t, 0, \
        task, 0); task(0); return pthread_join(t, 0); }",
    );
    silent(&told, &[]);
    let slept = |before: &str, behind: &str| {
        compiled(&format!(
            "static void *task(void *p) {{ x = 1; pass(1); return 0; }}
        int main(void) {{ pthread_t t; {before} pthread_create(&t, 0, task, 0); await(1); {behind} x = 2; pthread_join(t, 0); \
        return 0; }}"
        ))
    };
    detect(&slept("", "usleep(1);"), &[]).expect(66, &[RACE, "  As if synchronized via sleep:\n    #0 usleep ", "    #1 main "]);
    let ended = detect(&slept("usleep(1);", ""), &[]).expect(66, &[RACE]);
    assert!(!ended.err.contains("As if synchronized"), "{ended}");
}

#[test]
fn processes_that_are_cloned() {
    let place = compiled(
        "static int child(void *p) { x += *(int *)p; exit(x == 7 ? 0 : 1); }
        static void *busy(void *p) { while (!__atomic_load_n(&turn, __ATOMIC_RELAXED)) __atomic_fetch_add((int *)p, 1, \
        __ATOMIC_SEQ_CST); return 0; }
        int main(void) { static int counter; int seven = 7; pthread_t t; pthread_create(&t, 0, busy, &counter); \
        char *stack = malloc(1 << 16);
        for (int i = 0; i < 20; i++) { int id = clone(child, stack + (1 << 16), SIGCHLD, &seven), status; \
        if (id < 0 || waitpid(id, &status, 0) != id || status) return 5; }
        pass(1); pthread_join(t, 0); free(stack); return x; }",
    );
    silent(&place, &[]);
}

/// More call stacks between two operations on locks than are told apart: a block that is allocated then has nobody's name, but it
/// is no freed one any more.
#[test]
fn blocks_that_are_allocated_when_no_place_can_be_named() {
    let place = compiled(
        "static long cells[1 << 16], deep; static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static pthread_barrier_t end;
        static void descend(int depth) { if (depth) { descend(depth - 1); descend(depth - 1); } \
        else cells[deep++ % (1 << 16)] = 1; }
        static void next_span(void) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
        static void *rest(void *p) { pthread_barrier_wait(&end); return p; }
        int main(void) { pthread_t t; pthread_barrier_init(&end, 0, 2); pthread_create(&t, 0, rest, 0);
        for (int i = 0; i < 3; i++) {
            long *block = malloc(40); block[0] = 1; free(block); next_span();
            descend(16); block = malloc(40); next_span();
            block[0] = 2; free(block); }
        pthread_barrier_wait(&end); return pthread_join(t, 0); }",
    );
    silent(&place, &["references=8"]);
}
