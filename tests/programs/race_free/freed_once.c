// Two threads each take what is left to give back.
// Shows: the twin of racy/freed_again.c: who looks also gives it back, in the same critical section.
// True:  the second to come finds null.
// expect: none
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *block, *next;

static void *drop(void *unused) {
    pthread_mutex_lock(&lock);
    if (block != NULL) {
        free(block);
        block = NULL;
        next = malloc(40);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t one, other;
    block = malloc(40);
    pthread_create(&one, NULL, drop, NULL);
    pthread_create(&other, NULL, drop, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    free(next);
    return 0;
}
