// bug: a callback is called under the lock of its list, and takes another one under which the list is changed elsewhere
// shows: deadlock
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER, state = PTHREAD_MUTEX_INITIALIZER;
static int calls, changes;

static void callback(void) {
    pthread_mutex_lock(&state);
    calls++;
    pthread_mutex_unlock(&state);
}

static void *notify(void *unused) {
    pthread_mutex_lock(&list);
    void (*call)(void) = callback;
#ifdef FIXED
    pthread_mutex_unlock(&list);
#endif
    call();
#ifndef FIXED
    pthread_mutex_unlock(&list);
#endif
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, notify, NULL);
    pthread_mutex_lock(&state);
    pthread_mutex_lock(&list);
    changes++;
    pthread_mutex_unlock(&list);
    pthread_mutex_unlock(&state);
    pthread_join(thread, NULL);
    return 0;
}
