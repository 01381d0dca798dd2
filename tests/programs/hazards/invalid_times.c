// Timed waits with times that are none.
// Shows: that a wait is refused at once, with the mutex still held, where the nanoseconds are no nanoseconds.
// True:  one thread only.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

int main(void) {
    const long bad[] = {-1, 1000000000, 2000000000};
    int failures = 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 3; i++) {
        struct timespec until = {.tv_sec = time(NULL) + 3600, .tv_nsec = bad[i]};
        failures += pthread_cond_timedwait(&condition, &mutex, &until) != EINVAL;
        failures += pthread_mutex_trylock(&mutex) != EBUSY;
    }
    pthread_mutex_unlock(&mutex);
    return failures;
}
