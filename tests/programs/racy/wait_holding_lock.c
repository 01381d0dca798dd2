// A condition wait under a second lock.
// Shows: a cycle of a lock and the mutex that a condition wait takes again. All threads take the two locks in one order.
// True:  it happens iff `waiter` has been woken and main takes `inner` before it does.
// expect: deadlock 17 42
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool ready;

static void *waiter(void *unused) {
    pthread_mutex_lock(&inner);
    pthread_mutex_lock(&outer);
    while (!ready) {
        pthread_cond_wait(&changed, &inner);
    }
    pthread_mutex_unlock(&outer);
    pthread_mutex_unlock(&inner);
    return unused;
}

static void *notifier(void *unused) {
    pthread_mutex_lock(&inner);
    ready = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&inner);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waiter, NULL);
    pthread_create(&threads[1], NULL, notifier, NULL);
    pthread_join(threads[1], NULL);
    // In a serial recording the waiter goes on here.
    for (int i = 0; i < 4; i++) {
        sched_yield();
    }
    pthread_mutex_lock(&inner);
    pthread_mutex_lock(&outer);
    pthread_mutex_unlock(&outer);
    pthread_mutex_unlock(&inner);
    pthread_join(threads[0], NULL);
    return ready ? 0 : 1;
}
