// A spin lock of one's own.
// Shows: exclusion that no library call announces: an acquiring exchange and a releasing store.
// True:  each acquisition reads the value of the release before it.
// expect: none
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int taken;
static long counter;

static void *work(void *unused) {
    for (int i = 0; i < 50; i++) {
        while (atomic_exchange_explicit(&taken, 1, memory_order_acquire))
            sched_yield();
        counter++;
        atomic_store_explicit(&taken, 0, memory_order_release);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return counter == 150 ? 0 : 1;
}
