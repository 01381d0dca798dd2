// _exit while threads hold locks and wait.
// Shows: an end without any clean-up.
// True:  main holds the lock that the thread may be waiting for.
// expect: none
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&m);
    pthread_create(&thread, NULL, work, NULL);
    _exit(4);
}
