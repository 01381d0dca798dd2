// Two locks for one counter.
// Shows: accesses that are both locked, but by different locks.
// True:  the sets of locks held are disjoint.
// expect: race 14 21 co-enabled
#include <pthread.h>
#include <stdio.h>

static int counter;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;

static void *under_a(void *unused) {
    pthread_mutex_lock(&a);
    counter++;
    pthread_mutex_unlock(&a);
    return NULL;
}

static void *under_b(void *unused) {
    pthread_mutex_lock(&b);
    counter++;
    pthread_mutex_unlock(&b);
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, under_a, NULL);
    pthread_create(&two, NULL, under_b, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", counter);
    return 0;
}
