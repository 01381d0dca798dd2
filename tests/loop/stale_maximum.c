// bug: the maximum is compared under the read lock and replaced under the write lock, without a second look
// shows: atomicity-violation
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static long maximum;

static void *offer(void *value) {
    pthread_rwlock_rdlock(&lock);
    int larger = (long)value > maximum;
    pthread_rwlock_unlock(&lock);
    if (larger) {
        pthread_rwlock_wrlock(&lock);
#ifdef FIXED
        if ((long)value > maximum)
#endif
        maximum = (long)value;
        pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, offer, (void *)5L);
    pthread_create(&other, NULL, offer, (void *)7L);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("maximum %ld\n", maximum);
    return 0;
}
