// A semaphore of the library.
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct permits;
struct permits *permits_new(void);
void permits_give(struct permits *permits);
void permits_take(struct permits *permits);

#ifdef LIBRARY
struct permits {
    int count;
};
struct permits *permits_new(void) {
    return calloc(1, sizeof(struct permits));
}
void permits_give(struct permits *permits) {
    __atomic_fetch_add(&permits->count, 1, __ATOMIC_RELEASE);
}
void permits_take(struct permits *permits) {
    for (;;) {
        int count = __atomic_load_n(&permits->count, __ATOMIC_RELAXED);
        if (count > 0 && __atomic_compare_exchange_n(&permits->count, &count, count - 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        sched_yield();
    }
}
#else
static struct permits *permits;
int data, other;

static void *first(void *unused) {
    data = 1; // @1
    permits_give(permits);
    other = 1; // @3
    return unused;
}

static void *second(void *unused) {
    other = 2; // @4
    permits_take(permits);
    data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t one, other;
    permits = permits_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
