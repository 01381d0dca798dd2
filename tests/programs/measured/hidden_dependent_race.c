// Listing 1 with both sides in created threads.
// Shows: a race on y that lock order hides as long as the thread created first takes the lock first.
// True:  as in listing1.c the second x++ depends on the first, so only a reordering that leaves reads-from free exposes it.
// expect: race 12 23 co-enabled
#include <pthread.h>
#include <stdio.h>

static int x, y;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *access_then_lock(void *unused) {
    y++;
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
    return NULL;
}

static void *lock_then_access(void *unused) {
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
    y++;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, access_then_lock, NULL);
    pthread_create(&two, NULL, lock_then_access, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("x = %d, y = %d\n", x, y);
    return x == 2 ? 0 : 1;
}
