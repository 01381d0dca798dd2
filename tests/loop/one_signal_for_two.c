// bug: two threads wait for two things on one condition, and a signal wakes one of them only
// shows: stuck
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int given[2];

static void *waiter(void *which) {
    int *mine = which;
    pthread_mutex_lock(&lock);
    while (!*mine) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, waiter, &given[i]);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        given[i] = 1;
#ifdef FIXED
        pthread_cond_broadcast(&changed);
#else
        pthread_cond_signal(&changed);
#endif
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
