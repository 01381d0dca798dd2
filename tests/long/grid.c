// A grid whose cells eight threads heat, ten thousand atomic steps with a barrier now and then. The errors are state machines:
// an access counts if all before it have come.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS 8
#define PHASES 4
#define ROUNDS 5
#define CELLS 60

static atomic_int cells[THREADS * CELLS];
static pthread_barrier_t barrier;

static atomic_int state[20];
static void touch(int bug, int nth);
#define TOUCH(bug, nth) touch(bug, nth)
#include "seeded.h"

static void touch(int bug, int nth) {
    if (atomic_load(&state[bug]) == nth) {
        atomic_store(&state[bug], nth + 1);
        if (nth + 1 == accesses_of(bug)) fail(bug);
    }
}

static void *heat(void *argument) {
    int self = (int)(long)argument;
    for (int round = 0; round < PHASES * ROUNDS; round++) {
        for (int cell = 0; cell < CELLS; cell++) atomic_fetch_add(&cells[(self * CELLS + cell * 7) % (THREADS * CELLS)], 1);
        TOUCH_ALL(self, round);
        if (round % ROUNDS == ROUNDS - 1) pthread_barrier_wait(&barrier);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    seed_bugs(17, THREADS, PHASES, ROUNDS);
    pthread_barrier_init(&barrier, 0, THREADS);
    for (long nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], 0, heat, (void *)nth);
    long heat_of_all = 0;
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], 0);
    for (int cell = 0; cell < THREADS * CELLS; cell++) heat_of_all += cells[cell];
    printf("%ld\n", heat_of_all);
    return 0;
}
