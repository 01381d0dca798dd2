// What the TREE filter is worst at (Rajagopalan 2016, Figure 5.3): every thread has locks of its own, so that no context is like
// another's, and the thread that starts the others changes the variable in between.
// Usage: hurting [THREADS [ITERATIONS [LOCKS]]]
// Race: between the two places that change `x`, and between threads at the second, with two threads or more.
// Check: none; lost updates are possible.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 256, MOST_LOCKS = 256 };

static size_t threads = 8, iterations = 10000, locks = 4;
static pthread_mutex_t own[MOST_THREADS][MOST_LOCKS];
static size_t x;

static void *run(void *argument) {
    pthread_mutex_t *mine = argument;
    for (size_t i = 0; i < iterations; i++) {
        for (size_t k = 0; k < locks; k++)
            pthread_mutex_lock(&mine[k]);
        x = x + 1;
        for (size_t k = 0; k < locks; k++)
            pthread_mutex_unlock(&mine[k]);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        threads = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        iterations = strtoul(arguments[2], NULL, 10);
    if (count > 3)
        locks = strtoul(arguments[3], NULL, 10);
    if (threads == 0 || threads > MOST_THREADS || locks > MOST_LOCKS)
        return 2;
    for (size_t i = 0; i < threads; i++)
        for (size_t k = 0; k < locks; k++)
            pthread_mutex_init(&own[i][k], NULL);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++) {
        x = x + 1;
        if (pthread_create(&handles[i], NULL, run, own[i]) != 0)
            return 2;
    }
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    printf("hurting: %zu × %zu × %zu: %zu\n", threads, iterations, locks, x);
    return 0;
}
