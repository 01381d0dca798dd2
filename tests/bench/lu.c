// Blocks and barriers: LU factorisation without pivoting of a diagonally dominant matrix, in place, right-looking, in square
// blocks that belong to threads in a cyclic pattern.
// Usage: lu [SIZE [THREADS]]
// Check: L·(U·1) is A·1.
// Race-free: a block is written by its owner only; barriers separate the diagonal, the perimeter and the interior of a step.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 16, MOST_THREADS = 64 };

static size_t size = 768, threads = 4, blocks;
static double *matrix;
static pthread_barrier_t barrier;

#define AT(i, j) matrix[(i) * size + (j)]

static size_t end_of(size_t block) { return (block + 1) * BLOCK < size ? (block + 1) * BLOCK : size; }

static size_t owner(size_t row, size_t column) { return (row + column * 3) % threads; }

static void factor_diagonal(size_t step) {
    size_t first = step * BLOCK, end = end_of(step);
    for (size_t k = first; k < end; k++)
        for (size_t i = k + 1; i < end; i++) {
            AT(i, k) /= AT(k, k);
            for (size_t j = k + 1; j < end; j++)
                AT(i, j) -= AT(i, k) * AT(k, j);
        }
}

// Solves X·U = block for a block below the diagonal one.
static void divide_below(size_t step, size_t row) {
    size_t first = step * BLOCK, end = end_of(step);
    for (size_t i = row * BLOCK; i < end_of(row); i++)
        for (size_t k = first; k < end; k++) {
            AT(i, k) /= AT(k, k);
            for (size_t j = k + 1; j < end; j++)
                AT(i, j) -= AT(i, k) * AT(k, j);
        }
}

// Solves L·X = block for a block right of the diagonal one.
static void divide_right(size_t step, size_t column) {
    size_t first = step * BLOCK, end = end_of(step);
    for (size_t k = first; k < end; k++)
        for (size_t i = k + 1; i < end; i++)
            for (size_t j = column * BLOCK; j < end_of(column); j++)
                AT(i, j) -= AT(i, k) * AT(k, j);
}

static void update(size_t step, size_t row, size_t column) {
    for (size_t i = row * BLOCK; i < end_of(row); i++)
        for (size_t k = step * BLOCK; k < end_of(step); k++) {
            double factor = AT(i, k);
            for (size_t j = column * BLOCK; j < end_of(column); j++)
                AT(i, j) -= factor * AT(k, j);
        }
}

static void *run(void *argument) {
    size_t self = (size_t)argument;
    for (size_t step = 0; step < blocks; step++) {
        if (owner(step, step) == self)
            factor_diagonal(step);
        pthread_barrier_wait(&barrier);
        for (size_t other = step + 1; other < blocks; other++) {
            if (owner(other, step) == self)
                divide_below(step, other);
            if (owner(step, other) == self)
                divide_right(step, other);
        }
        pthread_barrier_wait(&barrier);
        for (size_t row = step + 1; row < blocks; row++)
            for (size_t column = step + 1; column < blocks; column++)
                if (owner(row, column) == self)
                    update(step, row, column);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

// Of the input: |i - j| decides, the diagonal outweighs its row.
static double entry(size_t i, size_t j) { return i == j ? (double)size : (double)((i * 7 + j * 5) % 11) / 11 - 0.5; }

int main(int count, char **arguments) {
    if (count > 1)
        size = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (size == 0 || size > 8192 || threads == 0 || threads > MOST_THREADS)
        return 2;
    blocks = (size + BLOCK - 1) / BLOCK;
    matrix = malloc(size * size * sizeof *matrix);
    double *upper_sums = calloc(size, sizeof *upper_sums);
    if (matrix == NULL || upper_sums == NULL)
        return 2;
    for (size_t i = 0; i < size; i++)
        for (size_t j = 0; j < size; j++)
            AT(i, j) = entry(i, j);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    pthread_barrier_destroy(&barrier);
    double trace = 0, error = 0;
    for (size_t i = 0; i < size; i++) {
        trace += AT(i, i);
        for (size_t j = i; j < size; j++)
            upper_sums[i] += AT(i, j);
    }
    for (size_t i = 0; i < size; i++) {
        double expected = 0, found = upper_sums[i];
        for (size_t j = 0; j < size; j++)
            expected += entry(i, j);
        for (size_t j = 0; j < i; j++)
            found += AT(i, j) * upper_sums[j];
        error = fmax(error, fabs(expected - found));
    }
    int right = error < 1e-8 * (double)size;
    printf("lu of %zu with %zu threads, trace %.9f: %s\n", size, threads, trace, right ? "right" : "WRONG");
    free(matrix), free(upper_sums);
    return !right;
}
