// shows: two locks are read-locked in both orders, and nobody writes
// bugs: none
#include <pthread.h>

static pthread_rwlock_t a = PTHREAD_RWLOCK_INITIALIZER, b = PTHREAD_RWLOCK_INITIALIZER;

static void *ab(void *unused) {
    pthread_rwlock_rdlock(&a);
    pthread_rwlock_rdlock(&b);
    pthread_rwlock_unlock(&b);
    pthread_rwlock_unlock(&a);
    return unused;
}

static void *ba(void *unused) {
    pthread_rwlock_rdlock(&b);
    pthread_rwlock_rdlock(&a);
    pthread_rwlock_unlock(&a);
    pthread_rwlock_unlock(&b);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, ab, NULL);
    pthread_create(&threads[1], NULL, ba, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
