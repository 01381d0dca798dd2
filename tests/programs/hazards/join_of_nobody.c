// Joins that return at once.
// Shows: the join of an id of zero, of the calling thread and of a detached one, each with the mutex held that the running
//        thread waits for.
// True:  nobody waits for ever.
// expect: none
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t nobody;

static void *waits(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return 0;
}

static void expect(int result, int expected) {
    if (result != expected) abort();
}

int main(void) {
    pthread_t thread;
    for (int round = 0; round < 20; round++) {
        pthread_mutex_lock(&m);
        pthread_create(&thread, 0, waits, 0);
        expect(pthread_join(nobody, 0), ESRCH);
        expect(pthread_join(pthread_self(), 0), EDEADLK);
        pthread_mutex_unlock(&m);
        pthread_join(thread, 0);
    }
    pthread_mutex_lock(&m);
    pthread_create(&thread, 0, waits, 0);
    pthread_detach(thread);
    expect(pthread_join(thread, 0), EINVAL);
    pthread_mutex_unlock(&m);
    return 0;
}
