// Molecules of three atoms that attract each other, all pairs of them, in the manner of water-nsquared: each thread takes the
// pairs of its own molecules, sums up the forces on both for itself, and adds these to the molecules, each under its lock;
// barriers separate the phases of a step.
// Usage: water [MOLECULES [STEPS [THREADS]]]
// Check: action equals reaction: forces are whole numbers, and their sum is zero.
// Seeded race: the potential energy is added up under no lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 256, MOST_THREADS = 16 };
enum { ATOMS = 3, AXES = 3, ALL = ATOMS * AXES };
struct molecule {
    pthread_mutex_t lock;
    long places[ALL], speeds[ALL], forces[ALL];
};
static struct molecule molecules[MOST];
static long sums[MOST_THREADS][MOST][ALL]; // of a thread alone
static long count = 24, steps = 2, threads = 3, potential;
#ifndef SEEDED
static pthread_mutex_t energy = PTHREAD_MUTEX_INITIALIZER;
#endif
static pthread_barrier_t barrier;

// Of every atom of the one on every atom of the other.
static long attract(const long *one, const long *other, long *on_one, long *on_other) {
    long squares = 0;
    for (int i = 0; i < ATOMS; i++)
        for (int j = 0; j < ATOMS; j++)
            for (int axis = 0; axis < AXES; axis++) {
                long force = (other[j * AXES + axis] - one[i * AXES + axis]) / 1024;
                on_one[i * AXES + axis] += force;
                on_other[j * AXES + axis] -= force;
                squares += force * force;
            }
    return squares;
}

static void interact(long (*sum)[ALL], long first, long end) {
    long own = 0;
    for (long i = first; i < end; i++)
        for (long k = 1; k <= count / 2; k++) {
            long j = (i + k) % count;
            // Every pair once: of those that are half a ring apart, the lower one has it.
            if (2 * k == count && i > j) continue;
            own += attract(molecules[i].places, molecules[j].places, sum[i], sum[j]);
        }
    for (long i = 0; i < count; i++) {
        pthread_mutex_lock(&molecules[i].lock);
        for (int at = 0; at < ALL; at++) molecules[i].forces[at] += sum[i][at];
        pthread_mutex_unlock(&molecules[i].lock);
        for (int at = 0; at < ALL; at++) sum[i][at] = 0;
    }
#ifndef SEEDED
    pthread_mutex_lock(&energy);
#endif
    potential += own;
#ifndef SEEDED
    pthread_mutex_unlock(&energy);
#endif
}

static void *run(void *argument) {
    long self = (long)argument, first = count * self / threads, end = count * (self + 1) / threads;
    for (long step = 0; step < steps; step++) {
        interact(sums[self], first, end);
        pthread_barrier_wait(&barrier);
        for (long i = first; i < end; i++)
            for (int at = 0; at < ALL; at++) {
                molecules[i].speeds[at] += molecules[i].forces[at];
                molecules[i].places[at] += molecules[i].speeds[at];
                molecules[i].forces[at] = 0;
            }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) count = atol(argv[1]);
    if (argc > 2) steps = atol(argv[2]);
    if (argc > 3) threads = atol(argv[3]);
    if (count < 2 || count > MOST || threads < 1 || threads > MOST_THREADS) return 2;
    for (long i = 0; i < count; i++) {
        pthread_mutex_init(&molecules[i].lock, NULL);
        for (int at = 0; at < ALL; at++) molecules[i].places[at] = (i * i * 37 + at * 131) % 1000 * 1024;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    pthread_t handles[MOST_THREADS];
    for (long i = 0; i < threads; i++) pthread_create(&handles[i], NULL, run, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    long momentum = 0;
    for (long i = 0; i < count; i++)
        for (int at = 0; at < ALL; at++) momentum += molecules[i].speeds[at];
    printf("momentum %ld, potential %ld\n", momentum, potential);
    return momentum != 0;
}
