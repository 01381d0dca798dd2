// bug: a pointer into a buffer is kept while another thread makes the buffer larger, each under the lock
// shows: use-after-free
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *buffer;

static void *grow(void *unused) {
    pthread_mutex_lock(&lock);
    buffer = realloc(buffer, 1 << 20);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    buffer = calloc(4, sizeof *buffer);
    pthread_create(&thread, NULL, grow, NULL);
    pthread_mutex_lock(&lock);
    int *kept = &buffer[2];
#ifndef FIXED
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#endif
    *kept = 1;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    free(buffer);
    return 0;
}
