// A write under a read lock.
// Shows: that a shared lock does not exclude other holders of the same shared lock.
// True:  both threads may hold the read lock while they count.
// expect: race 15 15 co-enabled
#include <pthread.h>
#include <stdio.h>

static int table[4] = {2, 3, 5, 7};
static int hits;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *look_up(void *argument) {
    pthread_rwlock_rdlock(&lock);
    int value = table[*(int *)argument];
    hits++;
    pthread_rwlock_unlock(&lock);
    return value ? NULL : argument;
}

int main(void) {
    pthread_t one, two;
    int keys[2] = {1, 2};
    pthread_create(&one, NULL, look_up, &keys[0]);
    pthread_create(&two, NULL, look_up, &keys[1]);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", hits);
    return 0;
}
