// bug: a thread waits on an inner condition and keeps the outer lock, which the thread that is to signal it needs
// shows: deadlock stuck
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void *taker(void *unused) {
#ifndef FIXED
    pthread_mutex_lock(&outer);
#endif
    pthread_mutex_lock(&inner);
    while (!items) pthread_cond_wait(&filled, &inner);
    items--;
    pthread_mutex_unlock(&inner);
#ifndef FIXED
    pthread_mutex_unlock(&outer);
#endif
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, taker, NULL);
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    items++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    pthread_join(thread, NULL);
    return 0;
}
