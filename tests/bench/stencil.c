// Barriers: a five-point stencil on a torus, two grids in turn, one band of rows per thread.
// Usage: stencil [SIZE [STEPS [THREADS]]]
// Check: each step multiplies the sum of all cells by five, modulo 2^64.
// Race-free: a step reads one grid and writes own rows of the other; a barrier separates the steps.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

static size_t size = 512, steps = 150, threads = 4;
static uint64_t *grids[2];
static pthread_barrier_t barrier;

static void step_row(const uint64_t *from, uint64_t *to, size_t row) {
    const uint64_t *here = from + row * size;
    const uint64_t *above = from + (row + size - 1) % size * size;
    const uint64_t *below = from + (row + 1) % size * size;
    uint64_t *out = to + row * size;
    out[0] = here[0] + here[size - 1] + here[1] + above[0] + below[0];
    for (size_t i = 1; i + 1 < size; i++)
        out[i] = here[i] + here[i - 1] + here[i + 1] + above[i] + below[i];
    out[size - 1] = here[size - 1] + here[size - 2] + here[0] + above[size - 1] + below[size - 1];
}

static void *run_band(void *argument) {
    size_t band = (size_t)argument;
    size_t first = size * band / threads, end = size * (band + 1) / threads;
    for (size_t step = 0; step < steps; step++) {
        for (size_t row = first; row < end; row++)
            step_row(grids[step % 2], grids[(step + 1) % 2], row);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static uint64_t sum_of(const uint64_t *grid) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size * size; i++)
        sum += grid[i];
    return sum;
}

int main(int count, char **arguments) {
    if (count > 1)
        size = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        steps = strtoul(arguments[2], NULL, 10);
    if (count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (size < 2 || size > 16384 || threads == 0 || threads > MOST_THREADS)
        return 2;
    for (int i = 0; i < 2; i++)
        if ((grids[i] = calloc(size * size, sizeof **grids)) == NULL)
            return 2;
    for (size_t i = 0; i < size * size; i++)
        grids[0][i] = i * 2654435761u % 1009 + 1;
    uint64_t expected = sum_of(grids[0]);
    for (size_t step = 0; step < steps; step++)
        expected *= 5;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run_band, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    pthread_barrier_destroy(&barrier);
    int right = sum_of(grids[steps % 2]) == expected;
    printf("stencil %zu, %zu steps with %zu threads: %s\n", size, steps, threads, right ? "right" : "WRONG");
    return !right;
}
