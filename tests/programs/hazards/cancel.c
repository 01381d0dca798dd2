// Deferred cancellation.
// Shows: a thread cancelled in a condition wait, whose cleanup handler holds the mutex again.
// True:  the thread announces itself under the lock, so it is waiting, or about to wait, when it is cancelled.
// expect: none
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int waiting, cleaned;

static void clean(void *unused) {
    cleaned = 1;
    pthread_mutex_unlock(&m);
}

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    pthread_cleanup_push(clean, NULL);
    waiting = 1;
    pthread_cond_signal(&ready);
    for (;;)
        pthread_cond_wait(&never, &m);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    pthread_mutex_lock(&m);
    while (!waiting)
        pthread_cond_wait(&ready, &m);
    pthread_mutex_unlock(&m);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    pthread_mutex_lock(&m);
    int seen = cleaned;
    pthread_mutex_unlock(&m);
    return result == PTHREAD_CANCELED && seen == 1 ? 0 : 1;
}
