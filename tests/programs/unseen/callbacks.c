// What callbacks do inside of the calls is ordered by them as well (Figure 4.4, Caveat 2).
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void tell_behind(int *place, void (*callback)(void));
void hear_before(int *place, void (*callback)(void));

#ifdef LIBRARY
void tell_behind(int *place, void (*callback)(void)) {
    callback();
    __atomic_store_n(place, 1, __ATOMIC_RELEASE);
}
void hear_before(int *place, void (*callback)(void)) {
    while (!__atomic_load_n(place, __ATOMIC_ACQUIRE)) sched_yield();
    callback();
}
#else
int place, data, seen;

static void look(void) {
    seen = data; // @1
}

static void change(void) {
    data = 1; // @2
}

static void *first(void *unused) {
    tell_behind(&place, look);
    return unused;
}

static void *second(void *unused) {
    hear_before(&place, change);
    return unused;
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
