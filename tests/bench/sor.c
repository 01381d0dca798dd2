// Successive over-relaxation of a grid in place, red and black points in turn, one band of rows per thread, a barrier per colour.
// Usage: sor [SIZE [STEPS [THREADS]]]
// Check: the residual falls, and sampled points are those of a serial computation, bit by bit.
// Race-free: points of one colour are written from points of the other; barriers separate the colours.
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

static size_t size = 800, steps = 20, threads = 4;
static double *grid;
static pthread_barrier_t barrier;

static const double OMEGA = 1.25;

static void relax(double *cells, size_t row, size_t colour) {
    for (size_t column = 1 + (row + colour) % 2; column + 1 < size; column += 2) {
        double *cell = &cells[row * size + column];
        *cell = OMEGA / 4 * (cell[-(ptrdiff_t)size] + cell[size] + cell[-1] + cell[1]) + (1 - OMEGA) * *cell;
    }
}

static void *run(void *argument) {
    size_t band = (size_t)argument, rows = size - 2;
    size_t first = 1 + rows * band / threads, end = 1 + rows * (band + 1) / threads;
    for (size_t half = 0; half < 2 * steps; half++) {
        for (size_t row = first; row < end; row++)
            relax(grid, row, half % 2);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static double residual(const double *cells) {
    double sum = 0;
    for (size_t row = 1; row + 1 < size; row++)
        for (size_t column = 1; column + 1 < size; column++) {
            const double *cell = &cells[row * size + column];
            sum += fabs(cell[-(ptrdiff_t)size] + cell[size] + cell[-1] + cell[1] - 4 * *cell);
        }
    return sum;
}

int main(int count, char **arguments) {
    if (count > 1)
        size = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        steps = strtoul(arguments[2], NULL, 10);
    if (count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (size < 3 || size > 16384 || threads == 0 || threads > MOST_THREADS)
        return 2;
    size_t bytes = size * size * sizeof(double);
    grid = malloc(bytes);
    double *serial = malloc(bytes);
    if (grid == NULL || serial == NULL)
        return 2;
    for (size_t i = 0; i < size * size; i++)
        grid[i] = (double)(i * 2654435761u % 1009) / 1009;
    memcpy(serial, grid, bytes);
    double before = residual(grid);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    pthread_barrier_destroy(&barrier);
    for (size_t half = 0; half < 2 * steps; half++)
        for (size_t row = 1; row + 1 < size; row++)
            relax(serial, row, half % 2);
    double after = residual(grid);
    int right = memcmp(grid, serial, bytes) == 0 && (steps == 0 || after < before);
    printf("sor of %zu, %zu steps with %zu threads, residual %.9f: %s\n", size, steps, threads, after, right ? "right" : "WRONG");
    free(grid), free(serial);
    return !right;
}
