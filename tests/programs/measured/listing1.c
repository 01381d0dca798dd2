// Listing 1 of Carril and Tichy (SEPS 2015).
// Shows: a race on y that lock order hides from a happens-before detector whenever main's critical section comes first.
// True:  the value read by the second x++ depends on the first, so no reordering that keeps every read exposes the race;
//        one that keeps synchronisation only does, and it is feasible.
// expect: race 16 24 co-enabled
#include <pthread.h>
#include <stdio.h>

static int x, y;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *task(void *unused) {
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
    y++;
    return NULL;
}

int main(void) {
    pthread_t thread;
    y++;
    pthread_create(&thread, NULL, task, NULL);
    y++;
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
    pthread_join(thread, NULL);
    printf("x = %d, y = %d\n", x, y);
    return x == 2 ? 0 : 1;
}
