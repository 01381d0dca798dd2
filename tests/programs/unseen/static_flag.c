// The only variable of the library is a flag of four bytes (Caveat 5).
// race: 3 4
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void ready_set(void);
void ready_await(void);

#ifdef LIBRARY
static int ready;
void ready_set(void) {
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}
void ready_await(void) {
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) sched_yield();
}
#else
int data, other;

static void *first(void *unused) {
    data = 1; // @1
    ready_set();
    other = 1; // @3
    return unused;
}

static void *second(void *unused) {
    other = 2; // @4
    ready_await();
    return data == 1 ? unused : &data; // @2
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, first, 0);
    pthread_create(&other, 0, second, 0);
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
#endif
