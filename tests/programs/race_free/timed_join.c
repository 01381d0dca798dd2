// A join with a time limit under a lock that the joined thread may still need.
// Shows: who waits for some time only is in no deadlock.
// True:  no deadlock; the join gives up, the lock becomes free, and the thread is joined later.
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
    return unused;
}

static void *nothing(void *unused) {
    return unused;
}

int main(void) {
    pthread_t thread, first;
    pthread_create(&thread, NULL, work, NULL);
    pthread_create(&first, NULL, nothing, NULL);
    pthread_join(first, NULL);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    pthread_mutex_lock(&m);
    int joined = pthread_timedjoin_np(thread, NULL, &until) == 0;
    pthread_mutex_unlock(&m);
    if (!joined) {
        pthread_join(thread, NULL);
    }
    return count == 1 ? 0 : 1;
}
