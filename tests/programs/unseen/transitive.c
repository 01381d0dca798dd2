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
// Blocks of their own, and passed as arguments: static variables that lie near each other are reached together. So is what a
// register still holds the address of; hence the write behind the one that matters.
static int data;

static void *first(void *argument) {
    int *y = argument;
    data = 1; // @1
    y[1] = 1;
    set(y);
    return 0;
}

static void *second(void *z) {
    await(z);
    return data == 1 ? 0 : z; // @2
}

static void *third(void *both) {
    int **places = both;
    pass(places[0], places[1]);
    return 0;
}

int main(void) {
    pthread_t threads[3];
    int *places[2] = {calloc(2, sizeof(int)), calloc(2, sizeof(int))};
    pthread_create(&threads[0], 0, first, places[0]);
    pthread_create(&threads[1], 0, third, places);
    pthread_create(&threads[2], 0, second, places[1]);
    for (int at = 0; at < 3; at++) pthread_join(threads[at], 0);
    return 0;
}
#endif
