// bug: the last writer destroys the lock, while a reader is still to come
// shows: lifetime-race
#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int entries = 3;

static void *count(void *sum) {
    pthread_rwlock_rdlock(&lock);
    *(int *)sum = entries;
    pthread_rwlock_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t thread;
    int sum;
    pthread_create(&thread, NULL, count, &sum);
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
#ifdef FIXED
    pthread_join(thread, NULL);
#endif
    pthread_rwlock_destroy(&lock);
#ifndef FIXED
    pthread_join(thread, NULL);
#endif
    return sum - 3;
}
