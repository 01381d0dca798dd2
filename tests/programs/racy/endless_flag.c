// A flag that nobody sets any more.
// Shows: a thread that looks for ever, while main waits for its end.
// True:  who was to set the flag ended without it; every round of the loop finds the same.
// expect: endless
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int ready, failed = 1;

static void *produce(void *unused) {
    if (!atomic_load(&failed))
        atomic_store(&ready, 1);
    return unused;
}

static void *consume(void *unused) {
    while (!atomic_load(&ready))
        sched_yield();
    return unused;
}

int main(void) {
    pthread_t producer, consumer;
    pthread_create(&producer, NULL, produce, NULL);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_join(producer, NULL);
    pthread_join(consumer, NULL);
    return 0;
}
