// Waiting for the clock.
// Shows: loops that end only because time passes: 50 ms on CLOCK_MONOTONIC, and a second's change on time().
// True:  a virtual clock must go on when nothing but the clock is asked.
// expect: none
#include <pthread.h>
#include <time.h>

static void *wait_50_ms(void *unused) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 50000000L);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_50_ms, NULL);
    time_t start = time(NULL);
    while (time(NULL) == start) {
    }
    pthread_join(thread, NULL);
    return 0;
}
