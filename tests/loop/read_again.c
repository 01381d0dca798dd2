// bug: a reader takes the lock again while a writer waits that is preferred
// shows: deadlock stuck
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static int value;

static void *writer(void *unused) {
    pthread_rwlock_wrlock(&lock);
    value++;
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    int seen = 0;
    pthread_create(&thread, NULL, writer, NULL);
    pthread_rwlock_rdlock(&lock);
    seen += value;
#ifndef FIXED
    pthread_rwlock_rdlock(&lock);
    seen += value;
    pthread_rwlock_unlock(&lock);
#endif
    pthread_rwlock_unlock(&lock);
    pthread_join(thread, NULL);
    return seen > 2;
}
