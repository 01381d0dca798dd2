// shows: readers share, a writer is alone
// bugs: none
#include <pthread.h>

static int value, seen[2];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *reader0(void *unused) {
    pthread_rwlock_rdlock(&lock);
    seen[0] = value;
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *reader1(void *unused) {
    pthread_rwlock_rdlock(&lock);
    seen[1] = value;
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *writer(void *unused) {
    pthread_rwlock_wrlock(&lock);
    value++;
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, reader0, NULL);
    pthread_create(&threads[1], NULL, reader1, NULL);
    pthread_create(&threads[2], NULL, writer, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
