// shows: what was read under the read lock is written behind it
// bugs: race
#include <pthread.h>

static int value;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *update(void *unused) {
    pthread_rwlock_rdlock(&lock);
    int old = value;
    pthread_rwlock_unlock(&lock);
    value = old + 1;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, update, NULL);
    pthread_create(&threads[1], NULL, update, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
