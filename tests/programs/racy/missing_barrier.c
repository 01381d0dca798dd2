// A barrier too few.
// Shows: a thread that overwrites its cell while its neighbour may still be reading it.
// True:  a second barrier belongs between the read and the write that follows it.
// expect: race 15 16 co-enabled
#include <pthread.h>
#include <stdio.h>

static int cells[2];
static pthread_barrier_t phase;

static void *work(void *argument) {
    int me = *(int *)argument;
    cells[me] = me + 1;
    pthread_barrier_wait(&phase);
    int neighbour = cells[1 - me];
    cells[me] = 10 * neighbour;
    return NULL;
}

int main(void) {
    pthread_t one, two;
    int numbers[2] = {0, 1};
    pthread_barrier_init(&phase, NULL, 2);
    pthread_create(&one, NULL, work, &numbers[0]);
    pthread_create(&two, NULL, work, &numbers[1]);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d %d\n", cells[0], cells[1]);
    return 0;
}
