// The id of a thread is stored where main looks for it.
// Shows: while the id is zero main waits for nobody; once it is stored, main and the thread wait for each other.
// True:  it is read and written without order; the deadlock happens iff main reads the id before the thread has had the mutex.
// expect: deadlock 14 36
// expect: race 22 34 co-enabled
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t worker;

static void *waits(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return 0;
}

static void *starts(void *unused) {
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
    worker = thread;
    return 0;
}

int main(void) {
    pthread_t starter;
    pthread_create(&starter, 0, starts, 0);
    for (int pause = 0; pause < 10; pause++) {
        // Something else to do.
        sched_yield();
    }
    pthread_mutex_lock(&m);
    pthread_t thread = worker;
    // Of nobody, so far: ESRCH.
    pthread_join(thread, 0);
    pthread_mutex_unlock(&m);
    pthread_join(starter, 0);
    return 0;
}
