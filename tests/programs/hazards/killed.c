// SIGKILL.
// Shows: an end of which the process learns nothing; the trace must still be readable.
// True:  the process kills itself after its thread has counted.
// expect: none
#include <pthread.h>
#include <signal.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *work(void *unused) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    raise(SIGKILL);
    return 1;
}
