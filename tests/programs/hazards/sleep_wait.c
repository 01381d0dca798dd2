// Waiting by sleeping.
// Shows: usleep, nanosleep, clock_nanosleep and sleep until another thread has set an atomic flag.
// True:  however long or short the sleeps are, the loop ends by the flag.
// expect: none
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static atomic_int done;

static void *work(void *unused) {
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    sleep(0);
    atomic_store(&done, 1);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    while (!atomic_load(&done))
        usleep(1000);
    pthread_join(thread, NULL);
    return 0;
}
