// The library makes a value once, by a callback, and keeps it in a variable of its own (Caveat 5).
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

int *once_get(int *(*make)(void));

#ifdef LIBRARY
static int state;
static int *value;
int *once_get(int *(*make)(void)) {
    int none = 0;
    if (__atomic_compare_exchange_n(&state, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        value = make();
        __atomic_store_n(&state, 2, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2) sched_yield();
    return value;
}
#else
static int *make(void) {
    int *made = malloc(sizeof *made);
    *made = 5; // @1
    return made;
}

static void *first(void *unused) {
    int *value = once_get(make);
    return *value == 5 ? unused : value; // @2
}

static void *second(void *unused) {
    return first(unused);
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
