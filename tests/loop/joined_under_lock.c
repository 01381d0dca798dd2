// bug: a thread is joined under a lock that it may still want
// shows: deadlock stuck
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *task(void *unused) {
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, task, NULL);
    pthread_mutex_lock(&lock);
    int seen = count;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    if (!seen) pthread_join(thread, NULL);
#ifndef FIXED
    pthread_mutex_unlock(&lock);
#endif
    if (seen) pthread_join(thread, NULL);
    return 0;
}
