// A wake-up that is always lost.
// Shows: threads that wait for ever with no cycle of locks.
// True:  the signal is sent before the waiting thread exists, and the wait has no predicate.
// expect: stuck
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *await(void *unused) {
    pthread_mutex_lock(&m);
    for (;;)
        pthread_cond_wait(&changed, &m);
    return NULL;
}

int main(void) {
    pthread_mutex_lock(&m);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&m);
    pthread_t thread;
    pthread_create(&thread, NULL, await, NULL);
    pthread_join(thread, NULL);
    return 1;
}
