// Waits that end by time-out.
// Shows: timed acquisition of a mutex, timed waits on a condition and on a semaphore that nobody fulfils.
// True:  main holds `busy` for as long as the thread lives, so the time-outs are certain.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;

static struct timespec soon(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    long nanoseconds = time.tv_nsec + 5000000;
    time.tv_sec += nanoseconds / 1000000000;
    time.tv_nsec = nanoseconds % 1000000000;
    return time;
}

static void *work(void *argument) {
    int *timeouts = argument;
    struct timespec limit = soon();
    *timeouts += pthread_mutex_timedlock(&busy, &limit) == ETIMEDOUT;
    pthread_mutex_lock(&m);
    limit = soon();
    int result = 0;
    while (result == 0)
        result = pthread_cond_timedwait(&never, &m, &limit);
    *timeouts += result == ETIMEDOUT;
    pthread_mutex_unlock(&m);
    limit = soon();
    *timeouts += sem_timedwait(&empty, &limit) == -1 && errno == ETIMEDOUT;
    return NULL;
}

int main(void) {
    pthread_t thread;
    int timeouts = 0;
    sem_init(&empty, 0, 0);
    pthread_mutex_lock(&busy);
    pthread_create(&thread, NULL, work, &timeouts);
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&busy);
    return timeouts == 3 ? 0 : 1;
}
