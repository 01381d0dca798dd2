// A thread stores and prints; the main thread reads a line and stores.
// Shows: reading standard input orders nothing with writing standard output, also where both are the same terminal, or /dev/null.
// True:  the flag is relaxed on both sides, and nothing else tells the main thread that the other one has stored.
// expect: race 14 25 unordered
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int printed;
int last;

static void *print(void *argument) {
    last = 1;
    if (write(1, "printed\n", 8) != 8) return argument;
    atomic_store_explicit(&printed, 1, memory_order_relaxed);
    return NULL;
}

int main(void) {
    pthread_t printer;
    char line[64];
    pthread_create(&printer, NULL, print, NULL);
    while (!atomic_load_explicit(&printed, memory_order_relaxed)) sched_yield();
    if (read(0, line, sizeof line) >= 0) last = 2;
    pthread_join(printer, NULL);
    return 0;
}
