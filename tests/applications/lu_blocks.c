// LU factorisation without pivoting, in blocks that each lie in one piece, in the manner of the contiguous version of lu: a block
// is allocated by itself and written by its owner only; barriers separate the diagonal, the perimeter and the interior of a step.
// Usage: lu_blocks [BLOCKS [THREADS]] (a square of so many blocks)
// Check: L·U is the matrix again.
// Seeded race: no barrier separates the perimeter from the interior.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { EDGE = 16, MOST_BLOCKS = 24, MOST_THREADS = 16 };
typedef double block[EDGE][EDGE];
static block *blocks[MOST_BLOCKS][MOST_BLOCKS], originals[MOST_BLOCKS][MOST_BLOCKS];
static int count = 4, threads = 3;
static pthread_barrier_t barrier;

static int owner(int row, int column) { return (row + column * 2) % threads; }

static void factor(block *one) {
    for (int k = 0; k < EDGE; k++)
        for (int i = k + 1; i < EDGE; i++) {
            (*one)[i][k] /= (*one)[k][k];
            for (int j = k + 1; j < EDGE; j++) (*one)[i][j] -= (*one)[i][k] * (*one)[k][j];
        }
}

static void divide_below(block *diagonal, block *one) {
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++) {
            (*one)[i][k] /= (*diagonal)[k][k];
            for (int j = k + 1; j < EDGE; j++) (*one)[i][j] -= (*one)[i][k] * (*diagonal)[k][j];
        }
}

static void divide_right(block *diagonal, block *one) {
    for (int k = 0; k < EDGE; k++)
        for (int i = k + 1; i < EDGE; i++)
            for (int j = 0; j < EDGE; j++) (*one)[i][j] -= (*diagonal)[i][k] * (*one)[k][j];
}

static void update(block *left, block *above, block *one) {
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++)
            for (int j = 0; j < EDGE; j++) (*one)[i][j] -= (*left)[i][k] * (*above)[k][j];
}

static void *run(void *argument) {
    int self = (int)(long)argument;
    for (int step = 0; step < count; step++) {
        if (owner(step, step) == self) factor(blocks[step][step]);
        pthread_barrier_wait(&barrier);
        for (int other = step + 1; other < count; other++) {
            if (owner(other, step) == self) divide_below(blocks[step][step], blocks[other][step]);
            if (owner(step, other) == self) divide_right(blocks[step][step], blocks[step][other]);
        }
#ifndef SEEDED
        pthread_barrier_wait(&barrier);
#endif
        for (int row = step + 1; row < count; row++)
            for (int column = step + 1; column < count; column++)
                if (owner(row, column) == self) update(blocks[row][step], blocks[step][column], blocks[row][column]);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static double product(int row, int column) {
    double sum = 0;
    for (int k = 0; k <= (row < column ? row : column); k++) {
        double left = (*blocks[row / EDGE][k / EDGE])[row % EDGE][k % EDGE];
        double above = (*blocks[k / EDGE][column / EDGE])[k % EDGE][column % EDGE];
        sum += (k == row ? 1 : left) * above;
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc > 1) count = atoi(argv[1]);
    if (argc > 2) threads = atoi(argv[2]);
    if (count < 1 || count > MOST_BLOCKS || threads < 1 || threads > MOST_THREADS) return 2;
    int size = count * EDGE;
    for (int row = 0; row < size; row++)
        for (int column = 0; column < size; column++) {
            block **place = &blocks[row / EDGE][column / EDGE];
            if (*place == NULL && (*place = malloc(sizeof(block))) == NULL) return 2;
            double entry = row == column ? size : (row * 7 + column * 5) % 11 / 11.0;
            (**place)[row % EDGE][column % EDGE] = entry;
            originals[row / EDGE][column / EDGE][row % EDGE][column % EDGE] = entry;
        }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (int i = 0; i < threads; i++) pthread_create(&handles[i], NULL, run, (void *)(long)i);
    for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    double error = 0;
    for (int row = 0; row < size; row++)
        for (int column = 0; column < size; column++)
            error = fmax(error, fabs(product(row, column) - originals[row / EDGE][column / EDGE][row % EDGE][column % EDGE]));
    printf("lu of %d blocks, error %g\n", count * count, error);
    return error > 1e-6;
}
