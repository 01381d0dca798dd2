// shows: a thread that does not get its second lock gives the first one back
// bugs: none
#include <pthread.h>

static int value;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;

static void *polite(void *unused) {
    for (;;) {
        pthread_mutex_lock(&a);
        if (pthread_mutex_trylock(&b) == 0) break;
        pthread_mutex_unlock(&a);
    }
    value++;
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *plain(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    value++;
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, polite, NULL);
    pthread_create(&threads[1], NULL, plain, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return value == 2 ? 0 : 1;
}
