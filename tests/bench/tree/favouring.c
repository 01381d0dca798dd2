// What the TREE filter is best at (Rajagopalan 2016, Figure 5.1): threads take the same locks, one inside the other, and change
// the same variable, over and over.
// Usage: favouring [THREADS [ITERATIONS [LOCKS]]]
// Check: the variable counts every iteration.
// Race-free: the variable is used with all locks held; without locks (LOCKS = 0) it is not, and nothing is checked.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 256, MOST_LOCKS = 256 };

static size_t threads = 8, iterations = 10000, locks = 4;
static pthread_mutex_t all[MOST_LOCKS];
static size_t x;

static void *run(void *unused) {
    (void)unused;
    for (size_t i = 0; i < iterations; i++) {
        for (size_t k = 0; k < locks; k++)
            pthread_mutex_lock(&all[k]);
        x = x + 1;
        for (size_t k = 0; k < locks; k++)
            pthread_mutex_unlock(&all[k]);
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
    for (size_t k = 0; k < locks; k++)
        pthread_mutex_init(&all[k], NULL);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, NULL) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    int right = locks == 0 || x == threads * iterations;
    printf("favouring: %zu × %zu × %zu: %s\n", threads, iterations, locks, right ? "right" : "WRONG");
    return !right;
}
