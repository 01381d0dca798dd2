// Waiting for an atomic with sched_yield.
// Shows: a relay in which each thread spins until its number comes up.
// True:  acquire loads read the release stores that precede them in the relay.
// expect: none
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 3, LAPS = 5 };
static atomic_int now;
static int log_entries[THREADS * LAPS], entries;

static void *work(void *argument) {
    int me = *(int *)argument;
    for (int lap = 0; lap < LAPS; lap++) {
        int mine = lap * THREADS + me;
        while (atomic_load_explicit(&now, memory_order_acquire) != mine)
            sched_yield();
        log_entries[entries++] = me;
        atomic_store_explicit(&now, mine + 1, memory_order_release);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS * LAPS; i++)
        if (log_entries[i] != i % THREADS)
            return 1;
    return 0;
}
