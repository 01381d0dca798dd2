// A lock on one side only.
// Shows: that a lock held by one thread protects nothing.
// True:  the second thread never takes the lock.
// expect: race 13 19 co-enabled
#include <pthread.h>
#include <stdio.h>

static int counter;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *careful(void *unused) {
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    return NULL;
}

static void *careless(void *unused) {
    counter++;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, careful, NULL);
    pthread_create(&two, NULL, careless, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", counter);
    return 0;
}
