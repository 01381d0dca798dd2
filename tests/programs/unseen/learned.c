// Of the calls before the second access one has to wait for what another thread does, and one could as well have come first: only
// the former order has to be kept.
// race: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void post(int *place);
void await(int *place);
void touch(int *place);

#ifdef LIBRARY
void post(int *place) {
    __atomic_store_n(place, 1, __ATOMIC_RELEASE);
}

void await(int *place) {
    while (!__atomic_load_n(place, __ATOMIC_ACQUIRE)) sched_yield();
}

void touch(int *place) {
    __atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);
}
#else
int gate, touched, data;

static void *poster(void *unused) {
    post(&gate);
    return unused;
}

static void *first(void *unused) {
    data = 1; // @1
    touch(&touched);
    return unused;
}

static void *second(void *unused) {
    await(&gate);
    touch(&touched);
    data = 2; // @2
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, 0);
    pthread_create(&threads[2], 0, poster, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
#endif
