// Independent work, shared results: random walks of a stock's price; each walk's result is put in a list under a lock.
// Usage: montecarlo [WALKS [DAYS [THREADS]]]
// Check: each walk is there once, with the sum of its steps, and the sum over all walks does not depend on the threads.
// Race-free: a walk's path is private to its thread; the next walk and the list of results are used under one lock each.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct result {
    struct result *next;
    size_t walk;
    int64_t last;
};

static size_t walks = 40000, days = 1000, threads = 4;
static pthread_mutex_t walk_lock = PTHREAD_MUTEX_INITIALIZER, result_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t next_walk;
static struct result *results;

static size_t draw_walk(void) {
    pthread_mutex_lock(&walk_lock);
    size_t walk = next_walk++;
    pthread_mutex_unlock(&walk_lock);
    return walk;
}

static int64_t walk_along(size_t walk, int64_t *path) {
    uint64_t state = (walk + 1) * 0x9e3779b97f4a7c15u;
    path[0] = 100000;
    for (size_t day = 1; day < days; day++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        path[day] = path[day - 1] + (int64_t)(state % 2001) - 1000;
    }
    // The result is the average over the path, which reads all of it again.
    int64_t sum = 0;
    for (size_t day = 0; day < days; day++)
        sum += path[day];
    return sum / (int64_t)days;
}

static void *run(void *unused) {
    (void)unused;
    int64_t *path = malloc(days * sizeof *path);
    if (path == NULL)
        abort();
    for (size_t walk; (walk = draw_walk()) < walks;) {
        struct result *result = malloc(sizeof *result);
        if (result == NULL)
            abort();
        result->walk = walk;
        result->last = walk_along(walk, path);
        pthread_mutex_lock(&result_lock);
        result->next = results;
        results = result;
        pthread_mutex_unlock(&result_lock);
    }
    free(path);
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1)
        walks = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        days = strtoul(arguments[2], NULL, 10);
    if (count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (walks == 0 || days == 0 || days > 10000000 || threads == 0 || threads > MOST_THREADS)
        return 2;
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, NULL) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    unsigned char *seen = calloc(walks, 1);
    int64_t *path = malloc(days * sizeof *path);
    if (seen == NULL || path == NULL)
        return 2;
    size_t found = 0;
    int right = 1;
    int64_t sum = 0;
    while (results != NULL) {
        struct result *result = results;
        results = result->next;
        right &= result->walk < walks && !seen[result->walk]++;
        if (result->walk % 64 == 0)
            right &= walk_along(result->walk, path) == result->last;
        sum += result->last;
        found++;
        free(result);
    }
    right &= found == walks;
    printf("montecarlo of %zu walks with %zu threads, mean %lld: %s\n", walks, threads, (long long)(sum / (int64_t)walks),
           right ? "right" : "WRONG");
    free(seen), free(path);
    return !right;
}
