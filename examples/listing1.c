// Two threads, two variables, one lock: a race that testing hardly ever shows.
//
// y should end as 3, and nearly always does. When main's critical section comes first, its unlock orders main's second
// `y++` before the one in `task`. In the other order nothing does, the two increments can meet, and one of them is lost.
// (Listing 1 of L. M. Carril and W. F. Tichy, Interleaving Generation for Data Race and Deadlock Reproduction, SEPS 2015.)
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int x, y;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *task(void *unused) {
    usleep(50 * 1000); // it has something to prepare: main is always first
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
    return 0;
}
