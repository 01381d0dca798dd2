// Relaxed atomic counters.
// Shows: atomics that order nothing and need not.
// True:  main reads the totals after the joins.
// expect: none
#include <pthread.h>
#include <stdatomic.h>

static atomic_long small, large;
static _Atomic(unsigned char) byte;

static void *work(void *unused) {
    for (int i = 0; i < 100; i++) {
        atomic_fetch_add_explicit(&small, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&large, 1000, memory_order_relaxed);
        atomic_fetch_xor_explicit(&byte, 0xff, memory_order_relaxed);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&small) == 300 && atomic_load(&large) == 300000 && atomic_load(&byte) == 0 ? 0 : 1;
}
