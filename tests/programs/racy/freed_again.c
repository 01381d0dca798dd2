// Two threads each take what is left to give back, and give it back in another critical section.
// Shows: both free the block if both have looked before; libc aborts then, whatever else was asked for in between.
// True:  the second to come finds null unless the first has only looked.
// expect: failure crashed
// expect: use-after-free
// allow: atomicity-violation
// tells: it frees heap block of 40 bytes allocated at main (freed_again.c:37) once more
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *block, *next;

static long *left(void) {
    pthread_mutex_lock(&lock);
    long *found = block;
    pthread_mutex_unlock(&lock);
    return found;
}

static void *drop(void *unused) {
    long *found = left();
    if (found == NULL) {
        return unused;
    }
    pthread_mutex_lock(&lock);
    free(found);
    block = NULL;
    // Without more ado the same bytes.
    next = malloc(40);
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
