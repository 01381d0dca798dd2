// shows: both orders of two locks, by threads of which one ends before the other starts
// bugs: none
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;

static void *ab(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *ba(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, ab, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, ba, NULL);
    pthread_join(thread, NULL);
    return 0;
}
