// Strided memory: iterative radix-2 fast Fourier transform (Cooley and Tukey), a barrier per stage, each thread a share of the
// butterflies.
// Usage: fft [LOG2_SIZE [THREADS]]
// Check: the inverse transform of the transform is the input, and Parseval's equation holds.
// Race-free: the butterflies of a stage touch disjoint pairs; barriers separate the stages.
#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

static unsigned log_size = 19;
static size_t size, threads = 4;
static double complex *input, *signal_values, *roots; // roots[k] = exp(-2πik/size), k < size / 2
static pthread_barrier_t barrier;

static size_t reversed(size_t index) {
    size_t result = 0;
    for (unsigned bit = 0; bit < log_size; bit++)
        result |= (index >> bit & 1) << (log_size - 1 - bit);
    return result;
}

static void transform(size_t share, int inverse) {
    size_t first = size * share / threads, end = size * (share + 1) / threads;
    for (size_t i = first; i < end; i++) {
        size_t other = reversed(i);
        if (i < other) { // the pair belongs to the thread of its smaller index
            double complex kept = signal_values[i];
            signal_values[i] = signal_values[other];
            signal_values[other] = kept;
        }
    }
    pthread_barrier_wait(&barrier);
    first = size / 2 * share / threads, end = size / 2 * (share + 1) / threads;
    for (unsigned stage = 0; stage < log_size; stage++) {
        size_t half = (size_t)1 << stage;
        for (size_t butterfly = first; butterfly < end; butterfly++) {
            size_t offset = butterfly & (half - 1), upper = (butterfly >> stage << (stage + 1)) + offset;
            double complex root = roots[offset << (log_size - 1 - stage)];
            double complex odd = signal_values[upper + half] * (inverse ? conj(root) : root), even = signal_values[upper];
            signal_values[upper] = even + odd;
            signal_values[upper + half] = even - odd;
        }
        pthread_barrier_wait(&barrier);
    }
}

static void *run(void *argument) {
    transform((size_t)argument, 0);
    return NULL;
}

static void *run_back(void *argument) {
    transform((size_t)argument, 1);
    return NULL;
}

static int on_all_threads(void *(*body)(void *)) {
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, body, (void *)i) != 0)
            return 0;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    return 1;
}

static double energy(void) {
    double sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += creal(signal_values[i]) * creal(signal_values[i]) + cimag(signal_values[i]) * cimag(signal_values[i]);
    return sum;
}

int main(int count, char **arguments) {
    if (count > 1)
        log_size = (unsigned)strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (log_size < 1 || log_size > 26 || threads == 0 || threads > MOST_THREADS)
        return 2;
    size = (size_t)1 << log_size;
    input = malloc(size * sizeof *input);
    signal_values = malloc(size * sizeof *signal_values);
    roots = malloc(size / 2 * sizeof *roots);
    if (input == NULL || signal_values == NULL || roots == NULL)
        return 2;
    for (size_t i = 0; i < size; i++)
        input[i] = (double)(i * 2654435761u % 2003) / 1001 - 1 + I * ((double)(i * 40503 % 1999) / 999 - 1);
    for (size_t k = 0; k < size / 2; k++)
        roots[k] = cexp(-2 * acos(-1) * I * (double)k / (double)size);
    memcpy(signal_values, input, size * sizeof *input);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    double before = energy();
    if (!on_all_threads(run))
        return 2;
    double after = energy() / (double)size;
    if (!on_all_threads(run_back))
        return 2;
    pthread_barrier_destroy(&barrier);
    double error = 0;
    for (size_t i = 0; i < size; i++)
        error = fmax(error, cabs(signal_values[i] / (double)size - input[i]));
    int right = error < 1e-9 && fabs(before - after) < 1e-9 * before;
    printf("fft of 2^%u with %zu threads, energy %.6f: %s\n", log_size, threads, after, right ? "right" : "WRONG");
    free(input), free(signal_values), free(roots);
    return !right;
}
