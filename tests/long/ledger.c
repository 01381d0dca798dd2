// A ledger under one lock, into which eight threads write half a million entries: a million steps. What the errors touch is
// ordinary data under the same lock, and the last access of an error sees whether all came in order.
#include <pthread.h>
#include <stdio.h>

#define THREADS 8
#define ROUNDS 250
#define ENTRIES 250

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long balance;

static unsigned state[20];
static int touch(int bug, int nth);
static int failed;
#define TOUCH(bug, nth) failed = touch(bug, nth) ? bug + 1 : failed
#include "seeded.h"

static int touch(int bug, int nth) {
    unsigned order = 0;
    state[bug] = state[bug] * 8 + (unsigned)nth + 1;
    for (int each = 0; each < accesses_of(bug); each++) order = order * 8 + (unsigned)each + 1;
    return state[bug] == order;
}

static void *write_entries(void *argument) {
    int self = (int)(long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int entry = 0; entry < ENTRIES; entry++) {
            pthread_mutex_lock(&lock);
            balance += entry % 2 ? self : -self;
            if (entry == ENTRIES / 2) {
                TOUCH_ALL(self, round);
                if (failed) fail(failed - 1);
            }
            pthread_mutex_unlock(&lock);
        }
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    seed_bugs(29, THREADS, 1, ROUNDS);
    for (long nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], 0, write_entries, (void *)nth);
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], 0);
    printf("%ld\n", balance);
    return 0;
}
