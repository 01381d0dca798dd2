// A join that is cancelled out of a cycle.
// Shows: a thread joins one that waits for its mutex, until a third thread cancels the join; the cleanup unlocks the mutex.
// True:  the cycle ends.
// expect: none
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t joiner, waiter;

static void *waits(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return 0;
}

static void gives_up(void *unused) { pthread_mutex_unlock(&m); }

static void *joins(void *unused) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(gives_up, 0);
    pthread_create(&waiter, 0, waits, 0);
    pthread_join(waiter, 0);
    pthread_cleanup_pop(1);
    return 0;
}

int main(void) {
    pthread_create(&joiner, 0, joins, 0);
    for (int pause = 0; pause < 50; pause++) sched_yield();
    pthread_cancel(joiner);
    pthread_join(joiner, 0);
    pthread_join(waiter, 0);
    return 0;
}
