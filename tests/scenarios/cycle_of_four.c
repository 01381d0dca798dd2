// shows: four threads take four locks in a ring
// bugs: deadlock
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t d = PTHREAD_MUTEX_INITIALIZER;

static void *ab(void *unused) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return unused;
}

static void *bc(void *unused) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&c);
    pthread_mutex_unlock(&c);
    pthread_mutex_unlock(&b);
    return unused;
}

static void *cd(void *unused) {
    pthread_mutex_lock(&c);
    pthread_mutex_lock(&d);
    pthread_mutex_unlock(&d);
    pthread_mutex_unlock(&c);
    return unused;
}

static void *da(void *unused) {
    pthread_mutex_lock(&d);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&d);
    return unused;
}

int main(void) {
    pthread_t threads[4];
    pthread_create(&threads[0], NULL, ab, NULL);
    pthread_create(&threads[1], NULL, bc, NULL);
    pthread_create(&threads[2], NULL, cd, NULL);
    pthread_create(&threads[3], NULL, da, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
