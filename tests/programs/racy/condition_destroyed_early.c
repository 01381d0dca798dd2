// A condition variable that is destroyed although a thread may wait for it, or be about to.
// Shows: where it waits already nobody wakes it: main has seen that it is ready, and sends no signal.
// True:  the thread waits in vain only if it waits before main says that it need not.
// expect: destroy-awaited
// expect: stuck
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int is_ready;

static void *await(void *unused) {
    pthread_mutex_lock(&lock);
    while (!is_ready) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_cond_init(&changed, NULL);
    pthread_create(&thread, NULL, await, NULL);
    pthread_mutex_lock(&lock);
    is_ready = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&changed);
    pthread_join(thread, NULL);
    puts("ready");
    return 0;
}
