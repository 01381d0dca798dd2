// A mapping that is taken away behind the last access to it, but ordered by nothing.
// Shows: unmapping is a write. A relaxed flag keeps the two from being held side by side, and happens-before orders neither.
// True:  the flag is relaxed on both sides.
// expect: race 15 30 unordered
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

static atomic_int done;

static void *fill(void *argument) {
    volatile char *page = argument;
    page[7] = 1;
    atomic_store_explicit(&done, 1, memory_order_relaxed);
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 1;
    pthread_create(&thread, NULL, fill, page);
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        sched_yield();
    // The thread ends later than the mapping.
    puts("filled");
    munmap(page, 4096);
    pthread_join(thread, NULL);
    return 0;
}
