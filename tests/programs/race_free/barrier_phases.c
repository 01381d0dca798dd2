// Phases separated by barriers.
// Shows: cells that change hands at each barrier, without any lock.
// True:  a barrier lies between each write of a cell and its reads by others, and between those and the next write.
// expect: none
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 5 };
static int cells[THREADS];
static pthread_barrier_t phase;

static void *work(void *argument) {
    int me = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int sum = 0;
        for (int i = 0; i < THREADS; i++)
            sum += cells[i];
        pthread_barrier_wait(&phase);
        cells[me] = sum + 1;
        pthread_barrier_wait(&phase);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    pthread_barrier_init(&phase, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&phase);
    return cells[0] == 121 && cells[1] == 121 && cells[2] == 121 ? 0 : 1;
}
