// Bodies on a line whose far neighbours act through the cells of a tree, in the manner of fmm: threads put their bodies into the
// leaves under the lock of each cell, add the weights up level by level, each under the lock of the parent, and then read the
// leaves of far neighbours instead of their bodies. Barriers separate the phases; a counter hands out cells.
// Usage: fmm [BODIES [STEPS [THREADS]]]
// Check: the root weighs as much as all bodies together, in every step.
// Seeded race: the weight of a parent is added up under the lock of the child.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEVELS = 4, LEAVES = 1 << (LEVELS - 1), CELLS = 2 * LEAVES, MOST = 512, MOST_THREADS = 16, LINE = 1024 };
struct cell {
    pthread_mutex_t lock;
    long weight, moment;
};
static struct cell cells[CELLS]; // the children of i are 2i and 2i + 1; the leaves are the second half
static long places[MOST], weights[MOST], forces[MOST];
static long count = 48, steps = 2, threads = 3, next_leaf, wrong;
static pthread_mutex_t next_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static long leaf_of(long place) { return LEAVES + place * LEAVES / LINE; }

static void insert(long first, long end) {
    for (long i = first; i < end; i++) {
        struct cell *leaf = &cells[leaf_of(places[i])];
        pthread_mutex_lock(&leaf->lock);
        leaf->weight += weights[i];
        leaf->moment += weights[i] * places[i];
        pthread_mutex_unlock(&leaf->lock);
    }
}

static long take_cell(long end) {
    pthread_mutex_lock(&next_lock);
    long taken = next_leaf < end ? next_leaf++ : -1;
    pthread_mutex_unlock(&next_lock);
    return taken;
}

static void add_up(long first, long end) {
    for (long at; (at = take_cell(end)) >= first;) {
        struct cell *parent = &cells[at / 2];
#ifdef SEEDED
        pthread_mutex_t *lock = &cells[at].lock;
#else
        pthread_mutex_t *lock = &parent->lock;
#endif
        pthread_mutex_lock(lock);
        parent->weight += cells[at].weight;
        parent->moment += cells[at].moment;
        pthread_mutex_unlock(lock);
    }
}

static long pull(long from, long at, long weight) { return at == from ? 0 : weight * (at > from ? 64 : -64) / labs(at - from); }

static void evaluate(long first, long end) {
    for (long i = first; i < end; i++) {
        forces[i] = 0;
        for (long leaf = LEAVES; leaf < CELLS; leaf++) {
            long distance = labs(leaf - leaf_of(places[i]));
            if (distance <= 1 || cells[leaf].weight == 0) continue;
            forces[i] += pull(places[i], cells[leaf].moment / cells[leaf].weight, cells[leaf].weight);
        }
        for (long j = 0; j < count; j++)
            if (labs(leaf_of(places[j]) - leaf_of(places[i])) <= 1) forces[i] += pull(places[i], places[j], weights[j]);
    }
}

static void prepare(long self, long next) {
    pthread_barrier_wait(&barrier);
    if (self == 0) next_leaf = next;
    pthread_barrier_wait(&barrier);
}

static void *run(void *argument) {
    long self = (long)argument, first = count * self / threads, end = count * (self + 1) / threads;
    for (long step = 0; step < steps; step++) {
        insert(first, end);
        for (long level = LEAVES; level > 1; level /= 2) {
            prepare(self, level);
            add_up(level, 2 * level);
        }
        pthread_barrier_wait(&barrier);
        evaluate(first, end);
        pthread_barrier_wait(&barrier);
        for (long i = first; i < end; i++) places[i] = (places[i] + forces[i] + LINE * LINE) % LINE;
        if (self == 0) {
            long sum = 0;
            for (long i = 0; i < count; i++) sum += weights[i];
            wrong += sum != cells[1].weight;
            for (long i = 0; i < CELLS; i++) cells[i].weight = cells[i].moment = 0;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) count = atol(argv[1]);
    if (argc > 2) steps = atol(argv[2]);
    if (argc > 3) threads = atol(argv[3]);
    if (count < 1 || count > MOST || threads < 1 || threads > MOST_THREADS) return 2;
    for (long i = 0; i < CELLS; i++) pthread_mutex_init(&cells[i].lock, NULL);
    for (long i = 0; i < count; i++) {
        places[i] = i * i * 61 % LINE;
        weights[i] = 1 + i % 7;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (long i = 0; i < threads; i++) pthread_create(&handles[i], NULL, run, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    printf("%ld steps, %ld with a wrong root\n", steps, wrong);
    return wrong != 0;
}
