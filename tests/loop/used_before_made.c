// bug: a thread uses what its creator publishes after it has created it
// shows: failure
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static int value;
static _Atomic(int *) published;

static void *user(void *unused) {
    *atomic_load(&published) = 1;
    return unused;
}

int main(void) {
    pthread_t thread;
#ifdef FIXED
    atomic_store(&published, &value);
#endif
    pthread_create(&thread, NULL, user, NULL);
#ifndef FIXED
    atomic_store(&published, &value);
#endif
    pthread_join(thread, NULL);
    return 0;
}
