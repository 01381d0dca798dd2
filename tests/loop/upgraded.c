// bug: a reader that finds nothing asks for the write lock and keeps its read lock
// shows: deadlock stuck
#include <pthread.h>
#include <stddef.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int value;

static void *user(void *unused) {
    pthread_rwlock_rdlock(&lock);
    int empty = !value;
#ifdef FIXED
    pthread_rwlock_unlock(&lock);
#endif
    if (empty) {
        pthread_rwlock_wrlock(&lock);
        value = 1;
        pthread_rwlock_unlock(&lock);
    }
#ifndef FIXED
    pthread_rwlock_unlock(&lock);
#endif
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, user, NULL);
    pthread_rwlock_wrlock(&lock);
    value = 2;
    pthread_rwlock_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
