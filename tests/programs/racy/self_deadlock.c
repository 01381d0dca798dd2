// A thread that waits for itself.
// Shows: a cycle of one: PTHREAD_MUTEX_NORMAL must block when its owner locks it again.
// True:  the program never ends.
// expect: deadlock 11
#include <pthread.h>

static pthread_mutex_t m;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&m);
    return NULL;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    pthread_mutex_init(&m, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 1;
}
