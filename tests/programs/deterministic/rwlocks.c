// Readers and writers, some of which only try.
// Shows: rdlock, wrlock, tryrdlock and trywrlock.
// True:  `versions` has equal entries whenever a lock is held.
// expect: none
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int versions[4];

struct worker {
    int torn, tried;
};

static void *read_all(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < 10; i++) {
        if (i % 2 == 0 || pthread_rwlock_tryrdlock(&lock) != 0) {
            worker->tried += i % 2;
            pthread_rwlock_rdlock(&lock);
        }
        for (int k = 1; k < 4; k++)
            worker->torn += versions[k] != versions[0];
        pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

static void *write_all(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < 10; i++) {
        if (i % 2 == 0 || pthread_rwlock_trywrlock(&lock) != 0) {
            worker->tried += i % 2;
            pthread_rwlock_wrlock(&lock);
        }
        for (int k = 0; k < 4; k++)
            versions[k]++;
        pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    struct worker workers[4] = {{0, 0}};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? write_all : read_all, &workers[i]);
    int torn = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        torn += workers[i].torn;
        printf("%d: %d tries in vain\n", i, workers[i].tried);
    }
    return torn == 0 && versions[0] == 20 ? 0 : 1;
}
