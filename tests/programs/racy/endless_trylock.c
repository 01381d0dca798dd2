// A mutex whose holder is gone, tried again and again by two threads.
// Shows: threads that repeat themselves side by side, none of which blocks.
// True:  the holder ended without an unlock; a failed try changes nothing.
// expect: endless
#include <pthread.h>
#include <sched.h>
#include <stddef.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *unused) {
    pthread_mutex_lock(&m);
    return unused;
}

static void *try_for_ever(void *unused) {
    while (pthread_mutex_trylock(&m) != 0)
        sched_yield();
    pthread_mutex_unlock(&m);
    return unused;
}

int main(void) {
    pthread_t holder, other;
    pthread_create(&holder, NULL, hold, NULL);
    pthread_join(holder, NULL);
    pthread_create(&other, NULL, try_for_ever, NULL);
    try_for_ever(NULL);
    pthread_join(other, NULL);
    return 0;
}
