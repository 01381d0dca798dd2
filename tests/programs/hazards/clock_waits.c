// Waits that name their clock.
// Shows: pthread_mutex_clocklock, pthread_cond_clockwait, sem_clockwait and the read/write lock's kin.
// True:  main holds both locks while the thread lives, so every wait ends by time-out.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t busy_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;

static struct timespec soon(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    long nanoseconds = time.tv_nsec + 3000000;
    time.tv_sec += nanoseconds / 1000000000;
    time.tv_nsec = nanoseconds % 1000000000;
    return time;
}

static void *work(void *argument) {
    int *timeouts = argument;
    struct timespec limit = soon();
    *timeouts += pthread_mutex_clocklock(&busy, CLOCK_MONOTONIC, &limit) == ETIMEDOUT;
    *timeouts += pthread_rwlock_clockrdlock(&busy_rw, CLOCK_MONOTONIC, &limit) == ETIMEDOUT;
    *timeouts += pthread_rwlock_clockwrlock(&busy_rw, CLOCK_MONOTONIC, &limit) == ETIMEDOUT;
    limit = soon();
    *timeouts += sem_clockwait(&empty, CLOCK_MONOTONIC, &limit) == -1 && errno == ETIMEDOUT;
    pthread_mutex_lock(&m);
    limit = soon();
    int result = 0;
    while (result == 0)
        result = pthread_cond_clockwait(&never, &m, CLOCK_MONOTONIC, &limit);
    *timeouts += result == ETIMEDOUT;
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t thread;
    int timeouts = 0;
    sem_init(&empty, 0, 0);
    pthread_mutex_lock(&busy);
    pthread_rwlock_wrlock(&busy_rw);
    pthread_create(&thread, NULL, work, &timeouts);
    pthread_join(thread, NULL);
    pthread_rwlock_unlock(&busy_rw);
    pthread_mutex_unlock(&busy);
    return timeouts == 5 ? 0 : 1;
}
