// Clustering of a stream of points as facility location by local search: candidates are opened as centres where that saves
// more than a centre costs. All threads evaluate one candidate together: private sums, barriers, one thread decides.
// Usage: cluster [POINTS [CANDIDATES [THREADS]]]
// Check: the cost kept up to date through all decisions is the one computed anew from the centres; all numbers are whole.
// Race-free: points belong to one thread, decisions are made by thread 0 between barriers.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIMENSIONS = 24, MOST_THREADS = 64 };

struct point {
    int32_t coordinates[DIMENSIONS];
    uint64_t distance; // to its centre
    size_t centre;
};

struct share {
    pthread_t handle;
    size_t number;
    uint64_t saved;
};

static size_t count = 12000, candidates = 400, threads = 4;
static struct point *points;
static struct share shares[MOST_THREADS];
static pthread_barrier_t barrier;
static uint64_t cost, price;
static size_t opened = 1, candidate;
static int worth_it;

static uint64_t square_distance(const struct point *one, const struct point *other) {
    uint64_t sum = 0;
    for (size_t d = 0; d < DIMENSIONS; d++) {
        int64_t difference = one->coordinates[d] - other->coordinates[d];
        sum += (uint64_t)(difference * difference);
    }
    return sum;
}

static void decide(void) {
    uint64_t saved = 0;
    for (size_t i = 0; i < threads; i++)
        saved += shares[i].saved;
    worth_it = saved > price;
    if (worth_it) {
        cost = cost - saved + price;
        opened++;
    }
}

static void *run(void *argument) {
    struct share *self = argument;
    size_t first = count * self->number / threads, end = count * (self->number + 1) / threads;
    for (size_t round = 0; round < candidates; round++) {
        if (self->number == 0)
            candidate = (round + 1) * 2654435761u % count;
        pthread_barrier_wait(&barrier);
        size_t chosen = candidate;
        uint64_t saved = 0;
        for (size_t i = first; i < end; i++) {
            uint64_t distance = square_distance(&points[i], &points[chosen]);
            if (distance < points[i].distance)
                saved += points[i].distance - distance;
        }
        self->saved = saved;
        pthread_barrier_wait(&barrier);
        if (self->number == 0)
            decide();
        pthread_barrier_wait(&barrier);
        if (!worth_it)
            continue;
        for (size_t i = first; i < end; i++) {
            uint64_t distance = square_distance(&points[i], &points[chosen]);
            if (distance < points[i].distance) {
                points[i].distance = distance;
                points[i].centre = chosen;
            }
        }
    }
    return NULL;
}

int main(int argument_count, char **arguments) {
    if (argument_count > 1)
        count = strtoul(arguments[1], NULL, 10);
    if (argument_count > 2)
        candidates = strtoul(arguments[2], NULL, 10);
    if (argument_count > 3)
        threads = strtoul(arguments[3], NULL, 10);
    if (count == 0 || count > 10000000 || threads == 0 || threads > MOST_THREADS)
        return 2;
    points = calloc(count, sizeof *points);
    if (points == NULL)
        return 2;
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < count; i++) {
        int32_t home = (int32_t)(i % 37) * 500; // around 37 places
        for (size_t d = 0; d < DIMENSIONS; d++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            points[i].coordinates[d] = (d % 2 ? home : -home) + (int32_t)(state % 1000);
        }
    }
    for (size_t i = 0; i < count; i++)
        cost += points[i].distance = square_distance(&points[i], &points[0]);
    price = cost / 200;
    cost += price;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (size_t i = 0; i < threads; i++) {
        shares[i].number = i;
        if (pthread_create(&shares[i].handle, NULL, run, &shares[i]) != 0)
            return 2;
    }
    for (size_t i = 0; i < threads; i++)
        pthread_join(shares[i].handle, NULL);
    pthread_barrier_destroy(&barrier);
    uint64_t again = opened * price;
    for (size_t i = 0; i < count; i++)
        again += square_distance(&points[i], &points[points[i].centre]);
    int right = again == cost;
    printf("cluster of %zu points, %zu centres with %zu threads, cost %llu: %s\n", count, opened, threads,
           (unsigned long long)cost, right ? "right" : "WRONG");
    free(points);
    return !right;
}
