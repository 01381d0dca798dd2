// A stencil with barriers.
// Shows: barriers and their one serial thread.
// True:  rows are written between barriers by their owner and read by neighbours in the phase after.
// expect: none
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, CELLS = 8, ROUNDS = 4 };
static long grid[2][THREADS * CELLS];
static int serial_turns;
static pthread_barrier_t phase;

static void *work(void *argument) {
    int first = *(int *)argument * CELLS;
    for (int round = 0; round < ROUNDS; round++) {
        const long *from = grid[round % 2];
        long *to = grid[(round + 1) % 2];
        for (int i = first; i < first + CELLS; i++) {
            int left = (i + THREADS * CELLS - 1) % (THREADS * CELLS);
            int right = (i + 1) % (THREADS * CELLS);
            to[i] = from[left] + from[i] + from[right];
        }
        if (pthread_barrier_wait(&phase) == PTHREAD_BARRIER_SERIAL_THREAD)
            serial_turns++;
        pthread_barrier_wait(&phase);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS] = {0, 1, 2};
    pthread_barrier_init(&phase, NULL, THREADS);
    grid[0][5] = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long sum = 0;
    for (int i = 0; i < THREADS * CELLS; i++)
        sum += grid[ROUNDS % 2][i];
    printf("%ld\n", sum);
    return sum == 81 && serial_turns == ROUNDS ? 0 : 1;
}
