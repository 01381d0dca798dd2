// A mutex that is destroyed although a thread has still to take it.
// Shows: the critical section is empty, so that there is no data race: the lock alone is used when it is no more.
// True:  main destroys the mutex before the thread takes it, in some schedules.
// expect: use-of-destroyed
// allow: lifetime-race
#include <pthread.h>

static pthread_mutex_t lock;

static void *pass(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_init(&lock, NULL);
    pthread_create(&thread, NULL, pass, NULL);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_destroy(&lock);
    pthread_join(thread, NULL);
    return 0;
}
