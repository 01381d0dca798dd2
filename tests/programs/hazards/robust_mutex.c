// A robust mutex.
// Shows: a lock whose owner ends without releasing it, passed on with EOWNERDEAD.
// True:  unlike abandoned_lock.c, main gets the lock and makes it consistent.
// expect: none
#include <errno.h>
#include <pthread.h>

static pthread_mutex_t m;
static int value;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    value = 1;
    return NULL;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    if (pthread_mutex_lock(&m) != EOWNERDEAD)
        return 1;
    value++;
    pthread_mutex_consistent(&m);
    pthread_mutex_unlock(&m);
    return value == 2 && pthread_mutex_lock(&m) == 0 && pthread_mutex_unlock(&m) == 0 ? 0 : 1;
}
