// A lock that its owner took into the grave.
// Shows: a wait for a lock whose holder has ended: no cycle, and no end.
// True:  the thread ends with the mutex locked before main asks for it.
// expect: stuck
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&m);
    return 1;
}
