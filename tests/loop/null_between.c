// bug: the pointer is looked at in one critical section and used in the next; another thread ends it in between
// shows: failure
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *shared;

static void *user(void *unused) {
    pthread_mutex_lock(&lock);
    int there = shared != NULL;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    if (there) *shared += 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    static int value;
    pthread_t thread;
    shared = &value;
    pthread_create(&thread, NULL, user, NULL);
    pthread_mutex_lock(&lock);
    shared = NULL;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
