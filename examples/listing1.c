// Listing 1 of Carril and Tichy (SEPS 2015), and two lines of ours: `usleep`, so that other tools miss the race, and `printf`.
//
// L. M. Carril and W. F. Tichy, Interleaving Generation for Data Race and Deadlock Reproduction. y should end as 3, and nearly
// always does. When main's critical section comes first, its unlock orders main's second `y++` before the one in `task`. In the
// other order nothing does: the two increments can meet, and one of them is lost.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int x, y;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *task(void *unused) {
    usleep(50 * 1000); // ours: main always takes the lock first, and happens-before of that schedule hides the race
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
    printf("x = %d, y = %d\n", x, y); // ours
    return 0;
}
