// shows: the outer lock is released before the last access that it protects
// bugs: race
#include <pthread.h>

static int value;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;

static void *crosswise(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    value++;
    pthread_mutex_unlock(&a);
    value++;
    pthread_mutex_unlock(&b);
    return unused;
}

static void *nested(void *unused) {
    pthread_mutex_lock(&a);
    value++;
    pthread_mutex_unlock(&a);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, crosswise, NULL);
    pthread_create(&threads[1], NULL, nested, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
