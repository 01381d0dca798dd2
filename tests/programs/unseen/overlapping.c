// Two calls that overlap in time order each other both ways (Figure 4.3, Caveat 1).
// ordered: 1 2
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

void offer(int *place);
void take(int *place);

#ifdef LIBRARY
void offer(int *place) {
    __atomic_store_n(place, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(place, __ATOMIC_ACQUIRE)) sched_yield();
}
void take(int *place) {
    while (!__atomic_load_n(place, __ATOMIC_ACQUIRE)) sched_yield();
    __atomic_store_n(place, 0, __ATOMIC_RELEASE);
}
#else
int place, data;

static void *first(void *unused) {
    offer(&place);
    return data == 1 ? unused : &data; // @2
}

static void *second(void *unused) {
    data = 1; // @1
    take(&place);
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
