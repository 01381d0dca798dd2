// Search with a shared bound: travelling salesman by branch and bound. Tours of three cities are drawn from a counter, each
// is completed in every way by recursion; the best length so far is read at every node, under its lock.
// Usage: tsp [CITIES [THREADS]]
// Check: the best tour has the length claimed, and no exchange of two of its roads makes it shorter.
// Race-free: the counter and the best tour are used under a lock each; distances are written before the threads start.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CITIES = 16, MOST_THREADS = 64 };

static size_t cities = 13, threads = 4;
static uint32_t distances[MOST_CITIES][MOST_CITIES];
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER, best_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t next_start;
static uint32_t best = UINT32_MAX;
static uint8_t best_tour[MOST_CITIES];

struct search {
    uint8_t tour[MOST_CITIES];
    uint32_t visited;
};

static uint32_t bound(void) {
    pthread_mutex_lock(&best_lock);
    uint32_t known = best;
    pthread_mutex_unlock(&best_lock);
    return known;
}

static void offer(const struct search *search, uint32_t length) {
    pthread_mutex_lock(&best_lock);
    if (length < best) {
        best = length;
        memcpy(best_tour, search->tour, sizeof best_tour);
    }
    pthread_mutex_unlock(&best_lock);
}

static void extend(struct search *search, size_t depth, uint32_t length) {
    if (depth == cities) {
        offer(search, length + distances[search->tour[depth - 1]][search->tour[0]]);
        return;
    }
    if (length >= bound())
        return;
    for (size_t city = 1; city < cities; city++)
        if (!(search->visited >> city & 1)) {
            search->tour[depth] = (uint8_t)city;
            search->visited |= 1u << city;
            extend(search, depth + 1, length + distances[search->tour[depth - 1]][city]);
            search->visited &= ~(1u << city);
        }
}

static void *run(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&start_lock);
        size_t start = next_start++;
        pthread_mutex_unlock(&start_lock);
        size_t second = 1 + start / cities, third = start % cities;
        if (second >= cities)
            return NULL;
        if (third == 0 || third == second)
            continue;
        struct search search = {.tour = {0, (uint8_t)second, (uint8_t)third}, .visited = 1u | 1u << second | 1u << third};
        extend(&search, 3, distances[0][second] + distances[second][third]);
    }
}

static uint32_t length_of(const uint8_t *tour) {
    uint32_t length = 0;
    for (size_t i = 0; i < cities; i++)
        length += distances[tour[i]][tour[(i + 1) % cities]];
    return length;
}

int main(int count, char **arguments) {
    if (count > 1)
        cities = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (cities < 4 || cities > MOST_CITIES || threads == 0 || threads > MOST_THREADS)
        return 2;
    for (size_t i = 0; i < cities; i++)
        for (size_t j = 0; j < i; j++)
            distances[i][j] = distances[j][i] = (uint32_t)(100 + (i * 2654435761u ^ j * 40503u) % 911);
    pthread_t handles[MOST_THREADS];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, run, NULL) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    int right = length_of(best_tour) == best;
    for (size_t i = 0; i < cities; i++)
        for (size_t j = i + 1; j < cities; j++) {
            uint8_t other[MOST_CITIES];
            memcpy(other, best_tour, sizeof other);
            for (size_t low = i, high = j; low < high; low++, high--) {
                uint8_t kept = other[low];
                other[low] = other[high], other[high] = kept;
            }
            right &= length_of(other) >= best;
        }
    printf("tsp of %zu cities with %zu threads, shortest %u: %s\n", cities, threads, best, right ? "right" : "WRONG");
    return !right;
}
