// Memory-bound: blocked multiplication of square matrices, one band of rows per thread.
// Usage: matmul [SIZE [THREADS]]
// Check: (A·B)·1 = A·(B·1), exactly, since all entries are small whole numbers.
// Race-free: a thread writes its own rows of C; A and B are written before the threads start.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 48, MOST_THREADS = 64 };

static size_t size = 600, threads = 4;
static double *a, *b, *c;

static size_t smaller(size_t x, size_t y) { return x < y ? x : y; }

static void multiply_block(size_t row, size_t last_row, size_t inner, size_t last_inner, size_t column, size_t last_column) {
    for (size_t i = row; i < last_row; i++)
        for (size_t k = inner; k < last_inner; k++) {
            double factor = a[i * size + k];
            for (size_t j = column; j < last_column; j++)
                c[i * size + j] += factor * b[k * size + j];
        }
}

static void *multiply_band(void *argument) {
    size_t band = (size_t)argument;
    size_t first = size * band / threads, end = size * (band + 1) / threads;
    for (size_t row = first; row < end; row += BLOCK)
        for (size_t inner = 0; inner < size; inner += BLOCK)
            for (size_t column = 0; column < size; column += BLOCK)
                multiply_block(row, smaller(row + BLOCK, end), inner, smaller(inner + BLOCK, size), column,
                               smaller(column + BLOCK, size));
    return NULL;
}

static int product_is_right(void) {
    double *row_sums = calloc(size, sizeof *row_sums);
    if (row_sums == NULL)
        return 0;
    for (size_t k = 0; k < size; k++)
        for (size_t j = 0; j < size; j++)
            row_sums[k] += b[k * size + j];
    int right = 1;
    for (size_t i = 0; i < size; i++) {
        double expected = 0, found = 0;
        for (size_t k = 0; k < size; k++) {
            expected += a[i * size + k] * row_sums[k];
            found += c[i * size + k];
        }
        right &= expected == found;
    }
    free(row_sums);
    return right;
}

int main(int count, char **arguments) {
    if (count > 1)
        size = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (size == 0 || size > 8192 || threads == 0 || threads > MOST_THREADS)
        return 2;
    a = malloc(size * size * sizeof *a);
    b = malloc(size * size * sizeof *b);
    c = calloc(size * size, sizeof *c);
    if (a == NULL || b == NULL || c == NULL)
        return 2;
    for (size_t i = 0; i < size * size; i++) {
        a[i] = (double)(i * 7 % 11) - 5;
        b[i] = (double)(i * 5 % 13) - 6;
    }
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, multiply_band, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    int right = product_is_right();
    printf("matmul %zu with %zu threads: %s\n", size, threads, right ? "right" : "WRONG");
    return !right;
}
