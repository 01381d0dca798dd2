// Sleeps and timed waits.
// Shows: time that passes only in sleeps, and time-outs that compete with signals.
// True:  each waiter ends by signal or by time-out; both are counted under the lock.
// expect: none
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int tickets, served, timed_out;

static void *wait_for_ticket(void *argument) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    long nanoseconds = limit.tv_nsec + *(int *)argument * 2000000L;
    limit.tv_sec += nanoseconds / 1000000000;
    limit.tv_nsec = nanoseconds % 1000000000;
    pthread_mutex_lock(&m);
    int result = 0;
    while (tickets == 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&changed, &m, &limit);
    if (tickets > 0) {
        tickets--;
        served++;
    } else {
        timed_out++;
    }
    pthread_mutex_unlock(&m);
    return NULL;
}

static void *issue(void *unused) {
    for (int i = 0; i < 2; i++) {
        struct timespec pause = {0, 3000000};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&m);
        tickets++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    int patience[3] = {1, 2, 5};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_for_ticket, &patience[i]);
    pthread_create(&threads[3], NULL, issue, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%d served, %d timed out\n", served, timed_out);
    return served + timed_out == 3 && served + tickets == 2 ? 0 : 1;
}
