//! The initial thread's static storage ends where it ends: what lies below it, mapped by somebody unseen, has its own name,
//! wherever it lies.

use crate::support::place::Place;

/// Maps a page, by a system call that nobody sees, at the given distance below the initial thread's storage, or where there is
/// room next; before the runtime maps anything there.
const BELOW: &str = "#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#define FIXED_NOREPLACE 0x100000
#define UNSEEN __attribute__((no_sanitize(\"thread\")))
static int *page;
static __thread int own;
UNSEEN static void map_below(int count, char **arguments) {
    unsigned long at, distance = 0;
    for (const char *digit = arguments[1]; *digit; digit++)
        distance = 10 * distance + (*digit - '0');
    __asm__ volatile(\"mov %%fs:0, %0\" : \"=r\"(at));
    for (at = (at - distance) & ~4095ul;; at -= 4096) {
        register long flags __asm__(\"r10\") = MAP_PRIVATE | MAP_ANONYMOUS | FIXED_NOREPLACE;
        register long file __asm__(\"r8\") = -1;
        register long from __asm__(\"r9\") = 0;
        long result;
        __asm__ volatile(\"syscall\" : \"=a\"(result)
            : \"a\"(SYS_mmap), \"D\"(at), \"S\"(4096ul), \"d\"(PROT_READ | PROT_WRITE), \"r\"(flags), \"r\"(file), \"r\"(from)
            : \"rcx\", \"r11\", \"memory\");
        if (result == (long)at) {
            page = (int *)result;
            return;
        }
    }
}
__attribute__((section(\".preinit_array\"), used)) static void (*early)(int, char **) = map_below;
static void *work(void *p) { own++; __atomic_fetch_add(page, 1, __ATOMIC_RELAXED); return p; }
int main(void) {
    pthread_t t;
    own = 1;
    pthread_create(&t, 0, work, 0);
    *page = 7;
    pthread_join(t, 0);
    return 0;
}
";

#[test]
fn a_page_below_it_has_its_own_name() {
    let place = Place::new();
    place.compile("program", BELOW);
    for (store, distance) in [("near", "0004096"), ("far", "9007104")] {
        place.rashomon(&["record", "--policy", "round-robin", "--output", store, "--", "./program", distance]).expect(0, &[]);
    }
    place.rashomon(&["trace", "diff", "near", "far"]).expect(0, &[]);
}
