// A counter that no lock protects.
// Shows: the plainest race; both threads execute the same line.
// True:  each increment reads and writes; no synchronisation lies between the threads' lives.
// expect: race 11 11 co-enabled
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *work(void *unused) {
    counter++;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, work, NULL);
    pthread_create(&two, NULL, work, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", counter);
    return 0;
}
