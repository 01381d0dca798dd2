// Two threads meet at a barrier of the library.
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct barrier;
struct barrier *barrier_new(void);
void barrier_meet(struct barrier *barrier);

#ifdef LIBRARY
struct barrier {
    int arrived;
};
struct barrier *barrier_new(void) {
    return calloc(1, sizeof(struct barrier));
}
void barrier_meet(struct barrier *barrier) {
    __atomic_fetch_add(&barrier->arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&barrier->arrived, __ATOMIC_ACQUIRE) < 2) sched_yield();
}
#else
static struct barrier *barrier;
int data, other;

static void *first(void *unused) {
    data = 1; // @1
    barrier_meet(barrier);
    other = 1; // @3
    return unused;
}

static void *second(void *unused) {
    barrier_meet(barrier);
    other = 2; // @4
    return data == 1 ? unused : &data; // @2
}

int main(void) {
    pthread_t one, other;
    barrier = barrier_new();
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
