// bug: the block is freed under the lock that its users take, while one of them is still to come
// shows: use-after-free
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *block;

static void *user(void *unused) {
    pthread_mutex_lock(&lock);
    *block += 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    block = calloc(1, sizeof *block);
    pthread_create(&thread, NULL, user, NULL);
#ifdef FIXED
    pthread_join(thread, NULL);
#endif
    pthread_mutex_lock(&lock);
    free(block);
    pthread_mutex_unlock(&lock);
#ifndef FIXED
    pthread_join(thread, NULL);
#endif
    return 0;
}
