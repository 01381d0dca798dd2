// A lock released too early.
// Shows: a read under the lock whose write comes after the unlock.
// True:  the write meets the other thread's locked read as well as its unlocked write.
// expect: race 14 16 co-enabled
// expect: race 16 16 co-enabled
#include <pthread.h>
#include <stdio.h>

static int next = 1;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *take_number(void *unused) {
    pthread_mutex_lock(&m);
    int mine = next;
    pthread_mutex_unlock(&m);
    next = mine + 1;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, take_number, NULL);
    pthread_create(&two, NULL, take_number, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d\n", next);
    return 0;
}
