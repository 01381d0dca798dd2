// Atomic on one side, plain on the other.
// Shows: that an atomic access does not protect a plain one.
// True:  two atomic accesses would not race; one plain access is enough.
// expect: race 11 16 co-enabled
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *careful(void *unused) {
    __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void *careless(void *unused) {
    counter += 2;
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
