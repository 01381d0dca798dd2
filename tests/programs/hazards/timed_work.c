// Work that is as long as the clock says.
// Shows: loops that are doubled until they take a millisecond, as a benchmark calibrates itself, in each of three threads, whose
//        turns end inside of them.
// True:  what time such work takes, and so how often it is doubled, is the same when the execution happens again.
// expect: none
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define THREADS 3
#define ENOUGH 1000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000 + at.tv_nsec;
}

static void *calibrate(void *unused) {
    volatile long cell = 0;
    long rounds = 1, taken = 0;
    while (taken < ENOUGH) {
        rounds *= 2;
        long begin = now();
        for (long nth = 0; nth < rounds; nth++) {
            cell = cell + 1;
            // A synchronisation event each: these take time, too.
            if (nth % 512 == 0) {
                pthread_mutex_lock(&lock);
                pthread_mutex_unlock(&lock);
            }
        }
        taken = now() - begin;
    }
    pthread_mutex_lock(&lock);
    for (long nth = 0; nth < rounds / 1024; nth++) cell = cell + 1;
    printf("%ld rounds in %ld ns\n", rounds, taken);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int nth = 0; nth < THREADS; nth++) pthread_create(&threads[nth], NULL, calibrate, NULL);
    for (int nth = 0; nth < THREADS; nth++) pthread_join(threads[nth], NULL);
    return 0;
}
