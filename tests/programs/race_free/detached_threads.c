// Detached threads.
// Shows: the end of a thread's work learnt from a condition, not from a join.
// True:  main reads the total under the lock under which the last thread announced that it is done.
// expect: none
#include <pthread.h>

enum { THREADS = 4 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int running = THREADS, total;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    total += 10;
    if (--running == 0)
        pthread_cond_signal(&all_done);
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (i % 2) {
            pthread_create(&thread, &detached, work, NULL);
        } else {
            pthread_create(&thread, NULL, work, NULL);
            pthread_detach(thread);
        }
    }
    pthread_mutex_lock(&m);
    while (running > 0)
        pthread_cond_wait(&all_done, &m);
    int seen = total;
    pthread_mutex_unlock(&m);
    return seen == 10 * THREADS ? 0 : 1;
}
