// A wake-up that is lost in some schedules.
// Shows: a predicate tested outside the lock.
// True:  the program sticks iff the signal falls between test and wait. There is no data race: the flag is atomic.
// expect: none
// allow: stuck
#include <pthread.h>
#include <stdatomic.h>

static atomic_int ready;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *await(void *unused) {
    if (!atomic_load(&ready)) {
        pthread_mutex_lock(&m);
        pthread_cond_wait(&changed, &m);
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, await, NULL);
    atomic_store(&ready, 1);
    pthread_mutex_lock(&m);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&m);
    pthread_join(thread, NULL);
    return 0;
}
