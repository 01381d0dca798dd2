// A mutex that is destroyed when no thread can take it any more.
// Shows: the twin of racy/mutex_destroyed_early.c.
// True:  the join orders the thread before the end of the mutex.
// expect: none
#include <pthread.h>

static pthread_mutex_t lock;

static void *pass(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_init(&lock, NULL);
    pthread_create(&thread, NULL, pass, NULL);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    pthread_mutex_destroy(&lock);
    return 0;
}
