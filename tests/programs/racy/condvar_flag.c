// A condition's flag written without its lock.
// Shows: a race between the predicate of a wait loop and the thread that makes it true.
// True:  the signal is sent under the lock, so no wake-up is lost and the program always ends.
// expect: race 12 23 co-enabled
#include <pthread.h>

static int ready;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *announce(void *unused) {
    ready = 1;
    pthread_mutex_lock(&m);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, announce, NULL);
    pthread_mutex_lock(&m);
    while (!ready)
        pthread_cond_wait(&changed, &m);
    pthread_mutex_unlock(&m);
    pthread_join(thread, NULL);
    return 0;
}
