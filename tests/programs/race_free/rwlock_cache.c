// A cache under a read/write lock.
// Shows: shared holds for look-ups, exclusive ones for insertions, and a second look after the lock was given up in between.
// True:  writes happen under the exclusive lock only.
// expect: none
#include <pthread.h>

enum { KEYS = 8 };
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int known[KEYS], squares[KEYS], computed;

static int square(int key) {
    pthread_rwlock_rdlock(&lock);
    int hit = known[key], value = squares[key];
    pthread_rwlock_unlock(&lock);
    if (hit)
        return value;
    pthread_rwlock_wrlock(&lock);
    if (!known[key]) {
        squares[key] = key * key;
        known[key] = 1;
        computed++;
    }
    value = squares[key];
    pthread_rwlock_unlock(&lock);
    return value;
}

static void *work(void *argument) {
    int *wrong = argument;
    for (int round = 0; round < 3; round++)
        for (int key = 0; key < KEYS; key++)
            *wrong += square(key) != key * key;
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int wrong[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &wrong[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return computed == KEYS && wrong[0] + wrong[1] + wrong[2] == 0 ? 0 : 1;
}
