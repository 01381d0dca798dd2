// A condition variable that is destroyed as soon as all that wait were woken.
// Shows: the twin of racy/condition_destroyed_early.c: who was sent a broadcast waits no more, though it has not run yet.
// True:  POSIX allows it behind the broadcast; a thread that comes later finds that it need not wait.
// expect: none
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
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&changed);
    pthread_join(thread, NULL);
    puts("ready");
    return 0;
}
