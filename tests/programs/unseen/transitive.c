// Two calls without common memory, ordered by a third one (Figure 4.5, Caveat 4).
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void set(int *place);
void pass(int *from, int *to);
void await(int *place);

#ifdef LIBRARY
void set(int *place) {
    __atomic_store_n(place, 1, __ATOMIC_RELEASE);
}
void await(int *place) {
    while (!__atomic_load_n(place, __ATOMIC_ACQUIRE)) sched_yield();
}
void pass(int *from, int *to) {
    await(from);
    set(to);
}
#else
int y, z, data;

static void *first(void *unused) {
    data = 1; // @1
    set(&y);
    return unused;
}

static void *second(void *unused) {
    await(&z);
    return data == 1 ? unused : &data; // @2
}

static void *third(void *unused) {
    pass(&y, &z);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, third, 0);
    pthread_create(&threads[2], 0, second, 0);
    for (int at = 0; at < 3; at++) pthread_join(threads[at], 0);
    return 0;
}
#endif
