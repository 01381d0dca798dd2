// Goods that six threads move between shelves, each with its lock: a hundred thousand steps. Each error has a lock of its own;
// its accesses are shifted into one number, and the last one looks at it.
#include <pthread.h>
#include <stdio.h>

#define THREADS 6
#define ROUNDS 100
#define MOVES 40
#define SHELVES 32

static pthread_mutex_t locks[SHELVES];
static long goods[SHELVES];

static pthread_mutex_t state_locks[20];
static unsigned state[20];
static void touch(int bug, int nth);
#define TOUCH(bug, nth) touch(bug, nth)
#include "seeded.h"

static void touch(int bug, int nth) {
    unsigned order = 0;
    pthread_mutex_lock(&state_locks[bug]);
    state[bug] = state[bug] * 8 + (unsigned)nth + 1;
    for (int each = 0; each < accesses_of(bug); each++) order = order * 8 + (unsigned)each + 1;
    int all = state[bug] == order;
    pthread_mutex_unlock(&state_locks[bug]);
    if (all) fail(bug);
}

static void *move(void *argument) {
    int self = (int)(long)argument;
    unsigned place = (unsigned)self * 77 + 5;
    for (int round = 0; round < ROUNDS; round++) {
        for (int nth = 0; nth < MOVES; nth++) {
            place = place * 1664525 + 1013904223;
            int one = (int)(place >> 8) % SHELVES, other = (int)(place >> 16) % SHELVES;
            if (one == other) continue;
            pthread_mutex_lock(&locks[one < other ? one : other]);
            pthread_mutex_lock(&locks[one < other ? other : one]);
            goods[one]--;
            goods[other]++;
            pthread_mutex_unlock(&locks[other]);
            pthread_mutex_unlock(&locks[one]);
        }
        TOUCH_ALL(self, round);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    seed_bugs(4, THREADS, 1, ROUNDS);
    for (int shelf = 0; shelf < SHELVES; shelf++) pthread_mutex_init(&locks[shelf], 0);
    for (int bug = 0; bug < BUGS; bug++) pthread_mutex_init(&state_locks[bug], 0);
    for (long nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], 0, move, (void *)nth);
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], 0);
    long all = 0;
    for (int shelf = 0; shelf < SHELVES; shelf++) all += goods[shelf];
    printf("%ld\n", all);
    return 0;
}
